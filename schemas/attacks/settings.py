"""Which attacks are played against a release before it is published: how many people, by which seed, and what becomes of a break."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from schemas.reading.model import LaterJsonSchema, StrictModel, fault

SAMPLE = 2_000
"""People that an attack is played against at most, unless the job says otherwise."""
MOST_PEOPLE = 1_000_000


class AttackSettings(StrictModel):
    """How a release is attacked before it is published."""

    sample: Annotated[int, Field(ge=1, le=MOST_PEOPLE)] | Literal["all"] = SAMPLE
    """People that an attack is played against at most, or the word all. Fewer are drawn where a guess costs much."""
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    """What people and guesses are drawn by."""
    refuse: bool = False
    """Whether a release that an attack breaks is refused (exit code 3); else a run warns of it first."""

    @property
    def plays_all(self) -> bool:
        """Whether attacks are played against everybody."""
        return self.sample == "all"


def attack_settings(value: object) -> object:
    """Returns the settings of attacks, or None where none are played.

    Raises:
        PydanticCustomError: neither a word nor a mapping.
    """
    # YAML takes the bare word off for false.
    if value is False or value == "off":
        return None
    if isinstance(value, AttackSettings):
        return value
    if value in ("sample", "all"):
        return AttackSettings(sample="all") if value == "all" else AttackSettings()
    if isinstance(value, Mapping):
        return AttackSettings.model_validate(dict(value))
    raise fault("must be sample, all or off, or a mapping with the keys sample, seed and refuse")


def attacks_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the field."""
    return {"anyOf": [{"enum": ["sample", "all", "off"]}, AttackSettings.model_json_schema()]}


Attacks = Annotated[AttackSettings | None, BeforeValidator(attack_settings), LaterJsonSchema(attacks_schema)]
