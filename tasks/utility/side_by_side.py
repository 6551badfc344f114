"""Comparison of source and release in DuckDB, and counts of labels with their loss (GCP)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.numbers import integers_without_nulls
from core.evaluation.accuracy import FOLDS, folds_of
from core.evaluation.utility import Contingency, Meaning, bound_texts, exact_meaning, meaning_of
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from schemas.errors.base import StorageError, counted
from schemas.job.job import Job
from schemas.release.manifest import published_qids
from tasks.counting.coding import Coding
from tasks.release.files import layout_of, relation_of
from tasks.store.database import connect, quote

SAMPLE = 200_000
Side = tuple[str, Sequence[str]]
"""A table that numbers the labels of a column, and the names of the column in the files."""


Codes = list[NDArray[np.int64]]
APART, LEAST_FOLD = 0.05, 0.1
"""By how much the shares of folds may differ between the sides, and the least share of one."""


class Drawn(NamedTuple):
    """A sample of the source's or the release's records, as label numbers and folds.

    Attributes:
        codes: By column, shape (n,): the number of each record's label.
        folds: Shape (n,), below FOLDS.
        held_out: Whether equal records of the two sides are in equal folds.
    """

    codes: Codes
    folds: NDArray[np.int64]
    held_out: bool = False


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column in source and release: domain, label table, labels' meaning and record counts.

    Attributes:
        domain: Its values in the source, which the table ``domain_<number>`` holds too.
        columns: Under which it is published.
        table: Numbers its published labels: ``number``, and ``key_0`` … as many as ``columns``.
        meaning: The values that these labels cover.
        counts: Shape (labels,), records in the files.
    """

    number: int
    domain: Domain
    columns: tuple[str, ...]
    table: str
    meaning: Meaning
    counts: NDArray[np.int64]

    @property
    def weights(self) -> NDArray[np.int64]:
        """Return the number of source records per code, nulls last."""
        return np.append(self.domain.counts, self.domain.nulls)[: self.domain.size]


@dataclass(frozen=True)
class UtilityComparison:
    """A DuckDB connection with the SQL relations of a source and its release, to be compared.

    Attributes:
        connection: The database.
        source: The relation of the source, such as ``read_parquet([…])``.
    """

    connection: duckdb.DuckDBPyConnection
    source: str
    release: str

    def labels(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Create table ``labels_<number>`` of a column's published labels, null last; return it with counts."""
        keys = ", ".join(f"{quote(column)} AS key_{place}" for place, column in enumerate(columns))
        order = ", ".join(f"key_{place} NULLS LAST" for place in range(len(columns)))
        self.connection.execute(f"""
            CREATE TEMP TABLE labels_{number} AS
            SELECT row_number() OVER (ORDER BY {order}) - 1 AS number, *
            FROM (SELECT {keys}, count(*) AS records FROM {self.release} GROUP BY ALL)
        """)
        return self.connection.sql(f"FROM labels_{number} ORDER BY number").to_arrow_table()

    def register(self, number: int, domain: Domain) -> None:
        """Create table ``domain_<number>`` of a domain's value codes: ``number`` and ``key_0``, the value."""
        # A domain's code after the last value is the null, and only domains with nulls have it.
        values = pa.concat_arrays([domain.values, pa.nulls(domain.size - len(domain.values), domain.values.type)])
        self.connection.register("values_of_domain", pa.table({"number": np.arange(domain.size), "key_0": values}))
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE domain_{number} AS SELECT * FROM values_of_domain")
        # Copied, because the name under which it is registered serves every domain in turn.
        self.connection.unregister("values_of_domain")

    def category(self, number: int, column: str, *, otherwise: bool = False) -> Attribute:
        """Create table ``domain_<number>`` of a column that is no QID; return its attribute.

        Args:
            number: Its number among all columns.
            column: Its name.
            otherwise: Whether it is published with changed values, which the source may lack.
        """
        name = quote(column)
        counted = f"SELECT {name} AS value, count(*) AS records FROM {self.source} GROUP BY ALL"
        if otherwise:
            every = f"{counted} UNION ALL SELECT DISTINCT {name}, 0 FROM {self.release}"
            counted = f"SELECT value, sum(records)::BIGINT AS records FROM ({every}) GROUP BY ALL"
        statement = f"{counted} ORDER BY value NULLS LAST"
        found = self.connection.sql(statement).to_arrow_table()
        values, counts = found["value"].combine_chunks(), found["records"].to_numpy()
        known = len(values) - values.null_count
        domain = Domain(column, values.drop_null(), counts[:known], int(counts[known:].sum()))
        self.register(number, domain)
        return Attribute(number, domain, (column,), f"domain_{number}", exact_meaning(domain.size), counts)

    def contingencies(self, first: Attribute, second: Attribute) -> tuple[Contingency, Contingency]:
        """Return the record counts of value pairs in the source, and of label pairs in the release."""
        names = [(one.domain.qid,) for one in (first, second)]
        there = pairs_sql(self.source, (f"domain_{first.number}", names[0]), (f"domain_{second.number}", names[1]))
        published = pairs_sql(self.release, (first.table, first.columns), (second.table, second.columns))
        found = []
        for statement in (there, published):
            rows = self.connection.sql(statement).to_arrow_table()
            found.append(Contingency(*(rows[name].to_numpy().astype(np.int64) for name in ("one", "other", "records"))))
        return found[0], found[1]

    def samples(self, columns: Sequence[Attribute], split: Sequence[str], seed: int) -> tuple[Drawn, Drawn]:
        """Return samples of source and release, as label numbers and folds; the database keeps one thread.

        Args:
            split: Columns that both publish as they are: records that are equal in them fall into one fold on either side. None for folds
                that are dealt out among the records of each side by itself.
        """
        # Reservoirs are repeatable on one thread alone.
        self.connection.execute("SET threads = 1")
        there = self._sample(self.source, [(f"domain_{one.number}", (one.domain.qid,)) for one in columns], split, seed)
        published = self._sample(self.release, [(one.table, one.columns) for one in columns], split, seed)
        if split and _alike(there, published):
            return there, published
        dealt = (one._replace(folds=folds_of(len(one.folds), seed), held_out=False) for one in (there, published))
        return next(dealt), next(dealt)

    def _sample(self, source: str, tables: Sequence[Side], split: Sequence[str], seed: int) -> Drawn:
        rows = self.connection.sql(numbered_sample_sql(source, tables, split, seed)).to_arrow_table()
        *codes, folds = (column.to_numpy().astype(np.int64) for column in rows.columns)
        return Drawn(codes, folds, bool(split))


def _alike(there: Drawn, published: Drawn) -> bool:
    """Return whether source and release have similar shares in all folds, each with enough records.

    If not, the columns are written differently, or have too few values.
    """
    shares = [np.bincount(one.folds, minlength=FOLDS) / max(len(one.folds), 1) for one in (there, published)]
    return bool(np.abs(shares[0] - shares[1]).max() < APART and min(share.min() for share in shares) > LEAST_FOLD)


def pairs_sql(source: str, first_table: Side, second_table: Side) -> str:
    """Return SQL that counts records by the pair of their label numbers in two columns.

    It is right because every label of the files is in its table once, nulls taken as equal, so that no record is lost or doubled.
    """
    sides = [(letter, *side) for letter, side in zip("ab", (first_table, second_table), strict=True)]
    columns = ", ".join(f"{quote(name)} AS {letter}_{place}" for letter, _, names in sides for place, name in enumerate(names))
    joins = " ".join(f"JOIN {table} AS {letter} ON {_matches('pairs', letter, names)}" for letter, table, names in sides)
    return f"""
        WITH pairs AS (SELECT {columns}, count(*) AS n FROM {source} GROUP BY ALL)
        SELECT a.number AS one, b.number AS other, sum(n)::BIGINT AS records FROM pairs {joins} GROUP BY ALL
    """


def numbered_sample_sql(source: str, tables: Sequence[Side], split: Sequence[str], seed: int) -> str:
    """Return SQL of ``n0`` … and ``fold``: label numbers of at most 200,000 drawn records, and hash folds.

    It is right because a column that is published as it is holds the same values on both sides, and their text has the same digest.
    """
    letters = [f"t{place}" for place in range(len(tables))]
    columns = ", ".join(
        f"{quote(name)} AS {letter}_{place}" for letter, (_, names) in zip(letters, tables, strict=True) for place, name in enumerate(names)
    )
    joins = " ".join(
        f"JOIN {table} AS {letter} ON {_matches('drawn', letter, names)}" for letter, (table, names) in zip(letters, tables, strict=True)
    )
    numbers = ", ".join(f"{letter}.number AS n{place}" for place, letter in enumerate(letters))
    fold = f"hash({', '.join(f'{quote(name)}::VARCHAR' for name in split)}) % {FOLDS}" if split else "0"
    return f"""
        WITH drawn AS (SELECT {columns}, {fold} AS fold FROM (FROM {source} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE ({seed:d})))
        SELECT {numbers}, fold FROM drawn {joins} ORDER BY ALL
    """


def _matches(rows: str, letter: str, names: Sequence[str]) -> str:
    return " AND ".join(f"{rows}.{letter}_{place} IS NOT DISTINCT FROM {letter}.key_{place}" for place in range(len(names)))


BATCH = 20_000
"""Labels whose values are written out at a time: ranges over a large domain have many each."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Texts, codes and record counts of one QID's labels in a release, with domain and hierarchy.

    Attributes:
        number: Of the QID, in job order.
        names: Of its columns.
        domain: Its values in the source.
        level: Level of a full-domain release, else None.
        texts: The label of each group; two bounds with a bar between; None for a null.
        exact: Shape (labels,), the code where a value itself is published, else -1.
        counts: Shape (labels,), records in the files.
    """

    number: int
    names: tuple[str, ...]
    domain: Domain
    hierarchy: Hierarchy
    level: int | None
    texts: list[str | None]
    exact: NDArray[np.int64]
    counts: NDArray[np.int64]

    def meaning(self, release: Path, first: int = 0, end: int | None = None) -> Meaning:
        """Return which values some labels cover, with costs; raise ``StorageError`` for unknown labels."""
        try:
            return meaning_of(self.texts[first:end], self.exact[first:end], self.domain, self.hierarchy, self.level)
        except LookupError as error:
            lost = counted(error.args[0], "label")
            reason = f"{lost} of '{self.domain.qid}' in neither its hierarchy nor a range or a set of the source's values"
            raise StorageError.not_a_release(str(release), reason) from None


def labels_of(bench: UtilityComparison, job: Job, coding: Coding, levels: Mapping[str, int] | None) -> Iterator[Labels]:
    """Yield each QID's published labels with record counts; create tables ``labels_<number>``.

    Args:
        job: Gives the columns.
        coding: Of the source.
        levels: Of a full-domain release.
    """
    published = set(published_qids(job))
    for number, (domain, hierarchy) in enumerate(zip(coding.domains, coding.hierarchies, strict=True)):
        # Where the QID is not published under its own name it is so as two bounds.
        names = (domain.qid,) if domain.qid in published else (f"{domain.qid}_low", f"{domain.qid}_high")
        table, level = bench.labels(number, names), levels[domain.qid] if levels else None
        yield Labels(number, names, domain, hierarchy, level, *_texts(table, domain, level), table["records"].to_numpy())


def _texts(table: pa.Table, domain: Domain, level: int | None) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return labels as text, and the code of labels that are single values.

    Two bounds have a bar between them.
    """
    keys = [table[name].combine_chunks() for name in table.column_names if name.startswith("key_")]
    exact = np.full(len(table), -1, np.int64)
    if len(keys) == 2:
        low, high = (key.cast(pa.string()) for key in keys)
        return bound_texts(low, high).to_pylist(), exact
    [key] = keys
    # At a chosen level above 0 a group may happen to be called like a value, and is not that value.
    if not level and (key.type == domain.values.type or pa.types.is_string(domain.values.type)):
        exact = integers_without_nulls(pc.index_in(key.cast(domain.values.type), domain.values), -1).astype(np.int64)
    return (key if pa.types.is_string(key.type) else as_text(key)).to_pylist(), exact


def published_penalties(
    job: Job, coding: Coding, files: Sequence[Path], columns: Mapping[str, str], levels: Mapping[str, int] | None, spill: Path
) -> float:
    """Return the summed certainty penalty of the values in a release's files, from labels alone.

    The code is the same for all methods. It uses only the job, the source's values and the files.

    Args:
        coding: The source's values.
        files: The data files.
        columns: Types by column, where the manifest states them.
        levels: Level by quasi-identifier, where all records have one.
        spill: Folder for what does not fit into memory.
    """
    lost = 0.0
    with connect(job, spill) as connection:
        bench = UtilityComparison(connection, "", relation_of(connection, files, layout_of(files, columns)))
        for labels in labels_of(bench, job, coding, levels):
            for first in range(0, len(labels.texts), BATCH):
                wide = labels.meaning(files[0].parent, first, first + BATCH).costs
                lost += float(np.dot(wide, labels.counts[first : first + BATCH]))
    return lost
