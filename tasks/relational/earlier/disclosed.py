"""Values that the written tables disclose under the unit's pseudonyms, if other releases share these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from core.composition.pseudonym_sets import ShownTable, disclosed_persons_sql, row_digests_sql
from schemas.job.job import Job
from schemas.pseudonyms.kinds import treatment_kind
from schemas.relational.table_jobs import lasting_key
from schemas.relational.tables_job import TablesJob
from tasks.composition.pseudonym_families import Disclosed
from tasks.engine.runs import Run
from tasks.release.files import file_error
from tasks.store.database import connect, literal, quote
from tasks.store.step import FileStep
from tasks.store.store import Store


@dataclass(frozen=True)
class ShownTables:
    """The data files of a release, as their readers can join them.

    Attributes:
        run: The run, with the job of persons.
        job: The job of the tables.
        files: The data files of each table.
        digests: SHA-256 of each.
        release: The id of the release.
    """

    run: Run
    job: TablesJob
    files: Mapping[str, Sequence[Path]]
    digests: tuple[str, ...]
    release: str

    @property
    def store(self) -> Store:
        """The artefact store."""
        return self.run.store

    def table(self, name: str) -> ShownTable:
        """Return the relation, columns, key and references of a table, as SQL expressions."""
        spec, chain = self.job.tables[name], self.job.tree.chains[name]
        paths = ", ".join(literal(str(path)) for path in self.files[name])
        labels = [qid.name for qid in spec.columns.quasi_identifiers]
        referring = [(other, tuple(spec.referring[other])) for other in sorted(spec.referring, key=chain.index)]
        linking = {*spec.key, *(column for _, columns in referring for column in columns)}
        others = [column for column in pq.read_schema(self.files[name][0]).names if column not in {*labels, *linking}]
        return ShownTable(
            name,
            f"read_parquet([{paths}], hive_partitioning = false)",
            tuple(f"m.{quote(column)}" for column in labels),
            tuple(f"m.{quote(column)}" for column in others),
            tuple(map(quote, spec.key)),
            tuple((other, tuple(map(quote, columns))) for other, columns in referring),
        )


def _disclosed(given: ShownTables, link: str, path: Path) -> int:
    tree, salt = given.job.tree, literal(given.run.secret.keyed("disclosed", given.release))
    job: Job = given.run.job
    with connect(job, given.run.spill, last=True) as connection, file_error(f"release '{given.release}'"):
        tables = {name: given.table(name) for name in tree.tables}
        for name in reversed(tree.tables):
            below = [other for other in tables.values() if name in dict(other.references)]
            connection.execute(row_digests_sql(tables[name], below, salt))
        statement = disclosed_persons_sql(tables[tree.unit], [link])
        copy = f"COPY ({statement}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION uncompressed)"
        [(rows,)] = connection.execute(copy).fetchall()
    return int(rows)


DISCLOSED_PERSONS = FileStep(
    "disclosed_persons",
    make=_disclosed,
    reads=lambda given, link: [given.release, given.digests, link],
    settings=lambda given: given.run.secret.keyed("disclosed"),
    phase="overlaps",
)
"""Of each published person, digests of all that a release discloses under the pseudonym."""


def disclosed_by_tables(given: ShownTables) -> list[Disclosed]:
    """Return the digests of values disclosed under the unit's lasting pseudonyms.

    The list is empty where the pseudonyms are new in this release.
    """
    lasting = lasting_key(given.job)
    if lasting is None:
        return []
    stable = treatment_kind(lasting.treatment).stable
    link = f"left(k0::VARCHAR, {stable:d})" if stable else "k0"
    return [Disclosed((lasting.name,), DISCLOSED_PERSONS.result(given, link), None)]
