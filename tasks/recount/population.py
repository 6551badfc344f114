"""Counts of the population rows that fit each class, for journalist and marketer risk."""

from __future__ import annotations

import glob
import re
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.coverage import count_covered_rows
from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import Spans, read_labels
from core.recount.labels.value_scales import value_scale
from schemas.errors.refusals import PopulationError
from schemas.job.job import Job
from schemas.release.claimed_levels import in_ranges
from schemas.release.manifest import published_columns
from tasks.recount.original import Original, fetch_columns, with_source_types
from tasks.recount.published_labels import label_texts, way_of
from tasks.source.locations import relation
from tasks.store.database import quote

RANGE = re.compile(r"\{?\[.+ - .+[\])](, null\})?")
"""Labels that are ranges, with or without nulls."""
Fitting = tuple[tuple[int, int, int], ...]
"""Records of a class in the data, rows of the population that it fits, and how many classes have both numbers, in this order."""


def population_of(job: Job) -> Original | None:
    """Return the job's population as an SQL relation; None if the job names none."""
    if job.population is None:
        return None
    files: list[str] = []
    for pattern in job.population.path:
        # Only what the job writes is a pattern: a bracket in a folder's name above it stands for itself.
        found = sorted(glob.glob(str(Path(glob.escape(str(job.folder))) / pattern), recursive=True))  # noqa: PTH207 - the pattern is absolute
        if not found:
            raise PopulationError.no_files(pattern)
        files += found
    try:
        columns = pq.read_schema(files[0])
    except (pa.ArrowException, OSError):
        raise PopulationError.no_parquet() from None
    if lacking := [qid.name for qid in job.columns.quasi_identifiers if qid.name not in columns.names]:
        raise PopulationError.lacks(lacking)
    return Original(relation([(file, ()) for file in dict.fromkeys(files)]), columns)


def count_in_population(job: Job, connection: duckdb.DuckDBPyConnection, release: str) -> tuple[int, Fitting] | None:
    """Count the population's rows, and classes by number of records and of population rows that fit.

    None is returned where the job names no population.

    Args:
        job: Names the population.
        connection: The database.
        release: What it reads the data files as.
    """
    population = population_of(job)
    if population is None:
        return None
    qids = job.columns.quasi_identifiers
    columns = [quote(name) for qid in qids for name in published_columns(job, qid)]
    classes = fetch_columns(connection, f"SELECT {', '.join(columns)}, count(*) AS records FROM {release} GROUP BY ALL")
    names = ", ".join(quote(qid.name) for qid in qids)
    try:
        rows = fetch_columns(connection, f"SELECT {names}, count(*) AS weight FROM {population.relation} GROUP BY ALL")
    except (duckdb.IOException, duckdb.InvalidInputException):
        raise PopulationError.no_parquet() from None
    spans, numbers, places = [], [], []
    for number in range(len(qids)):
        of_classes, span, mine = _fitted(job, number, classes, with_source_types(rows[qids[number].name], population, qids[number].name))
        spans.append(span)
        numbers.append(of_classes)
        places.append(mine)
    weights = rows["weight"].to_numpy().astype(np.int64)
    fitting = count_covered_rows(spans, np.stack(numbers, axis=1), np.stack(places, axis=1), weights)
    pairs = Counter(zip(classes["records"].to_numpy().tolist(), fitting.tolist(), strict=True))
    return int(weights.sum()), tuple(sorted((held, rows, number) for (held, rows), number in pairs.items()))


def _fitted(job: Job, number: int, classes: dict[str, pa.Array], held: pa.Array) -> tuple[NDArray[np.int64], Spans, NDArray[np.int64]]:
    """Return the label of each class, the labels' spans, and the position of each population row's value."""
    qid = job.columns.quasi_identifiers[number]
    published = [classes[name] for name in published_columns(job, qid)]
    values = pa.array(held).unique().drop_null().sort()
    texts = label_texts(job, qid, values.type, published)
    distinct = list(dict.fromkeys(texts))
    if pt.is_null(values.type):
        raise PopulationError.lacks([qid.name])
    axis = label_axis(qid, values, job.folder, ranges=in_ranges(job, qid), beginnings=way_of(job, qid) == "prefix")
    spans = read_labels(axis, distinct)
    empty = (label for label, low, high in zip(distinct, spans.low, spans.high, strict=True) if low == high)
    # A range means nothing among texts, which fit none by that and not because they lie elsewhere.
    if value_scale(values) is None and any(label is not None and RANGE.fullmatch(label) for label in empty):
        raise PopulationError.lacks([qid.name])
    place = {text: position for position, text in enumerate(distinct)}
    found = held.dictionary_encode()
    order = np.append(axis.positions[_ranks(found.dictionary, values)], len(values))
    codes = found.indices.fill_null(len(found.dictionary)).to_numpy().astype(np.int64)
    return np.array([place[text] for text in texts], np.int64), spans, order[codes]


def _ranks(entries: pa.Array, values: pa.Array) -> NDArray[np.int64]:
    """Return the rank of each entry among all values, ascending, shape (entries,)."""
    ranks: NDArray[np.int64] = pc.index_in(entries, values).to_numpy(zero_copy_only=False).astype(np.int64)
    return ranks
