"""Join of every row to its parent rows and its person, in the order of persons, by DuckDB out of core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from core.relational.histories import NOWHERE
from schemas.errors.base import counted
from schemas.errors.tables import RelationError
from tasks.engine.steps import run_for_item
from tasks.relational.making.reading import TableSet, relation_faults
from tasks.store.database import connect, literal, parquet_sql, write_parquet
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.store.tables import array_file, write_numbers

PUBLISHED, ORPHAN, BEYOND = 0, 1, 2
"""The status of a row: published, orphan, or beyond the bound on the rows of a person."""


@dataclass(frozen=True)
class Linking(TableSet):
    """All tables, with artefacts of the rows joined to their persons for those below the unit.

    Attributes:
        linked: Rows in the order of persons, by table; the unit's own order is that of persons.
    """

    linked: dict[str, Artifact]

    def chain(self, table: str) -> tuple[str, ...]:
        """Return the tables from the unit down to the parent of a table."""
        return self.job.tree.chains[table]

    def rows_of(self, table: str) -> str:
        """Return SQL of a table's rows with ``row``, ``status`` and the numbers of the rows above, ``a0`` …."""
        if table not in self.linked:
            return f"(SELECT *, srow AS row, {PUBLISHED} AS status FROM {self.tables[table].relation(self.store)})"
        rows = parquet_sql([self.store.path(self.linked[table])], row_numbers=True)
        return f"(SELECT * EXCLUDE (file_row_number), file_row_number AS row FROM {rows})"


def linked_sql(given: Linking, table: str, salt: str) -> str:
    """Return SQL that joins each row to the rows above and marks orphans and rows beyond the bound.

    It is right because keys are unique, so that a left join by them neither loses nor repeats a row. Of all complete references the
    nearest decides, and the rows above that one are known already.
    """
    spec, own, chain = given.job.tables[table], given.tables[table], given.chain(table)
    referring = {chain.index(other): columns for other, columns in spec.referring.items()}
    joins, whole = [], {}
    for depth, columns in referring.items():
        mine, other = [own.encoded_name(column) for column in columns], chain[depth]
        theirs = [given.tables[other].encoded_name(column) for column in given.job.tables[other].key]
        same = " AND ".join(f"m.{here} = r{depth}.{there}" for here, there in zip(mine, theirs, strict=True))
        carried = ", ".join(["row", "status", *theirs, *(f"a{place}" for place in range(depth))])
        joins.append(f"LEFT JOIN (SELECT {carried} FROM {given.rows_of(other)}) AS r{depth} ON {same}")
        whole[depth] = " AND ".join(f"m.{column} IS NOT NULL" for column in mine)
    deepest = sorted(referring, reverse=True)
    depth_of = "CASE " + " ".join(f"WHEN {whole[depth]} THEN {depth}" for depth in deepest) + " END"
    status = (
        f"CASE WHEN depth IS NULL OR {' OR '.join(f'({whole[depth]} AND r{depth}.row IS NULL)' for depth in deepest)} THEN {ORPHAN} "
        + " ".join(f"WHEN depth = {depth} THEN r{depth}.status" for depth in deepest)
        + " END"
    )

    def above(place: int) -> str:
        cases = [f"WHEN {depth} THEN r{depth}.{'row' if depth == place else f'a{place}'}" for depth in deepest if depth >= place]
        return f"CASE depth {' '.join(cases)} END"

    rows_above = [f"{above(place)} AS a{place}" for place in range(len(chain))]
    differ = [
        f"(depth > {depth} AND {whole[depth]} AND r{depth}.row IS NOT NULL AND {above(depth)} IS DISTINCT FROM r{depth}.row)"
        for depth in deepest
    ]
    inner = f"""
        SELECT m.*, {", ".join(rows_above)}, {status} AS status, ({" OR ".join(differ)}) AS differs
        FROM (SELECT *, {depth_of} AS depth FROM {own.relation(given.store)} AS m) AS m {" ".join(joins)}
    """
    order = ", ".join([*(f"a{place} NULLS FIRST" for place in range(len(chain))), "srow"])
    if spec.rows is None:
        return f"{inner} ORDER BY {order}"
    names = pq.read_schema(given.store.path(given.tables[table].chunks[0])).names
    content = ", ".join(f"coalesce({name}::VARCHAR, '')" for name in names)
    drawn = f"sha256(concat_ws(chr(31), {literal(salt)}, {content}))"
    # Most persons have no more rows than may be: nothing is drawn for them.
    return f"""
        WITH all_rows AS MATERIALIZED ({inner}),
        many AS (SELECT a0 FROM all_rows WHERE status = {PUBLISHED} GROUP BY a0 HAVING count(*) > {spec.rows.most}),
        beyond AS (
            SELECT srow FROM (SELECT * FROM all_rows WHERE status = {PUBLISHED}) SEMI JOIN many USING (a0)
            QUALIFY row_number() OVER (PARTITION BY a0 ORDER BY {drawn}, srow) > {spec.rows.most}
        )
        SELECT r.* REPLACE (CASE WHEN b.srow IS NULL THEN r.status ELSE {BEYOND} END AS status)
        FROM all_rows AS r LEFT JOIN beyond AS b ON b.srow = r.srow ORDER BY {", ".join(f"r.{column}" for column in order.split(", "))}
    """


def _link(given: Linking, table: str, path: Path) -> int:
    salt = given.run.secret.keyed("rows of a person", table)
    with connect(given.run.job, given.run.spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        write_parquet(connection, linked_sql(given, table, salt), path, "ROW_GROUP_SIZE 122880")
    return given.tables[table].rows


LINKED = FileStep(
    "linked",
    make=_link,
    reads=lambda given, table: [given.key, [artifact.sha256 for artifact in given.linked.values()], table],
    settings=lambda given: [
        [[name, spec.key, spec.references, spec.rows.most if spec.rows else None] for name, spec in given.job.tables.items()],
        given.run.secret.keyed("rows of a person"),
    ],
)
"""The rows of a table in the order of persons, each with the rows that it hangs from."""


def check_relations(given: TableSet) -> None:
    """Raise one ``RelationError`` with all faults of keys and references of the tables."""
    faults, followed = relation_faults(given)
    if faults:
        # References that disagree are known only of joined rows, for which a key must name one row.
        raise RelationError(faults + (_disagreements(_linked(given)) if followed else []))


def link_rows(given: TableSet) -> Linking:
    """Return the tables with rows joined to their persons; raise ``RelationError`` if references disagree."""
    linking = _linked(given)
    if faults := _disagreements(linking):
        raise RelationError(faults)
    return linking


def orphans_by_table(given: Linking) -> dict[str, int]:
    """Return the number of rows of nobody by table; tables that have none are left out."""
    found = {}
    for table, artifact in given.linked.items():
        with connect(given.run.job, given.run.spill) as connection:
            rows = parquet_sql([given.store.path(artifact)])
            [(orphans,)] = connection.execute(f"SELECT count(*) FILTER (status = {ORPHAN}) FROM {rows}").fetchall()
        found[table] = int(orphans)
    return {table: orphans for table, orphans in found.items() if orphans}


def _linked(given: TableSet) -> Linking:
    """Join the rows of all tables to their persons, parents first; raise if references disagree."""
    linking = Linking(given.run, given.job, given.tables, {})
    for table in given.job.tree.tables[1:]:
        linking.linked[table] = run_for_item(given.run, LINKED, linking, table, f"rows of {table}")
    return linking


def _disagreements(given: Linking) -> list[str]:
    """Return a sentence for each table with rows whose references lead to different rows above."""
    faults = []
    for table, artifact in given.linked.items():
        with connect(given.run.job, given.run.spill) as connection:
            rows = parquet_sql([given.store.path(artifact)])
            statement = f"SELECT count(*) FILTER (differs AND status <> {ORPHAN}) FROM {rows}"
            [(differing,)] = connection.execute(statement).fetchall()
        if differing:
            faults.append(
                f"the references of {counted(differing, 'row')} of '{table}' disagree: what one finds hangs from another row than what the "
                "other finds; mend them"
            )
    return faults


def _align(given: Linking, table: str, path: Path) -> int:
    """Write the rows of a table as an array of numbers, shape (3 + qids, rows).

    The first three are depth, row above and person; then come the codes.
    """
    own = given.tables[table]
    if own.rows >= int(NOWHERE) - 1:
        raise RelationError.too_many_rows(table, own.rows)
    with array_file(path, np.uint32, (3 + len(own.qids), own.rows)) as file, connect(given.run.job, given.run.spill) as connection:
        start = file.tell()
        connection.execute("SET preserve_insertion_order = true")
        chain = given.chain(table)
        if chain:
            parent = "CASE depth " + " ".join(f"WHEN {place} THEN a{place}" for place in range(len(chain))) + " END"
            gone = f"status <> {PUBLISHED}"
            columns = [
                f"CASE WHEN {gone} THEN 0 ELSE depth END::UINTEGER",
                f"CASE WHEN {gone} THEN {int(NOWHERE)} ELSE {parent} END::UINTEGER",
                f"CASE WHEN {gone} THEN 0 ELSE a0 END::UINTEGER",
            ]
        else:
            columns = ["0::UINTEGER", "row::UINTEGER", "row::UINTEGER"]
        codes = [f"q{place}" for place in range(len(own.qids))]
        named = ", ".join(f"{one} AS n{place}" for place, one in enumerate([*columns, *codes]))
        statement = f"SELECT {named} FROM {given.rows_of(table)} ORDER BY row"
        first = 0
        for batch in connection.sql(statement).to_arrow_reader(1 << 18):
            for place in range(batch.num_columns):
                file.seek(start + 4 * (place * own.rows + first))
                write_numbers(file, batch.column(place).to_numpy())
            first += batch.num_rows
    return own.rows


ALIGNED = FileStep(
    "aligned",
    make=_align,
    reads=lambda given, table: [given.linked[table].sha256 if table in given.linked else given.key, table],
    settings=lambda given: sorted(given.job.tree.chains.items()),
    suffix=".npy",
)
"""The rows of a table as numbers: depth, row above, person and the codes of its quasi-identifiers."""
