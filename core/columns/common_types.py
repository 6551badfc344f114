"""One type for a column that files write in several: the one that holds all their values, if there is one.

| types | common type |
|---|---|
| nulls alone and any other | the other |
| text in any layout | text; large text if one is |
| integers of one sign | the wider |
| signed and unsigned integers | the narrowest signed one that holds both; none for unsigned 64 bits |
| integers and decimals, decimals | a decimal with room for the digits of both, up to 38 |
| integers or decimals and floats, floats | double |
| dates of both kinds | date |
| dates and timestamps without a zone | the timestamp |
| timestamps of one zone, or without | the finer unit |
| everything else | none: the files are refused |

Integers, timestamps and decimals that the common type does not hold to the last digit are refused when they are met.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from core.columns.column_types import is_text, plain_type

MOST_DIGITS = 38
DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
UNITS = ("s", "ms", "us", "ns")


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Returns the type that holds the values of both, or None; dictionaries count as their values."""
    one, other = plain_type(one), plain_type(other)
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if is_text(one) and is_text(other):
        return pa.large_string() if pt.is_large_string(one) or pt.is_large_string(other) else pa.string()
    if _is_number(one) and _is_number(other):
        return _number(one, other)
    if pt.is_date(one) and pt.is_date(other):
        return pa.date32()
    return _time(one, other)


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pt.is_integer(dtype) or pt.is_decimal(dtype) or pt.is_floating(dtype))


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_floating(one) or pt.is_floating(other):
        return pa.float64()
    if pt.is_integer(one) and pt.is_integer(other):
        return _integer(one, other)
    (whole, scale), (other_whole, other_scale) = _digits(one), _digits(other)
    decimals, digits = max(scale, other_scale), max(whole, other_whole) + max(scale, other_scale)
    return pa.decimal128(digits, decimals) if digits <= MOST_DIGITS else None


def _integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_signed_integer(one) == pt.is_signed_integer(other):
        return one if one.bit_width >= other.bit_width else other
    signed, unsigned = (one, other) if pt.is_signed_integer(one) else (other, one)
    # Unsigned 64 bits ask for 128, which no type has: None, and not a type that would wrap.
    return SIGNED.get(max(signed.bit_width, 2 * unsigned.bit_width))


def _digits(dtype: pa.DataType) -> tuple[int, int]:
    """Returns how many digits a number has before and after its point at most."""
    return (DIGITS[dtype.bit_width], 0) if pt.is_integer(dtype) else (dtype.precision - dtype.scale, dtype.scale)


def _time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_timestamp(one) and pt.is_timestamp(other) and one.tz == other.tz:
        return pa.timestamp(max(one.unit, other.unit, key=UNITS.index), one.tz)
    for date, stamp in ((one, other), (other, one)):
        if pt.is_date(date) and pt.is_timestamp(stamp) and stamp.tz is None:
            return stamp
    return None


def unified(schemas: Sequence[pa.Schema]) -> tuple[pa.Schema, dict[str, tuple[int, int]]]:
    """Returns the columns of all files together, in the order in which they come first, each in the type that holds its values.

    Returns:
        The columns, and by column two files, by number, whose types have none in common.
    """
    types: dict[str, pa.DataType] = {}
    first: dict[str, int] = {}
    unlike: dict[str, tuple[int, int]] = {}
    for number, schema in enumerate(schemas):
        for field in schema:
            known = types.get(field.name)
            held = field.type if known is None else known if plain_type(known) == plain_type(field.type) else common_type(known, field.type)
            if held is None:
                unlike.setdefault(field.name, (first[field.name], number))
                continue
            types[field.name] = held
            first.setdefault(field.name, number)
    return pa.schema(list(types.items())), unlike


def type_differences(columns: pa.Schema, schemas: Sequence[pa.Schema]) -> dict[str, str]:
    """Returns of each column that files write differently what was made of it, in words."""
    found = {}
    for field in columns:
        written = [str(plain_type(schema.field(field.name).type)) for schema in schemas if field.name in schema.names]
        missing = len(schemas) - len(written)
        words = [f"null in {missing:,} of {len(schemas):,} files, which lack it"] if missing else []
        if len(set(written)) > 1:
            words.append(f"{' and '.join(sorted(set(written)))} read as {plain_type(field.type)}")
        if words:
            found[field.name] = "; ".join(words)
    return found
