"""The promise of a job to every class: k and the models of its sensitive values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from core.privacy.holders import Holders, condition_of
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, Failing, PrivacyModel, RecursiveDiversity, Spreads
from schemas.job.columns import QuasiIdentifier
from schemas.registry.sensitive import ClosenessSpec, DistinctSpec, DiversitySpec, EntropySpec, RecursiveSpec

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Promise:
    """Promise that every class has k units and keeps the models of sensitive values.

    It is monotone as each of the models is, and as k is: a union is no smaller than its parts.

    Attributes:
        k: Fewest units of a class: persons, or records where the job has no person column (Sweeney 2002; papers/skald.txt, II.A).
        models: What its sensitive values must keep besides.
    """

    k: int
    models: tuple[PrivacyModel, ...] = ()

    def failing(self, units: Counts, spreads: Spreads | None = None) -> Failing:
        """Return a mask of the classes that break the promise, shape (classes,).

        Args:
            units: Shape (classes,), persons per class; where the job has no person column, each record counts as one.
            spreads: By sensitive column, for the columns that the models look at.
        """
        failing = self.too_few(units)
        for model in self.models:
            failing |= model.failing(units, spreads)
        return failing

    def too_few(self, units: Counts) -> Failing:
        """Return a mask of the counts below k."""
        return units < self.k

    @property
    def of_size(self) -> Promise:
        """Promise of k alone, without sensitive values."""
        return Promise(self.k)

    @cached_property
    def relaxed(self) -> Promise:
        """The weaker promise that a union of classes keeps if one of its classes keeps it.

        Under it coarser nodes never suppress more.
        """
        return (
            self
            if self.is_closed_under_union
            else Promise(self.k, tuple(weaker for one in self.models if (weaker := one.relaxed) is not None))
        )

    @cached_property
    def is_closed_under_union(self) -> bool:
        """Whether a union of classes with one safe class is safe, even with persons in several classes."""
        return all(one.relaxed is one for one in self.models)

    def of_people(self, source_counts: Mapping[str, NDArray[Any]], person_count: int) -> Promise:
        """Return the promise with holder conditions for columns of which a person has several values.

        Without such a column the promise is returned unchanged.

        Args:
            source_counts: By sensitive column, shape (values,): persons of the whole source by value.
            person_count: Persons of the whole source.
        """
        several = {column for column, whole in source_counts.items() if int(whole.sum()) > person_count}
        added = [
            found
            for one in self.models
            if (found := condition_of(one, source_counts, person_count)) is not None and found.column in several
        ]
        return Promise(self.k, (*self.models, *added)) if added else self

    def column_broken_by_holders(self, units: Counts, spreads: Spreads) -> str | None:
        """Return the column of a value with too many holders if one class fails by this alone; else None.

        Args:
            units: Shape (1,), as for ``failing``.
            spreads: The same.
        """
        if self.too_few(units)[0]:
            return None
        columns = [one.column if isinstance(one, Holders) else None for one in self.models if one.failing(units, spreads)[0]]
        return columns[0] if columns and None not in columns else None


def distinct_diversity(column: str, spec: DistinctSpec, domain: Domain, _folder: Path) -> DistinctDiversity:
    """Build the distinct l-diversity of a sensitive column."""
    return DistinctDiversity(column, spec.distinct, _no_value(spec, domain))


def entropy_diversity(column: str, spec: EntropySpec, domain: Domain, _folder: Path) -> EntropyDiversity:
    """Build the entropy l-diversity of a sensitive column."""
    return EntropyDiversity(column, float(spec.entropy), _no_value(spec, domain))


def recursive_diversity(column: str, spec: RecursiveSpec, domain: Domain, _folder: Path) -> RecursiveDiversity:
    """Build the recursive (c, l)-diversity of a sensitive column."""
    return RecursiveDiversity(column, Fraction(spec.recursive.c), spec.recursive.l, _no_value(spec, domain))


def equal_closeness(column: str, spec: ClosenessSpec, _domain: Domain, _folder: Path) -> Closeness:
    """Build the t-closeness of a column with equal distances between all values."""
    return Closeness(column, float(spec.t))


def ordered_closeness(column: str, spec: ClosenessSpec, domain: Domain, _folder: Path) -> Closeness:
    """Build the t-closeness of a column with distances by position in the domain, a null last."""
    return Closeness(column, float(spec.t), np.arange(domain.size, dtype=np.int64))


def hierarchical_closeness(column: str, spec: ClosenessSpec, domain: Domain, folder: Path) -> Closeness:
    """Build the t-closeness of a column with distances by the lowest common group of two values."""
    assert spec.hierarchy is not None
    hierarchy = build_hierarchy(QuasiIdentifier(name=column, hierarchy=spec.hierarchy), domain, folder)
    return Closeness(column, float(spec.t), None, tuple(level.astype(np.int64) for level in hierarchy.groups[1:]))


def _no_value(spec: DiversitySpec, domain: Domain) -> int | None:
    """Return the code of the null where it is no value of diversity, else None."""
    return len(domain.values) if domain.nulls and spec.nulls == "none" else None
