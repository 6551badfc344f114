"""Registry of the privacy models of sensitive columns: schema, code, recount SQL and texts.

A model of l-diversity is recognised by its key, a distance of t-closeness by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, ValidationError
from pydantic_core import InitErrorDetails, PydanticKnownError

from schemas.errors.base import counted, listed, nearest
from schemas.reading.model import Choice, StrictModel, fault, kind_named, plain
from schemas.reading.registry import Code, Registry, Schemas
from schemas.registry.sensitive import (
    ClosenessSpec,
    DistinctSpec,
    DiversitySpec,
    EntropySpec,
    EqualSpec,
    HierarchicalSpec,
    OrderedSpec,
    RecursiveSpec,
)

_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


class Wording(NamedTuple):
    """Name, bound and sentence of a privacy model's promise, without cell values."""

    model: str
    asked: str
    sentence: str


@dataclass(frozen=True)
class PrivacyKind:
    """A registry entry for one privacy model of sensitive columns.

    Attributes:
        name: How a job calls it.
        schema: What a job may say of it; its docstring and those of its fields are its part of the reference.
        model: Makes what algorithms ask: ``(column, spec, domain, folder)`` to a `core.privacy.models.PrivacyModel`.
        statement: The recount's own SQL, which shares nothing with ``model``: ``(source, qids, column, spec, levels)`` to a statement that
            counts failing classes and classes and measures the worst; see `core.recount.spreads`.
        words: Says of a column and of what was promised, as a manifest holds it, what that is.
        held: The recount's own condition on how many persons of a class may hold one value: ``(spec)`` to an expression; see
            `core.recount.spreads`. None if there is none.
        held_of_source: Whether that condition also asks which values the source has.
        compiled: Whether the compiled kernels of Mondrian's cuts know the model; `core.privacy.kernels` holds them.
        least: Whether the worst class has the least of what is measured, and not the most.
        of_order: Whether it matters where values stand in the domain, and not only which of them are equal.
        of_presence: Whether it only matters which values occur, and not how often, so that records tell as much as persons.
    """

    section: ClassVar[Literal["l", "t"]]
    of_whole: ClassVar[bool] = False
    """Whether a class is compared with the whole source."""
    name: str
    schema: type[DiversitySpec] | type[ClosenessSpec]
    model: Callable[..., Any]
    statement: Callable[..., Any]
    words: Callable[[str, Mapping[str, Any]], Wording]
    held: Callable[..., str] | None = None
    held_of_source: bool = False
    compiled: bool = False
    least: bool = False
    of_order: bool = False
    of_presence: bool = False

    def spec_of(self, promised: object) -> DiversitySpec | ClosenessSpec:
        """Parse a promise as a manifest holds it; raise ``ValidationError`` if it is invalid."""
        return self.schema.model_validate(_with_numbers(promised))

    def broken(self, column: str, spec: Any) -> str:
        """Return the clause about failing classes, to follow their number in a message."""
        raise NotImplementedError

    def proven(self, column: str) -> str:
        """Return the sentence for a recount that found no failing class."""
        raise NotImplementedError


def _with_numbers(promised: Any) -> Any:
    """Return a promise with decimals in the place of numeric texts, so that they stay exact."""
    if isinstance(promised, Mapping):
        return {name: _with_numbers(one) for name, one in promised.items()}
    return Decimal(promised) if isinstance(promised, str) and _NUMBER.fullmatch(promised) else promised


@dataclass(frozen=True)
class DiversityKind(PrivacyKind):
    """A registry entry for one model of l-diversity."""

    section: ClassVar[Literal["l", "t"]] = "l"

    def broken(self, column: str, spec: Any) -> str:
        """Return the clause about classes that fail l-diversity."""
        return f"lack the l-diversity of '{column}' that the job promises"

    def proven(self, column: str) -> str:
        """Return the sentence for a recount in which no class fails l-diversity."""
        return f"l-diversity of '{column}' was counted in every class; none fails."


@dataclass(frozen=True)
class DistanceKind(PrivacyKind):
    """A registry entry for one distance of t-closeness."""

    section: ClassVar[Literal["l", "t"]] = "t"
    of_whole: ClassVar[bool] = True

    def broken(self, column: str, spec: Any) -> str:
        """Return the clause about classes that fail t-closeness."""
        return f"are farther from the whole in '{column}' than t = {spec.t}"

    def proven(self, column: str) -> str:
        """Return the sentence for a recount in which no class fails t-closeness."""
        return f"The distance of '{column}' from the whole source was measured in every class; none is above t."


def _distinct_words(column: str, promised: Mapping[str, Any]) -> Wording:
    """Return the wording of distinct l-diversity."""
    values = counted(promised["distinct"], "different value")
    sentence = f"In every class '{column}' takes at least {values} (distinct l-diversity)."
    return Wording("distinct l-diversity", f"≥ {promised['distinct']:,}", sentence)


def _entropy_words(column: str, promised: Mapping[str, Any]) -> Wording:
    """Return the wording of entropy l-diversity."""
    # A manifest may hold it as a number: by way of its text 1.5 stays 1.5, and does not become a binary fraction.
    least = plain(Decimal(str(promised["entropy"])))
    sentence = f"In every class '{column}' is spread at least as evenly as {least} equally frequent values (entropy l-diversity)."
    return Wording("entropy l-diversity", f"≥ {least}", sentence)


def _recursive_words(column: str, promised: Mapping[str, Any]) -> Wording:
    """Return the wording of recursive (c, l)-diversity."""
    c, least = plain(Decimal(str(promised["recursive"]["c"]))), promised["recursive"]["l"]
    rest = "all values together" if least == 1 else f"all values from the {least}. most frequent on together"
    claim = f"the most frequent value of '{column}' is less than {c} times as frequent as {rest}"
    return Wording("recursive (c, l)-diversity", f"< {c}", f"In every class {claim} (recursive (c, l)-diversity).")


def _closeness_words(column: str, promised: Mapping[str, Any]) -> Wording:
    """Return the wording of t-closeness."""
    t = plain(Decimal(str(promised["t"])))
    claim = f"The distribution of '{column}' in every class is at most {t} away from that of the whole source"
    return Wording("t-closeness", f"≤ {t}", f"{claim} (t-closeness, {promised['distance']} distance).")


DIVERSITIES: Registry[DiversityKind] = Registry(
    "model of l-diversity",
    DiversityKind(
        name="distinct",
        schema=DistinctSpec,
        model=Code("core.privacy.promise:distinct_diversity"),
        statement=Code("core.recount.spreads:distinct_sql"),
        words=_distinct_words,
        held=Code("core.recount.spreads:distinct_of_holders"),
        compiled=True,
        least=True,
        of_presence=True,
    ),
    DiversityKind(
        name="entropy",
        schema=EntropySpec,
        model=Code("core.privacy.promise:entropy_diversity"),
        statement=Code("core.recount.spreads:entropy_sql"),
        words=_entropy_words,
        held=Code("core.recount.spreads:entropy_of_holders"),
        held_of_source=True,
        compiled=True,
        least=True,
    ),
    DiversityKind(
        name="recursive",
        schema=RecursiveSpec,
        model=Code("core.privacy.promise:recursive_diversity"),
        statement=Code("core.recount.spreads:recursive_sql"),
        words=_recursive_words,
        held=Code("core.recount.spreads:recursive_of_holders"),
        compiled=True,
    ),
)
"""The known models of l-diversity by name. A further one is one more entry."""
DISTANCES: Registry[DistanceKind] = Registry(
    "distance of t-closeness",
    DistanceKind(
        name="equal",
        schema=EqualSpec,
        model=Code("core.privacy.promise:equal_closeness"),
        statement=Code("core.recount.spreads:equal_sql"),
        words=_closeness_words,
        held=Code("core.recount.spreads:closeness_of_holders"),
        compiled=True,
    ),
    DistanceKind(
        name="ordered",
        schema=OrderedSpec,
        model=Code("core.privacy.promise:ordered_closeness"),
        statement=Code("core.recount.spreads:ordered_sql"),
        of_order=True,
        words=_closeness_words,
        held=Code("core.recount.spreads:closeness_of_holders"),
        compiled=True,
    ),
    DistanceKind(
        name="hierarchical",
        schema=HierarchicalSpec,
        model=Code("core.privacy.promise:hierarchical_closeness"),
        statement=Code("core.recount.spreads:hierarchical_sql"),
        of_order=True,
        words=_closeness_words,
        held=Code("core.recount.spreads:closeness_of_holders"),
        compiled=True,
    ),
)
"""The known distances of t-closeness by name; the first is that of a job that says none. A further one is one more entry."""
DIVERSITY_SCHEMAS, DISTANCE_SCHEMAS = Schemas(DIVERSITIES), Schemas(DISTANCES)


def diversity_of(value: object) -> str | None:
    """Return the l-diversity model of validated or raw settings; None if no key of a mapping names one."""
    return kind_named(value, DIVERSITY_SCHEMAS)


def distance_of(value: object) -> str | None:
    """Return the t-closeness distance of settings, the default if they name none; None if unknown."""
    if isinstance(value, StrictModel):
        return getattr(value, "kind", None)
    name = value.get("distance", next(iter(DISTANCES))) if isinstance(value, Mapping) else None
    return name if isinstance(name, str) and name in DISTANCES else None


def models_in_job(privacy: Mapping[str, Any]) -> Iterator[tuple[PrivacyKind, str, Any]]:
    """Yield the registry entry, column and settings of each privacy model of a job.

    Args:
        privacy: Specs, or what they are made of or published as, by section (``l``, ``t``) and column; what is none is passed over.
    """
    for section, kind_of in (("l", diversity_of), ("t", distance_of)):
        registry: Mapping[str, PrivacyKind] = DIVERSITIES if section == "l" else DISTANCES
        columns = privacy.get(section)
        for column, asked in columns.items() if isinstance(columns, Mapping) else ():
            if (kind := kind_of(asked)) is not None:
                yield registry[kind], column, asked


def check_diversity(value: Any) -> Any:
    """Return a column's settings if they name exactly one model of l-diversity, else raise.

    A key without a value does not count.
    """
    if isinstance(value, StrictModel):
        return value
    if not isinstance(value, Mapping):
        raise PydanticKnownError("dict_type")
    said = {key: one for key, one in value.items() if one is not None or key not in DIVERSITIES}
    named = [key for key in DIVERSITIES if key in said]
    if len(named) != 1:
        hint = next((hint for hint in (nearest(str(key), DIVERSITIES) for key in said if not named) if hint), "")
        raise fault(f"must say one of {listed(DIVERSITIES, most=len(DIVERSITIES)).replace(chr(39), '')}{hint}, as in {{distinct: 3}}")
    return said


def check_distance(value: Any) -> Any:
    """Return a column's settings if their t-closeness distance is known, else raise."""
    if isinstance(value, StrictModel):
        return value
    if not isinstance(value, Mapping):
        raise PydanticKnownError("dict_type")
    if distance_of(value) is None:
        # The kind of error that Pydantic has for a literal, so that it is told at its place and with the nearest name.
        known = {"expected": ", ".join(f"'{name}'" for name in DISTANCES)}
        wrong = InitErrorDetails(type="literal_error", loc=("distance",), input=value["distance"], ctx=known)
        raise ValidationError.from_exception_data("distance", [wrong])
    return value


Diversity = Annotated[DiversitySpec, Choice(DIVERSITY_SCHEMAS, diversity_of), BeforeValidator(check_diversity)]
Closeness = Annotated[ClosenessSpec, Choice(DISTANCE_SCHEMAS, distance_of), BeforeValidator(check_distance)]
