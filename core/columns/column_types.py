"""Types of columns: as files declare them, as algorithms use them, and as releases publish them.

Arrow has several types for one meaning (text in three layouts, decimals in four widths), and few of its kernels know all of them. Columns
are worked on in one type per meaning and published in the type of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from schemas.errors.base import counted


def holds_bytes(dtype: pa.DataType) -> bool:
    """Return whether values of a type are texts or bytes of any length."""
    return bool(pt.is_string(dtype) or pt.is_large_string(dtype) or pt.is_binary(dtype) or pt.is_large_binary(dtype))


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, without dictionary encoding."""
    return dtype.value_type if pt.is_dictionary(dtype) else dtype


def is_coarsenable(plain: pa.DataType) -> bool:
    """Return whether values of a type can be coarsened, or published as values that k people share.

    The type is one without dictionary encoding.
    """
    number = pt.is_integer(plain) or pt.is_decimal(plain) or (pt.is_floating(plain) and not pt.is_float16(plain))
    return bool(number or is_text(plain) or pt.is_boolean(plain) or pt.is_date(plain) or pt.is_timestamp(plain))


def is_unpublishable(plain: pa.DataType) -> bool:
    """Return whether no release can hold the values of a type without dictionary encoding."""
    return bool(pt.is_nested(plain) or pt.is_null(plain) or pt.is_decimal256(plain))


def working_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type in which algorithms use the values of a column, one type per meaning."""
    plain = plain_type(dtype)
    if isinstance(plain, pa.BaseExtensionType):
        return working_type(plain.storage_type)
    if pt.is_string_view(plain):
        return pa.string()
    if pt.is_binary_view(plain):
        return pa.binary()
    if pt.is_decimal32(plain) or pt.is_decimal64(plain):
        return pa.decimal128(plain.precision, plain.scale)
    return plain


def to_working_type(column: pa.Array) -> pa.Array:
    """Convert a column to its working type; -0.0 becomes 0.0, and a dictionary stays one.

    Dictionaries of other kinds than text, and columns that need no change, stay as they are.
    """
    if isinstance(column, pa.DictionaryArray):
        entries = to_working_type(column.dictionary)
        # One type of indices, in no order of its own, or files that number their entries otherwise could not be put together.
        if entries is column.dictionary and pt.is_int32(column.indices.type) and not column.type.ordered:
            return column
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), entries)
    if isinstance(column, pa.ExtensionArray):
        return to_working_type(column.storage)
    wanted = working_type(column.type)
    if pt.is_float32(wanted) or pt.is_float64(wanted):
        # Zero has two signs and is one value.
        column = pc.add(column, pa.scalar(0, wanted))
    return column if wanted == column.type else column.cast(wanted)


def to_published_type(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Convert a column from its working type to its published type; a dictionary stays one.

    A dictionary stays one, because it is only a way of writing.

    Args:
        column: Shape (n,), in the working type of ``dtype``.
        dtype: The type of the source, without dictionary.
    """
    if isinstance(column, pa.DictionaryArray) or column.type == dtype:
        return column
    if isinstance(dtype, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(dtype, to_published_type(column, dtype.storage_type))
    return column.cast(dtype)


def in_utc(dtype: pa.DataType) -> pa.DataType:
    """Return a timestamp type with its zone replaced by UTC; other types as they are.

    The values are the same instants. Polars panics at offsets and at zones that it does not know.
    """
    return pa.timestamp(dtype.unit, "UTC") if pt.is_timestamp(dtype) and dtype.tz else dtype


MOST_DIGITS = 38
DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
UNITS = ("s", "ms", "us", "ns")


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of both types, dictionaries as their values; None without one."""
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
    """Return the greatest number of digits before and after the decimal point of a number type."""
    return (DIGITS[dtype.bit_width], 0) if pt.is_integer(dtype) else (dtype.precision - dtype.scale, dtype.scale)


def _time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_timestamp(one) and pt.is_timestamp(other) and one.tz == other.tz:
        return pa.timestamp(max(one.unit, other.unit, key=UNITS.index), one.tz)
    for date, stamp in ((one, other), (other, one)):
        if pt.is_date(date) and pt.is_timestamp(stamp) and stamp.tz is None:
            return stamp
    return None


def merge_schemas(schemas: Sequence[pa.Schema]) -> tuple[pa.Schema, dict[str, tuple[int, int]]]:
    """Merge file schemas; return the merged one, and for each column without a common type two files.

    Columns come in the order of their first occurrence.

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
    """Return for each column that files store differently a phrase on the type used and the nulls added."""
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


_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NANOSECONDS = (1 << 63) - 2
"""The integers beyond it mean infinity to DuckDB, and nothing at all to NumPy."""


class Moment(NamedTuple):
    """A date or time as Arrow's integer and as text for messages."""

    number: int
    text: str


def agreed_moments(dtype: pa.DataType) -> tuple[Moment, Moment]:
    """Return the first and last date or time of a type that all libraries in use agree on, both inclusive.

    With a zone it is a day less at both ends, so that the local calendar stays within them.
    """
    if pt.is_date32(dtype):
        return Moment(_FIRST_DAY, "0001-01-01"), Moment(_LAST_DAY, "9999-12-31")
    day = _DAY["ms" if pt.is_date64(dtype) else dtype.unit]
    if day == _DAY["ns"]:
        return Moment(-_NANOSECONDS, "1677-09-21"), Moment(_NANOSECONDS, "2262-04-11")
    inner = int(pt.is_timestamp(dtype) and dtype.tz is not None)
    first, last = (_FIRST_DAY + inner) * day, (_LAST_DAY + 1 - inner) * day - 1
    return Moment(first, f"0001-01-0{1 + inner}"), Moment(last, f"9999-12-{31 - inner}")


def inclusive_moments(dtype: pa.DataType) -> tuple[Moment, Moment] | None:
    """Return the first and last publishable value of a date or time type; None for other types.

    Both are inclusive; None is for types without such ends. Dates and times as in ``agreed_moments``, with the last of the days too
    whatever the zone: 9999-12-31 is what many write for never, and nothing is worked out from it. A time of the day is less than a day.
    """
    if pt.is_time(dtype):
        return Moment(0, "00:00"), Moment(_DAY[dtype.unit] - 1, "23:59")
    if not (pt.is_date(dtype) or pt.is_timestamp(dtype)):
        return None
    return agreed_moments(pa.timestamp(dtype.unit) if pt.is_timestamp(dtype) else dtype)


ALL = ("case", "space", "empty")
_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
MISSING = ("", "na", "n/a", "n.a.", "nan", "null", "#n/a", "<na>", "-", "--", ".", "?")
"""What says, in any case and between blanks, that nothing is known."""


def normalised(column: pa.Array, steps: Sequence[str]) -> pa.Array:
    """Normalise texts: lower case, no extra blanks, null for a missing value, as far as ``steps`` ask.

    ``case`` makes lower case, ``space`` removes blanks at the ends and repeated ones, ``empty`` makes null of texts that mean a missing
    value.

    Args:
        column: Shape (n,), text, or a dictionary of it; anything else stays as it is.
        steps: Among ``case``, ``space`` and ``empty``.
    """
    if isinstance(column, pa.DictionaryArray):
        if not is_text(column.type.value_type):
            return column
        # Entries that become one are one entry, and those that become null none.
        entries = normalised(column.dictionary, steps).dictionary_encode()
        return pa.DictionaryArray.from_arrays(entries.indices.take(column.indices), entries.dictionary)
    if not is_text(column.type) or not steps:
        return column
    spaced = pc.utf8_trim(pc.replace_substring_regex(column, _BLANKS, " "), " ")
    made = spaced if "space" in steps else column
    made = pc.utf8_lower(made) if "case" in steps else made
    if "empty" in steps:
        made = pc.if_else(pc.is_in(pc.utf8_lower(spaced), pa.array(MISSING, column.type)), None, made)
    return made


def spelling_counts(values: pa.Array) -> tuple[int, int]:
    """Count the texts that equal another one but for case and blanks, and those that mean a missing value.

    Args:
        values: Shape (m,), different from one another, without null.
    """
    if not is_text(values.type):
        return 0, 0
    folded = normalised(values, ALL)
    missing = folded.null_count
    return len(values) - missing - len(pc.unique(folded.drop_null())), missing


def spelling_words(alike: int, missing: int, about: str = "") -> str:
    """Say how many values differ only in spelling, and how many mean a missing value; empty if none.

    Args:
        alike: Texts that equal another one but for case and blanks.
        missing: Texts that mean a missing value.
        about: What stands before a number that was estimated.
    """
    found = [
        *([f"{about}{counted(alike, 'value')} that differ{'s' * (alike == 1)} from another only in case or blanks"] if alike else []),
        *(
            [f"{about}{counted(missing, 'value')} that say{'s' * (missing == 1)} that nothing is known, such as empty text and N/A"]
            if missing
            else []
        ),
    ]
    return " and ".join(found)
