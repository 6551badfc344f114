"""What two releases tell together, as statements over their records: each table has ``content``, ``class``, ``shared`` and ``person``.

Both releases keep every class at k or more. Who looks for somebody in both looks in one class of each, and so among the records that the
two have in common; who takes the records of one release out of the other is left with those that came, or that left. Either may be fewer
than k (Ganta, Kasiviswanathan and Smith, KDD 2008; Byun, Sohn, Bertino and Li, SDM 2006).

The class of a record that is not released is -1, and it is a class as others are: that somebody is missing tells something too.
"""

from __future__ import annotations

MINE, THEIRS = "mine", "theirs"
"""Tables of the records of this release and of the other one."""
ABSENT = -2
"""The class of a record that a source does not hold."""


def likeness_sql() -> str:
    """Returns the statement that counts how much records are alike which no file tells to be in both.

    It is right because GROUP BY brings each content together once, with how often either source holds it.
    """
    return f"""
        WITH both_sides AS (
            SELECT content, true AS ours FROM {MINE} WHERE NOT shared UNION ALL SELECT content, false FROM {THEIRS} WHERE NOT shared),
        counted AS (SELECT count(*) FILTER (ours) AS m, count(*) FILTER (NOT ours) AS t FROM both_sides GROUP BY content)
        SELECT coalesce(sum(m), 0)::DOUBLE, coalesce(sum(t), 0)::DOUBLE, coalesce(sum(m) FILTER (t > 0), 0)::BIGINT,
               coalesce(sum(t) FILTER (m > 0), 0)::BIGINT, coalesce(sum(m) FILTER (m > 1) / sum(m), 0)::DOUBLE,
               coalesce(sum(t) FILTER (t > 1) / sum(t), 0)::DOUBLE
        FROM counted
    """


def joint_classes_sql(k: int, *, persons: bool, known_again: bool) -> str:
    """Returns the statement that counts, for records in both, in this alone and in the other alone, how many there are and are at risk.

    Rows of ``part`` ('shared', 'added', 'removed'), ``records`` and ``at_risk``.

    It is right because a record stands in just one row of ``joined``: records that are alike are numbered on either side, and the first of
    one is the first of the other, so that as many are in both as the smaller of the two counts. Which of them, nobody can tell who
    knows no more than what they hold. A joint class is what ``GROUP BY`` makes of the two classes of each; one that neither release
    publishes tells nothing.

    Args:
        k: Fewest records or persons that are safe.
        persons: Whether persons are counted. Whoever is nobody adds nothing to a class, and is at risk in one that fails.
        known_again: Whether records that no file tells to be in both are told by what they hold; else no two of them are the same.
    """
    # Records of shared files are held against those alone: the same content elsewhere is another record.
    theirs = 1 if known_again else 2
    unit = "persons" if persons else "records"
    return f"""
        WITH numbered_mine AS (SELECT *, {_place("1")} FROM {MINE}),
        numbered_theirs AS (SELECT *, {_place(str(theirs))} FROM {THEIRS}),
        joined AS (
            SELECT coalesce(m.class, {ABSENT}) AS a, coalesce(t.class, {ABSENT}) AS b, coalesce(m.person, t.person) AS person
            FROM numbered_mine m FULL JOIN numbered_theirs t USING (content, kept, place)),
        people AS (SELECT a, b, {"person" if persons else "NULL AS person"}, count(*) AS records FROM joined GROUP BY ALL),
        sized AS (
            SELECT *, {"count(nullif(person, 0)) OVER (PARTITION BY a, b) AS persons" if persons else "0 AS persons"},
                   CASE WHEN a = {ABSENT} THEN 'removed' WHEN b = {ABSENT} THEN 'added' ELSE 'shared' END AS part
            FROM people),
        told AS (SELECT *, {unit} < {k} AND (a >= 0 OR b >= 0) AS fails FROM sized)
        SELECT part, sum(records)::BIGINT, ({_AT_RISK[persons]})::BIGINT FROM told GROUP BY part
    """


_AT_RISK = {
    False: "coalesce(sum(records) FILTER (fails), 0)",
    True: "count(DISTINCT person) FILTER (fails AND person <> 0) + coalesce(sum(records) FILTER (fails AND person = 0), 0)",
}


def _place(kept: str) -> str:
    return (
        f"CASE WHEN shared THEN 0 ELSE {kept} END AS kept, row_number() OVER (PARTITION BY content, shared ORDER BY class, person) AS place"
    )
