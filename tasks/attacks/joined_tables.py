"""Attack on a release of several tables by joining them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from core.attacks.joined_histories import JoinedTable, joined_guesses, rows_sql, shared_rows_sql
from schemas.job.privacy import AttackBasis, AttackFigures, AttackSettings
from schemas.relational.table_jobs import unit_job
from schemas.relational.tables_job import TablesJob
from tasks.release.files import file_error
from tasks.store.database import connect, literal, quote
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
    tree = job.tree
    tables = {name: _joined_table(job, name, files[name]) for name in tree.tables}
    promised = job.privacy.known_rows is None
    with connect(unit_job(job), spill, last=True) as connection, file_error(release_name):
        for name in reversed(tree.tables):
            connection.execute(rows_sql(tables[name], _children(tables, name, list(tables))))
        whole = _counted(connection, tables[tree.unit], job.privacy.k)
        played = [joined_guesses(None, *whole, promised=promised)]
        for branch in tree.branches:
            # Where there is one branch, its rows are all that are joined to persons.
            found = whole
            if len(tree.branches) > 1:
                connection.execute(rows_sql(tables[tree.unit], _children(tables, tree.unit, tree.branch_tables(branch))))
                found = _counted(connection, tables[tree.unit], job.privacy.k)
            played.append(joined_guesses(branch, *found, promised=promised))
    return tuple(one.figures() for one in played if one.guesses)


def _counted(connection: duckdb.DuckDBPyConnection, unit: JoinedTable, k: int) -> tuple[int, int]:
    """Return the number of persons, and of those below k."""
    [(persons, below)] = connection.execute(shared_rows_sql(unit, k)).fetchall()
    return int(persons), int(below)


def _joined_table(job: TablesJob, name: str, files: Sequence[Path]) -> JoinedTable:
    spec, chain = job.tables[name], job.tree.chains[name]
    nearest_first = sorted(spec.referring, key=chain.index, reverse=True)
    return JoinedTable(
        name,
        f"read_parquet([{', '.join(literal(str(path)) for path in files)}], hive_partitioning = false)",
        tuple(quote(qid.name) for qid in spec.columns.quasi_identifiers),
        tuple(map(quote, spec.key)),
        tuple((other, tuple(map(quote, spec.referring[other]))) for other in nearest_first),
    )


def _children(tables: Mapping[str, JoinedTable], parent: str, among: Sequence[str]) -> list[JoinedTable]:
    return [tables[name] for name in among if any(other == parent for other, _ in tables[name].parents)]


def basis_of_tables(settings: AttackSettings) -> AttackBasis:
    """Return seed and code version of attacks on several tables; persons are not sampled, joins alone run."""
    return AttackBasis(sample=None, seed=settings.seed, code=code_of(__name__), unplayed=(JOINS_ALONE,))
