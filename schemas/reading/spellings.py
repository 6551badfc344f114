"""How a CSV file spells numbers and dates, and the SQL that turns them into the spelling that types are read from."""

from __future__ import annotations

import re
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
    """How a file spells numbers and dates.

    Attributes:
        decimal: The decimal separator.
        thousands: The separator of thousands; empty if there is none.
        dates: The order of day, month and year, as in ``source.dates``.
    """

    decimal: str = DECIMAL
    thousands: str = ""
    dates: str = ISO


def standard_sql(text: str, dtype: str, spelling: Spelling) -> str:
    """Return the SQL of a text in the standard spelling of its type; null where the text is not spelled as the file's are.

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
    """Return the SQL of a number's text with a decimal point and without separators of thousands; null for another spelling."""
    there = f"regexp_full_match(trim({text}), {_literal(f'{number_pattern(spelling)}|{_WORD}')})"
    digits = f"regexp_replace({text}, {_literal(_SAME[spelling.thousands])}, '', 'g')" if spelling.thousands else text
    return f"CASE WHEN {there} THEN replace({digits}, {_literal(spelling.decimal)}, '.') END"


def number_pattern(spelling: Spelling) -> str:
    """Return the regular expression of a number in DuckDB's dialect: thousands are grouped by three or not at all."""
    grouped = f"[0-9]{{1,3}}({_SAME[spelling.thousands]}[0-9]{{3}})+|" if spelling.thousands else ""
    return f"[+-]?({grouped}[0-9]*)([{spelling.decimal}][0-9]*)?([eE][+-]?[0-9]+)?"


def date_sql(text: str, dates: str) -> str:
    """Return the SQL of a date's text as year, month and day, with the time that follows it; null for another spelling."""
    pattern, order = date_pattern(dates)
    # What follows is a time or nothing; the type's own reading says which times there are.
    both = _literal(f"^ *{pattern}([ T].*)?$")
    return f"CASE WHEN regexp_matches({text}, {both}) THEN regexp_replace({text}, {both}, '{order}\\4') END"


def date_pattern(dates: str) -> tuple[str, str]:
    """Return the regular expression of a date with a group for each part, and the replacement by year, month and day."""
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
