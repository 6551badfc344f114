"""The privacy models that a job's specs stand for, as `schemas.privacy.kinds` names them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, RecursiveDiversity
from schemas.job.columns import QuasiIdentifier
from schemas.privacy.sensitive import ClosenessSpec, DistinctSpec, DiversitySpec, EntropySpec, RecursiveSpec


def distinct_diversity(column: str, spec: DistinctSpec, domain: Domain, _folder: Path) -> DistinctDiversity:
    """Returns distinct l-diversity."""
    return DistinctDiversity(column, spec.distinct, _no_value(spec, domain))


def entropy_diversity(column: str, spec: EntropySpec, domain: Domain, _folder: Path) -> EntropyDiversity:
    """Returns entropy l-diversity."""
    return EntropyDiversity(column, float(spec.entropy), _no_value(spec, domain))


def recursive_diversity(column: str, spec: RecursiveSpec, domain: Domain, _folder: Path) -> RecursiveDiversity:
    """Returns recursive (c, l)-diversity."""
    return RecursiveDiversity(column, Fraction(spec.recursive.c), spec.recursive.l, _no_value(spec, domain))


def equal_closeness(column: str, spec: ClosenessSpec, _domain: Domain, _folder: Path) -> Closeness:
    """Returns t-closeness where all values are equally far apart."""
    return Closeness(column, float(spec.t))


def ordered_closeness(column: str, spec: ClosenessSpec, domain: Domain, _folder: Path) -> Closeness:
    """Returns t-closeness where values are apart by their places in the domain, a null last."""
    return Closeness(column, float(spec.t), np.arange(domain.size, dtype=np.int64))


def hierarchical_closeness(column: str, spec: ClosenessSpec, domain: Domain, folder: Path) -> Closeness:
    """Returns t-closeness where values are apart by the lowest group that they share.

    Raises:
        HierarchyError: the hierarchy does not fit the column.
    """
    assert spec.hierarchy is not None
    hierarchy = build_hierarchy(QuasiIdentifier(name=column, hierarchy=spec.hierarchy), domain, folder)
    return Closeness(column, float(spec.t), None, tuple(level.astype(np.int64) for level in hierarchy.groups[1:]))


def _no_value(spec: DiversitySpec, domain: Domain) -> int | None:
    """Returns the code of the null, which comes after all values, unless it counts as one."""
    return len(domain.values) if domain.nulls and spec.nulls == "none" else None
