"""Privacy models, suppression and simulated attacks: a job's settings and the attacks' results.

A result has the guesses, the right ones, and the same for a control group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from schemas.job.method import METHODS
from schemas.reading.model import ExactDecimal, FrozenModel, LaterJsonSchema, StrictModel, fault
from schemas.reading.registry import OneOf, Registry
from schemas.registry.privacy_kinds import Closeness, Diversity, PrivacyKind, models_in_job

AttackName = Literal["singling_out", "linkage", "inference", "membership", "downcoding", "joins"]
AttackVerdict = Literal["safe", "told", "broken"]


class AttackFigures(FrozenModel):
    """Guesses and right guesses of one attack and of its control group, with the advantage.

    Attributes:
        name: The attack.
        target: What it aims at: a column, a table or another release; None for records as such.
        knows: What the attacker knows, in words.
        guesses: Guesses about people of the release, of which ``right`` were right.
        control_guesses: Guesses about the control group, of which ``control_right`` were right.
        advantage: Share of right guesses minus that of the control group.
        low, high: Interval of the advantage at 95 %, by the score intervals of Wilson (Newcombe 1998, method 10).
        accepted: The advantage that the job accepts; 0 where it promises that no guess is right.
        verdict: ``safe``: the interval holds the control group. ``told``: more, within what the job accepts. ``broken``: more than that.
    """

    name: AttackName
    target: str | None
    knows: str
    guesses: int
    right: int
    control_guesses: int
    control_right: int
    advantage: float
    low: float
    high: float
    accepted: float
    verdict: AttackVerdict


class AttackBasis(FrozenModel):
    """The sample, seed and code version of the attacks on a release.

    Attributes:
        sample: People that an attack is played against at most; None for all of them.
        seed: What they were drawn by.
        code: Fingerprint of the code of the attacks.
        unplayed: Why attacks were not played, a sentence each.
    """

    sample: int | None
    seed: int
    code: str
    unplayed: tuple[str, ...] = ()


def broken_attacks(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """Return the attacks whose verdict is ``broken``: they succeed more than the job accepts."""
    return [one for one in attacks if one.verdict == "broken"]


def attacks_sentence(attack: AttackFigures) -> str:
    """Return one attack in words: its name, its target and the attacker's knowledge."""
    return f"{attack.name.replace('_', ' ')}{f' of {attack.target!r}' if attack.target else ''} by {attack.knows}"


SAMPLE = 2_000
"""People that an attack is played against at most, unless the job says otherwise."""
MOST_PEOPLE = 1_000_000


def sample_size(value: object) -> object:
    """Return a sample size; raise unless it is a whole number up to a million, or the word all."""
    if value == "all" or (type(value) is int and 1 <= value <= MOST_PEOPLE):
        return value
    raise fault(f"must be a whole number from 1 to {MOST_PEOPLE:,}, or the word all")


class AttackSettings(StrictModel):
    """Settings of the simulated attacks on a release before it is published."""

    sample: Annotated[Annotated[int, Field(ge=1, le=MOST_PEOPLE)] | Literal["all"], BeforeValidator(sample_size)] = SAMPLE
    """People that an attack is played against at most, or the word all. Fewer are drawn where a guess costs much."""
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    """What people and guesses are drawn by."""
    refuse: bool = False
    """Whether a release that an attack breaks is refused (exit code 3); else a run warns of it first."""


def attack_settings(value: object) -> object:
    """Return the attack settings of sample, all or a mapping, and None for off; raise for other values."""
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


Attacks = Annotated[
    AttackSettings | None,
    BeforeValidator(attack_settings),
    LaterJsonSchema(lambda: {"anyOf": [{"enum": ["sample", "all", "off"]}, AttackSettings.model_json_schema()]}),
]


class Privacy(StrictModel):
    """Privacy models that every equivalence class of the release must satisfy."""

    examples: ClassVar[Mapping[str, str]] = {"l": "l: {diagnosis: {distinct: 3}}", "t": "t: {diagnosis: {t: 0.2}}"}
    k: Annotated[int, Field(ge=1)]
    """Records that share each published combination of quasi-identifiers, at least."""
    l: dict[str, Diversity] = Field(default_factory=dict)  # noqa: E741 - the model's own name
    """l-diversity by sensitive column."""
    t: dict[str, Closeness] = Field(default_factory=dict)
    """t-closeness by sensitive column."""

    @property
    def columns(self) -> list[str]:
        """Sensitive columns of the models l and t, each once."""
        return list(dict.fromkeys([*self.l, *self.t]))

    def with_others(self, sensitive: Sequence[str]) -> list[str]:
        """Return the columns of the models, then the other sensitive columns, in order.

        The values of all these are kept with the persons of a release.
        """
        return list(dict.fromkeys([*self.columns, *sensitive]))

    @property
    def models(self) -> Iterator[tuple[PrivacyKind, str, Any]]:
        """Registry entry, sensitive column and settings of each model."""
        return models_in_job(dict(self))

    def summary(self) -> dict[str, Any]:
        """Return k and the parameters of each model as JSON data for the manifest.

        Hierarchies are left out, because they hold values.
        """
        promised: dict[str, Any] = {"k": self.k}
        for kind, column, spec in self.models:
            promised.setdefault(kind.section, {})[column] = spec.summary()
        return promised


def uncompiled_faults(privacy: Mapping[str, Any], method: object) -> list[str]:
    """Return a message for each privacy model that a method's compiled cuts do not support.

    The models may be validated or raw; each message has its location.

    Args:
        privacy: Models by section and column.
    """
    entry = METHODS.get(method) if isinstance(method, str) else None
    if entry is None or not entry.compiled:
        return []
    return [
        f"privacy.{kind.section}.{column}: {kind.name} is not known to the compiled cuts of method {method}; choose another, such as skald"
        for kind, column, _ in models_in_job(privacy)
        if not kind.compiled
    ]


@dataclass(frozen=True)
class SuppressionKind:
    """A registry entry for one treatment of suppressed records.

    Attributes:
        name: How a job calls it.
        words: What is done to such a record, for plan and report.
        withheld: What it publishes that looks like a null where there are bounds; empty if it publishes nothing of them.
        stars: Whether as few values as possible are withheld, at chosen levels, and not all.
    """

    name: str
    words: str
    withheld: str = ""
    stars: bool = False

    @property
    def masks(self) -> bool:
        """Whether records may be published with ``*`` in every quasi-identifier."""
        return bool(self.withheld)


SUPPRESSIONS = Registry(
    "treatment of suppressed records",
    SuppressionKind(name="drop", words="left out"),
    SuppressionKind(name="mask", words="masked, with * in every quasi-identifier", withheld="masked record"),
    SuppressionKind(
        name="cell",
        words="published with * in as few quasi-identifiers as make their combination safe",
        withheld="starred value",
        stars=True,
    ),
)
"""The known treatments of suppressed records by name."""


def share_of_records(value: Decimal) -> Decimal:
    """Return a share of the records; raise unless it is from 0 to 1."""
    if not 0 <= value <= 1:
        raise fault("must be a share of the records, from 0 to 1")
    return value


class Suppression(StrictModel):
    """Limit and treatment of suppressed records."""

    limit: Annotated[ExactDecimal, AfterValidator(share_of_records)] = Decimal(0)
    """The greatest share of all records that may be suppressed at the chosen levels, whatever becomes of them afterwards."""
    treatment: Annotated[str, OneOf(SUPPRESSIONS)] = "drop"
    """Whether suppressed records are left out, published with * in every quasi-identifier, or with as few * as bring them into a class."""
    rounds: Annotated[int, Field(ge=0, le=100)] = 0
    """How often suppressed records are anonymised again, at the best levels of their own, before the treatment takes what is left."""

    @property
    def is_local(self) -> bool:
        """Whether some records may be published at other levels than the one chosen node."""
        return SUPPRESSIONS[self.treatment].stars or self.rounds > 0

    @property
    def masks(self) -> bool:
        """Whether records may be published with * in every quasi-identifier."""
        return SUPPRESSIONS[self.treatment].masks

    @property
    def as_text(self) -> bool:
        """Whether every quasi-identifier is published as text.

        Its column may hold a * or groups of several levels.
        """
        return self.masks or self.rounds > 0

    def canonical(self) -> dict[str, Any]:
        """Return the settings as JSON data, without ``rounds`` if it is 0.

        Jobs from before this setting existed keep their digest.
        """
        return {name: value for name, value in super().canonical().items() if name != "rounds" or value}
