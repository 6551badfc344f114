"""Columns of every type that real tables have, with a hierarchy that fits each, for tests of what goes in and comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

COPIES = 6


@dataclass(frozen=True)
class Kind:
    """One type: its values, and how it is generalised as a quasi-identifier; without a hierarchy it cannot be one."""

    dtype: pa.DataType
    values: Sequence[Any]
    hierarchy: Mapping[str, Any] | None = None
    csv: str | None = None

    def column(self, most: int = 0) -> pa.Array:
        """Every value, and the null, six times, so that k = 5 holds without generalising; values repeat up to ``most`` of them."""
        values = range(max(most, len(self.values)))
        places = [place for place in [*(value % len(self.values) for value in values), None] for _ in range(COPIES)]
        if pa.types.is_dictionary(self.dtype):
            # An entry that no record uses comes first, so that no position is that of its value.
            entries = pa.array([self.values[-1], *self.values[:-1]], self.dtype.value_type)
            last = len(self.values) - 1
            moved = [None if place is None else 0 if place == last else place + 1 for place in places]
            return pa.DictionaryArray.from_arrays(pa.array(moved, self.dtype.index_type), entries)
        storage = self.dtype.storage_type if isinstance(self.dtype, pa.BaseExtensionType) else self.dtype
        made = pa.array([None if place is None else self.values[place] for place in places], storage)
        return pa.ExtensionArray.from_storage(self.dtype, made) if storage is not self.dtype else made


_WHOLE = {"widths": [1]}
_PARTS = {"widths": [0.25]}
_DATES = {"date": ["year"]}
_TEXT = {"prefix": [1]}
_NUMBERS = [0, 100, 127]
_FLOATS = [0.5, -1.25, 3.0]
_DECIMALS = [Decimal("1.50"), Decimal("-2.25"), Decimal("0.00")]
_DAYS = [date(2020, 2, 29), date(1960, 1, 1), date(1999, 12, 31)]
_MOMENTS = [datetime(2020, 2, 29, 23, 30, 1), datetime(1960, 1, 1), datetime(1999, 12, 31, 12)]
_INSTANTS = [moment.replace(tzinfo=UTC) for moment in _MOMENTS]
_WORDS = ["Zoë", "b", "=1+1"]
_BYTES = [b"ab", b"\x00\xff", b"zz"]

NUMBERS = {
    **{str(dtype): Kind(dtype, _NUMBERS, _WHOLE) for dtype in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())},
    "int64": Kind(pa.int64(), [-(2**63), 0, 2**63 - 1], _WHOLE, "integer"),
    "uint64": Kind(pa.uint64(), [0, 2**63, 2**64 - 1], _WHOLE),
}
FRACTIONS = {
    "float32": Kind(pa.float32(), _FLOATS, _PARTS),
    "float64": Kind(pa.float64(), _FLOATS, _PARTS, "double"),
    "decimal32": Kind(pa.decimal32(7, 2), _DECIMALS, _PARTS),
    "decimal64": Kind(pa.decimal64(12, 2), _DECIMALS, _PARTS),
    "decimal128": Kind(pa.decimal128(10, 2), _DECIMALS, _PARTS, "decimal(10,2)"),
    "wide decimal": Kind(pa.decimal128(38, 0), [Decimal(10**37), Decimal(-5), Decimal(0)], _WHOLE, "decimal(38,0)"),
    "boolean": Kind(pa.bool_(), [True, False], {"tree": {"*": ["true", "false"]}}, "boolean"),
}
TIMES = {
    "date32": Kind(pa.date32(), _DAYS, _DATES, "date"),
    "timestamp[ms]": Kind(pa.timestamp("ms"), _MOMENTS, _DATES),
    "timestamp[us]": Kind(pa.timestamp("us"), _MOMENTS, _DATES, "timestamp"),
    "timestamp[ns]": Kind(pa.timestamp("ns"), _MOMENTS, _DATES),
    "timestamp[us, UTC]": Kind(pa.timestamp("us", "UTC"), _INSTANTS, _DATES),
    "timestamp[us, zone]": Kind(pa.timestamp("us", "Europe/Amsterdam"), _INSTANTS, _DATES),
    "timestamp[ms, offset]": Kind(pa.timestamp("ms", "+05:30"), _INSTANTS, _DATES),
}
TEXTS = {
    "string": Kind(pa.string(), _WORDS, _TEXT, "text"),
    "large_string": Kind(pa.large_string(), _WORDS, _TEXT),
    "string_view": Kind(pa.string_view(), _WORDS, _TEXT),
    "dictionary": Kind(pa.dictionary(pa.int8(), pa.string()), _WORDS, _TEXT),
    "dictionary of large_string": Kind(pa.dictionary(pa.uint32(), pa.large_string()), _WORDS, _TEXT),
    "dictionary of integers": Kind(pa.dictionary(pa.int16(), pa.int64()), [7, 9, 11], _WHOLE),
}
OTHERS = {
    "float16": Kind(pa.float16(), [np.float16(value) for value in _FLOATS]),
    "time32": Kind(pa.time32("ms"), [time(1, 2, 3), time(4)]),
    "time64": Kind(pa.time64("us"), [time(1, 2, 3), time(4)]),
    "duration": Kind(pa.duration("us"), [timedelta(1), timedelta(hours=2)]),
    "binary": Kind(pa.binary(), _BYTES),
    "large_binary": Kind(pa.large_binary(), _BYTES),
    "binary_view": Kind(pa.binary_view(), _BYTES),
    "fixed_size_binary": Kind(pa.binary(2), _BYTES),
    "uuid": Kind(pa.uuid(), [b"a" * 16, b"b" * 16]),
}
NESTED = {
    "list": Kind(pa.list_(pa.int64()), [[1], [2]]),
    "struct": Kind(pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 2}]),
    "map": Kind(pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("b", 2)]]),
    "null": Kind(pa.null(), [None]),
    "decimal256": Kind(pa.decimal256(50, 2), _DECIMALS),
}
FAMILIES = {"numbers": NUMBERS, "fractions": FRACTIONS, "times": TIMES, "texts": TEXTS, "others": OTHERS}
"""Types that can be published; those of all families but the last can be quasi-identifiers too. ``NESTED`` cannot be published."""


def table_of(kinds: Mapping[str, Kind]) -> pa.Table:
    """Return records with three columns of each kind, ``q…``, ``s…`` and ``i…``, numbered in the order of the kinds.

    Record by record all columns hold their first value, or their second, and so on; kinds with fewer values repeat them.
    """
    most = max(len(kind.values) for kind in kinds.values())
    columns: dict[str, Any] = {"key": pa.array(["x"] * ((most + 1) * COPIES))}
    for number, kind in enumerate(kinds.values()):
        columns |= {f"{role}{number}": kind.column(most) for role in ("q", "s", "i")}
    return pa.table(columns)


def columns_of(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return the roles of ``table_of``; columns that cannot be quasi-identifiers are insensitive."""
    qids = [{"name": f"q{number}", "hierarchy": dict(kind.hierarchy)} for number, kind in enumerate(kinds.values()) if kind.hierarchy]
    numbers = range(len(kinds))
    return {
        "quasi_identifiers": [{"name": "key", "hierarchy": _TEXT}, *qids],
        "sensitive": [f"s{number}" for number in numbers],
        "insensitive": "rest",
    }
