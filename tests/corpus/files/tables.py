"""Parquet, Arrow and DuckDB files: types, encodings, compressions, partitions, schemas that differ, and files that are no data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from tests.corpus.files.cases import Case

MOMENT = datetime(2024, 2, 29, 12, 30, 1, 5)
LAST = datetime(9999, 12, 31)
TYPES: dict[str, pa.Array] = {
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int16": pa.array([-(2**15), 1, None], pa.int16()),
    "int32": pa.array([-(2**31), 1, None], pa.int32()),
    "int64": pa.array([2**53 + 1, -(2**63), None]),
    "uint8": pa.array([255, 0, None], pa.uint8()),
    "uint32": pa.array([2**32 - 1, 0, None], pa.uint32()),
    "uint64": pa.array([2**64 - 1, 2**63, None], pa.uint64()),
    "float": pa.array([0.5, -1.25, None], pa.float32()),
    "double": pa.array([0.1, 1e300, None]),
    "decimal128": pa.array([Decimal("0.10"), Decimal("-99999999999999999.99"), None], pa.decimal128(19, 2)),
    "decimal of 38": pa.array([Decimal(10**38 - 1), Decimal(1), None], pa.decimal128(38, 0)),
    "decimal32": pa.array([Decimal("0.10"), None], pa.decimal32(5, 2)),
    "bool": pa.array([True, False, None]),
    "date": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
    "time": pa.array([time(0), time(23, 59, 59, 999999), None], pa.time64("us")),
    "milliseconds": pa.array([LAST, datetime(1, 1, 1), None], pa.timestamp("ms")),
    "microseconds": pa.array([MOMENT, LAST, datetime(1, 1, 1), None], pa.timestamp("us")),
    "zone": pa.array([MOMENT.replace(tzinfo=UTC), None], pa.timestamp("us", "Europe/Berlin")),
    "text": pa.array(["", " ", "ä€😀", "x" * 300, None]),
    "large text": pa.array(["x", "", None], pa.large_string()),
    "text view": pa.array(["x", "", None], pa.string_view()),
    "binary": pa.array([b"\0\xff", b"", None]),
    "category": pa.array(["x", "y", None]).dictionary_encode(),
}
ENCODINGS = {
    "DELTA_LENGTH_BYTE_ARRAY": TYPES["text"],
    "DELTA_BYTE_ARRAY": TYPES["text"],
    "PLAIN": TYPES["text"],
    "DELTA_BINARY_PACKED": TYPES["int64"],
    "BYTE_STREAM_SPLIT": TYPES["double"],
}
CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")


def table_of(values: pa.Array) -> pa.Table:
    """Return a table of ``h`` and ``v``."""
    return pa.table({"h": ["a"] * len(values), "v": values})


def parquet(folder: Path, values: pa.Array, name: str = "in.parquet", **how: Any) -> None:
    """Write a Parquet file."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table_of(values), folder / name, **how)


def int96(folder: Path, moments: list[datetime]) -> None:
    """Write timestamps of all years as Spark and Hive do; Arrow's writer of INT96 knows nanoseconds only, so the days are set."""
    days = [(moment - datetime(1970, 1, 1)).days for moment in moments]
    marks = [datetime(1970, 1, 1 + number) for number in range(len(moments))]
    pq.write_table(
        table_of(pa.array(marks, pa.timestamp("ns"))),
        folder / "in.parquet",
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
    )
    content = (folder / "in.parquet").read_bytes()
    for number, day in enumerate(days):
        old, new = ((2440588 + one).to_bytes(4, "little") for one in (number, day))
        content = content.replace(bytes(8) + old, bytes(8) + new)
    (folder / "in.parquet").write_bytes(content)


def both(folder: Path, one: pa.Table, other: pa.Table) -> None:
    """Write two files."""
    pq.write_table(one, folder / "1.parquet")
    pq.write_table(other, folder / "2.parquet")


def arrow(folder: Path, values: pa.Array, *, stream: bool = False) -> None:
    """Write an Arrow file or stream."""
    table = table_of(values)
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(folder / "in.arrow", table.schema) as writer:
        writer.write_table(table)


def database(folder: Path, values: str) -> None:
    """Write a DuckDB file."""
    with duckdb.connect(str(folder / "in.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT 'a' AS h, v FROM (VALUES {values}) AS x(v)")


def encrypted(folder: Path, *, plain: bool) -> None:
    """Write an encrypted file with a plain footer or an encrypted one."""

    class Client(pe.KmsClient):  # type: ignore[misc]
        def wrap_key(self, key: bytes, _name: str) -> bytes:
            return key.hex().encode()

        def unwrap_key(self, wrapped: bytes, _name: str) -> bytes:
            return bytes.fromhex(wrapped.decode())

    factory, table = pe.CryptoFactory(lambda _: Client()), table_of(TYPES["text"])
    how = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["v"]}, plaintext_footer=plain)
    with pq.ParquetWriter(
        folder / "in.parquet", table.schema, encryption_properties=factory.file_encryption_properties(pe.KmsConnectionConfig(), how)
    ) as writer:
        writer.write_table(table)


def touched(folder: Path, *names: str) -> None:
    """Write files of one record that are no data, beside one that is."""
    for name in ("data/in.parquet", *names):
        parquet(folder, pa.array(["x"] * 2 if name == "data/in.parquet" else ["never"]), name)


def cases() -> Iterator[Case]:
    """Yield the cases of tables."""
    source = {"path": "in.parquet"}
    for name, values in TYPES.items():
        yield Case(f"parquet {name}", partial(parquet, values=values), source, values.to_pylist())
        yield Case(f"arrow {name}", partial(arrow, values=values, stream=name[0] < "f"), {"path": "in.arrow"}, values.to_pylist())
        together = (
            pa.concat_arrays([values, pa.nulls(2, values.type)]).to_pylist() if name != "category" else [*values.to_pylist(), None, None]
        )
        lacking = pa.table({"h": ["a"] * 2})
        evolve = {"path": "*.parquet", "schema": "evolve"}
        yield Case(f"evolve {name} missing", partial(both, one=table_of(values), other=lacking), evolve, together)
        nothing = partial(both, one=table_of(pa.nulls(2)), other=table_of(values))
        yield Case(f"freeze {name} of type null", nothing, {"path": "*.parquet"}, together)
    for encoding, values in ENCODINGS.items():
        how: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"v": encoding}}
        yield Case(f"parquet {encoding}", partial(parquet, values=values, **how), source, values.to_pylist())
    for codec in CODECS:
        yield Case(f"parquet {codec}", partial(parquet, values=TYPES["text"], compression=codec), source, TYPES["text"].to_pylist())
    many = pa.array([f"text {number}" for number in range(3000)])
    yield Case("parquet v2 pages", partial(parquet, values=many, data_page_version="2.0", row_group_size=700), source, many.to_pylist())
    moments = [LAST, datetime(1600, 1, 1), datetime(2024, 2, 29), datetime(1, 1, 1)]
    yield Case("parquet INT96", partial(int96, moments=moments), source, moments)
    fine = partial(parquet, values=pa.array([1, 1000], pa.timestamp("ns")), use_deprecated_int96_timestamps=True)
    yield Case("parquet INT96 below microseconds", fine, source, said="1 timestamp in INT96")
    for plain in (True, False):
        yield Case(f"parquet encrypted {plain}", partial(encrypted, plain=plain), source, said="is encrypted")
    pattern = {"path": "data/**/*.parquet"}
    for name in ("_temporary/0/x.parquet", ".hive-staging/x.parquet", ".x.parquet", "_x.parquet", "sub/_tmp/x.parquet"):
        yield Case(f"no data {name}", partial(_aside, name=name), pattern, ["x", "x"])
    yield Case("no data at all", lambda folder: parquet(folder, pa.array(["x"]), "data/_x.parquet"), pattern, said="begins with _ or a dot")
    yield Case(
        "asked for by name", lambda folder: parquet(folder, pa.array(["x"] * 2), "data/_x.parquet"), {"path": "data/_*.parquet"}, ["x", "x"]
    )
    yield Case("a folder", lambda folder: parquet(folder, pa.array(["x"]), "data/in.parquet"), {"path": "data"}, said="is a folder")
    for words, mark in (("Delta", "_delta_log/0.json"), ("Hudi", ".hoodie/hoodie.properties"), ("Iceberg", "metadata/v1.metadata.json")):
        yield Case(f"a table of {words}", partial(_marked, mark=f"data/{mark}"), pattern, said=f"is a table of {words}")
    for region in ("North", "1", "a%20b"):
        name = f"data/v={region}/in.parquet"
        expected: Any = {"1": 1, "a%20b": "a b"}.get(region, region)
        hive = {**pattern, "hive": True}
        yield Case(f"partition {region}", partial(_partitioned, name=name), hive, [expected] * 2)
    for dtype, text in (("integer", "20.5"), ("date", "2024-01-02 03%3A00%3A00"), ("double", "9007199254740993"), ("boolean", "2")):
        hive = {**pattern, "hive": True, "types": {"v": dtype}}
        yield Case(f"partition {dtype} {text}", partial(_partitioned, name=f"data/v={text}/in.parquet"), hive, said="is not of the type")
    rows = {"path": "in.duckdb", "table": "t"}
    for name, (text, found) in {
        "integers": ("(9007199254740993), (NULL)", [2**53 + 1, None]),
        "huge": ("(99999999999999999999::HUGEINT)", [Decimal(10**20 - 1)]),
        "decimals": ("(0.10::DECIMAL(9,2)), (NULL)", [Decimal("0.10"), None]),
        "text": ("('ä'), ('')", ["ä", ""]),
        "dates": ("(DATE '9999-12-31')", [date(9999, 12, 31)]),
        "timestamps": ("(TIMESTAMP '9999-12-31 00:00:00')", [LAST]),
        "enum": ("('x'::ENUM('x', 'y'))", ["x"]),
        "blob": ("('\\x00'::BLOB)", [b"\0"]),
    }.items():
        yield Case(f"duckdb {name}", partial(database, values=text), rows, found)
    yield Case("duckdb intervals", partial(database, values="(INTERVAL 1 DAY)"), rows, said="cannot be kept as they are")
    broken: dict[str, Callable[[bytes], bytes]] = {
        "cut": lambda content: content[:-20],
        "of another kind": lambda _: b"PK\3\4 nothing",
        "empty": lambda _: b"",
        "marks alone": lambda _: b"PAR1" * 3,
        "a broken footer": lambda content: content[:-60] + bytes(52) + content[-8:],
        "broken pages": lambda content: content[:4] + bytes(60) + content[64:],
    }
    for name, change in broken.items():
        yield Case(f"parquet {name}", partial(_broken, change=change), source, said="in.parquet'")
    yield Case(
        "arrow cut", lambda folder: (folder / "in.arrow").write_bytes(b"ARROW1\0\0" + bytes(40)), {"path": "in.arrow"}, said="in.arrow'"
    )


def _aside(folder: Path, name: str) -> None:
    touched(folder, f"data/{name}")


def _marked(folder: Path, mark: str) -> None:
    parquet(folder, pa.array(["x"]), "data/in.parquet")
    (folder / mark).parent.mkdir(parents=True, exist_ok=True)
    (folder / mark).write_text("{}")


def _partitioned(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"h": ["a", "a"]}), folder / name)


def _broken(folder: Path, change: Callable[[bytes], bytes]) -> None:
    parquet(folder, TYPES["text"], compression="none")
    (folder / "in.parquet").write_bytes(change((folder / "in.parquet").read_bytes()))
