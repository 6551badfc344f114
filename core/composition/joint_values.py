"""Sensitive values in the joint classes of two releases, as statements over ``joined``: l and t are held against these as against classes.

Each release keeps l or t in its own classes. Who knows that somebody is in one class of each looks at the records that the two have in
common: of {hiv, flu} and {hiv, asthma} one value is left (Ganta, Kasiviswanathan and Smith, KDD 2008, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.composition.joint_classes import JOINED

NUMBERED, FAILING = "numbered", "failing"
"""Tables of the joint classes with a number each, from 0, and of the numbers of those that fail."""


def numbered_sql(columns: Sequence[int], *, persons: bool) -> str:
    """Returns the statement that numbers the joint classes that a release publishes and that have somebody.

    ``size`` is what k counts in them, ``has_0`` … whether all their records have a known value in these columns: a release that does not
    publish a column tells nothing of it.

    Args:
        columns: Numbers of the sensitive columns.
        persons: Whether persons are counted; nobody adds nothing to a class.
    """
    size = "count(DISTINCT nullif(person, 0))" if persons else "count(*)"
    has = "".join(f", bool_and(value_{number} IS NOT NULL) AS has_{number}" for number in columns)
    return f"""
        CREATE OR REPLACE TEMP TABLE {NUMBERED} AS
        SELECT (row_number() OVER () - 1)::BIGINT AS number, * FROM (
            SELECT a, b, {size} AS size{has} FROM {JOINED} WHERE a >= 0 OR b >= 0 GROUP BY a, b HAVING {size} > 0)
    """


def sizes_sql(columns: Sequence[int]) -> str:
    """Returns the statement of ``size`` and ``has_0`` … of each joint class, in the order of their numbers."""
    return f"SELECT size{''.join(f', has_{number}' for number in columns)} FROM {NUMBERED} ORDER BY number"


def joint_values_sql(column: int, *, persons: bool) -> str:
    """Returns the statement of ``number``, ``value`` and ``times``: how many of a joint class have each value of a column.

    It is right because ``GROUP BY`` brings the records of a class and a value together once, and a person counts once for each of its
    values there, as in a class of one release.

    Args:
        column: Number of the sensitive column.
        persons: Whether persons are counted.
    """
    times = "count(DISTINCT person)" if persons else "count(*)"
    somebody = "AND person <> 0" if persons else ""
    return f"""
        SELECT number, value_{column} AS value, {times} AS times FROM {JOINED} JOIN {NUMBERED} USING (a, b)
        WHERE has_{column} {somebody} GROUP BY ALL ORDER BY number, value
    """


def whole_sql(table: str, column: int, *, persons: bool) -> str:
    """Returns the statement of ``value`` and ``times`` of a whole source, whose records stand in a table.

    Args:
        table: Of the records of one release.
        column: Number of the sensitive column.
        persons: Whether persons are counted.
    """
    times, somebody = ("count(DISTINCT person)", "AND person <> 0") if persons else ("count(*)", "")
    there = f"value_{column} IS NOT NULL {somebody}"
    return f"SELECT value_{column} AS value, {times} AS times FROM {table} WHERE {there} GROUP BY ALL ORDER BY value"


def values_at_risk_sql(*, persons: bool) -> str:
    """Returns the statement that counts who is in a joint class of which the number is in ``failing``, everybody once.

    Args:
        persons: Whether persons are counted.
    """
    who = "count(DISTINCT nullif(person, 0)) + count(*) FILTER (person = 0)" if persons else "count(*)"
    return f"SELECT ({who})::BIGINT FROM {JOINED} JOIN {NUMBERED} USING (a, b) WHERE number IN (SELECT number FROM {FAILING})"
