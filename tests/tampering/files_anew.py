"""Data files are written again, with more in them or other records, by somebody who makes digests, manifest and report anew."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.tampering.kinds import Layout, add, anew, data, kind

Tables = Callable[[pa.Table], pa.Table]


def written(path: Path, table: pa.Table, *, declared: pa.Schema | None = None, **options: Any) -> None:
    """Write a data file as a release's are written, but for what the options say."""
    own = pa.schema([pa.field(name, pa.string() if pa.types.is_dictionary(kind) else kind) for name, kind in _types(table).items()])
    settings = {"compression": "zstd", "write_statistics": False, "store_schema": False, "use_dictionary": _held(path)} | options
    with pq.ParquetWriter(path, table.schema, **settings) as writer:
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode((declared or own).serialize().to_pybytes()).decode()})
        writer.write_table(table)


def _held(path: Path) -> list[str]:
    """Return the columns that a file has dictionaries of."""
    metadata = pq.read_metadata(path)
    columns = [metadata.row_group(0).column(place) for place in range(metadata.num_columns)]
    return [column.path_in_schema for column in columns if column.has_dictionary_page]


def _types(table: pa.Table) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in table.schema}


def coded(path: Path) -> pa.Table:
    """Read a data file with its text as dictionaries."""
    names = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, read_dictionary=names) as file:
        return file.read().replace_schema_metadata()


def parquet(change: Tables = lambda table: table, *, which: int = 0, **options: Any) -> Callable[[Path], object]:
    """Return what writes a data file again, changed or with other options, and makes everything else anew."""

    def tamper(release: Path) -> None:
        path = data(release)[which]
        table = change(coded(path))
        written(path, table, **options)
        anew(release, lambda said: said["files"][which].update(rows=len(table)))

    return tamper


def replaced(name: str, change: Callable[[pa.ChunkedArray], Any]) -> Tables:
    """Return what replaces a column."""

    def replace(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, change(table[name]))

    return replace


def plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries."""
    return table.cast(pa.schema([field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in table.schema]))


def more_entries(column: pa.ChunkedArray) -> pa.Array:
    """Add entries to a dictionary that no record uses."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return pa.DictionaryArray.from_arrays(whole.indices, pa.array([*whole.dictionary.to_pylist(), "Alice Smith, 44"]))


def turned(column: pa.ChunkedArray) -> pa.Array:
    """Put the entries of a dictionary in an order that is neither theirs nor that of the records."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    places = [1, 0, *range(2, len(whole.dictionary))][::-1]
    return pa.DictionaryArray.from_arrays(pa.array(np.argsort(places)).take(whole.indices), whole.dictionary.take(pa.array(places)))


def declared(release: Path, schema: Callable[[pa.Schema], pa.Schema]) -> None:
    """Write the first data file with another copy of Arrow's schema in it."""
    path = data(release)[0]
    written(path, coded(path), declared=schema(pq.read_schema(path).remove_metadata()))
    anew(release)


add("statistics, all anew", parquet(write_statistics=True))
add("statistics of one column, all anew", parquet(write_statistics=["disease"]))
add("an index of pages, all anew", parquet(write_statistics=True, write_page_index=True))
add("checksums of pages, all anew", parquet(write_page_checksum=True))
add("another compression, all anew", parquet(compression="snappy"))
add("another level of compression, all anew", parquet(compression_level=19))
add("no dictionaries, all anew", parquet(plain, use_dictionary=False))
add("dictionaries in order of appearance, all anew", parquet(plain), keyed=True)
add("pages of another version, all anew", parquet(data_page_version="2.0"))
add("sorting columns named in the footer, all anew", parquet(sorting_columns=[pq.SortingColumn(0)]))
add("another version of the format, all anew", parquet(version="1.0"))
add("a dictionary with an entry that no record uses, all anew", parquet(replaced("disease", more_entries)))
add("a quasi-identifier's dictionary with a value more, all anew", parquet(replaced("zip", more_entries)))
add("a dictionary in an order of somebody's own, all anew", parquet(replaced("disease", turned)))
add("metadata in Arrow's schema, all anew", lambda release: declared(release, lambda schema: schema.with_metadata({"raw": "Alice 44"})))
add(
    "metadata of a column in Arrow's schema, all anew",
    lambda release: declared(release, lambda schema: schema.set(0, schema.field(0).with_metadata({"raw": "Alice 44"}))),
)
add(
    "a dictionary type in Arrow's schema, all anew",
    lambda release: declared(
        release, lambda schema: schema.set(schema.names.index("disease"), pa.field("disease", pa.dictionary(pa.int32(), pa.string())))
    ),
)
add(
    "a column that may not be null in Arrow's schema, all anew",
    lambda release: declared(release, lambda schema: schema.set(0, schema.field(0).with_nullable(False))),
)


@kind("a key of the footer, all anew")
def footer_key(release: Path) -> None:
    path = data(release)[0]
    table, schema = coded(path), pq.read_schema(path).remove_metadata()
    with pq.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False, store_schema=False) as writer:
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes()).decode(), "raw": "Alice 44"})
        writer.write_table(table)
    anew(release)


@kind("two row groups in the place of one, all anew")
def row_groups(release: Path) -> None:
    path = data(release)[0]
    table, schema = coded(path), pq.read_schema(path).remove_metadata()
    with pq.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False, store_schema=False) as writer:
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes()).decode()})
        writer.write_table(table, row_group_size=len(table) // 2 + 1)
    anew(release)


def spliced(change: Callable[[bytes, bytes], bytes]) -> Callable[[Path], object]:
    """Return what changes a data file that is given as its body and its footer with length and mark, and makes all else anew."""

    def tamper(release: Path) -> None:
        path = data(release)[0]
        content = path.read_bytes()
        (length,) = struct.unpack("<I", content[-8:-4])
        path.write_bytes(change(content[: -8 - length], content[-8 - length :]))
        anew(release)

    return tamper


add("bytes behind the file's end and its footer again, all anew", spliced(lambda body, footer: body + footer + b"Alice 44" + footer))
add("bytes before the footer, all anew", spliced(lambda body, footer: body + b"Alice 44" + footer))
add(
    "bytes at the end of the footer, all anew",
    spliced(lambda body, footer: body + footer[:-8] + b"Alice 44" + struct.pack("<I", len(footer)) + b"PAR1"),
)
add("a whole file before the file, all anew", spliced(lambda body, footer: body + footer + body[4:] + footer))
add(
    "who made the file is another, all anew",
    spliced(lambda body, footer: body + footer.replace(b"parquet-cpp-arrow", b"parquet-Alice-44.")),
)


def nested(column: pa.ChunkedArray) -> pa.Array:
    """Put a column into a structure."""
    return pa.StructArray.from_arrays([column.cast(pa.string()).combine_chunks()], ["value"])


def cast(name: str, dtype: pa.DataType) -> Callable[[Path], object]:
    """Return what writes a column in another type in every file."""

    def tamper(release: Path) -> None:
        for path in data(release):
            written(path, replaced(name, lambda column: plain(pa.table({name: column}))[name].cast(dtype))(coded(path)))
        anew(release)

    return tamper


def everywhere(change: Tables, layout: Layout = "parquet") -> Callable[[Path], object]:
    """Return what changes the records of every file."""

    def tamper(release: Path) -> None:
        for path in data(release):
            written(path, change(coded(path)))
        anew(release, lambda said: [file.update(rows=pq.read_metadata(release / file["path"]).num_rows) for file in said["files"]])

    return tamper


add("a nested column, all anew", parquet(replaced("note", nested)))
add("a list in the place of a value, all anew", parquet(replaced("note", lambda column: pa.array([[one] for one in column.to_pylist()]))))
add("whole numbers as text, all anew", cast("visits", pa.string()))
add("whole numbers as floats, all anew", cast("visits", pa.float64()))
add("text as bytes, all anew", cast("disease", pa.binary()))
add("one file with other types, all anew", parquet(replaced("visits", lambda column: column.cast(pa.float64()))))
add("a column more, all anew", everywhere(lambda table: table.append_column("person", pa.array(range(len(table))))))
add("a column more in one file, all anew", parquet(lambda table: table.append_column("person", pa.array(range(len(table))))))
add("a column less, all anew", everywhere(lambda table: table.drop_columns(["note"])))
add("columns in another order, all anew", everywhere(lambda table: table.select(table.column_names[::-1])))
add(
    "a column with another name, all anew",
    everywhere(lambda table: table.rename_columns(["Disease" if name == "disease" else name for name in table.column_names])),
)
add("a record less, all anew", parquet(lambda table: table.slice(1)))
add("a record twice, all anew", parquet(lambda table: pa.concat_tables([table, table.slice(0, 1)]).combine_chunks()))
add("an empty file, all anew", parquet(lambda table: table.slice(0, 0)))
add("sensitive values exchanged, all anew", parquet(replaced("disease", lambda column: column.take(pa.array(range(len(column))[::-1])))))
add(
    "a sensitive value altered, all anew",
    parquet(replaced("disease", lambda column: _first(column, "gout" if column[0].as_py() != "gout" else "flu"))),
)
add("a null in a column, all anew", parquet(replaced("visits", lambda column: _first(column, None))))
add("a label of one record altered, all anew", parquet(replaced("zip", lambda column: _first(column, "99999"))))
add(
    "raw values in the place of stars, all anew",
    everywhere(replaced("sex", lambda column: pa.array(["f", "m"] * len(column))[: len(column)])),
)
add("stars in the place of labels, all anew", everywhere(replaced("zip", lambda column: pa.array(["*"] * len(column)))))
add(
    "a whole column made up, all anew", everywhere(replaced("note", lambda column: pa.array([f"note {row}" for row in range(len(column))])))
)
add("records in another order, all anew", everywhere(lambda table: table.take(pa.array(range(len(table))[::-1]))), keyed=True)


def _first(column: pa.ChunkedArray, value: Any) -> pa.Array:
    values = column.to_pylist()
    kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
    return pa.array([value, *values[1:]], kind)


@kind("a record in another partition, all anew", "hive")
def other_partition(release: Path) -> None:
    first, second = next((one, other) for one in data(release) for other in data(release) if one.parent != other.parent)
    one, other = coded(first), coded(second)
    written(first, one.slice(1))
    written(second, pa.concat_tables([plain(other), plain(one).slice(0, 1)]))
    rows = {first.relative_to(release).as_posix(): len(one) - 1, second.relative_to(release).as_posix(): len(other) + 1}
    anew(release, lambda said: [file.update(rows=rows.get(file["path"], file["rows"])) for file in said["files"]])


@kind("a partition is called otherwise, all anew", "hive")
def renamed_partition(release: Path) -> None:
    folder = data(release)[0].parent
    moved = folder.with_name("zip=00000")
    before, after = f"data/{folder.name}/", f"data/{moved.name}/"
    folder.rename(moved)

    def change(said: dict[str, Any]) -> None:
        for file in said["files"]:
            file["path"] = file["path"].replace(before, after)
        said["files"].sort(key=lambda file: file["path"])

    anew(release, change)


def text(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], object]:
    """Return what changes the lines of a CSV file and makes all else anew."""

    def tamper(release: Path) -> None:
        path = data(release)[0]
        before = path.read_bytes()
        path.write_bytes(b"".join(change(before.splitlines(keepends=True))))
        assert path.read_bytes() != before
        anew(release)

    return tamper


def each(change: Callable[[bytes], bytes]) -> Callable[[list[bytes]], list[bytes]]:
    """Return what changes every line but the first."""
    return lambda lines: [lines[0], *map(change, lines[1:])]


for name, change in {
    "an empty line at the end": lambda lines: [*lines, b"\n"],
    "an empty line within": lambda lines: [lines[0], lines[1], b"\n", *lines[2:]],
    "a comment": lambda lines: [*lines, b"# Alice 44\n"],
    "ends lines as on Windows": lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
    "ends one line as on Windows": lambda lines: [*lines[:-1], lines[-1].replace(b"\n", b"\r\n")],
    "has no line end at the end": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "has no quotes": each(lambda line: line.replace(b'"', b"")),
    "quotes numbers": each(lambda line: line[:-1].rsplit(b",", 1)[0] + b',"' + line[:-1].rsplit(b",", 1)[1] + b'"\n'),
    "spells numbers with zeros": each(lambda line: line[:-1].rsplit(b",", 1)[0] + b",00" + line[:-1].rsplit(b",", 1)[1] + b"\n"),
    "spells numbers with a sign": each(lambda line: line[:-1].rsplit(b",", 1)[0] + b",+" + line[:-1].rsplit(b",", 1)[1] + b"\n"),
    "has blanks at the ends of lines": each(lambda line: line[:-1] + b"  \n"),
    "has a field more in one line": lambda lines: [*lines[:-1], lines[-1][:-1] + b",Alice\n"],
    "has a field more in each line": lambda lines: [line[:-1] + b",44\n" for line in lines],
    "has a field less": lambda lines: [*lines[:-1], lines[-1].rsplit(b",", 1)[0] + b"\n"],
    "has no mark": lambda lines: [lines[0].removeprefix(b"\xef\xbb\xbf"), *lines[1:]],
    "has the mark twice": lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]],
    "has its header twice": lambda lines: [lines[0], lines[0].removeprefix(b"\xef\xbb\xbf"), *lines[1:]],
    "has no header": lambda lines: lines[1:],
    "has a quoted header": lambda lines: [lines[0].replace(b"sex", b'"sex"'), *lines[1:]],
    "has another delimiter": lambda lines: [line.replace(b",", b";") for line in lines],
    "holds a zero byte": lambda lines: [*lines, b"\0\n"],
    "holds bytes that are no text": lambda lines: [*lines, b"\xff\xfe\n"],
    "has a record less": lambda lines: lines[:-1],
    "has a record twice": lambda lines: [*lines, lines[-1]],
    "runs a formula": each(lambda line: line.replace(b'"note', b'"=note', 1)),
}.items():
    add(f"a file {name}, all anew", text(change), "csv")


def table(*statements: str) -> Callable[[Path], object]:
    """Return what runs statements in a DuckDB file and makes all else anew."""

    def tamper(release: Path) -> None:
        with duckdb.connect(str(data(release)[0])) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute("CHECKPOINT")
        anew(release)

    return tamper


for name, statements in {
    "a table more": ["CREATE TABLE raw AS SELECT 'Alice' AS name"],
    "an empty table more": ["CREATE TABLE raw (name VARCHAR)"],
    "a view": ["CREATE VIEW raw AS SELECT 'Alice' AS name"],
    "a schema": ["CREATE SCHEMA alice"],
    "a table in a schema": ["CREATE SCHEMA more", "CREATE TABLE more.raw AS SELECT 'Alice' AS name"],
    "a macro": ["CREATE MACRO raw() AS 'Alice 44'"],
    "a macro of tables": ["CREATE MACRO raw() AS TABLE SELECT 'Alice 44' AS name"],
    "a sequence": ["CREATE SEQUENCE alice START 44"],
    "a type": ["CREATE TYPE raw AS ENUM ('Alice', 'Bob')"],
    "a comment of the table": ["COMMENT ON TABLE release IS 'Alice 44'"],
    "a comment of a column": ["COMMENT ON COLUMN release.age IS 'Alice 44'"],
    "an index": ["CREATE INDEX raw ON release (disease)"],
    "a default": ["ALTER TABLE release ALTER COLUMN disease SET DEFAULT 'Alice 44'"],
    "a column that may not be null": ["ALTER TABLE release ALTER COLUMN sex SET NOT NULL"],
    "a column more": ["ALTER TABLE release ADD COLUMN person INTEGER DEFAULT 44"],
    "a column less": ["ALTER TABLE release DROP COLUMN note"],
    "a record less": ["DELETE FROM release WHERE rowid = 0"],
    "a record twice": ["INSERT INTO release SELECT * FROM release LIMIT 1"],
    "a view in the place of the table": ["ALTER TABLE release RENAME TO other", "CREATE VIEW release AS SELECT * FROM other"],
    "a column that takes no notice of capitals": ["ALTER TABLE release ALTER COLUMN sex TYPE VARCHAR COLLATE NOCASE"],
    "other types": ["ALTER TABLE release ALTER COLUMN visits TYPE VARCHAR"],
    "sensitive values exchanged": ["UPDATE release SET disease = CASE disease WHEN 'flu' THEN 'gout' ELSE 'flu' END"],
}.items():
    add(f"{name}, all anew", table(*statements), "duckdb")


@kind("bytes behind the last block, all anew", "duckdb")
def behind(release: Path) -> None:
    path = data(release)[0]
    path.write_bytes(path.read_bytes() + b"Alice 44" * 512)
    anew(release)


@kind("what a table held that is gone, all anew", "duckdb")
def free_blocks(release: Path) -> None:
    with duckdb.connect(str(data(release)[0])) as connection:
        connection.execute("CREATE TABLE raw AS SELECT 'Alice ' || hash(range) AS name FROM range(200000)")
        connection.execute("CHECKPOINT")
        connection.execute("CREATE TABLE later AS SELECT 1 AS one")
        connection.execute("DROP TABLE raw")
        connection.execute("DROP TABLE later")
        connection.execute("CHECKPOINT")
    anew(release)


@kind("a log beside the file", "duckdb")
def log(release: Path) -> None:
    path = data(release)[0]
    path.with_name(f"{path.name}.wal").write_bytes(b"")
