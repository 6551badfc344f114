"""Writing of a release's tables, with labels for quasi-identifiers and pseudonyms for keys.

Rows are ordered by published values alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.column_types import working_type
from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from schemas.job.identifiers import Identifier
from schemas.relational.table_jobs import lasting_key, persons_job
from tasks.engine.progress import release_memory
from tasks.engine.steps import run_for_item
from tasks.relational.making.linking import PUBLISHED
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.published_values import (
    WAYS,
    WayColumn,
    decided_values,
    encoded_column,
    person_of,
    published_of_each,
    published_ways,
    shared_columns_of,
    without_values_of_few,
)
from tasks.source.batches import equal_groups
from tasks.store.database import connect, literal, parquet_sql, write_parquet
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.writing.pseudonyms import pseudonyms_of_key

DIGITS = 24
"""Hexadecimal digits of a pseudonym: 96 bits, of which no two are alike in 10^9 but with a chance of 10^-11."""
GROUP_ROWS = 131_072
JOINED_COLUMNS = 16
"""Columns at most whose published values one statement joins to the rows of a table."""


@dataclass(frozen=True)
class ReleasedTables(HistoryTables):
    """All tables, with the levels, persons and values that are published.

    Attributes:
        node: The level of each quasi-identifier, in the order of the job; empty where each row has levels of its own.
        chosen: Which persons are published, and which rows of them are not.
        release: The id of the release, by which pseudonyms are new in each.
        matched: The levels of each row, by table; empty where a column has one.
        keys: The published keys of the rows of tables, as far as they are made.
        values: What is published of each value of the columns that say ``publish``, by table and column, as far as it is decided.
    """

    node: Node
    chosen: Artifact
    release: str
    matched: Mapping[str, Artifact]
    keys: dict[str, Artifact]
    values: dict[str, dict[str, Artifact]]

    @classmethod
    def of(cls, tables: HistoryTables, node: Node, chosen: Artifact, release: str, matched: Mapping[str, Artifact]) -> Self:
        """Return the tables of a release from numbered tables and a method's choice, keys and values empty."""
        known = tables.run, tables.job, tables.tables, tables.linked, tables.aligned, tables.codings
        return cls(*known, node, chosen, release, matched, {}, {})

    def published_levels(self, table: str) -> dict[str, int | None]:
        """Return the level of each quasi-identifier of a table, by name; None if levels differ by row."""
        qids = self.tables[table].qids
        return dict(zip(qids, self.levels_of(self.node, table), strict=True)) if self.node else dict.fromkeys(qids)

    def persons_kept(self) -> NDArray[np.int64]:
        """Return the numbers of the published persons, ascending."""
        chosen = pq.read_table(self.store.path(self.chosen))
        found: NDArray[np.int64] = chosen.filter(pc.field("table") == self.job.tree.unit)["row"].to_numpy()
        return found

    def lasting(self, table: str) -> Identifier | None:
        """Return the unit key's identifier if its pseudonyms last; None if new per release or another table."""
        return lasting_key(self.job) if table == self.job.tree.unit else None

    @property
    def salt(self) -> str:
        """The salt of this release's pseudonyms."""
        return self.run.secret.keyed("pseudonyms of tables", self.release)

    def keys_of_rows(self, table: str) -> str:
        """Return the SQL relation of a table's published keys: ``row``, ``k0`` … and ``place``.

        Its columns are ``row``, ``k0`` … and ``place``, their order, from 0.
        """
        keys = parquet_sql([self.store.path(self.keys[table])], row_numbers=True)
        return f"(SELECT * RENAME (file_row_number AS place) FROM {keys})"

    def linking_sql(self, table: str) -> tuple[dict[str, str], list[str]]:
        """Return the SQL expression of each published key and reference column, and the joins they need.

        A reference is published as the key of the row that was found, also where the source left it out next to a nearer one. So a null
        discloses nothing but the table that a row hangs from.
        """
        spec, own, chain = self.job.tables[table], self.tables[table], self.chain(table)
        published: dict[str, str] = {}
        joins = []
        for other, columns in spec.referring.items():
            depth = chain.index(other)
            joins.append(f"LEFT JOIN {self.keys_of_rows(other)} AS n{depth} ON m.a{depth} = n{depth}.row")
            published |= {column: f"n{depth}.k{place}" for place, column in enumerate(columns)}
        text = ", ".join(f"length(m.{place}::VARCHAR), m.{place}::VARCHAR" for place in map(own.encoded_name, spec.key))
        for column in spec.key:
            salt = literal(f"{self.salt} {table} {column}")
            published.setdefault(column, f"substr(sha256(concat_ws(chr(31), {salt}, {text})), 1, {DIGITS})")
        return {column: published[column] for column in own.table.linking}, joins


def _labels(given: ReleasedTables, connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Register a table of codes and labels for each quasi-identifier of a table.

    It has every level where rows have levels of their own.
    """
    if (coding := given.codings.get(table)) is None:
        return
    levels = [[level] for level in given.levels_of(given.node, table)] if given.node else [range(one.levels) for one in coding.hierarchies]
    for place, (hierarchy, mine) in enumerate(zip(coding.hierarchies, levels, strict=True)):
        tables = [_labels_of_level(hierarchy, level, alone=bool(given.node)) for level in mine]
        connection.register(f"labels_{place}", pa.concat_tables(tables))


def _labels_of_level(hierarchy: Hierarchy, level: int, *, alone: bool) -> pa.Table:
    """Return a table of code, level and label of every value at a level.

    Labels are texts unless the level is the only one.
    """
    groups, labels = hierarchy.groups[level], hierarchy.labels[level]
    codes = pa.array(np.arange(len(groups), dtype=np.uint32))
    label = (labels if alone else as_text(labels).cast(pa.string())).take(pa.array(groups))
    return pa.table({"code": codes, "level": pa.array(np.full(len(groups), level, np.uint8)), "label": label})


def keys_sql(given: ReleasedTables, table: str) -> str:
    """Return the SQL for the published keys of a table's rows, ``row`` and ``k0`` …, in the order of keys.

    It is right because ``row`` names each row once, and left joins by it neither lose nor repeat a row.
    """
    published, joins = given.linking_sql(table)
    keys = given.job.tables[table].key
    columns = ", ".join(f"{published[column]} AS k{place}" for place, column in enumerate(keys))
    order = ", ".join(f"k{place}" for place in range(len(keys)))
    return f"SELECT m.row, {columns} FROM {given.rows_of(table)} AS m {' '.join(joins)} ORDER BY {order}"


def released_sql(given: ReleasedTables, table: str, row_relation: str) -> str:
    """Return SQL of a table's published rows in final order, with positions of keys instead of keys.

    It needs tables ``kept`` and ``labels_0`` …. Its columns are ``r0`` …, the places of referenced rows and of the own one in the order of
    their keys, and ``c0`` …, labels and other columns. Of references and key the places are compared, which are numbers; a key names one
    row, so that nothing else is. Texts of keys are long, and a sort of many takes more memory than it can spill: they are put in later.

    Args:
        row_relation: The relation of its rows, with published values.
    """
    own, spec = given.tables[table], given.job.tables[table]
    joins = [
        f"LEFT JOIN {given.keys_of_rows(other)} AS n{number} ON m.a{given.chain(table).index(other)} = n{number}.row"
        for number, other in enumerate(spec.referring)
    ]
    order = [f"n{number}.place" for number in range(len(joins))]
    if spec.key:
        joins.append(f"JOIN {given.keys_of_rows(table)} AS own ON own.row = m.row")
        order.append("own.place")
    columns = []
    if matched := given.matched.get(table):
        levels = parquet_sql([given.store.path(matched)], row_numbers=True)
        joins.append(f"JOIN {levels} AS g ON g.file_row_number = m.row")
    for place in range(len(own.qids)):
        of_row = f" AND labels_{place}.level = g.level_{place}" if matched else ""
        joins.append(f"JOIN labels_{place} ON labels_{place}.code = m.q{place}{of_row}")
        columns.append(f"labels_{place}.label")
    columns += [f"m.p{place}" for place in range(len(own.table.source.payload))]
    joins += kept_joins(given, table)
    places = [f"{one} AS r{number}" for number, one in enumerate(order)]
    shown = [f"{one} AS c{number}" for number, one in enumerate(columns)]
    order += [] if spec.key else [f"c{number}" for number in range(len(columns))]
    return f"SELECT {', '.join([*places, *shown])} FROM {row_relation} AS m {' '.join(joins)} ORDER BY {', '.join(order)}"


def _rows_with_values(given: ReleasedTables, connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return the relation of a table's rows with published values in columns with ``publish``.

    Every join holds buffers for each thread. So of many columns a few are replaced at a time, in tables that may spill.
    """
    rows = f"(FROM {given.rows_of(table)} WHERE status = {PUBLISHED})"
    columns = [encoded_column(given, WayColumn(table, name)) for name in given.values.get(table, {})]
    for first in range(0, len(columns), JOINED_COLUMNS):
        some = columns[first : first + JOINED_COLUMNS]
        joins = " ".join(f"LEFT JOIN published_{one} AS {one} ON {one}.value IS NOT DISTINCT FROM m.{one}" for one in some)
        replaced = f"SELECT m.* REPLACE ({', '.join(f'{one}.published AS {one}' for one in some)}) FROM {rows} AS m {joins}"
        if len(columns) <= JOINED_COLUMNS:
            return f"({replaced})"
        connection.execute(f"CREATE TEMP TABLE rows_{first} AS {replaced}")
        if first:
            connection.execute(f"DROP TABLE {rows}")
        rows = f"rows_{first}"
    return rows


def kept_joins(given: ReleasedTables, table: str) -> list[str]:
    """Return the SQL joins that keep the published rows ``m`` of the persons in table ``kept``."""
    joins = [f"SEMI JOIN kept ON kept.person = m.{person_of(given, table)}"]
    # With a row goes all that hangs from it.
    rows = {table: "m.row"} | {above: f"m.a{depth}" for depth, above in enumerate(given.chain(table)) if depth}
    withheld = f"(FROM {parquet_sql([given.store.path(given.chosen)])})"
    for number, (name, row) in enumerate(rows.items() if given.chain(table) else ()):
        mine = f'(SELECT row FROM {withheld} WHERE "table" = {literal(name)})'
        joins.append(f"ANTI JOIN {mine} AS w{number} ON w{number}.row = {row}")
    return joins


def _write(given: ReleasedTables, table: str, path: Path) -> int:
    with connect(given.run.job, given.run.spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.register("kept", pa.table({"person": given.persons_kept()}))
        _labels(given, connection, table)
        for name, decided in given.values.get(table, {}).items():
            column = WayColumn(table, name)
            connection.register(f"published_{encoded_column(given, column)}", published_of_each(connection, given, column, decided))
        keys = _keys_by_place(given, table)
        reader = connection.sql(released_sql(given, table, _rows_with_values(given, connection, table))).to_arrow_reader(GROUP_ROWS)
        rows, shown = 0, [*given.tables[table].qids, *given.tables[table].table.source.payload]
        fields = [pa.field(name, pa.string() if pa.types.is_large_string(key.type) else key.type) for name, (_, key) in keys.items()]
        fields += [reader.schema.field(f"c{number}").with_name(name) for number, name in enumerate(shown)]
        # Pseudonyms hardly repeat: a dictionary of them costs more than it saves.
        repeating = [name for name in shown if name not in keys]
        with pq.ParquetWriter(path, pa.schema(fields), use_dictionary=repeating or False) as writer:
            for group in equal_groups(reader, GROUP_ROWS):
                columns = [key.take(group[place].combine_chunks()) for place, key in keys.values()]
                columns += [group[f"c{number}"] for number in range(len(shown))]
                made = [column.cast(field.type) for column, field in zip(columns, fields, strict=True)]
                writer.write_table(pa.table(made, pa.schema(fields)), row_group_size=GROUP_ROWS)
                rows += group.num_rows
    return rows


def _keys_by_place(given: ReleasedTables, table: str) -> dict[str, tuple[str, pa.ChunkedArray]]:
    """Return the column of places of each key and reference column, and the keys at these."""
    spec = given.job.tables[table]
    found: dict[str, tuple[str, pa.ChunkedArray]] = {}
    for number, (other, columns) in enumerate(spec.referring.items()):
        found |= {column: (f"r{number}", key) for column, key in zip(columns, _mapped_keys(given, other), strict=True)}
    if spec.key:
        found |= {column: (f"r{len(spec.referring)}", key) for column, key in zip(spec.key, _mapped_keys(given, table), strict=True)}
    return {column: found[column] for column in given.tables[table].table.linking}


def _mapped_keys(given: ReleasedTables, table: str) -> list[pa.ChunkedArray]:
    """Return the key columns of a table in their order, mapped from a private file."""
    path = given.store.path(given.keys[table])
    names = [name for name in pq.read_schema(path).names if name != "row"]
    whole = pq.read_table(path, columns=names)
    # As one array each: of several, any part that is taken is made of a copy of all.
    large = [pa.large_string() if pa.types.is_string(kind) else kind for kind in whole.schema.types]
    whole = whole.cast(pa.schema(list(zip(names, large, strict=True)))).combine_chunks()
    with tempfile.NamedTemporaryFile(dir=given.run.spill) as mapped:
        with pa.ipc.new_file(mapped.name, whole.schema) as writer:
            writer.write_table(whole)
        # The mapping stays where the name is gone.
        whole = pa.ipc.open_file(pa.memory_map(mapped.name)).read_all()
    release_memory()
    return [whole[name] for name in names]


def _shared(given: ReleasedTables, column: WayColumn, path: Path) -> int:
    """Replace values that fewer than k released persons have by the column's rest value."""
    known = decided_values(given, column)
    with connect(given.run.job, given.run.spill) as connection:
        rows = f"(FROM {given.rows_of(column.table)} WHERE status = {PUBLISHED}) AS m {' '.join(kept_joins(given, column.table))}"
        connection.register("kept", pa.table({"person": given.persons_kept()}))
        return without_values_of_few(connection, given, column, known, rows).write(path)


SHARED_WAYS = FileStep(
    "shared_of_tables",
    make=_shared,
    reads=lambda given, column: [given.key, WAYS.result(given, column).sha256, given.chosen.sha256, *column],
    settings=lambda given: given.job.privacy.k,
    suffix=".arrow",
)
"""What is published of the values of a column, none of them of fewer than k persons who are released."""


def _write_keys(given: ReleasedTables, table: str, path: Path) -> int:
    with connect(given.run.job, given.run.spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        statement = keys_sql(given, table)
        if lasting := given.lasting(table):
            connection.register("lasting", lasting_keys(connection, given, table, lasting))
            statement = "FROM lasting ORDER BY k0"
        write_parquet(connection, statement, path)
    return given.tables[table].rows


def lasting_keys(connection: duckdb.DuckDBPyConnection, given: ReleasedTables, table: str, lasting: Identifier) -> pa.Table:
    """Return table ``row``, ``k0``: the pseudonym of each row's key, equal in releases by the same secret."""
    own = given.tables[table]
    rows = connection.sql(f"SELECT row, {own.encoded_name(lasting.name)} AS key FROM {given.rows_of(table)} ORDER BY row").to_arrow_table()
    values = rows["key"].combine_chunks().cast(working_type(own.table.source.columns.field(lasting.name).type))
    return pa.table({"row": rows["row"], "k0": pseudonyms_of_key(persons_job(given.job), own.table.source, lasting, values)})


KEYS = FileStep(
    "keys_of_tables",
    make=_write_keys,
    reads=lambda given, table: [
        given.key,
        given.key_of(given.job.tree.tables),
        given.release,
        table,
        [one.treatment.canonical(), given.tables[table].table.source.keys] if (one := given.lasting(table)) else None,
    ],
    settings=lambda given: [given.salt, sorted(given.job.tree.chains.items())],
)
"""The published keys of the rows of a table."""

TABLES = FileStep(
    "tables",
    make=_write,
    reads=lambda given, table: [
        given.key,
        given.key_of(given.job.tree.tables),
        given.chosen.sha256,
        given.node,
        given.release,
        table,
        matched.sha256 if (matched := given.matched.get(table)) else None,
        [keys.sha256 for keys in given.keys.values()],
        {name: made.sha256 for name, made in given.values.get(table, {}).items()},
    ],
    settings=lambda given: [given.salt, sorted(given.job.tree.chains.items()), pa.cpp_version],
)
"""A table of the release."""


def write_tables(given: ReleasedTables) -> dict[str, Artifact]:
    """Write all tables of a release; fill ``given.values`` and ``given.keys``; return artefacts by table."""
    for table in given.job.tree.tables:
        shared = shared_columns_of(given, table)
        given.values[table] = {
            name: run_for_item(given.run, SHARED_WAYS if column in shared else WAYS, given, column, f"values of {table}")
            for name in published_ways(given, table)
            for column in [WayColumn(table, name)]
        }
        if given.job.tables[table].key:
            given.keys[table] = run_for_item(given.run, KEYS, given, table, f"keys of {table}")
    return {table: run_for_item(given.run, TABLES, given, table, f"write {table}") for table in given.job.tables}
