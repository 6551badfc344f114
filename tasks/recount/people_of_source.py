"""Counts of the persons in a release's classes, from job and source without the run folder.

It is known where the labels of every quasi-identifier are of one level: then the labels of a record of the source say its class. A class is
published whole or not at all, so that its records in the source must be those in the files. Where labels overlap, or single records of a
class may have been withheld, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from core.recount.people import (
    classes_sql,
    labelled_values_sql,
    mismatching_classes_sql,
    people_of_classes_sql,
    persons_sql,
    source_persons_sql,
)
from schemas.job.job import Job
from schemas.release.claimed_levels import ClaimedLevels
from schemas.release.manifest import published_qids
from tasks.recount.original import Original, ReleaseAndSource, release_and_source
from tasks.recount.people import PeopleFiles
from tasks.recount.published_labels import PublishedLabels, expect_labels, qid_labels
from tasks.recount.published_values import published_source
from tasks.recount.rows import RowsHere
from tasks.release.files import Csv, relation_of
from tasks.store.database import connect, literal, lower_memory_limit, quote

MOST_JOINED = 16
"""Quasi-identifiers that one statement looks up: each join wants memory for every thread."""
OVERLAPPING = "labels overlap, so that they do not say which class a record of the source is in"
MANY = f"there are more than {MOST_JOINED} quasi-identifiers"
SINGLE = "records that belong to a class, or to the masked ones, may have been withheld"
LACKING = "its classes do not hold the records that the source has for them"


class PeopleOfSource(NamedTuple):
    """The persons of each class, or the reason why they are not known.

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
    """Find the persons in each class of the data files, from the source and the claimed levels.

    Args:
        job: Names the persons.
        files: The data files.
        layout: How CSV files are read.
        original: The source that they were made of.
        claim: The levels that their labels are said to be of.
        folder: Folder for the persons' files, readable by its owner alone.
    """
    if unknown := _unknown(job, claim):
        return PeopleOfSource(because=unknown)
    with connect(job, folder / "spill", last=True) as connection:
        release = relation_of(connection, files, layout)
        rows = RowsHere(connection, release, original.relation)
        original = published_source(job, rows, original).original
        sides = release_and_source(job, rows, original)
        if sides.missing_columns(job):
            return PeopleOfSource(because="columns of the source are missing")
        expect_labels(job, sides)
        labels = [qid_labels(job, sides, number, claim) for number in range(len(job.columns.quasi_identifiers))]
        if any(one.owners is None for one in labels):
            return PeopleOfSource(because=OVERLAPPING)
        lower_memory_limit(connection, job, 2 * sum(one.nbytes for one in labels))
        return _counted(job, sides, labels, original, folder)


def _unknown(job: Job, claim: ClaimedLevels | None) -> str:
    """Return the reason why the persons of classes cannot be known from the source; empty if they can."""
    if len(job.columns.quasi_identifiers) > MOST_JOINED:
        return MANY
    one_level = claim is not None and not claim.starred and all(len(levels) == 1 for levels in claim.levels.values())
    return "" if one_level else OVERLAPPING


def _counted(job: Job, sides: ReleaseAndSource, labels: Sequence[PublishedLabels], original: Original, folder: Path) -> PeopleOfSource:
    """Find the persons of each class where each value has at most one label; write them to files."""
    connection, masked = sides.connection, sides.unmasked != sides.release
    for one in labels:
        _own(connection, one)
    qids, persons = [quote(name) for name in published_qids(job)], original.persons(job)
    connection.execute(classes_sql(sides.unmasked, [(one.columns, one.labels_table) for one in labels], qids, masked=masked))
    connection.execute(persons_sql(original.relation, persons))
    values = [quote(name) for name in job.privacy.with_others(job.columns.recounted_value_columns)]
    connection.execute(source_persons_sql(original.relation, [quote(one.name) for one in labels], list(persons), values, masked=masked))
    [(lacking, whole)] = connection.execute(mismatching_classes_sql(sides.release)).fetchall()
    if (lacking and _withholds_single(job)) or (masked and not whole):
        return PeopleOfSource(because=SINGLE)
    if lacking:
        return PeopleOfSource(because=LACKING, lacking=int(lacking))
    kept, classes = folder / "people.parquet", folder / "classes.parquet"
    connection.execute(f"COPY ({people_of_classes_sql(len(values))}) TO {literal(str(kept))} (FORMAT parquet)")
    texts = ", ".join(f"label_{number}" for number in range(len(qids)))
    connection.execute(f"COPY (SELECT class, {texts} FROM classes) TO {literal(str(classes))} (FORMAT parquet)")
    return PeopleOfSource(([kept], [classes]))


def _own(connection: duckdb.DuckDBPyConnection, one: PublishedLabels) -> None:
    """Make the SQL table of each value's label, for one quasi-identifier."""
    assert one.owners is not None
    places = np.flatnonzero(one.owners >= 0)
    connection.register("owned", pa.table({"place": places.astype(np.int64), "number": one.owners[places].astype(np.int64)}))
    connection.execute(labelled_values_sql("owned", one.values_table, one.number))
    connection.unregister("owned")


def _withholds_single(job: Job) -> bool:
    """Return whether the job may withhold single records of a published class."""
    return getattr(job.method, "linked", None) == "keep"
