"""How the numbers and dates of a CSV file seem to be spelled, by values of its columns; no value comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import duckdb

from schemas.reading.spellings import DECIMAL, Spelling, date_sql, number_sql
from tasks.planning.profiles import MOST_RECORDS, READINGS
from tasks.store.database import literal, quote

Key = TypeVar("Key")
MOST_LOOKED_AT = 10_000
"""Records by which a spelling is proposed, the first ones; columns of which a later value has another one are then left as they are."""
FRONT = "first_records"
COMMA = Spelling(",", ".")
NUMBERS = {
    # Three digits behind a comma may be thousands: another number of digits decides, or both separators in one number.
    COMMA: r"-?[0-9]+,([0-9]{1,2}|[0-9]{4,})|-?[0-9]{1,3}([.][0-9]{3})+,[0-9]*",
    Spelling(",", " "): "-?[0-9]{1,3}([ \\x{00A0}\\x{2009}\\x{202F}][0-9]{3})+,[0-9]*",
    Spelling(DECIMAL, ","): r"-?[0-9]{1,3}(,[0-9]{3})+[.][0-9]*|-?[0-9]{1,3}(,[0-9]{3}){2,}",
    Spelling(DECIMAL, "'"): "-?[0-9]{1,3}(['\u2019][0-9]{3})+([.][0-9]*)?",
}
"""Spellings of numbers, and the values that are spelled so and in no other way."""
DATES = ("dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "dd-mm-yyyy", "mm-dd-yyyy", "yyyy.mm.dd")


def detect_spelling(connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[Spelling, str]:
    """Return the spelling of a file's numbers and dates, and a relation that has them in the standard spelling.

    A column speaks for a spelling if all its values are spelled so, and at least one of them in no other way. What columns leave open,
    such as dates of which no day is beyond the twelfth or 1,234 alone, stays text.

    Args:
        connection: Reads the file.
        relation: Reads it, all columns as text.
    """
    names = [str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    # Read once: several questions are asked of it.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {FRONT} AS SELECT * FROM {relation} LIMIT {MOST_LOOKED_AT}")
    spelling = _numbers(connection, names)._replace(dates=_dates(connection, names))
    every = f"(SELECT * FROM {relation} LIMIT {MOST_RECORDS})"
    numbers, days = _number_columns(connection, names, spelling), _date_columns(connection, names, spelling, every)
    tests = {name: f"bool_and({_all_numbers(name, spelling)})" for name in numbers} | {
        name: _all_dates(name, spelling.dates) for name in days
    }
    held = _true(connection, every, tests)
    kept = {name: one for name, one in (numbers | days).items() if name in held}
    connection.execute(f"DROP TABLE {FRONT}")
    if not kept:
        return Spelling(), relation
    standard = ", ".join(f"{one} AS {quote(name)}" for name, one in kept.items())
    return spelling, f"(SELECT * REPLACE ({standard}) FROM {relation})"


def spelling_keys(spelling: Spelling) -> Mapping[str, str]:
    """Return the job's ``source`` keys that state how numbers and dates are spelt; none if standard."""
    return {key: value for key, value in spelling._asdict().items() if value != Spelling._field_defaults[key]}


def _numbers(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> Spelling:
    """Return the spelling of numbers that columns speak for; the standard one where they speak for none, or for several."""
    tests = {
        (name, one): f"bool_and({_all_numbers(name, one)}) AND bool_or(regexp_full_match({quote(name)}, {literal(sure)}))"
        for name in names
        for one, sure in NUMBERS.items()
    }
    said = {one: name for name, one in _true(connection, FRONT, tests)}
    if len(said) != 1:
        return Spelling()
    [spelling] = said
    standard = {name: f"bool_and({_all_numbers(name, Spelling())}) AND NOT bool_and({_all_numbers(name, spelling)})" for name in names}
    if _true(connection, FRONT, standard):
        # A draft would take these for numbers, and a run would not: the file has no one spelling.
        return Spelling()
    # Where a comma is the decimal separator, three digits behind a point are thousands.
    sure = literal("[0-9][.][0-9]{3}")
    parted = {name: f"bool_or(regexp_matches({quote(name)}, {sure})) AND bool_and({_all_numbers(name, spelling)})" for name in names}
    return spelling if spelling != COMMA or _true(connection, FRONT, parted) else spelling._replace(thousands="")


def _all_numbers(name: str, spelling: Spelling) -> str:
    """Return the condition that a value is null or, in the standard spelling, what a draft takes for a number."""
    return f"{quote(name)} IS NULL OR coalesce({READINGS['double'].format(number_sql(quote(name), spelling))}, false)"


def _dates(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> str:
    """Return the order of days, months and years that most columns of dates speak for."""
    tests = {(name, dates): _all_dates(name, dates) for name in names for dates in DATES}
    found = _true(connection, FRONT, tests)
    orders = {name: [dates for other, dates in found if other == name] for name, _ in found}
    said = Counter(dates for one in orders.values() if len(one) == 1 for dates in one)
    return max(said, key=lambda dates: (said[dates], -DATES.index(dates))) if said else Spelling().dates


def _all_dates(name: str, dates: str) -> str:
    """Return the aggregate that tells whether all values of a column are moments in an order, and there is one."""
    moment = f"TRY_CAST({date_sql(quote(name), dates)} AS TIMESTAMP)"
    return f"bool_and({quote(name)} IS NULL OR {moment} IS NOT NULL) AND count({quote(name)}) > 0"


def _number_columns(connection: duckdb.DuckDBPyConnection, names: Sequence[str], spelling: Spelling) -> dict[str, str]:
    """Return, for each column of numbers that are not all spelled as in the standard, the SQL of its values in that."""
    if spelling[:2] == Spelling()[:2]:
        return {}
    other = f"[{spelling.decimal if spelling.decimal != DECIMAL else ''}{spelling.thousands}\u2019\\x{{00A0}}\\x{{2009}}\\x{{202F}}]"
    tests = {
        name: f"bool_and({_all_numbers(name, spelling)}) AND bool_or(regexp_matches({quote(name)}, {literal(other)}))" for name in names
    }
    return {name: number_sql(quote(name), spelling) for name in _true(connection, FRONT, tests)}


def _date_columns(connection: duckdb.DuckDBPyConnection, names: Sequence[str], spelling: Spelling, every: str) -> dict[str, str]:
    """Return, for each column of dates in the order of the file, the SQL of its values in the standard one, with a time if one has one."""
    if spelling.dates == Spelling().dates:
        return {}
    dates = {name: date_sql(quote(name), spelling.dates) for name in names}
    found = _true(connection, FRONT, {name: _all_dates(name, spelling.dates) for name in names})
    timed = _true(connection, every, {name: f"bool_or(contains({dates[name]}, ':'))" for name in found})
    return {name: f"TRY_CAST({dates[name]} AS {'TIMESTAMP' if name in timed else 'DATE'})::VARCHAR" for name in found}


def _true(connection: duckdb.DuckDBPyConnection, relation: str, tests: Mapping[Key, str]) -> list[Key]:
    """Return the keys of aggregates that are true of a relation."""
    if not tests:
        return []
    [found] = connection.execute(f"SELECT {', '.join(tests.values())} FROM {relation}").fetchall()
    return [key for key, true in zip(tests, found, strict=True) if true]
