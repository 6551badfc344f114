"""Job models of the treatments that publish identifiers as pseudonyms."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from math import log2
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from schemas.reading.model import Character, PathText, StrictModel, fault

SECRET_SOURCES = ("env", "file", "prefect_block")
_PLACE = "must say where it lies, as {env: NAME}, {file: PATH} or {prefect_block: NAME}; never write a key into a job"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_BLOCK = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


def exactly_one_source(value: object) -> object:
    """Return a secret's settings; raise unless they name exactly one place.

    Wrong settings may hold the key itself and are never shown.
    """
    if isinstance(value, StrictModel):
        return value
    if (
        not isinstance(value, Mapping)
        or len(given := [key for key in value if value[key] is not None]) != 1
        or given[0] not in SECRET_SOURCES
    ):
        raise fault(_PLACE)
    [(place, name)] = ((key, value[key]) for key in given)
    form = {"env": _VARIABLE, "prefect_block": _BLOCK}.get(place)
    if form and not (isinstance(name, str) and form.fullmatch(name)):
        kind = "an environment variable: capital letters, digits and '_'" if place == "env" else "a block: small letters, digits and '-'"
        raise fault(f"{place} must be the name of {kind}")
    return {place: name}


class Secret(StrictModel):
    """Place of a key or a vault: exactly one of variable, file and Prefect block."""

    env: str | None = None
    """An environment variable that holds the key, or the path of the vault."""
    file: PathText | None = None
    """The file, relative to the job file; only its owner may read it."""
    prefect_block: str | None = None
    """A Secret block of Prefect that holds the key, or the path of the vault."""

    @property
    def words(self) -> str:
        """Description of the place, for messages."""
        if self.env is not None:
            return f"environment variable {self.env}"
        return f"file '{self.file}'" if self.file is not None else f"Prefect block '{self.prefect_block}'"


SecretPlace = Annotated[Secret, BeforeValidator(exactly_one_source)]


LEAST_BITS = 128
LEAST_DISTINCT = 5
_KINDS = ((string.digits, 10), (string.hexdigits, 16), (string.printable, 64))


def is_strong(key: bytes) -> bool:
    """Return whether a key can hold 128 bits, by its length and kinds of characters.

    Sixteen random bytes can, or 32 hexadecimal digits, 39 decimal ones, 22 of base 64. A sentence of that length passes too: a key does
    not show how it was chosen.
    """
    size = next((size for characters, size in _KINDS if set(key) <= set(characters.encode())), 256)
    return len(key) * log2(size) >= LEAST_BITS and len(set(key)) >= LEAST_DISTINCT


ALPHABETS = {
    "digits": string.digits,
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "letters": string.ascii_letters,
    "alphanumeric": string.digits + string.ascii_letters,
}
LEAST_DOMAIN = 1_000_000
"""Values that format-preserving encryption must tell apart at least (NIST SP 800-38G, revision 1): fewer can be tried out."""
MOST_DIGITS = 18
TOKEN_DIGITS = 32


class HashSettings(StrictModel):
    """Settings of a keyed hash: HMAC-SHA-256 of the value as text."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"key"})
    key: SecretPlace
    """Where the key lies: 128 random bits at least."""
    length: Annotated[int, Field(ge=16, le=64)] = 64
    """Hexadecimal digits that are published; fewer make different persons share a pseudonym by chance."""


class MaskSettings(StrictModel):
    """Settings of a mask: by position, or by a pattern that the whole value must match."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)
    keep: Annotated[int, Field(ge=0, le=100)] | None = None
    """Characters that stay readable; a value that has no more than these is masked whole."""
    side: Annotated[Literal["start", "end"], Field(alias="from")] = "end"
    """Where the characters that stay are counted from."""
    character: Annotated[Character, Field(alias="with")] = "*"
    """What stands for every other character."""
    pattern: str | None = None
    """A regular expression (RE2) that every value must match from start to end."""
    replacement: str | None = None
    r"""What is published then; \1 to \9 are the pattern's groups."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Check that a mask has either kept characters or a pattern with its replacement."""
        if (self.keep is None) == (self.pattern is None):
            raise fault("must say either keep or pattern")
        if (self.pattern is None) != (self.replacement is None):
            raise fault("pattern and replacement belong together")
        if self.pattern is not None and self.replacement is not None:
            # By what is written, because both have defaults.
            if {"side", "character"} & self.model_fields_set:
                raise fault("'from' and 'with' belong to keep; a pattern says in its replacement what is published")
            if not _replaces(self.pattern, self.replacement):
                raise fault("pattern is not a regular expression (RE2), or replacement names a group that it does not have, or \\0")
        return self


def _replaces(pattern: str, replacement: str) -> bool:
    """Return whether a pattern and its replacement are valid for Arrow's RE2."""
    import pyarrow as pa  # noqa: PLC0415 - few jobs have a pattern
    import pyarrow.compute as pc  # noqa: PLC0415

    # \0 is the whole match: what is published would be the value itself.
    if re.search(r"(?<!\\)(?:\\\\)*\\0", replacement):
        return False
    try:
        pc.replace_substring_regex(pa.array(["x"]), full_match_pattern(pattern), replacement)
    except pa.ArrowException:
        return False
    return True


def full_match_pattern(pattern: str) -> str:
    """Return a pattern that must match the complete text, line ends included.

    Groups keep their numbers.
    """
    # In a group: of alternatives the first would else have the beginning alone, and the last the end.
    return rf"(?s)\A(?:{pattern})\z"


class TokenSettings(StrictModel):
    """Settings of random tokens, kept in a vault."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"vault"})
    vault: SecretPlace
    """Where the vault lies: a Parquet file with raw values, outside target and work folder."""


class EncryptSettings(StrictModel):
    """Settings of format-preserving encryption: FF1 of NIST SP 800-38G with AES-256 (FF3-1 is withdrawn)."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"key"})
    key: SecretPlace
    """Where the key lies: 128 random bits at least."""
    alphabet: Literal["digits", "lower", "upper", "letters", "alphanumeric"] | None = None
    """The characters that are encrypted into each other."""
    characters: str | None = None
    """The same, written out."""
    separators: str = ""
    """Characters that stay where they are, such as '- '."""
    width: Annotated[int, Field(ge=6, le=MOST_DIGITS)] | None = None
    """For columns of whole numbers: the digits of the longest one; shorter ones are filled with zeros."""

    @model_validator(mode="after")
    def _letters(self) -> Self:
        """Check that the encrypted characters are distinct and not among the separators."""
        if (self.alphabet is None) == (self.characters is None):
            raise fault("must say either alphabet or characters")
        if len(self.letters) < 2 or len(set(self.letters)) < len(self.letters):
            raise fault("characters must be at least two, each once")
        # A value could not be decrypted if one character both stays and is encrypted.
        if set(self.letters) & set(self.separators):
            raise fault("separators must not be among the characters that are encrypted")
        return self

    @property
    def letters(self) -> str:
        """Characters that are encrypted into each other."""
        return ALPHABETS[self.alphabet] if self.alphabet else self.characters or ""

    @property
    def least(self) -> int:
        """Minimum number of characters to encrypt in a value."""
        length = 2
        while len(self.letters) ** length < LEAST_DOMAIN:
            length += 1
        return length


class ShiftSettings(StrictModel):
    """Settings of dates moved by whole days, all of a person by the same number, which is never 0."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"key"})
    subject: str
    """The column that tells whose date it is; it need not be published."""
    days: Annotated[int, Field(ge=1, le=36_500)]
    """How far at most, in either direction."""
    key: SecretPlace
    """Where the key lies: 128 random bits at least."""


class TreatmentSpec(StrictModel):
    """Base class for the settings of one treatment in a job.

    A kind has a field of its own name, by which it is recognised.
    """

    kind: ClassVar[str]
    """The name of the kind in `schemas.registry.treatment_kinds.TREATMENTS`."""

    @property
    def secret(self) -> Secret | None:
        """Place of the treatment's key or vault; None for treatments without either."""
        return None

    @property
    def width(self) -> int | None:
        """Digits to which whole numbers are filled up with zeros before they are treated, if they are."""
        return None

    @property
    def subject(self) -> str | None:
        """Column that identifies the person of a value; None for treatments that do not ask for persons.

        Only kinds that treat all values of a person alike have one.
        """
        return None


class HashTreatment(TreatmentSpec):
    """Treatment that publishes a keyed hash of each value."""

    kind: ClassVar[str] = "hash"
    examples: ClassVar[Mapping[str, str]] = {"hash": "hash: {key: {env: SKALD_KEY}}"}
    hash: HashSettings
    """Its settings."""

    @property
    def secret(self) -> Secret:
        """Place of the key."""
        return self.hash.key


class MaskTreatment(TreatmentSpec):
    """Treatment that publishes part of each value."""

    kind: ClassVar[str] = "mask"
    examples: ClassVar[Mapping[str, str]] = {"mask": "mask: {keep: 3}"}
    mask: MaskSettings
    """Its settings."""


class TokenTreatment(TreatmentSpec):
    """Treatment that publishes a random token for each value."""

    kind: ClassVar[str] = "token"
    examples: ClassVar[Mapping[str, str]] = {"token": "token: {vault: {file: tokens.vault}}"}
    token: TokenSettings
    """Its settings."""

    @property
    def secret(self) -> Secret:
        """Place of the vault."""
        return self.token.vault


class EncryptTreatment(TreatmentSpec):
    """Treatment that publishes each value encrypted, in the same form."""

    kind: ClassVar[str] = "encrypt"
    examples: ClassVar[Mapping[str, str]] = {"encrypt": "encrypt: {key: {env: SKALD_KEY}, alphabet: digits}"}
    encrypt: EncryptSettings
    """Its settings."""

    @property
    def secret(self) -> Secret:
        """Place of the key."""
        return self.encrypt.key

    @property
    def width(self) -> int | None:
        """Digits of the longest number."""
        return self.encrypt.width


class ShiftTreatment(TreatmentSpec):
    """Treatment that publishes dates shifted by a number of days per person."""

    kind: ClassVar[str] = "shift"
    examples: ClassVar[Mapping[str, str]] = {"shift": "shift: {subject: patient_id, days: 30, key: {env: SKALD_KEY}}"}
    shift: ShiftSettings
    """Its settings."""

    @property
    def secret(self) -> Secret:
        """Place of the key."""
        return self.shift.key

    @property
    def subject(self) -> str:
        """Column that identifies the person of a date."""
        return self.shift.subject
