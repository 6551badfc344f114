"""How a value is written as text: the key under which a hierarchy file or tree lists it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.columns.column_types import is_text

_ISO = {"s": r"", "ms": r"\.000", "us": r"\.000000", "ns": r"\.000000000"}


def spellings(values: pa.Array) -> list[pa.Array]:
    """Writes the values of a domain as text, in each way in which a file may spell them, the preferred one first.

    Integers are decimal text, booleans ``true`` and ``false``, dates and timestamps ISO (with ``T`` or a space; the
    fraction of a second only where it is not zero), floats and decimals the shortest text that gives the
    value back (with or without ``.0``).

    Args:
        values: Shape ``(m,)``, without null.

    Returns:
        One or two string arrays of shape ``(m,)``, or none where the type cannot be written as text.
    """
    kind = values.type
    if is_text(kind):
        return [values]
    if pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind):
        return [(values.cast(pa.date32()) if pt.is_date(kind) else values).cast(pa.string())]
    if pt.is_floating(kind):
        return [_numpy_text(values), _trimmed(plain(values))]
    if pt.is_decimal(kind):
        written = plain(values)
        return [written, _trimmed(written)]
    if pt.is_timestamp(kind):
        spaced = _stamped(values)
        return [pc.replace_substring(spaced, " ", "T"), spaced]
    return []


def as_text(values: pa.Array) -> pa.Array:
    """Writes values as releases publish them where their column is text, shape (m,): whatever the method, one value has one text.

    It is the preferred spelling, but a moment has a space between date and time, as CSV files have it. Nulls stay null.
    """
    known = spellings(values.drop_null())[-1 if pt.is_timestamp(values.type) else 0].cast(pa.string())
    if not values.null_count:
        return known
    valid = np.asarray(values.is_valid())
    return known.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def plain(values: pa.Array) -> pa.Array:
    """Writes floats and decimals without exponent and without noise: a float as the shortest text that gives it back.

    Args:
        values: Shape ``(m,)``, floating or decimal, without null.

    Returns:
        Shape ``(m,)``, strings such as ``23``, ``23.8`` and ``-0.05``.
    """
    half = pt.is_float16(values.type)
    written = _numpy_text(values) if half else values.cast(pa.string())
    scientific = np.asarray(pc.match_substring_regex(written, r"[0-9][eE]"))
    if not scientific.any():
        return written
    expanded = [format(Decimal(text), "f") for text in written.filter(pa.array(scientific)).to_pylist()]
    return pc.replace_with_mask(written, pa.array(scientific), pa.array(expanded, pa.string()))


def _numpy_text(floats: pa.Array) -> pa.Array:
    return pa.array(floats.to_numpy(zero_copy_only=False).astype(str), pa.string())


def _trimmed(decimals: pa.Array) -> pa.Array:
    whole = pc.replace_substring_regex(decimals, r"\.0+$", "")
    return pc.replace_substring_regex(whole, r"(\.[0-9]*[1-9])0+$", r"\1")


def _stamped(values: pa.Array) -> pa.Array:
    written = pc.strftime(values, "%Y-%m-%d %H:%M:%S%z" if values.type.tz else "%Y-%m-%d %H:%M:%S")
    zone = r"([+-]\d\d)(\d\d)$"
    written = pc.replace_substring_regex(written, zone, r"\1:\2") if values.type.tz else written
    whole = _ISO[values.type.unit]
    return pc.replace_substring_regex(written, rf"{whole}([+-]\d\d:\d\d)?$", r"\1") if whole else written
