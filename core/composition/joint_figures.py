"""SQL statements on joint classes: who is at risk, sensitive values, shared means, few people."""

from __future__ import annotations

from collections.abc import Sequence

from core.composition.joint_classes import ABSENT, HIDDEN_IN_ALL, HIDDEN_IN_VALUES, JOINED, OF_PERHAPS_CHANGED


def joint_classes_sql(k: int, *, count_persons: bool) -> str:
    """Return SQL that counts shared, added and removed records, and how many are at risk or changed.

    Rows of ``part`` ('shared', 'added', 'removed'), ``records``, ``at_risk`` and ``changed``, those of the records that are in both. A
    joint class is a combination of a class of each release; one that neither release publishes discloses nothing.

    Args:
        k: Fewest records or persons that are safe.
        count_persons: Whether persons are counted. A record of no person adds nothing to a class, and is at risk in one that fails.
    """
    unit, at_risk = "persons" if count_persons else "records", _at_risk(persons=count_persons)
    shown = {
        of: f"count(nullif(person, 0)) FILTER ({of} > 0) OVER (PARTITION BY a, b)" if count_persons else of for of in ("visible", "apart")
    }
    few = (f"CASE WHEN {of}_shown < {k} THEN {of} ELSE 0 END" for of in shown)
    return f"""
        WITH people AS (
            SELECT a, b, {"person" if count_persons else "NULL AS person"},
                   count(*) FILTER (NOT beside) AS records, count(*) FILTER (changed) AS changed,
                   count(*) FILTER (hidden <> {HIDDEN_IN_ALL}) AS visible, count(*) FILTER (hidden = 0) AS apart
            FROM {JOINED} GROUP BY ALL),
        sized AS (
            SELECT *, {"count(nullif(person, 0)) OVER (PARTITION BY a, b) AS persons" if count_persons else "0 AS persons"},
                   {", ".join(f"{window} AS {of}_shown" for of, window in shown.items())},
                   CASE WHEN a = {ABSENT} THEN 'removed' WHEN b = {ABSENT} THEN 'added' ELSE 'shared' END AS part
            FROM people),
        told AS (
            SELECT *, ({unit} < {k} OR greatest(a, b) >= {OF_PERHAPS_CHANGED}) AND (a >= 0 OR b >= 0) AS fails,
                   CASE WHEN fails OR part = 'shared' OR greatest(a, b) < 0 THEN 0 ELSE greatest({", ".join(few)}) END AS few_lines
            FROM sized)
        SELECT part, sum(records)::BIGINT, ({at_risk})::BIGINT, sum(changed)::BIGINT FROM told GROUP BY part
    """


def _at_risk(*, persons: bool) -> str:
    """Return SQL that counts who is in a class that fails, or has one of few lines that are gone or new."""
    nobody = "person = 0" if persons else "true"
    records = f"coalesce(sum(records) FILTER (fails AND {nobody}), 0) + coalesce(sum(few_lines) FILTER ({nobody}), 0)"
    somebody = "count(DISTINCT person) FILTER ((fails OR few_lines > 0) AND person <> 0) + "
    return f"{somebody if persons else ''}{records}"


def means_sql(column: int, k: int, *, count_persons: bool) -> str:
    """Return SQL that counts records or persons whose two means of a column fewer than k share.

    Each release publishes means of groups of at least k people. Whoever lays both side by side knows the difference of their sums, and
    so what two groups have in common, or what only one of them has.

    Args:
        column: A column of which both publish means.
        k: Fewest records or persons that are safe.
        count_persons: Whether persons are counted; each record of no person counts then too.
    """
    unit = "count(DISTINCT nullif(person, 0))" if count_persons else "count(*)"
    nobody = " + count(*) FILTER (person = 0)" if count_persons else ""
    mine, theirs = (f"CASE WHEN {side} = {ABSENT} THEN 0 ELSE {name}_{column} END" for side, name in (("a", "value"), ("b", "their_value")))
    return f"""
        WITH pairs AS (SELECT {mine} AS mine, {theirs} AS theirs, person FROM {JOINED} WHERE NOT changed AND NOT beside),
        rare AS (SELECT mine, theirs FROM pairs GROUP BY ALL HAVING {unit} < {k:d})
        SELECT ({unit}{nobody})::BIGINT FROM pairs SEMI JOIN rare USING (mine, theirs) WHERE mine <> 0 OR theirs <> 0
    """


def few_persons_sql(k: int) -> str:
    """Return SQL that yields whether k records or more of a published count are of fewer than k persons.

    The counts are of records in both releases, of those that came, left, changed, and are in both unchanged. A record of no person adds
    nothing to the persons.
    """
    counts = {
        "shared": f"a <> {ABSENT} AND b <> {ABSENT} AND NOT beside",
        "came": f"b = {ABSENT} AND NOT changed",
        "gone": f"a = {ABSENT} AND NOT changed",
        "changes": f"b = {ABSENT} AND changed",
    }
    held = ", ".join(f"count(*) FILTER ({which}) AS {name}" for name, which in counts.items())
    few = (f"sum({of}) >= {k:d} AND count(*) FILTER ({of} > 0 AND person <> 0) < {k:d}" for of in (*counts, "shared - changes"))
    return f"SELECT coalesce({' OR '.join(few)}, false) FROM (SELECT person, {held} FROM {JOINED} GROUP BY person)"


NUMBERED, FAILING, SETS = "numbered", "failing", "sets"
"""Tables of the joint classes with a number each, from 0, of the numbers of those that fail, and of what digests of several values hold."""
SEEN = f"""(
    SELECT *, false AS values_alone FROM {JOINED} WHERE hidden <> {HIDDEN_IN_ALL} UNION ALL
    SELECT s.*, true FROM {JOINED} AS s SEMI JOIN (SELECT a, b FROM {JOINED} WHERE hidden = {HIDDEN_IN_VALUES}) AS h USING (a, b)
    WHERE hidden = 0 UNION ALL
    SELECT h.*, false FROM {JOINED} AS h ANTI JOIN (SELECT a, b FROM {JOINED} WHERE hidden <> {HIDDEN_IN_ALL}) AS s USING (a, b))"""
"""The records whose values decide: of those who left or came, the ones of whom a line is gone or new, if there are any. By sensitive values
alone, fewer may be."""


def numbered_classes_sql(columns: Sequence[int], *, count_persons: bool) -> str:
    """Return SQL that makes ``numbered``: the published classes formed by both releases, none empty.

    ``size`` is what k counts in them, ``has_0`` … whether all their records have a known value in these columns: a release that does not
    publish a column discloses nothing of it.

    Args:
        columns: Numbers of the sensitive columns.
        count_persons: Whether persons are counted; a record of no person adds nothing to a class.
    """
    size = "count(DISTINCT nullif(person, 0))" if count_persons else "count(*)"
    has = "".join(f", bool_and(value_{number} IS NOT NULL) AS has_{number}" for number in columns)
    return f"""
        CREATE OR REPLACE TEMP TABLE {NUMBERED} AS
        SELECT (row_number() OVER () - 1)::BIGINT AS number, * FROM (
            SELECT a, b, values_alone, {size} AS size{has} FROM {SEEN} WHERE a >= 0 OR b >= 0 GROUP BY a, b, values_alone HAVING {size} > 0)
    """


def sizes_sql(columns: Sequence[int]) -> str:
    """Return SQL that yields size and known-value flags of each class in ``numbered``, by number.

    Its columns are ``size`` and ``has_0`` ….
    """
    return f"SELECT size{''.join(f', has_{number}' for number in columns)} FROM {NUMBERED} ORDER BY number"


def sets_table_sql() -> str:
    """Return SQL that makes the empty table of set digests and the values in each set.

    Its columns are ``number`` of a column, ``digest`` and ``value``; a digest that is not in it is one value.
    """
    return f"CREATE TABLE {SETS} (number BIGINT, digest UBIGINT, value UBIGINT)"


def _each_value(rows: str, column: int, name: str = "value") -> str:
    """Return SQL of rows with ``value``: one row for each value of a set digest."""
    own, each = f"(SELECT digest, value FROM {SETS} WHERE number = {column})", f"coalesce(s.value, r.{name}_{column})"
    return f"(SELECT r.*, {each} AS value FROM {rows} AS r LEFT JOIN {own} AS s ON s.digest = r.{name}_{column})"


def joint_values_sql(column: int, *, count_persons: bool, name: str = "value") -> str:
    """Return SQL that counts each sensitive value of a column in each class of ``numbered``.

    Its columns are ``number``, ``value`` and ``times``. Hidden records lend no value to those that are seen to leave or come.

    It is right because ``GROUP BY`` brings the records of a class and a value together once, and a person counts once for each of its
    values there, as in a class of one release.

    Args:
        count_persons: Whether persons are counted; then ``sets`` has the values of each digest.
        name: ``value``, or ``their_value`` for those that the other release publishes.
    """
    times = "count(DISTINCT person)" if count_persons else "count(*)"
    somebody = "AND person <> 0" if count_persons else ""
    rows, value = (_each_value(SEEN, column, name), "value") if count_persons else (SEEN, f"{name}_{column}")
    return f"""
        SELECT number, {value} AS value, {times} AS times FROM {rows} AS rows_of_both JOIN {NUMBERED} USING (a, b, values_alone)
        WHERE has_{column} {somebody} GROUP BY ALL ORDER BY number, value
    """


def source_values_sql(table: str, column: int, *, count_persons: bool) -> str:
    """Return SQL that counts each sensitive value of a column in the complete source.

    Its columns are ``value`` and ``times``.

    Args:
        table: Of the records of one release.
        count_persons: Whether persons are counted; then ``sets`` has the values of each digest.
    """
    times, somebody = ("count(DISTINCT person)", "AND person <> 0") if count_persons else ("count(*)", "")
    there = f"value_{column} IS NOT NULL {somebody}"
    rows, value = (_each_value(table, column), "value") if count_persons else (table, f"value_{column}")
    return f"SELECT {value} AS value, {times} AS times FROM {rows} AS records WHERE {there} GROUP BY ALL ORDER BY value"


def persons_with_values_sql(table: str, column: int) -> str:
    """Return SQL that counts the persons of the complete source who have a value of a column, or its null."""
    return f"SELECT count(DISTINCT person) FROM {table} WHERE value_{column} IS NOT NULL AND person <> 0"


def values_at_risk_sql(*, count_persons: bool) -> str:
    """Return SQL that counts records or persons in classes of both releases, those of table ``failing``.

    Each counts once. Where persons are counted, each record of no person counts too.
    """
    who = "count(DISTINCT nullif(person, 0)) + count(*) FILTER (person = 0)" if count_persons else "count(*)"
    failing = f"SELECT a, b FROM {NUMBERED} WHERE number IN (SELECT number FROM {FAILING})"
    return f"SELECT ({who})::BIGINT FROM {JOINED} SEMI JOIN ({failing}) USING (a, b)"
