"""The recount of truth: SQL statements that compare a release with its source, and fault messages.

A record of a release is true if the source has one whose values its labels cover and whose other columns are equal, a record of its own
for each. Where every value of the source has at most one published label, that is decided by digests of whole records. What is published,
the labels among it, must occur in the source at least as often. Where labels overlap, ``core.recount.coverage`` compares counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.recount.groups import RECORDS, Groups, record_digest_sql
from core.recount.people import is_value_sql
from schemas.errors.base import counted, listed, verb_of

BUCKETS = 1 << 16
"""Numbers of a digest by which records are counted: so few that memory does not depend on the data, and enough to tell records apart."""
DROPPED_BITS = 33
"""Bits of a digest that are no part of what is summed beside the count, so that sums stay quick."""


class DigestPart(NamedTuple):
    """A column, or an expression in its place, that is part of the digest of a record.

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


def values_sql(value_counts: str, table: str) -> str:
    """Return SQL that makes a table of a column's values: record count and position from 0, null last.

    Its columns are ``value``, ``records`` and ``place``.
    """
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT value, records, row_number() OVER (ORDER BY value NULLS LAST) - 1 AS place FROM {value_counts}
    """


def label_groups(release: str, columns: Sequence[str]) -> Groups:
    """Return the GROUP BY query that counts the records of each label of a quasi-identifier.

    Its columns are ``label_0`` … and ``records``.

    Args:
        columns: Quoted names of the columns under which the quasi-identifier is published.
    """
    names = tuple((f"r.{column}", f"label_{number}") for number, column in enumerate(columns))
    return Groups(f"{release} AS r", names)


def untreated_values_sql(release: str, column: str, *, floating: bool = False) -> str:
    """Return SQL that counts an untreated column's values, unique records and records with a value.

    It yields the fields of ``PassedColumn``. It is right because GROUP BY has each value once, and neither a null nor NaN is a value.

    Args:
        column: Quoted name of the column.
    """
    there = is_value_sql(f"r.{column}", floating=floating)
    each = f"SELECT count(*) AS records FROM {release} AS r WHERE {there} GROUP BY r.{column}"
    return f"SELECT count(*), count(*) FILTER (records = 1), coalesce(sum(records), 0)::BIGINT FROM ({each})"


def numbered_sql(counted_groups: str, table: str) -> str:
    """Return SQL that makes a table of counted groups, such as labels, with a ``number`` for each."""
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT *, row_number() OVER () - 1 AS number FROM {counted_groups}"


def digests_sql(label_of_value_table: str, value_table: str, label_table: str, label_column_count: int, salt: int, table: str) -> str:
    """Return SQL that makes the table of each source value and the digest of the only label covering it.

    Values without a label are not in it.

    Args:
        label_of_value_table: The table ``place``, ``number``: the label of each value.
        value_table: As ``values_sql`` makes it.
        label_table: As ``numbered_sql`` makes it of labels.
        label_column_count: How many columns a label has.
        salt: Sets the digests of one quasi-identifier apart from those of others.
    """
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT v.value, {label_digest([f"l.label_{number}" for number in range(label_column_count)], salt)} AS digest
        FROM {label_of_value_table} AS o JOIN {value_table} AS v USING (place) JOIN {label_table} AS l USING (number)
    """


def label_digest(columns: Sequence[str], salt: int) -> str:
    """Return the SQL expression for the digest of a label."""
    return f"hash({', '.join(columns)}, {salt:d})"


def released_digests(release: str, parts: Sequence[DigestPart]) -> Groups:
    """Return the GROUP BY query that counts and sums the digests of released records by ``bucket``.

    Its columns are ``bucket``, ``records`` and ``digests``.

    Args:
        parts: Of the digest; at least one.
    """
    return _digests(f"SELECT {_row_digest([part.released for part in parts])} AS digest FROM {release} AS r")


def source_digests(source: str, parts: Sequence[DigestPart]) -> Groups:
    """Return the GROUP BY query that counts and sums the digests of source records by ``bucket``.

    Arguments as for ``released_digests``.
    """
    # An inner join: a value of the source that no label covers can have no released record, and is left out of what is given.
    joins = " ".join(f"JOIN {part.digests} ON s.{part.column} IS NOT DISTINCT FROM {part.digests}.value" for part in parts if part.digests)
    return _digests(f"SELECT {_row_digest([part.source for part in parts])} AS digest FROM {source} AS s {joins}")


def _row_digest(columns: Sequence[str]) -> str:
    """Return the SQL expression for the digest of a record, of which sums are made.

    DuckDB joins the digests of several values by exclusive or. The outer digest makes sums differ where records exchange values.
    """
    return f"hash({record_digest_sql(columns)})"


def _digests(selected: str) -> Groups:
    # 31 bits of each of fewer than 2^32 records: their sum has room in 63.
    sums = ((f"sum((digest >> {DROPPED_BITS})::INTEGER)::BIGINT", "digests"),)
    return Groups(f"({selected})", ((f"digest & {BUCKETS - 1}", "bucket"),), (*RECORDS, *sums))


def excess_records_sql(released_table: str, source_table: str) -> str:
    """Return SQL that counts released records beyond the source's by bucket, and buckets of other records.

    Its second count is of buckets with as many records in both, but other digests.

    It is right because a release of true records has in no bucket of digests more records than the source. Where it has as many they
    are the same ones, so that the sums of their digests are equal.

    Args:
        released_table: Digests of the release, by bucket.
    """
    return f"""
        SELECT coalesce(sum(greatest(released.records - coalesce(given.records, 0), 0)), 0)::BIGINT,
            count(*) FILTER (released.records = given.records AND released.digests <> given.digests)
        FROM {released_table} AS released LEFT JOIN {source_table} AS given USING (bucket)
    """


def join_source_values_sql(
    source: str, parts: Sequence[DigestPart], known_digests: Sequence[str], later_columns: Sequence[str], table: str
) -> str:
    """Return SQL that makes the table of source records with the digests of looked-up columns.

    Where there are hundreds of them, a few at a time: each join wants memory of its own.

    Args:
        parts: Those that are looked up here.
        known_digests: Expressions for the digests of other parts, which become ``digest_0`` …; that of these comes after them.
        later_columns: Quoted names of the columns that are looked up after these; they become ``later_0`` ….
    """
    joins = " ".join(f"JOIN {part.digests} ON s.{part.column} IS NOT DISTINCT FROM {part.digests}.value" for part in parts)
    digests = ", ".join(
        f"{one} AS digest_{number}" for number, one in enumerate([*known_digests, record_digest_sql([part.source for part in parts])])
    )
    kept = "".join(f", s.{column} AS later_{number}" for number, column in enumerate(later_columns))
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {digests}{kept} FROM {source} AS s {joins}"


def marginal_sql(released_table: str, source_table: str) -> str:
    """Return SQL that counts records whose value of a column the source lacks, or has less often.

    Args:
        released_table: Values of the release, counted.
    """
    return f"""
        SELECT coalesce(sum(greatest(released.records - coalesce(given.records, 0), 0)), 0)::BIGINT
        FROM {released_table} AS released LEFT JOIN {source_table} AS given ON released.value IS NOT DISTINCT FROM given.value
    """


def released_parts(release: str, columns: Sequence[str], part_count: int, other_columns: Sequence[DigestPart]) -> Groups:
    """Return the query that counts released records by label and a hash of the other columns.

    Its columns are ``label_0`` …, ``part``, ``records``. A part is a group of records by what they publish besides the label.
    """
    names = tuple((f"r.{column}", f"label_{number}") for number, column in enumerate(columns))
    return Groups(f"{release} AS r", (*names, (part_number_sql([one.released for one in other_columns], part_count), "part")))


def released_parts_sql(part_counts: str, label_column_count: int, label_table: str) -> str:
    """Return SQL that yields the counts of ``released_parts`` with the label number as ``place``."""
    same = " AND ".join(f"g.label_{number} IS NOT DISTINCT FROM l.label_{number}" for number in range(label_column_count))
    return f"SELECT g.part, l.number AS place, g.records FROM {part_counts} AS g JOIN {label_table} AS l ON {same}"


def source_parts(source: str, column: str, part_count: int, other_columns: Sequence[DigestPart]) -> Groups:
    """Return the query that counts source records by a column's value and a hash of the other columns.

    Its columns are ``value``, ``part``, ``records``. A part is a group of records by what is published besides the value.
    """
    return Groups(
        f"{source} AS s", ((f"s.{column}", "value"), (part_number_sql([one.source for one in other_columns], part_count), "part"))
    )


def source_part_counts_sql(part_counts: str, value_table: str) -> str:
    """Return SQL that yields the counts of ``source_parts`` with the value's position as ``place``."""
    return f"SELECT g.part, v.place, g.records FROM {part_counts} AS g JOIN {value_table} AS v ON g.value IS NOT DISTINCT FROM v.value"


def part_number_sql(columns: Sequence[str], part_count: int) -> str:
    """Return the SQL expression for the part a record belongs to: a few bits of a digest of columns.

    Without columns there is one part.
    """
    return f"(hash({', '.join(columns)}) & {part_count - 1})::INTEGER" if columns and part_count > 1 else "0"


def joint_faults(more: int, unlike: int, columns: Sequence[str], alone: Mapping[str, int]) -> list[str]:
    """Return messages on released records whose combination of values the source does not have.

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
    """Return a message on labels of a quasi-identifier that cover no value or too few values.

    Args:
        wrong: Records, at least, whose labels cover too few values.
    """
    if empty:
        return [f"{counted(empty, 'label')} of '{name}' {verb_of(empty, 'cover')} no value of the source"]
    return [f"at least {counted(wrong, 'record')} with labels of '{name}' that cover too few values of the source"] if wrong else []


def label_combination_faults(name: str, wrong: int, columns: Sequence[str]) -> list[str]:
    """Return a message on labels that do not fit the source records with the same other columns.

    Args:
        wrong: Records, at least, whose labels cover too few values in the records with the same in the other columns.
    """
    others = f"do not cover its values in the records with the same {listed(columns)}"
    return [f"at least {counted(wrong, 'record')} with labels of '{name}' that {others}"] if wrong else []
