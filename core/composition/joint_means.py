"""SQL statement that counts whose two means of a column, in two releases, few share."""

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
