"""Records that get lost and numbers that end a run: a source next to what its release reports."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from benchmarks.intruder.attack import Attack, run

PART = "records that get lost"
ROWS = 1_000
LONG = 17_000_000
"""Bytes of a field, more than two of the buffers that CSV is read in."""


def outcome(folder: Path, source: dict[str, Any], there: int, hierarchy: dict[str, Any], k: int = 2) -> str:
    """Run a job with one quasi-identifier, and say how many records went in and came out."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": hierarchy}], "insensitive": ["v"]}
    ended = run(
        folder, {"source": source, "columns": columns, "privacy": {"k": k}, "suppression": {"limit": 0}, "method": {"name": "skald"}}
    )
    if not ended.manifest:
        return f"nothing: exit {ended.code}"
    return f"{there:,} records in, {ended.manifest['released']:,} published, exit {ended.code}"


def _long_record(folder: Path) -> str:
    few = b"".join(b"%d,x\n" % (row % 5) for row in range(50))
    (folder / "a.csv").write_bytes(b"q,v\n" + few + b"3," + b"y" * LONG + b"\n" + few)
    return outcome(folder, {"path": "a.csv"}, 101, {"prefix": [1]})


def _cut_off(folder: Path) -> str:
    text = b"q,v\n" + b"".join(b"%d,x%d\n" % (row % 5, row * 7919) for row in range(200_000))
    packed: bytes = pa.Codec("zstd").compress(text, asbytes=True)
    (folder / "a.csv.zst").write_bytes(packed[: len(packed) // 2])
    return outcome(folder, {"path": "a.csv.zst"}, 200_000, {"prefix": [1]})


def _two_in_a_row(folder: Path) -> str:
    table, sink = pa.table({"q": [str(row % 5) for row in range(ROWS)], "v": range(ROWS)}), pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "a.arrow").write_bytes(2 * sink.getvalue().to_pybytes())
    return outcome(folder, {"path": "a.arrow"}, 2 * ROWS, {"prefix": [1]})


def _numbers(values: pa.Array, hierarchy: dict[str, Any]) -> Callable[[Path], str]:
    def play(folder: Path) -> str:
        pq.write_table(pa.table({"q": values, "v": range(len(values))}), folder / "a.parquet")
        return outcome(folder, {"path": "a.parquet"}, len(values), hierarchy, 200)

    return play


CLOSE = pa.array([Decimal(10**25 + row % 8) for row in range(ROWS)], pa.decimal128(38, 0))
ZEROS = pa.array([(-0.0, 1.0)[row % 2] for row in range(ROWS)])

ATTACKS = [
    Attack(PART, "a CSV record of 17 MB among 101", "101 records in, 100 published, exit 0", _long_record),
    Attack(PART, "the first half of a file of zstd", "200,000 records in, 91,822 published, exit 0", _cut_off),
    Attack(PART, "two Arrow files in a row", "2,000 records in, 1,000 published, exit 0", _two_in_a_row),
    Attack(PART, "decimals of 26 digits, one apart", "nothing: exit 1", _numbers(CLOSE, {"widths": [1, 2, 8]})),
    Attack(PART, "zeros with a sign, in a tree", "nothing: exit 4", _numbers(ZEROS, {"tree": {"few": ["0.0"], "more": ["1.0"]}})),
]
