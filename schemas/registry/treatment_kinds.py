"""Registry of the treatments of identifiers: schema, code, form of pseudonyms and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from schemas.reading.model import Choice, kind_named, one_named
from schemas.reading.registry import Code, Registry, Schemas
from schemas.registry.treatments import (
    TOKEN_DIGITS,
    EncryptTreatment,
    HashTreatment,
    MaskTreatment,
    ShiftTreatment,
    TokenTreatment,
    TreatmentSpec,
)

_TEXT = "make it text, a whole number or a date"


@dataclass(frozen=True)
class TreatmentKind:
    """A registry entry for one kind of treatment of identifiers.

    Attributes:
        name: The key by which a job names it.
        schema: What a job may say of it; its docstring and those of its fields are its part of the reference.
        words: What is published, for plan, report and manifest: these words stand in the place of the identifier.
        form: The regular expression (RE2) that every pseudonym matches as a whole, so that a recount knows it without a key.
        published: Tells the type of its pseudonyms: ``(spec, type of the column)`` to a type, or None where the column cannot be treated.
        fitting: What to do about a column that cannot be.
        pseudonyms: Makes them: ``(spec, values, means)`` to an array; see `core.privacy.pseudonyms`.
        originals: Undoes them: ``(spec, pseudonyms, means)`` to an array of text; None where nobody can.
        vaulted: Whether its secret is a vault, out of which every value gets its pseudonym before any chunk is read, and not a key.
        per_subject: Whether its settings name a ``subject``. It is then handed every record's value and subject, else distinct values.
        meets: Whether a pseudonym may be a value of the source: never, by a rare chance, or often enough to say nothing.
        types: DuckDB's types of which its column is, with ``%`` for anything; empty if the form says all.
        links: Whether equal values get equal pseudonyms, which then show which records belong together.
        tells_apart: Whether different values get different pseudonyms.
        stable: How many of their first characters are the same with the same key, whatever its settings; 0 where that is not so.
    """

    name: str
    schema: type[TreatmentSpec]
    words: str
    form: Callable[[Any], str]
    published: Callable[..., Any]
    fitting: str
    pseudonyms: Callable[..., Any]
    originals: Callable[..., Any] | None = None
    vaulted: bool = False
    per_subject: bool = False
    meets: Literal["never", "by chance", "often"] = "often"
    types: tuple[str, ...] = ()
    # Unless an entry says otherwise: one that is wrongly taken to link is asked about, one that wrongly is not would be published.
    links: bool = True
    tells_apart: bool = False
    stable: int = 0


def _mask_form(spec: MaskTreatment) -> str:
    """Return the regular expression of all masked values."""
    mask = spec.mask
    if mask.replacement is not None:
        parts = enumerate(re.split(r"\\([1-9\\])", mask.replacement))
        written = (part if place % 2 == 0 else "\\" if part == "\\" else None for place, part in parts)
        # Of what a group took out of a value only the source knows the form.
        read = (".*" if part is None else escaped_characters(part) for part in written)
        return "(?s)" + "".join(read)
    covered, kept = f"{escaped_characters(mask.character)}+", f".{{0,{mask.keep}}}"
    return f"(?s)(|{covered}{kept})" if mask.side == "end" else f"(?s)(|{kept}{covered})"


def _encrypt_form(spec: EncryptTreatment) -> str:
    """Return the regular expression of all encrypted values."""
    settings = spec.encrypt
    if settings.width is not None:
        return f"[0-9]{{1,{settings.width}}}"
    return f"[{escaped_characters(settings.letters + settings.separators)}]{{{settings.least},}}"


def escaped_characters(text: str) -> str:
    """Return a text as escapes for a regular expression."""
    # By code point, so that none of them means anything in an expression.
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)


TREATMENTS = Registry(
    "treatment",
    TreatmentKind(
        name="hash",
        schema=HashTreatment,
        words="keyed hash (HMAC-SHA-256)",
        form=lambda spec: f"[0-9a-f]{{{spec.hash.length}}}",
        published=Code("core.privacy.pseudonyms:type_of_text"),
        fitting=_TEXT,
        pseudonyms=Code("core.privacy.pseudonyms:hashes"),
        tells_apart=True,
        # Its least length: a longer one begins with a shorter one.
        stable=16,
        meets="never",
    ),
    TreatmentKind(
        name="mask",
        schema=MaskTreatment,
        words="masked in part",
        form=_mask_form,
        published=Code("core.privacy.pseudonyms:type_of_text"),
        fitting=_TEXT,
        pseudonyms=Code("core.privacy.pseudonyms:masks"),
    ),
    TreatmentKind(
        name="token",
        schema=TokenTreatment,
        words="random token from a vault",
        form=lambda spec: f"[0-9a-f]{{{TOKEN_DIGITS}}}",
        published=Code("core.privacy.pseudonyms:type_of_text"),
        fitting=_TEXT,
        pseudonyms=Code("core.privacy.pseudonyms:tokens"),
        tells_apart=True,
        originals=Code("core.privacy.pseudonyms:originals_of_tokens"),
        vaulted=True,
        meets="never",
    ),
    TreatmentKind(
        name="encrypt",
        schema=EncryptTreatment,
        words="format-preserving encryption (FF1)",
        form=_encrypt_form,
        published=Code("core.privacy.pseudonyms:type_of_ciphers"),
        fitting="it takes text, without encrypt.width, or whole numbers, with encrypt.width: the digits of the longest one",
        pseudonyms=Code("core.privacy.pseudonyms:ciphers"),
        tells_apart=True,
        originals=Code("core.privacy.pseudonyms:originals_of_ciphers"),
        meets="by chance",
    ),
    TreatmentKind(
        name="shift",
        schema=ShiftTreatment,
        words="dates shifted per person",
        form=lambda spec: r"[0-9]{4,}-[0-9]{2}-[0-9]{2}( .*)?",
        published=Code("core.privacy.pseudonyms:type_of_dates"),
        fitting="it takes dates and timestamps",
        pseudonyms=Code("core.privacy.pseudonyms:shifted_dates"),
        originals=Code("core.privacy.pseudonyms:originals_of_dates"),
        per_subject=True,
        types=("DATE", "TIMESTAMP%"),
        links=False,
    ),
)
"""The known treatments by name. A further one is one more entry."""
SCHEMAS = Schemas(TREATMENTS)


def treatment_of(value: object) -> str | None:
    """Return the treatment of validated or raw settings; None if no key of a mapping names one."""
    return kind_named(value, SCHEMAS)


def treatment_kind(spec: TreatmentSpec) -> TreatmentKind:
    """Return the registry entry of a treatment."""
    return TREATMENTS[spec.kind]


Treatment = Annotated[
    TreatmentSpec,
    Choice(SCHEMAS, treatment_of),
    BeforeValidator(lambda value: one_named(value, SCHEMAS, "treatment", "treatments", "the word drop or a mapping")),
]
