"""The tables of a release as whoever has them all joins them, and the attack by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from core.attacks.attacked_tables import history_sizes_sql, joined_guesses
from core.composition.pseudonym_sets import ShownTable, row_digests_sql
from schemas.job.privacy import AttackBasis, AttackFigures, AttackSettings
from schemas.relational.table_jobs import unit_job
from schemas.relational.tables_job import TablesJob
from tasks.release.files import file_error
from tasks.store.database import connect, parquet_sql, quote
from tasks.store.keys import code_of

JOINS_ALONE = "Of several tables the joins are attacked, and of all persons: other attacks take one table so far."


def attack_tables(job: TablesJob, files: Mapping[str, Sequence[Path]], spill: Path, release_name: str) -> tuple[AttackFigures, ...]:
    """Count persons revealed by joining a release's tables, all and by branch; return figures per join.

    Args:
        job: Gives the references between tables and the privacy requirements.
        files: The data files of each table.
        spill: Folder for DuckDB's spill files.
        release_name: How the release is called in a message.
    """
    tree, promised = job.tree, job.privacy.known_rows is None
    with _joined(job, files, spill, release_name) as (connection, tables):
        whole = _counted(connection, tables[tree.unit], job.privacy.k)
        played = [joined_guesses(None, *whole, promised=promised)]
        for branch in tree.branches:
            # Where there is one branch, its rows are all that are joined to persons.
            found = whole
            if len(tree.branches) > 1:
                connection.execute(_rows_sql(tables, tree.unit, tree.branch_tables(branch)))
                found = _counted(connection, tables[tree.unit], job.privacy.k)
            played.append(joined_guesses(branch, *found, promised=promised))
    return tuple(one.figures() for one in played if one.guesses)


def history_sizes(job: TablesJob, files: Mapping[str, Sequence[Path]], spill: Path, release_name: str) -> dict[int, int]:
    """Count a release's histories by how many persons share each; arguments as for ``attack_tables``."""
    with _joined(job, files, spill, release_name) as (connection, tables):
        return _sizes(connection, tables[job.tree.unit])


@contextmanager
def _joined(
    job: TablesJob, files: Mapping[str, Sequence[Path]], spill: Path, release_name: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, ShownTable]]]:
    """Yield a connection that holds the digests of all joined rows, and the tables."""
    tables = {name: shown_table(job, name, files[name]) for name in job.tree.tables}
    with connect(unit_job(job), spill, last=True) as connection, file_error(release_name):
        for name in reversed(job.tree.tables):
            connection.execute(_rows_sql(tables, name, job.tree.tables))
        yield connection, tables


def _counted(connection: duckdb.DuckDBPyConnection, unit: ShownTable, k: int) -> tuple[int, int]:
    """Return the number of persons, and of those below k."""
    persons = {size: size * histories for size, histories in _sizes(connection, unit).items()}
    return sum(persons.values()), sum(many for size, many in persons.items() if size < k)


def _sizes(connection: duckdb.DuckDBPyConnection, unit: ShownTable) -> dict[int, int]:
    """Return how many histories so many persons share, by this number."""
    return dict(connection.execute(history_sizes_sql(unit)).fetchall())


def shown_table(job: TablesJob, name: str, files: Sequence[Path], others: Sequence[str] = ()) -> ShownTable:
    """Return a published table as SQL names, for joins; columns are those of a row ``m``.

    Args:
        others: Columns beside quasi-identifiers, key and references that are looked at.
    """
    spec, chain = job.tables[name], job.tree.chains[name]
    return ShownTable(
        name,
        parquet_sql(files),
        tuple(f"m.{quote(qid.name)}" for qid in spec.columns.quasi_identifiers),
        tuple(f"m.{quote(column)}" for column in others),
        tuple(map(quote, spec.key)),
        tuple((other, tuple(map(quote, spec.referring[other]))) for other in sorted(spec.referring, key=chain.index)),
    )


def _rows_sql(tables: Mapping[str, ShownTable], name: str, among: Sequence[str]) -> str:
    """Return SQL that digests the labels of a table's rows, with those of the rows below in some tables."""
    below = [tables[other] for other in among if name in dict(tables[other].references)]
    return row_digests_sql(tables[name], below, "''", ("labels",), "hash")


def basis_of_tables(settings: AttackSettings) -> AttackBasis:
    """Return seed and code version of attacks on several tables; persons are not sampled, joins alone run."""
    return AttackBasis(sample=None, seed=settings.seed, code=code_of(__name__), unplayed=(JOINS_ALONE,))
