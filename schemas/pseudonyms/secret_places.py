"""Where a key or a vault lies: the only thing that a job says of it, and no part of its digest or of anything made of it."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from schemas.reading.model import PathText, StrictModel, fault

PLACES = ("env", "file", "prefect_block")
_PLACE = "must say where it lies, as {env: NAME}, {file: PATH} or {prefect_block: NAME}; never write a key into a job"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_BLOCK = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


def one_place(value: object) -> object:
    """Returns ``value`` unchanged if it names one place; what it holds otherwise may be the key itself and is never shown.

    Raises:
        PydanticCustomError: anything else.
    """
    if isinstance(value, StrictModel):
        return value
    if not isinstance(value, Mapping) or len(given := [key for key in value if value[key] is not None]) != 1 or given[0] not in PLACES:
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


SecretPlace = Annotated[Secret, BeforeValidator(one_place)]
