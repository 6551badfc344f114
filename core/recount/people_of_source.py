"""Statements that find out from the source who is in which class of a release, where the label of each value is known.

They are right because a record of the source is in the class whose labels are those of its values, and in no other where labels of a column
do not overlap. Joins are by IS NOT DISTINCT FROM, so that a null is a value like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.recount.people import NOBODY, somebody_sql

MASKED = -1
"""The class of records that publish ``*`` in every quasi-identifier because they were masked."""


def owned_sql(owned: str, values: str, number: int) -> str:
    """Returns the statement that makes the table ``owner_0`` … of a column's values with the number of their label.

    Args:
        owned: The table ``place``, ``number``.
        values: The table of the values, with their ``place``.
        number: Which quasi-identifier it is.
    """
    return f"CREATE OR REPLACE TEMP TABLE owner_{number} AS SELECT v.value, o.number FROM {owned} AS o JOIN {values} AS v USING (place)"


def classes_sql(release: str, labels: Sequence[tuple[Sequence[str], str]], qids: Sequence[str], *, masked: bool) -> str:
    """Returns the statement that makes the table ``classes``: ``class``, ``number_0`` …, ``label_0`` … as text, and ``records``.

    Args:
        release: What is read, without masked records.
        labels: Of each quasi-identifier, the quoted columns that publish it, and the table of its labels.
        qids: All of these columns.
        masked: Whether there are masked records besides, which become a class without records here.
    """
    joins = " ".join(
        f"JOIN {table} AS l_{number} ON "
        + " AND ".join(f"r.{column} IS NOT DISTINCT FROM l_{number}.label_{place}" for place, column in enumerate(columns))
        for number, (columns, table) in enumerate(labels)
    )
    numbers = ", ".join(f"l_{number}.number AS number_{number}" for number in range(len(labels)))
    texts = ", ".join(f"r.{column}::VARCHAR AS label_{number}" for number, column in enumerate(qids))
    everywhere = ", ".join(["NULL"] * len(labels) + ["'*'"] * len(qids))
    stars = f"UNION ALL SELECT {MASKED}, {everywhere}, NULL" if masked else ""
    return f"""
        CREATE OR REPLACE TEMP TABLE classes AS
        SELECT row_number() OVER () - 1 AS class, * FROM (
            SELECT {numbers}, {texts}, count(*) AS records FROM {release} AS r {joins} GROUP BY ALL
        ) {stars}
    """


def persons_sql(source: str, persons: Mapping[str, bool]) -> str:
    """Returns the statement that makes the table ``persons``: what names each, and a number above that of nobody.

    Args:
        source: What is read.
        persons: As for ``core.recount.people.somebody_sql``.
    """
    names = ", ".join(f"{name} AS name_{number}" for number, name in enumerate(persons))
    each = f"SELECT DISTINCT {names} FROM {source} WHERE {somebody_sql(persons)}"
    return f"CREATE OR REPLACE TEMP TABLE persons AS SELECT *, row_number() OVER () + {NOBODY} AS person FROM ({each})"


def source_persons_sql(source: str, qids: Sequence[str], persons: Sequence[str], values: Sequence[str], *, masked: bool) -> str:
    """Returns the statement that makes the table ``given``: ``class``, ``person``, ``value_0`` … and ``records`` of the source.

    Args:
        source: What is read.
        qids: Quoted names of the quasi-identifiers.
        persons: Quoted names of what names a person.
        values: Quoted names of the sensitive columns.
        masked: Whether records of no other class were masked; else they are left out.
    """
    owners = " ".join(
        f"LEFT JOIN owner_{number} AS o_{number} ON s.{name} IS NOT DISTINCT FROM o_{number}.value" for number, name in enumerate(qids)
    )
    alike = " AND ".join(f"o_{number}.number = c.number_{number}" for number in range(len(qids)))
    same = " AND ".join(f"s.{name} = p.name_{number}" for number, name in enumerate(persons))
    read = "".join(f", s.{name} AS value_{number}" for number, name in enumerate(values))
    kept = "" if masked else "WHERE c.class IS NOT NULL"
    return f"""
        CREATE OR REPLACE TEMP TABLE given AS
        SELECT coalesce(c.class, {MASKED}) AS class, coalesce(p.person, {NOBODY}) AS person{read}, count(*) AS records
        FROM {source} AS s {owners} LEFT JOIN classes AS c ON {alike} LEFT JOIN persons AS p ON {same} {kept} GROUP BY ALL
    """


def lacking_sql(release: str) -> str:
    """Returns the statement that counts the classes which hold other numbers of records than the source has for their labels.

    With them it says whether as many records were masked as the source has beside these classes.

    Args:
        release: What is read, masked records included.
    """
    masked = f"(SELECT count(*) FROM {release}) - (SELECT sum(records) FROM classes)"
    beside = f"(SELECT coalesce(sum(records), 0) FROM given WHERE class = {MASKED})"
    return f"""
        SELECT count(*), {masked} = {beside} FROM (FROM classes WHERE class <> {MASKED}) AS c
        FULL JOIN (SELECT class, sum(records)::BIGINT AS records FROM given WHERE class <> {MASKED} GROUP BY class) AS g USING (class)
        WHERE c.records IS DISTINCT FROM g.records
    """


def people_of_classes_sql(values: int) -> str:
    """Returns the statement that yields who is in which class, with so many sensitive columns, as a run folder keeps it."""
    read = "".join(f", value_{number}" for number in range(values))
    return f"SELECT class, person{read}, records::BIGINT AS records FROM given"
