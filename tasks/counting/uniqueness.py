"""Uniqueness of a source's records, and the quasi-identifiers that contribute to it.

Both come from the counts of phase 2, out of core.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.histograms.cells import packing_of
from core.units.losses import Figures
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.chunk_counts import read_pairs
from tasks.counting.coding import Coding, DomainTable, cell_files_in_source_coding, cells_in_source_coding
from tasks.counting.source_sizes import SIZES, CellFiles, Sizes, qid_words, read_sizes
from tasks.store.database import connect, parquet_sql
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store


def person_cell_files(
    coding: Coding, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact], store: Store, folder: Path
) -> list[Path]:
    """Write a Parquet file per chunk with rows of cell, person and record count; return the paths.

    Columns are ``cell_0`` …, ``person`` and ``count``, the records of both.

    Args:
        chunk_histograms: The histograms of the chunks at the finest node.
        pairs: Their pairs, in the same order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, (part, paired) in enumerate(zip(chunk_histograms, pairs, strict=True)):
        words, _ = cells_in_source_coding(coding, part, store)
        found = read_pairs(paired, store, 0, 1)
        # Joined here by place: DuckDB would have to look every row up.
        columns = {f"cell_{place}": word[found.cells] for place, word in enumerate(words)}
        files.append(folder / f"pairs-{number}.parquet")
        pq.write_table(
            pa.table(columns | {"person": found.persons, "count": found.counts}), files[-1], compression="lz4", write_statistics=False
        )
    return files


MOST_PAIRS = 20_000_000
"""Pairs of person and cell beyond which to add them up once for each quasi-identifier would take minutes."""

CELLS_SAMPLED = 1_000_000
"""Combinations of a sample; of up to half as many again all are taken."""


class Exposed(FrozenModel):
    """Numbers of unique records or persons, and of those in classes smaller than k.

    Where persons are named, these are persons who have such a record.

    Attributes:
        unique: Those alone.
        below_k: Those in classes of fewer than k.
        records: Where persons are named, the records in these classes; None where ``below_k`` are records.
    """

    unique: int
    below_k: int
    records: int | None = None


class CountedPersons(FrozenModel):
    """Number of persons, and the most records of one person."""

    persons: int
    most_records: int


class Contributors(FrozenModel):
    """Numbers of exposed records or persons with all quasi-identifiers, and without each of them.

    Attributes:
        whole: Records exposed by all quasi-identifiers.
        without: By quasi-identifier, those that still do without it; empty where that was not counted.
        persons: Of the source; None where the job has no person column.
        sampled: One in how many combinations was looked at for ``without``.
    """

    whole: Exposed
    without: dict[str, Exposed]
    persons: CountedPersons | None = None
    sampled: int = 1


def contributors_to_uniqueness(table: DomainTable, cells: CellFiles, sizes: Artifact) -> tuple[Contributors, Figures]:
    """Return how many are exposed by all QIDs, and without each; and the source's risk.

    Without each QID, records are estimated from a sample where combinations are many, and persons are left out where pairs are.

    Args:
        cells: Histograms and pairs of person and cell.
        sizes: Class sizes of the source, of the same files.
    """
    found, pairs = read_sizes(sizes, table.store), cells.pairs
    parts = max(1, round(sum(found.classes) / CELLS_SAMPLED))
    if pairs:
        # A person has several combinations, so that a sample of these tells nothing of persons.
        parts = int(sum(part.rows for part in pairs) <= MOST_PAIRS)
    counted = table.store.read_model(UNIQUENESS_CONTRIBUTORS.result(table, ExposureQuery(cells, parts)), Contributors)
    if not pairs:
        # Records of the whole follow from the class sizes. Without a QID there are never more.
        whole = _whole(found, table.job)
        without = {
            qid: Exposed(unique=min(one.unique, whole.unique), below_k=min(one.below_k, whole.below_k))
            for qid, one in counted.without.items()
        }
        counted = counted.model_copy(update={"whole": whole, "without": without})
    return counted, found.risk() or {}


def _whole(found: Sizes, job: Job) -> Exposed:
    numbers = list(zip(found.sizes, found.classes, strict=True))
    return Exposed(
        unique=sum(classes for size, classes in numbers if size == 1),
        below_k=sum(size * classes for size, classes in numbers if size < job.privacy.k),
    )


class ExposureQuery(NamedTuple):
    """The cells to count exposed records in.

    Attributes:
        cells: Histograms and pairs of person and cell.
        parts: One in how many combinations is counted without each QID; 0 if none is.
    """

    cells: CellFiles
    parts: int


def _count(given: DomainTable, standing: ExposureQuery, path: Path) -> int:
    coding, (files, pairs), k = given.coding, standing.cells, given.job.privacy.k
    qids, parts = [domain.qid for domain in coding.domains], standing.parts

    def statement(keys: Sequence[str]) -> str:
        return person_exposed_sql(keys, k) if pairs else exposed_sql(keys, k, parts)

    with connect(given.job, given.spill) as connection:
        folder = given.spill / "contributors"
        read = (
            person_cell_files(coding, files, pairs, given.store, folder)
            if pairs
            else cell_files_in_source_coding(coding, files, given.store, folder)
        )
        connection.execute(cells_sql(parquet_sql(read), qid_words(coding), by_person=bool(pairs), sampled=parts > 1))
        asked = {qid: statement(keys_without(coding, position)) for position, qid in enumerate(qids)} if parts else {}
        found = {qid: _exposed(connection, asked_of_it) for qid, asked_of_it in asked.items()}
        whole, persons = Exposed(unique=0, below_k=0), None
        if pairs:
            words = [f"word_{number}" for number in range(len(qid_words(coding)))]
            whole = _exposed(connection, statement(words))
            [(count, most)] = connection.execute(PERSONS_SQL).fetchall()
            persons = CountedPersons(persons=count, most_records=most)
    # Only what is dear is kept; the whole of records follows from the class sizes.
    path.write_text(Contributors(whole=whole, without=found, persons=persons, sampled=max(parts, 1)).model_dump_json())
    return len(found)


UNIQUENESS_CONTRIBUTORS = FileStep(
    "contributors",
    make=_count,
    reads=lambda given, standing: [SIZES.key(given, standing.cells), standing.parts],
    settings=lambda given: given.job.privacy.k,
    suffix=".json",
)
"""The exposed records or persons, with all quasi-identifiers and without each."""


def _exposed(connection: duckdb.DuckDBPyConnection, statement: str) -> Exposed:
    [(unique, below, *records)] = connection.execute(statement).fetchall()
    return Exposed(unique=unique, below_k=below, records=records[0] if records else None)


PERSONS_SQL = "SELECT count(*), coalesce(max(records), 0)::BIGINT FROM (SELECT sum(records) AS records FROM cells GROUP BY person)"
"""Counts the persons of the table ``cells``, and the records of the one who has most."""


def cells_sql(counted: str, words: Sequence[str], *, by_person: bool, sampled: bool) -> str:
    """Return SQL that creates temporary table ``cells``: packed combinations of QID values with records.

    Args:
        counted: The SQL relation of histograms at the finest node, or of pairs of person and cell.
        words: SQL expressions that name a combination.
        by_person: Whether a combination has a row for each of its persons.
        sampled: Whether few of the combinations will be asked for: then they are read each time, and none is added up before.
    """
    whose = ["person"] if by_person else []
    named = ", ".join([*(f"{word} AS word_{number}" for number, word in enumerate(words)), *whose])
    groups = ", ".join([*(f"word_{number}" for number in range(len(words))), *whose])
    if sampled:
        return f"CREATE OR REPLACE TEMP VIEW cells AS SELECT {named}, count AS records FROM {counted}"
    return f"CREATE OR REPLACE TEMP TABLE cells AS SELECT {named}, sum(count)::BIGINT AS records FROM {counted} GROUP BY {groups}"


def exposed_sql(keys: Sequence[str], k: int, parts: int) -> str:
    """Return SQL that counts classes of one record, and records in classes below k, of table ``cells``.

    Args:
        keys: SQL expressions that name a class.
        parts: One in how many classes is counted, whole, by a hash of its keys. The counts are multiplied by it.
    """
    # Without keys there is one class, in which all are.
    named, parts = ", ".join(keys), parts if keys else 1
    drawn = f" WHERE hash({named}) % {parts:d} = 0" if parts > 1 else ""
    classes = f"SELECT sum(records)::BIGINT AS records FROM cells{drawn}{' GROUP BY ' + named if keys else ''}"
    return f"""
        SELECT {parts:d} * count(*) FILTER (records = 1), {parts:d} * coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT
        FROM ({classes})
    """


def person_exposed_sql(keys: Sequence[str], k: int) -> str:
    """Return SQL that counts persons alone or in classes below k, and records in these, of ``cells``.

    The records of the latter are counted too. It is right because a class has a row for each of its persons once ``keys`` and
    person are grouped by.

    Args:
        keys: SQL expressions that name a class.
    """
    named = [f"{key} AS key_{number}" for number, key in enumerate(keys)]
    classes = f"PARTITION BY {', '.join(f'key_{number}' for number in range(len(keys)))}" if keys else ""
    mine = f"SELECT {', '.join([*named, 'person'])}, sum(records)::BIGINT AS records FROM cells GROUP BY ALL"
    return f"""
        SELECT count(DISTINCT person) FILTER (persons = 1), count(DISTINCT person) FILTER (persons < {k:d}),
            coalesce(sum(records) FILTER (persons < {k:d}), 0)::BIGINT
        FROM (SELECT person, records, count(*) OVER ({classes}) AS persons FROM ({mine}))
    """


def keys_without(coding: Coding, position: int) -> list[str]:
    """Return SQL expressions on columns of table ``cells`` that name combinations of all QIDs but one.

    The QID's digit is taken out of the mixed-radix number that it is part of.

    Args:
        position: Of the QID, in job order.
    """
    packing, qids = packing_of(coding.finest, coding.axes), len(coding.domains)
    keys = []
    for number, positions in enumerate([place for place in word if place < qids] for word in packing.words):
        if not positions:
            continue
        if position not in positions:
            keys.append(f"word_{number}")
            continue
        # Digits of sensitive columns are gone from the word, so that its last QID counts ones.
        weight = packing.weights[position] // packing.weights[positions[-1]]
        if position != positions[0]:
            keys.append(f"word_{number} // {weight * packing.sizes[position]}")
        if position != positions[-1]:
            keys.append(f"word_{number} % {weight}")
    return keys
