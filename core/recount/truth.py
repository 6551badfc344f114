"""The recount of truth: statements that hold a release against its source, and the sentences for what does not agree.

A record of a release is true if the source has one whose values its labels cover and whose other columns are equal, a record of its own for
each. Where every value of the source has at most one published label, that is decided by digests of whole records: what is published,
the labels among it, must occur in the source at least as often. Where labels overlap, ``core.recount.coverage`` compares counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.errors.base import counted, listed

BUCKETS = 1 << 16
"""Numbers of a digest by which records are counted: so few that memory does not depend on the data, and enough to tell records apart."""
REMAINDER = 33
"""Bits of a digest that are no part of what is summed beside the count, so that sums stay quick."""


class Part(NamedTuple):
    """A column, or what stands for it, of which a digest of records is made.

    Attributes:
        released: The expression over the release, which is called ``r``.
        source: The expression over the source, which is called ``s``.
        digests: The table ``value``, ``digest`` by which the source's values get the digests of their labels; empty where none is needed.
        column: Quoted name of the source's column that is looked up there.
    """

    released: str
    source: str
    digests: str = ""
    column: str = ""


def values_sql(source: str, column: str, table: str) -> str:
    """Returns the statement that makes the table of a column's values: ``value``, ``records`` and ``place`` in ascending order, null last.

    Args:
        source: What is read.
        column: Quoted name.
        table: Name of the table.
    """
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT value, records, row_number() OVER (ORDER BY value NULLS LAST) - 1 AS place
        FROM (SELECT s.{column} AS value, count(*) AS records FROM {source} AS s GROUP BY ALL)
    """


def labels_sql(release: str, columns: Sequence[str], table: str) -> str:
    """Returns the statement that makes the table of a quasi-identifier's labels: ``label_0`` …, ``records`` and their ``number``.

    Args:
        release: What is read.
        columns: Quoted names of the columns under which the quasi-identifier is published.
        table: Name of the table.
    """
    names = ", ".join(f"r.{column} AS label_{number}" for number, column in enumerate(columns))
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT *, row_number() OVER () - 1 AS number FROM (SELECT {names}, count(*) AS records FROM {release} AS r GROUP BY ALL)
    """


def digests_sql(owners: str, values: str, labels: str, columns: int, salt: int, table: str) -> str:
    """Returns the statement that makes the table of values with the digest of their one label; values without a label are not in it.

    Args:
        owners: The table ``place``, ``number``: the label of each value.
        values: As ``values_sql`` makes it.
        labels: As ``labels_sql`` makes it.
        columns: How many columns a label has.
        salt: Sets the digests of one quasi-identifier apart from those of others.
        table: Name of the table.
    """
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT v.value, {label_digest([f"l.label_{number}" for number in range(columns)], salt)} AS digest
        FROM {owners} AS o JOIN {values} AS v USING (place) JOIN {labels} AS l USING (number)
    """


def label_digest(columns: Sequence[str], salt: int) -> str:
    """Returns the expression for the digest of a label."""
    return f"hash({', '.join(columns)}, {salt:d})"


def joint_sql(release: str, source: str, parts: Sequence[Part]) -> str:
    """Returns the statement that counts released records that the source does not have, and digests that differ where counts agree.

    It is right because a release of true records has in no bucket of digests more records than the source, and where it has as many they
    are the same ones, so that the sums of their digests are equal.

    Args:
        release: What is read.
        source: The same.
        parts: Of the digest; at least one.
    """
    found = ", ".join(part.released for part in parts)
    given = ", ".join(part.source for part in parts)
    # An inner join: a value of the source that no label covers can have no released record, and is left out of what is given.
    joins = " ".join(f"JOIN {part.digests} ON s.{part.column} IS NOT DISTINCT FROM {part.digests}.value" for part in parts if part.digests)
    summed = f"count(*) AS records, sum((digest >> {REMAINDER})::INTEGER) AS digests"
    return f"""
        WITH released AS (
            SELECT digest & {BUCKETS - 1} AS bucket, {summed} FROM (SELECT hash({found}) AS digest FROM {release} AS r) GROUP BY ALL
        ),
        given AS (
            SELECT digest & {BUCKETS - 1} AS bucket, {summed} FROM (SELECT hash({given}) AS digest FROM {source} AS s {joins}) GROUP BY ALL
        )
        SELECT coalesce(sum(greatest(released.records - coalesce(given.records, 0), 0)), 0)::BIGINT,
            count(*) FILTER (released.records = given.records AND released.digests <> given.digests)
        FROM released LEFT JOIN given USING (bucket)
    """


def looked_up_sql(source: str, parts: Sequence[Part], known: Sequence[str], later: Sequence[str], table: str) -> str:
    """Returns the statement that makes the table of the source's records with the digest of some parts that are looked up.

    Where there are hundreds of them, a few at a time: each join wants memory of its own.

    Args:
        source: What is read.
        parts: Those that are looked up here.
        known: Expressions for the digests of other parts, which become ``digest_0`` …; that of these comes after them.
        later: Quoted names of the columns that are looked up after these; they become ``later_0`` ….
        table: Name of the table.
    """
    joins = " ".join(f"JOIN {part.digests} ON s.{part.column} IS NOT DISTINCT FROM {part.digests}.value" for part in parts)
    digests = ", ".join(f"{one} AS digest_{number}" for number, one in enumerate([*known, hashed([part.source for part in parts])]))
    kept = "".join(f", s.{column} AS later_{number}" for number, column in enumerate(later))
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {digests}{kept} FROM {source} AS s {joins}"


def hashed(columns: Sequence[str]) -> str:
    """Returns the expression for the digest of several others; of none it is a constant."""
    return f"hash({', '.join(columns) or '0'})"


def marginal_sql(release: str, source: str, part: Part) -> str:
    """Returns the statement that counts the records whose value of one column the source does not have, or not as often."""
    return f"""
        WITH released AS (SELECT {part.released} AS value, count(*) AS records FROM {release} AS r GROUP BY ALL),
        given AS (SELECT {part.source} AS value, count(*) AS records FROM {source} AS s GROUP BY ALL)
        SELECT coalesce(sum(greatest(released.records - coalesce(given.records, 0), 0)), 0)::BIGINT
        FROM released LEFT JOIN given ON released.value IS NOT DISTINCT FROM given.value
    """


def released_counts_sql(release: str, columns: Sequence[str], labels: str, parts: int, beside: Sequence[Part]) -> str:
    """Returns the statement that counts the records of each label (``place``), apart by what they publish beside it (``part``)."""
    names = ", ".join(f"r.{column} AS label_{number}" for number, column in enumerate(columns))
    same = " AND ".join(f"g.label_{number} IS NOT DISTINCT FROM l.label_{number}" for number in range(len(columns)))
    part = part_of([one.released for one in beside], parts)
    return f"""
        SELECT g.part, l.number AS place, g.records
        FROM (SELECT {names}, {part} AS part, count(*) AS records FROM {release} AS r GROUP BY ALL) AS g
        JOIN {labels} AS l ON {same}
    """


def source_counts_sql(source: str, column: str, values: str, parts: int, beside: Sequence[Part]) -> str:
    """Returns the statement that counts the records of each value (``place``), apart by what is published beside it (``part``)."""
    part = part_of([one.source for one in beside], parts)
    return f"""
        SELECT g.part, v.place, g.records
        FROM (SELECT s.{column} AS value, {part} AS part, count(*) AS records FROM {source} AS s GROUP BY ALL) AS g
        JOIN {values} AS v ON g.value IS NOT DISTINCT FROM v.value
    """


def part_of(columns: Sequence[str], parts: int) -> str:
    """Returns the expression for the part that a record belongs to by some of its columns; one part where there are none."""
    return f"(hash({', '.join(columns)}) & {parts - 1})::INTEGER" if columns and parts > 1 else "0"


def joint_faults(more: int, unlike: int, columns: Sequence[str], alone: Mapping[str, int]) -> list[str]:
    """Returns what is wrong with records that the source does not have.

    Args:
        more: How many there are at least.
        unlike: Buckets of as many records as the source has, but other ones.
        columns: All columns that were looked at together.
        alone: Records by column whose value the source does not have, or not as often.
    """
    if not more + unlike:
        return []
    why = "with a value that the source does not have, or not as often"
    if faults := [f"{counted(wrong, 'record')} in '{name}' {why}" for name, wrong in alone.items() if wrong]:
        return faults
    together = f"put {listed(columns)} together as no record of the source does"
    return [f"at least {counted(more + unlike, 'record')} of the data files {together}"]


def label_faults(name: str, empty: int, wrong: int) -> list[str]:
    """Returns what is wrong with the labels of a quasi-identifier.

    Args:
        name: The quasi-identifier.
        empty: Labels that cover no value of the source.
        wrong: Records, at least, whose labels cover too few values.
    """
    if empty:
        return [f"{counted(empty, 'label')} of '{name}' {'covers' if empty == 1 else 'cover'} no value of the source"]
    return [f"at least {counted(wrong, 'record')} with labels of '{name}' that cover too few values of the source"] if wrong else []


def beside_faults(name: str, wrong: int, columns: Sequence[str]) -> list[str]:
    """Returns what is wrong with the labels of a quasi-identifier beside other columns.

    Args:
        name: The quasi-identifier.
        wrong: Records, at least, whose labels cover too few values in the records with the same in the other columns.
        columns: The other columns.
    """
    others = f"do not cover its values in the records with the same {listed(columns)}"
    return [f"at least {counted(wrong, 'record')} with labels of '{name}' that {others}"] if wrong else []
