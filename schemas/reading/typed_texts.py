"""Texts as values of a type: the accepted spellings, and SQL that converts them without loss.

A text is accepted if it is a spelling of exactly one value of the type. DuckDB's own cast is wider: it rounds 20.5 to a whole number,
cuts the time off a date and drops the offset of an instant.
"""

from __future__ import annotations

import re
from math import isfinite

from schemas.reading.spellings import Spelling, example_date, standard_sql

STANDARD = Spelling()
_DAY = r"[0-9]{4}(-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})"
_TIME = r"(2[0-3]|[01]?[0-9]):[0-5][0-9](:[0-5][0-9](\.[0-9]{0,6}0*)?)?"
_PATTERNS = {
    "integer": r"[+-]?[0-9]+(\.0*)?",
    "double": r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(E[+-]?[0-9]+)?",
    "boolean": r"TRUE|T|YES|Y|1|FALSE|F|NO|N|0",
    "date": rf"{_DAY}([ T]0?0:00(:00(\.0*)?)?)?",
    "timestamp": rf"{_DAY}([ T]{_TIME})?",
    "timestamptz": rf"{_DAY}[ T]{_TIME}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)",
}
SQL_TYPES = {
    "text": "VARCHAR", "integer": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
}  # fmt: skip
"""DuckDB's names of the types of ``source.types``; those of decimals are their own in capitals."""
_TAKES = {
    "integer": "whole numbers of 64 bits",
    "double": "numbers that 64 bits hold to the last digit that is written",
    "boolean": "true, false, t, f, yes, no, y, n, 1 and 0",
    "timestamp": "moments to the microsecond without an offset (timestamptz takes those with one)",
    "timestamptz": "moments to the microsecond with an offset, such as Z or +01:00",
}
_NO_NUMBERS = "NAN|[+-]?INF|[+-]?INFINITY"
_SURE_DIGITS, _SURE_LEAST = 15, "1e-290"
"""So many digits come back from a double of at least that size, whatever they are."""


def sql_type(dtype: str) -> str:
    """Return DuckDB's name of a type of ``source.types``."""
    return SQL_TYPES.get(dtype, dtype.upper())


def accepted_words(dtype: str, spelling: Spelling = STANDARD) -> str:
    """Return a description of the texts that a type accepts in a file, for messages."""
    separators = [f"a decimal '{spelling.decimal}'"] if spelling.decimal != STANDARD.decimal else []
    separators += [f"thousands parted by '{spelling.thousands}'"] if spelling.thousands else []
    spelled = f", with {' and '.join(separators)}" if separators and dtype not in ("boolean", "text") else ""
    if dtype in ("date", "timestamp", "timestamptz"):
        spelled = f", the day as {example_date(spelling.dates)}" if spelling.dates != STANDARD.dates else ""
    if dtype == "date":
        return f"days without a time, such as {example_date(spelling.dates)}"
    if dtype in _TAKES:
        return f"{_TAKES[dtype]}{spelled}"
    precision, scale = _digits(dtype)
    return f"numbers with at most {precision - scale} digits before the point and {scale} behind it{spelled}"


def typed_sql(text: str, dtype: str, spelling: Spelling = STANDARD) -> str:
    """Return the SQL that converts a text to a type, with null for texts that do not fit.

    Args:
        text: SQL of the text.
        dtype: As in ``source.types``.
        spelling: Of the numbers and dates of the file.
    """
    if dtype == "text":
        return text
    spelled = f"upper(trim({standard_sql(text, dtype, spelling)}))"
    cast = f"TRY_CAST({spelled} AS {sql_type(dtype)})"
    fits = f"regexp_full_match({spelled}, '{_pattern(dtype)}')"
    if dtype == "double":
        fits = f"({fits} AND {_exact_sql(spelled, cast)} OR regexp_full_match({spelled}, '{_NO_NUMBERS}'))"
    return f"CASE WHEN {fits} THEN {cast} END"


def is_spelling(text: str, dtype: str) -> bool:
    """Return whether a text spells exactly one value of a type.

    Whole numbers and decimals that are too large for the type are not detected.
    """
    spelled = text.strip(" ").upper()
    if dtype == "text" or (dtype == "double" and re.fullmatch(_NO_NUMBERS, spelled)):
        return True
    return re.fullmatch(_pattern(dtype), spelled) is not None and (dtype != "double" or _is_exact(spelled))


def _is_exact(text: str) -> bool:
    """Return whether a decimal number in a text survives conversion to a double."""
    digits, number = _significant(text), float(text)
    if not digits or number == 0 or not isfinite(number):
        return not digits
    return digits == _significant(f"{number:.{len(digits) - 1}E}")


def _significant(text: str) -> str:
    """Return the digits of a number's text without exponent, sign, point and outer zeros."""
    return re.sub("[.+-]", "", text.partition("E")[0]).strip("0")


def _pattern(dtype: str) -> str:
    """Return the regular expression of the spellings that a type accepts."""
    if dtype in _PATTERNS:
        return _PATTERNS[dtype]
    scale = _digits(dtype)[1]
    whole = rf"[0-9]+(\.[0-9]{{0,{scale}}}0*)?"
    return rf"[+-]?({whole}|\.[0-9]{{1,{scale}}}0*)" if scale else rf"[+-]?{whole}"


def _digits(dtype: str) -> tuple[int, int]:
    """Return precision and scale of a decimal type such as ``decimal(10,2)``."""
    precision, scale = re.findall(r"[0-9]+", dtype)
    return int(precision), int(scale)


def _exact_sql(text: str, number: str) -> str:
    """Return the SQL that checks whether a double has exactly the digits of its text."""
    digits = _significant_sql(text)
    printed = _significant_sql(f"format('{{:.{{}}e}}', {number}, greatest(length({digits}), 1) - 1)")
    return (
        f"isfinite({number}) AND CASE WHEN {digits} = '' THEN true WHEN {number} = 0 OR length({digits}) > 800 THEN false "
        f"WHEN length({digits}) <= {_SURE_DIGITS} AND abs({number}) >= {_SURE_LEAST} THEN true "
        f"WHEN {digits} = {_significant_sql(f'{number}::VARCHAR')} THEN true ELSE {digits} = {printed} END"
    )


def _significant_sql(text: str) -> str:
    """Return the SQL for the digits of a number without exponent, sign, point and outer zeros."""
    return f"trim(regexp_replace(split_part(upper({text}), 'E', 1), '[.+-]', '', 'g'), '0')"
