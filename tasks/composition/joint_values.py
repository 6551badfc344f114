"""Checks of l-diversity and t-closeness in the joint classes of two releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from core.columns.domains import Domain
from core.composition.joint_classes import MINE, THEIRS
from core.composition.joint_figures import (
    FAILING,
    joint_values_sql,
    numbered_classes_sql,
    persons_with_values_sql,
    sizes_sql,
    source_values_sql,
    values_at_risk_sql,
)
from core.privacy.models import PrivacyModel, Spread
from core.privacy.promise import Promise
from core.units.digests import NOBODY, Digests, digests_of
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from schemas.registry.privacy_kinds import PrivacyKind, models_in_job
from tasks.counting.chunk_counts import axis_names
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_domains

Promised = Mapping[str, Mapping[str, Any]]
"""What a job promises of sensitive values, by section and column, as JSON says it."""
BYTES_PER_VALUE = 96
"""Of a value of a joint class, while models look at it."""
NO_ORDER = "the values of a column that t-closeness is promised of stand in no order that both have in common"


class Promises(NamedTuple):
    """The l and t requirements of two jobs, and the domains of the current source.

    Attributes:
        columns: The sensitive columns, in the order of the values in ``joined``.
        domain: The domain table of this source; None where it has none.
        republished: The numbers of the columns of which either release publishes other values than its source has. Of these each promise
            is of what its own release publishes.
    """

    mine: Promised
    theirs: Promised
    columns: tuple[str, ...]
    domain: Artifact | None
    republished: tuple[int, ...] = ()

    @property
    def models_promised(self) -> list[tuple[PrivacyKind, str, Any, str]]:
        """Return kind, column, settings and promising table of the l and t models that either job requires."""
        mine, theirs = list(models_in_job(_plain(self.mine))), models_in_job(_plain(self.theirs))
        asked = [(*one, MINE) for one in mine]
        for kind, column, said in theirs:
            is_apart = (kind.of_whole and not kind.of_order) or self.columns.index(column) in self.republished
            if is_apart or (kind, column, said) not in mine:
                asked.append((kind, column, said, THEIRS))
        return asked


def units_at_risk_by_values(
    database: duckdb.DuckDBPyConnection, job: Job, promises: Promises, store: Store, *, count_persons: bool
) -> int | None:
    """Return how many units are in joint classes that break l or t; None if neither job asks for any.

    A unit is a record or a person. A class formed by both releases, a joint class, is a class of one and a class of the other.

    Args:
        database: Holds the tables of both releases and ``joined``.
    """
    asked = promises.models_promised
    if not asked:
        return None
    numbers = sorted({promises.columns.index(column) for _, column, _, _ in asked})
    database.execute(numbered_classes_sql(numbers, count_persons=count_persons))
    table = database.sql(sizes_sql(numbers)).to_arrow_table()
    sizes, failing = table["size"].to_numpy(), np.zeros(len(table), np.bool_)
    for kind, column, said, whose in asked:
        number = promises.columns.index(column)
        known = table[f"has_{number}"].to_numpy()
        name = "their_value" if whose == THEIRS and number in promises.republished else "value"
        spread, digests = _spread(database, job, number, whose, name, persons=count_persons)
        promise = Promise(1, (_model(job, promises, kind, (column, said, whose), digests, store),))
        if count_persons:
            [(persons,)] = database.execute(persons_with_values_sql(whose, number)).fetchall()
            promise = promise.of_people({column: spread.source_counts}, persons)
        failing |= known & promise.failing(sizes, {column: spread})
    database.register(FAILING, pa.table({"number": np.flatnonzero(failing)}))
    [(found,)] = database.execute(values_at_risk_sql(count_persons=count_persons)).fetchall()
    return int(found)


def _spread(database: duckdb.DuckDBPyConnection, job: Job, number: int, whose: str, name: str, *, persons: bool) -> tuple[Spread, Digests]:
    """Return the counts of a column's values in all joint classes, and the digest of each value code.

    The digest of the null comes last.
    """
    values = database.sql(joint_values_sql(number, count_persons=persons, name=name)).to_arrow_table()
    if values.num_rows * BYTES_PER_VALUE > job.memory:
        raise UnmeasuredError("the sensitive values of all joint classes take more than the job's memory")
    whole = database.sql(source_values_sql(whose, number, count_persons=persons)).to_arrow_table()
    held, all_of = values["value"].to_numpy(), whole["value"].to_numpy()
    digests = np.unique(np.concatenate([held, all_of]).astype(np.uint64))
    if len(digests) and digests[0] == NOBODY:
        digests = np.roll(digests, -1)
    counts = np.zeros(len(digests), np.int64)
    counts[_codes(digests, all_of)] = whole["times"].to_numpy()
    return Spread(values["number"].to_numpy(), _codes(digests, held), values["times"].to_numpy(), counts), digests


def _codes(digests: Digests, values: Digests) -> NDArray[np.int64]:
    """Return the position of each value among the digests."""
    order = np.argsort(digests)
    found: NDArray[np.int64] = order[np.searchsorted(digests, values.astype(np.uint64), sorter=order)]
    return found


def _model(job: Job, promises: Promises, kind: PrivacyKind, asked: tuple[str, Any, str], digests: Digests, store: Store) -> PrivacyModel:
    """Build a job's privacy model for values coded by their digests."""
    column, said, whose = asked
    nulls = int(bool(len(digests)) and digests[-1] == NOBODY)
    domain = Domain(column, pa.array(range(len(digests) - nulls), pa.int64()), np.zeros(len(digests) - nulls, np.int64), nulls)
    spec: Any = getattr(job.privacy, kind.section)[column] if whose == MINE else _spec(kind, said)
    if not kind.of_order:
        model: PrivacyModel = kind.model(column, spec, domain, job.folder)
        return model
    # Where both promise it alike, the order is that of this source, if the other has no other values.
    alike = whose == MINE or (kind, column, said) in list(models_in_job(_plain(promises.mine)))
    own = _own_domain(job, promises, column, store) if alike else None
    if own is None:
        raise UnmeasuredError(NO_ORDER)
    return _in_order(kind.model(column, spec, own, job.folder), own, digests)


def _own_domain(job: Job, promises: Promises, column: str, store: Store) -> Domain | None:
    """Return the domain of a sensitive column of this source; None if it is not kept."""
    names = axis_names(job)
    if promises.domain is None or column not in names or not store.is_complete(promises.domain):
        return None
    return load_domains(store, promises.domain, names)[names.index(column)]


def _in_order(model: Any, own: Domain, digests: Digests) -> PrivacyModel:
    """Convert an ordered t-closeness model from domain codes to digest codes."""
    mine = np.append(digests_of([own.values], len(own.values)), np.full(int(own.nulls > 0), NOBODY))
    if not np.array_equal(np.sort(mine), np.sort(digests)):
        raise UnmeasuredError(NO_ORDER)
    places = _codes(mine, digests)
    if model.ranks is not None:
        found: PrivacyModel = replace(model, ranks=model.ranks[places])
        return found
    first, *above = model.groups
    nested: PrivacyModel = replace(model, groups=(first[places], *above))
    return nested


def _plain(promised: Any) -> Any:
    """Return promises without settings that are None, so that equal models compare as equal."""
    if not isinstance(promised, Mapping):
        return promised
    return {name: _plain(one) for name, one in promised.items() if one is not None}


def _spec(kind: PrivacyKind, said: Any) -> Any:
    """Parse the stored specification of a privacy model; raise ``UnmeasuredError`` if it is invalid."""
    try:
        return kind.spec_of(said)
    except ValidationError:
        raise UnmeasuredError("what it promises of sensitive values is written in another way than here") from None
