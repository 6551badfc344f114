"""Where a key or a vault lies: the only thing that a job says of it, and no part of its digest or of anything made of it."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from math import log2
from typing import Annotated

from pydantic import BeforeValidator

from schemas.reading.model import PathText, StrictModel, fault

SECRET_SOURCES = ("env", "file", "prefect_block")
_PLACE = "must say where it lies, as {env: NAME}, {file: PATH} or {prefect_block: NAME}; never write a key into a job"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_BLOCK = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


def exactly_one_source(value: object) -> object:
    """Returns ``value`` unchanged if it names one place; what it holds otherwise may be the key itself and is never shown."""
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
    """Where a key or a vault lies; exactly one of the three."""

    env: str | None = None
    """An environment variable that holds the key, or the path of the vault."""
    file: PathText | None = None
    """The file, relative to the job file; only its owner may read it."""
    prefect_block: str | None = None
    """A Secret block of Prefect that holds the key, or the path of the vault."""

    @property
    def words(self) -> str:
        """The place in words."""
        if self.env is not None:
            return f"environment variable {self.env}"
        return f"file '{self.file}'" if self.file is not None else f"Prefect block '{self.prefect_block}'"


SecretPlace = Annotated[Secret, BeforeValidator(exactly_one_source)]


LEAST_BITS = 128
LEAST_DISTINCT = 5
_KINDS = ((string.digits, 10), (string.hexdigits, 16), (string.printable, 64))


def is_strong(key: bytes) -> bool:
    """Tells whether a key can hold 128 bits: by its length and the kind of characters that it is written in.

    Sixteen random bytes can, or 32 hexadecimal digits, 39 decimal ones, 22 of base 64. A sentence of that length passes too: what cannot
    be seen from a key is how it was chosen.
    """
    size = next((size for characters, size in _KINDS if set(key) <= set(characters.encode())), 256)
    return len(key) * log2(size) >= LEAST_BITS and len(set(key)) >= LEAST_DISTINCT
