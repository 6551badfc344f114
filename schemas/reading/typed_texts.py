"""Texts as values of a type: the accepted spellings, those of a job, and SQL that converts them.

A text is accepted if it is a spelling of exactly one value of the type. DuckDB's own cast is wider: it rounds 20.5 to a whole number,
cuts the time off a date and drops the offset of an instant.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

DECIMAL, ISO = ".", "yyyy-mm-dd"
"""The spelling that types are read from: a decimal point, no separator of thousands, and dates by year, month and day."""
DATE_ORDER = re.compile(r"dd([./ -]?)mm\1yyyy|mm([./ -]?)dd\2yyyy|yyyy([./ -]?)mm\3dd")
"""What ``source.dates`` may say."""
# What a line cannot be broken at is a space too, and typographers have an apostrophe of their own.
_SAME = {" ": "[ \\x{00A0}\\x{2009}\\x{202F}]", "'": "['\u2019]", ".": "[.]", ",": "[,]"}
_WORD = "[+-]?[A-Za-z]+"
"""Such as NaN and -Infinity, which have no digits to spell."""


class Spelling(NamedTuple):
    """Decimal separator, thousands separator and date order of a file.

    Attributes:
        decimal: The decimal separator.
        thousands: The separator of thousands; empty if there is none.
        dates: The order of day, month and year, as in ``source.dates``.
    """

    decimal: str = DECIMAL
    thousands: str = ""
    dates: str = ISO


def standard_sql(text: str, dtype: str, spelling: Spelling) -> str:
    """Return the SQL of a text in its type's standard spelling; null where it is not the file's spelling.

    Args:
        text: SQL of the text.
        dtype: As in ``source.types``.
        spelling: Of the file.
    """
    if dtype in ("date", "timestamp", "timestamptz"):
        # Year, month and day in this order are no other day in any order.
        iso = f"CASE WHEN regexp_matches({text}, '^ *[0-9]{{4}}[-/]') THEN {text} END"
        return text if spelling.dates == ISO else f"coalesce({date_sql(text, spelling.dates)}, {iso})"
    if dtype in ("text", "boolean") or spelling[:2] == (DECIMAL, ""):
        return text
    return number_sql(text, spelling)


def number_sql(text: str, spelling: Spelling) -> str:
    """Return the SQL of a number's text with a point and no thousands separators; null if misspelt."""
    there = f"regexp_full_match(trim({text}), {_literal(f'{number_pattern(spelling)}|{_WORD}')})"
    digits = f"regexp_replace({text}, {_literal(_SAME[spelling.thousands])}, '', 'g')" if spelling.thousands else text
    return f"CASE WHEN {there} THEN replace({digits}, {_literal(spelling.decimal)}, '.') END"


def number_pattern(spelling: Spelling) -> str:
    """Return a number's regular expression in DuckDB's dialect; thousands are grouped or not."""
    grouped = f"[0-9]{{1,3}}({_SAME[spelling.thousands]}[0-9]{{3}})+|" if spelling.thousands else ""
    return f"[+-]?({grouped}[0-9]*)([{spelling.decimal}][0-9]*)?([eE][+-]?[0-9]+)?"


def date_sql(text: str, dates: str) -> str:
    """Return the SQL of a date's text as year-month-day, with any time after it; null if misspelt."""
    pattern, order = date_pattern(dates)
    # What follows is a time or nothing; the type's own reading says which times there are.
    both = _literal(f"^ *{pattern}([ T].*)?$")
    return f"CASE WHEN regexp_matches({text}, {both}) THEN regexp_replace({text}, {both}, '{order}\\4') END"


def date_pattern(dates: str) -> tuple[str, str]:
    """Return a date's regular expression, with a group per part, and its replacement as year-month-day."""
    parts = re.findall("dd|mm|yyyy", dates)
    separator = dates.removeprefix(parts[0])[:1] if len(dates) > len("".join(parts)) else ""
    few = "{1,2}" if separator else "{2}"
    digits = {"dd": few, "mm": few, "yyyy": "{4}"}
    year, month, day = (f"\\{parts.index(part) + 1}" for part in ("yyyy", "mm", "dd"))
    return re.escape(separator).join(f"([0-9]{digits[part]})" for part in parts), f"{year}-{month}-{day}"


def example_date(dates: str) -> str:
    """Return the last day of January 2024 in an order of day, month and year."""
    return dates.replace("dd", "31").replace("mm", "01").replace("yyyy", "2024")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
    "text": "texts, and values that come back from theirs",
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
    if dtype != "double":
        return f"CASE WHEN {fits} THEN {cast} END"
    # Few digits and what a double is printed as are exact: to compare the digits of a text takes ten times as long.
    few = f"length({spelled}) <= {_SURE_DIGITS} AND regexp_full_match({spelled}, '[+-]?[0-9]+([.][0-9]+)?')"
    fits = f"{fits} AND {_exact_sql(spelled, cast)} OR regexp_full_match({spelled}, '{_NO_NUMBERS}')"
    return f"CASE WHEN {few} THEN {cast} WHEN {cast}::VARCHAR = {spelled} THEN {cast} WHEN {fits} THEN {cast} END"


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
