"""What two releases tell together, as statements over their records: each table has ``content``, ``class``, ``shared`` and ``person``.

Both releases keep every class at k or more. Who looks for somebody in both looks in one class of each, and so among the records that the
two have in common; who takes the records of one release out of the other is left with those that came, or that left. Either may be fewer
than k (Ganta, Kasiviswanathan and Smith, KDD 2008; Byun, Sohn, Bertino and Li, SDM 2006).

The class of a record that is not released is -1, and it is a class as others are: that somebody is missing tells something too.
"""

from __future__ import annotations

from typing import NamedTuple

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


def common_persons_sql() -> str:
    """Returns the statement that counts the persons of whom both sources hold records; a record of nobody has the person 0."""
    return f"SELECT count(DISTINCT person) FROM {MINE} WHERE person <> 0 AND person IN (SELECT person FROM {THEIRS})"


class Identity(NamedTuple):
    """By what a record of one source is taken for one of the other, beyond those of files that both have.

    Attributes:
        contents: Whether records are the same ones that are alike in all that they are known by.
        persons: Whether, of what is then left, two records of one person are: its other values may have changed.
    """

    contents: bool
    persons: bool


def joint_classes_sql(k: int, identity: Identity, *, persons: bool) -> str:
    """Returns the statement that counts, for records in both, in this alone and in the other alone, how many there are and are at risk.

    Rows of ``part`` ('shared', 'added', 'removed'), ``records`` and ``at_risk``.

    It is right because a record stands in just one row of ``joined``: records that are alike are numbered on either side, and the first of
    one is the first of the other, so that as many are in both as the smaller of the two counts. Which of them, nobody can tell who
    knows no more than what they hold. A joint class is what ``GROUP BY`` makes of the two classes of each; one that neither release
    publishes tells nothing.

    Args:
        k: Fewest records or persons that are safe.
        identity: Which records are the same ones.
        persons: Whether persons are counted. Whoever is nobody adds nothing to a class, and is at risk in one that fails.
    """
    # Records of shared files are held against those alone: the same content elsewhere is another record.
    theirs = 1 if identity.contents else 2
    unit = "persons" if persons else "records"
    again = "mine <> 0" if identity.persons else "false", "theirs <> 0" if identity.persons else "false"
    return f"""
        WITH numbered_mine AS (SELECT *, {_place("1")} FROM {MINE}),
        numbered_theirs AS (SELECT *, {_place(str(theirs))} FROM {THEIRS}),
        first AS (
            SELECT m.class AS a, t.class AS b, m.person AS mine, t.person AS theirs
            FROM numbered_mine m FULL JOIN numbered_theirs t USING (content, kept, place)),
        left_mine AS (
            SELECT a, mine AS person, row_number() OVER (PARTITION BY mine ORDER BY a) AS place
            FROM first WHERE b IS NULL AND {again[0]}),
        left_theirs AS (
            SELECT b, theirs AS person, row_number() OVER (PARTITION BY theirs ORDER BY b) AS place
            FROM first WHERE a IS NULL AND {again[1]}),
        joined AS (
            SELECT coalesce(a, {ABSENT}) AS a, coalesce(b, {ABSENT}) AS b, coalesce(mine, theirs) AS person FROM first
            WHERE a IS NOT NULL AND (b IS NOT NULL OR NOT {again[0]}) OR a IS NULL AND NOT {again[1]}
            UNION ALL
            SELECT coalesce(a, {ABSENT}), coalesce(b, {ABSENT}), person FROM left_mine FULL JOIN left_theirs USING (person, place)),
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
