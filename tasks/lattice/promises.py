"""The privacy requirements of a job, and checks that its source can satisfy them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.columns.numbers import is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.privacy.models import Spread
from core.privacy.promise import Promise
from schemas.errors.base import PrivacyError, SourceError
from schemas.errors.hierarchies import HierarchyError
from schemas.errors.methods import HoldersError, LevelsError
from schemas.job.job import Job, privacy_content
from schemas.registry.privacy_kinds import models_in_job
from tasks.counting.coding import Coding
from tasks.counting.person_cells import PersonsOfCells


def most_suppressed(job: Job, record_count: int) -> int:
    """Return how many records a job may suppress: its limit times ``record_count``, exact, rounded down."""
    # A float product may fall just below a whole number, and one record fewer would be allowed.
    return floor(Fraction(job.suppression.limit) * record_count)


def class_settings(job: Job, coding: Coding) -> tuple[object, ...]:
    """Return the values, for keys, of all settings that determine classes, coding included."""
    promise = privacy_content(job), most_suppressed(job, coding.records), job.suppression.treatment
    return coding.key, *promise, job.method.canonical(), job.intervals, job.shared_ends


def promise_of(job: Job, coding: Coding) -> Promise:
    """Return the privacy promise of a job: k and its models for sensitive columns."""
    domains = {domain.qid: domain for domain in coding.sensitive}
    asked_of = models_in_job(dict(job.privacy))
    return Promise(job.privacy.k, tuple(kind.model(column, spec, domains[column], job.folder) for kind, column, spec in asked_of))


def promise_of_people(job: Job, coding: Coding, cells: Histogram, persons: PersonsOfCells) -> Promise:
    """Return a job's privacy promise where k counts persons, with how many persons may hold each value.

    Where persons have several values of a column, the promise also limits who may hold each.

    Args:
        cells: Of some node, with the sensitive columns as last axes; all records.
    """
    columns = enumerate(coding.sensitive, start=len(coding.hierarchies))
    wholes = {
        one.qid: persons.of_cells.source_value_counts(one.qid, cells.codes[:, axis].astype(np.int64), one.size) for axis, one in columns
    }
    return promise_of(job, coding).of_people(wholes, persons.number)


def source_value_counts(coding: Coding, position: int) -> NDArray[np.int64]:
    """Return the number of records of each value of a sensitive column, shape (values,), null last."""
    domain = coding.sensitive[position]
    return np.append(domain.counts, domain.nulls)[: domain.size].astype(np.int64)


def check_at_least_k(job: Job, count: int, unit: str = "record") -> None:
    """Raise ``PrivacyError`` if ``count`` records or persons are fewer than k."""
    if count < job.privacy.k:
        raise PrivacyError.too_few(job.privacy.k, count, unit)


def check_promise(job: Job, coding: Coding, *, may_suppress: bool = False) -> None:
    """Raise ``PrivacyError`` for fewer than k records, or if all records as one class break l or t.

    Args:
        may_suppress: Whether some records may be suppressed. Only what no class can keep even then is asked.
    """
    check_at_least_k(job, coding.records)
    spreads = {}
    for position, domain in enumerate(coding.sensitive):
        whole = source_value_counts(coding, position)
        values = np.flatnonzero(whole)
        spreads[domain.qid] = Spread(np.zeros(len(values), np.int64), values, whole[values], whole)
    broken, promise = [], promise_of(job, coding)
    for key, model in zip(models_promised(job), promise.models, strict=True):
        alone = Promise(promise.k, (model,))
        # How many people have a value is not known here: records only tell which values there are, if somebody has them.
        if (alone.relaxed if job.columns.person or may_suppress else alone).failing(np.array([coding.records]), spreads)[0]:
            broken.append(key)
    if broken:
        raise PrivacyError.one_class_fails(broken)


def models_promised(job: Job) -> list[str]:
    """Return the job keys, such as ``privacy.l.disease``, that require something of sensitive values."""
    asked = dict(job.privacy)
    return [f"privacy.{section}.{column}" for section in ("l", "t") for _, column, _ in models_in_job({section: asked[section]})]


def one_class_error(job: Job, column_held: str | None) -> PrivacyError:
    """Return (not raise) the error that all records as one class fail, perhaps by a column's value."""
    models = models_promised(job)
    return PrivacyError.one_class_fails(models) if column_held is None else HoldersError.of_one_class(models, column_held)


def check_intervals(coding: Coding, ways: Sequence[str | None]) -> None:
    """Raise ``SourceError`` if a QID published as intervals is neither numeric nor a date.

    Args:
        ways: How each QID is published, None for the usual way; none at all where all are published so.
    """
    for domain, way in zip(coding.domains, ways, strict=False):
        if way == "interval" and not is_numerical(domain):
            kind = str(domain.values.type)
            raise SourceError.wrong_type(domain.qid, kind, "published as an interval", "choose hierarchy, prefix or set")


def no_class_error(job: Job, coding: Coding, column_held: str | None = None) -> PrivacyError:
    """Return (not raise) the error that explains why no class can be published.

    All records together fail, levels are too fine, or the suppression limit is too high.

    Args:
        coding: Domains and hierarchies.
        column_held: The column of which too many persons hold one value, if all records together break it by nothing else.
    """
    try:
        check_promise(job, coding)
    except PrivacyError as error:
        return error
    if job.full_domain.levels:
        return LevelsError.none_within()
    if models_promised(job) and most_suppressed(job, coding.records) < coding.records:
        # Not all may be suppressed, so that the coarsest choice was looked at, and by persons it fails.
        return one_class_error(job, column_held)
    return PrivacyError.no_records_left(coding.records)


def searched_axes(job: Job, coding: Coding) -> tuple[Hierarchy, ...]:
    """Return the searched lattice's axes: hierarchies bounded by ``method.levels``, then sensitive ones."""
    levels = job.full_domain.levels
    if not levels:
        return coding.axes
    bounded = [_within(hierarchy, levels.get(hierarchy.qid)) for hierarchy in coding.hierarchies]
    return (*bounded, *coding.axes[len(bounded) :])


def _within(hierarchy: Hierarchy, levels: list[int] | None) -> Hierarchy:
    """Return a hierarchy bounded to some levels."""
    if levels is None:
        return hierarchy
    least, most = levels
    if most > hierarchy.top:
        raise HierarchyError.no_level(hierarchy.qid, "method.levels", most, hierarchy.top)
    if most < hierarchy.least:
        raise HierarchyError.discloses_values(hierarchy.qid, "method.levels", most, hierarchy.least)
    return hierarchy.within(least, most)


def named_node(job: Job, coding: Coding) -> Node | None:
    """Return the node that the job names, or None; raise ``HierarchyError`` for an invalid level."""
    node = job.full_domain.node
    if node is None:
        return None
    for hierarchy, level in zip(coding.hierarchies, node, strict=True):
        if level > hierarchy.top:
            raise HierarchyError.no_level(hierarchy.qid, "method.node", level, hierarchy.top)
        if level < hierarchy.least:
            raise HierarchyError.discloses_values(hierarchy.qid, "method.node", level, hierarchy.least)
    return (*node, *(0,) * len(coding.sensitive))
