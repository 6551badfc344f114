"""Counts of persons of the source and rows of the population that fit a release's classes.

It is known where the labels of every quasi-identifier are of one level: then the labels of a record of the source say its class. A class is
published whole or not at all, so that its records in the source must be those in the files. Where labels overlap, or single records of a
class may have been withheld, nothing is concluded.
"""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.coverage import count_covered_rows
from core.recount.groups import normalised_source_sql
from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import Spans, read_labels
from core.recount.labels.value_scales import is_text_type, value_scale
from core.recount.people import (
    NOBODY,
    classes_sql,
    labelled_values_sql,
    mismatching_classes_sql,
    people_of_classes_sql,
    persons_sql,
    source_persons_sql,
)
from schemas.errors.refusals import PopulationError
from schemas.job.job import Job
from schemas.release.manifest import ClaimedLevels, has_class_ranges, published_columns, published_qids
from tasks.recount.original import Original, ReleaseAndSource, fetch_columns, release_and_source, with_source_types
from tasks.recount.people import PeopleFiles, read_people
from tasks.recount.published_labels import PublishedLabels, expect_labels, label_texts, qid_labels, way_of
from tasks.recount.published_values import published_source
from tasks.recount.rows import JOINED_COLUMNS, RowsInOneDatabase
from tasks.release.files import Csv, relation_of
from tasks.source.locations import relation_of_files
from tasks.store.database import connect, lower_memory_limit, quote, write_parquet

OVERLAPPING = "labels overlap, so that they do not say which class a record of the source is in"
MANY = f"there are more than {JOINED_COLUMNS} quasi-identifiers"
SINGLE = "records that belong to a class, or to the masked ones, may have been withheld"
LACKING = "its classes do not hold the records that the source has for them"


class PeopleOfSource(NamedTuple):
    """Files with the persons of each class, or the reason why these are not known.

    Attributes:
        files: Where that was written; None where it is not known.
        because: Why not, in words.
        lacking: Classes that hold fewer or more records than the source has for their labels. Then it is not known.
    """

    files: PeopleFiles | None = None
    because: str = ""
    lacking: int = 0


def people_of_source(
    job: Job, files: Sequence[Path], layout: Csv, original: Original, claim: ClaimedLevels | None, folder: Path
) -> PeopleOfSource:
    """Write the persons of each class, found in the source, to ``folder``; return files or a reason.

    Args:
        original: The source that the data files were made of.
        claim: The levels that their labels are said to be of.
        folder: For the persons' files, readable by its owner alone.
    """
    if unknown := _unknown(job, claim):
        return PeopleOfSource(because=unknown)
    with connect(job, folder / "spill", last=True) as connection:
        release = relation_of(connection, files, layout)
        rows = RowsInOneDatabase(connection, release, original.relation)
        original = published_source(job, rows, original).original
        sides = release_and_source(job, rows, original)
        if sides.missing_column_faults(job):
            return PeopleOfSource(because="columns of the source are missing")
        expect_labels(job, sides)
        labels = [qid_labels(job, sides, number, claim) for number in range(len(job.columns.quasi_identifiers))]
        if any(one.owners is None for one in labels):
            return PeopleOfSource(because=OVERLAPPING)
        lower_memory_limit(connection, job, 2 * sum(one.nbytes for one in labels))
        return _counted(job, sides, labels, original, folder)


def _unknown(job: Job, claim: ClaimedLevels | None) -> str:
    """Return the reason why the persons of classes cannot be known from the source; empty if they can."""
    if len(job.columns.quasi_identifiers) > JOINED_COLUMNS:
        return MANY
    one_level = claim is not None and not claim.starred and all(len(levels) == 1 for levels in claim.levels.values())
    return "" if one_level else OVERLAPPING


def _counted(job: Job, sides: ReleaseAndSource, labels: Sequence[PublishedLabels], original: Original, folder: Path) -> PeopleOfSource:
    """Find the persons of each class where each value has at most one label; write them to files."""
    connection, masked = sides.rows.connection, sides.unmasked != sides.rows.release
    for one in labels:
        _own(connection, one)
    qids, persons = [quote(name) for name in published_qids(job)], original.persons(job)
    connection.execute(classes_sql(sides.unmasked, [(one.columns, one.labels_table) for one in labels], qids, has_masked_records=masked))
    connection.execute(persons_sql(original.relation, persons))
    values = [quote(name) for name in job.privacy.with_others(job.columns.recounted_value_columns)]
    connection.execute(
        source_persons_sql(original.relation, [quote(one.name) for one in labels], list(persons), values, has_masked_records=masked)
    )
    [(lacking, whole)] = connection.execute(mismatching_classes_sql(sides.rows.release)).fetchall()
    # The job may withhold single records of a published class.
    if (lacking and getattr(job.method, "linked", None) == "keep") or (masked and not whole):
        return PeopleOfSource(because=SINGLE)
    if lacking:
        return PeopleOfSource(because=LACKING, lacking=int(lacking))
    kept, classes = folder / "people.parquet", folder / "classes.parquet"
    write_parquet(connection, people_of_classes_sql(len(values)), kept)
    texts = ", ".join(f"label_{number}" for number in range(len(qids)))
    write_parquet(connection, f"SELECT class, {texts} FROM classes", classes)
    return PeopleOfSource(([kept], [classes]))


def _own(connection: duckdb.DuckDBPyConnection, one: PublishedLabels) -> None:
    """Make the SQL table of each value's label, for one quasi-identifier."""
    assert one.owners is not None
    places = np.flatnonzero(one.owners >= 0)
    connection.register("owned", pa.table({"place": places.astype(np.int64), "number": one.owners[places].astype(np.int64)}))
    connection.execute(labelled_values_sql("owned", one.values_table, one.number))
    connection.unregister("owned")


RANGE = re.compile(r"\{?\[.+ - .+[\])](, null\})?")
"""Labels that are ranges, with or without nulls."""
Fitting = tuple[tuple[int, int, int], ...]
"""Records or persons of a class in the data, rows of the population that it fits, and how many classes have both numbers, in this order."""


def population_of(job: Job) -> Original | None:
    """Return a job's population as a file set, None if it names none; raise ``PopulationError`` if unfit."""
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
        population = Original(relation_of_files([(file, ()) for file in dict.fromkeys(files)]), pq.read_schema(files[0]))
    except (pa.ArrowException, OSError):
        raise PopulationError.no_parquet() from None
    names = [qid.name for qid in job.columns.quasi_identifiers]
    if lacking := [name for name in names if name not in population.columns.names]:
        raise PopulationError.lacks(lacking)
    # Its texts are read as those of the source are, which labels are made of.
    texts = [name for name in names if name in job.columns.normalised and is_text_type(population.type_of(name))]
    steps = {quote(name): job.columns.normalised[name] for name in texts}
    return population._replace(relation=normalised_source_sql(population.relation, steps))


def count_in_population(
    job: Job, connection: duckdb.DuckDBPyConnection, release: str, people: PeopleFiles | None = None
) -> tuple[int, Fitting] | None:
    """Return the population's rows, and classes by size and fitting rows; None without a population.

    Args:
        people: Who is in the classes, to count persons; None to count records.
    """
    population = population_of(job)
    if population is None:
        return None
    qids = job.columns.quasi_identifiers
    classes = fetch_columns(connection, _class_sizes_sql(job, release, people))
    names = ", ".join(f"{quote(qid.name)} AS value_{number}" for number, qid in enumerate(qids))
    try:
        rows = fetch_columns(connection, f"SELECT {names}, count(*) AS weight FROM {population.relation} GROUP BY ALL")
    except (duckdb.IOException, duckdb.InvalidInputException):
        raise PopulationError.no_parquet() from None
    spans, numbers, places, labels = [], [], [], iter(classes.values())
    for number, qid in enumerate(qids):
        published = [next(labels) for _ in published_columns(job, qid)]
        of_classes, span, mine = _fitted(job, number, published, with_source_types(rows[f"value_{number}"], population, qid.name))
        spans.append(span)
        numbers.append(of_classes)
        places.append(mine)
    weights = rows["weight"].to_numpy().astype(np.int64)
    fitting = count_covered_rows(spans, np.stack(numbers, axis=1), np.stack(places, axis=1), weights)
    pairs = Counter(zip(classes["size"].to_numpy().tolist(), fitting.tolist(), strict=True))
    return int(weights.sum()), tuple(sorted((held, rows, number) for (held, rows), number in pairs.items()))


def _class_sizes_sql(job: Job, release: str, people: PeopleFiles | None) -> str:
    """Return SQL of each published combination as ``label_0`` …, with records or persons as ``size``.

    A population has a row for each person. So a person of several records counts once.
    """
    columns = ", ".join(f"{quote(name)} AS label_{number}" for number, name in enumerate(published_qids(job)))
    combinations = f"SELECT {columns}, count(*) AS size FROM {release} GROUP BY ALL"
    if people is None:
        return combinations
    classes, persons = read_people(people)
    labels = [f"label_{number}" for number in range(len(published_qids(job)))]
    same = " AND ".join(f"k.{label}::VARCHAR IS NOT DISTINCT FROM c.{label}::VARCHAR" for label in labels)
    return f"""
        SELECT {", ".join(f"c.{label}" for label in labels)}, count(DISTINCT p.person) FILTER (p.person <> {NOBODY}) AS size
        FROM ({combinations}) AS c LEFT JOIN {classes} AS k ON {same} LEFT JOIN {persons} AS p ON p.class = k.class GROUP BY ALL
    """


def _fitted(job: Job, number: int, published: Sequence[pa.Array], held: pa.Array) -> tuple[NDArray[np.int64], Spans, NDArray[np.int64]]:
    """Return the label of each class, the labels' spans, and the position of each population row's value."""
    qid = job.columns.quasi_identifiers[number]
    values = pa.array(held).unique().drop_null().sort()
    texts = label_texts(job, qid, values.type, published)
    distinct = list(dict.fromkeys(texts))
    if pt.is_null(values.type):
        raise PopulationError.lacks([qid.name])
    axis = label_axis(qid, values, job.folder, ranges=has_class_ranges(job, qid), prefixes=way_of(job, qid) == "prefix")
    spans = read_labels(axis, distinct)
    empty = (label for label, low, high in zip(distinct, spans.low, spans.high, strict=True) if low == high)
    # A range means nothing among texts, which fit none by that and not because they lie elsewhere.
    if value_scale(values) is None and any(label is not None and RANGE.fullmatch(label) for label in empty):
        raise PopulationError.lacks([qid.name])
    place = {text: position for position, text in enumerate(distinct)}
    found = held.dictionary_encode()
    ranks = pc.index_in(found.dictionary, values).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.append(axis.positions[ranks], len(values))
    codes = found.indices.fill_null(len(found.dictionary)).to_numpy().astype(np.int64)
    return np.array([place[text] for text in texts], np.int64), spans, order[codes]
