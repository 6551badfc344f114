"""How a value may be written where a hierarchy lists it or a label says it, read off the contract of job files."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

FRACTIONS = (3, 6, 9)


def written(values: pa.Array) -> list[tuple[str, ...]]:
    """Returns the texts of each value, the one in which releases write it first.

    Numbers are their shortest decimal text, with or without ``.0``; booleans ``true`` and ``false``; dates and timestamps ISO, with ``T``
    or a space between, and the fraction of a second where it is not zero.

    Args:
        values: Shape (m,), without nulls, of a type that a hierarchy can have.
    """
    kind = values.type
    if pt.is_timestamp(kind):
        return [_moment_texts(*parts) for parts in zip(*_moment_parts(values), strict=True)]
    if pt.is_floating(kind):
        # Zero has two signs and is one value.
        return [_number_texts(str(number)) for number in values.to_numpy(zero_copy_only=False) + 0]
    listed = values.to_pylist()
    if pt.is_boolean(kind):
        return [("true" if value else "false",) for value in listed]
    if pt.is_decimal(kind):
        return [_number_texts(format(value, "f")) for value in listed]
    if pt.is_date(kind):
        return [(str(day),) for day in values.cast(pa.date32()).to_numpy(zero_copy_only=False).astype("datetime64[D]")]
    return [(str(value),) for value in listed]


def texts_with_nulls(values: pa.Array, form: int = 0) -> list[str | None]:
    """Returns one text of each value, of those that `written` has, and None for a null.

    Args:
        values: Shape (m,), of a type that a hierarchy can have.
        form: Which text: the one in which releases write it, or with -1 the shortest.
    """
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        found: list[str | None] = values.to_pylist()
        return found
    known = iter(written(values.drop_null()))
    return [next(known)[form] if there else None for there in values.is_valid().to_pylist()]


def _number_texts(text: str) -> tuple[str, ...]:
    """Returns the text of a number, and the same without exponent and without zeros at the end of its fraction."""
    plain = format(Decimal(text), "f") if "e" in text else text
    shortened = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return tuple(dict.fromkeys((text, shortened)))


def local_moments(values: pa.Array) -> NDArray[np.datetime64]:
    """Returns dates and timestamps as the calendar and the clock of their place show them, shape (m,)."""
    if pt.is_date(values.type):
        return np.asarray(values.cast(pa.date32()), "datetime64[D]")
    return np.asarray(pc.local_timestamp(values) if values.type.tz else values)


def _moment_parts(values: pa.Array) -> tuple[list[str], list[str]]:
    """Returns date and time without fraction zeros, and the offset from UTC where there is a zone."""
    local = local_moments(values)
    texts = np.datetime_as_string(local).tolist() if len(local) else []
    if not values.type.tz:
        return texts, [""] * len(texts)
    offsets = (local - np.asarray(values.cast(pa.timestamp(values.type.unit)))).astype("timedelta64[m]").astype(np.int64)
    return texts, [f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" for minutes in offsets.tolist()]


def _moment_texts(moment: str, offset: str) -> tuple[str, ...]:
    """Returns a moment with a fraction of as many digits as its unit has, or as say it all; without one where it is zero."""
    whole, _, fraction = moment.partition(".")
    shorter = [fraction[:digits] for digits in FRACTIONS if not fraction[digits:].strip("0")]
    ends = [f".{digits}" for digits in dict.fromkeys((fraction, *shorter))] if fraction.strip("0") else [""]
    return tuple(f"{start}{end}{offset}" for end in ends for start in (whole, whole.replace("T", " ")))
