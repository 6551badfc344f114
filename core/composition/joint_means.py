"""SQL statements that find few people in two releases: by two means of a column, or behind a count."""

from __future__ import annotations

from core.composition.joint_classes import ABSENT, JOINED


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
