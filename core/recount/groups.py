"""SQL statements that group and count rows, so that counts of parts of the rows can be added up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.recount.people import person_condition_sql

RECORDS = (("count(*)", "records"),)

Named = tuple[tuple[str, str], ...]
"""Expressions, each with the name of its column."""


class RecordRelation(NamedTuple):
    """The records of a release as a relation, with or without a column of multiplicities.

    Attributes:
        relation: The SQL relation of the records.
        copies: Quoted name of the column with the number of equal records in a row; empty where each row is one record.
    """

    relation: str
    copies: str = ""

    @property
    def count_expression(self) -> str:
        """The SQL expression that counts the records of a group."""
        return f"coalesce(sum({self.copies}), 0)::BIGINT" if self.copies else "count(*)"


def distinct_records_sql(release: str, copies: str, table: str) -> str:
    """Return SQL that makes the table of a release's distinct records with their multiplicity.

    It is right because GROUP BY takes nulls as equal, and whatever is counted of groups of records by the values of their columns is the
    same for equal ones: what was counted one by one is the sum of the copies.

    Args:
        release: What is read.
        copies: Quoted name of a column that it does not have.
        table: Name of the table.
    """
    return f"CREATE TEMP TABLE {table} AS SELECT *, count(*) AS {copies} FROM {release} GROUP BY ALL"


def distinct_count_sql(parts: Sequence[str], most_rows: int) -> str:
    """Return SQL that counts all and distinct records among the first ``most_rows`` records of each part.

    Records are distinct among those of all parts together.

    Args:
        parts: What each is read as.
        most_rows: How many records of each are looked at.
    """
    some = " UNION ALL ".join(f"(SELECT * FROM {part} LIMIT {most_rows:d})" for part in parts)
    return f"SELECT coalesce(sum(copies), 0)::BIGINT, count(*) FROM (SELECT count(*) AS copies FROM ({some}) AS r GROUP BY r)"


@dataclass(frozen=True)
class Groups:
    """A SQL statement that groups and counts rows, such that the counts of parts of the rows add up.

    Attributes:
        rows: What is read, with its alias, joins and conditions.
        keys: What rows are grouped by.
        counts: What is added up in each group, each a 64-bit whole number.
        first: How many groups of least key are looked at, if not all are.
        tables: Tables that are joined to the rows.
        before: Statements that make what is read of the rows and these tables.
        alone: Whether one thread is to make it: joins by the dozen want memory for each.
        wide: Whether whole records are read, so that one thread is to make it where row groups are large.
    """

    rows: str
    keys: Named = ()
    counts: Named = RECORDS
    first: int | None = None
    tables: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    alone: bool = False
    wide: bool = False

    @property
    def sql(self) -> str:
        """The SQL statement that counts all rows."""
        columns = ", ".join(f"{expression} AS {name}" for expression, name in (*self.keys, *self.counts))
        return f"SELECT {columns} FROM {self.rows}{self._ending}"

    def added_sql(self, parts: str) -> str:
        """Return SQL that sums the group counts of several parts into the counts of all rows.

        It is right because a group's rows are those that it has in the parts, and a count of them the sum of the counts there.

        Args:
            parts: What they are read as, each with the columns of the statement.
        """
        sums = (f"coalesce(sum({name}), 0)::BIGINT AS {name}" for _, name in self.counts)
        return f"SELECT {', '.join([*(name for _, name in self.keys), *sums])} FROM {parts}{self._ending}"

    @property
    def _ending(self) -> str:
        # Without keys there is one group, of no rows too.
        grouped = " GROUP BY ALL" if self.keys else ""
        return grouped + (f" ORDER BY {', '.join(name for _, name in self.keys)} LIMIT {self.first:d}" if self.first else "")


_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
_NOTHING = "'', 'na', 'n/a', 'n.a.', 'nan', 'null', '#n/a', '<na>', '-', '--', '.', '?'"
NUMBER = "file_row_number"
"""What DuckDB calls the number of a row in its Parquet file, from 0."""


def normalised_sql(column: str, steps: Collection[str]) -> str:
    """Return the SQL of a text column normalised by ``steps``: case, blanks, null for a missing value.

    Args:
        column: A quoted name.
        steps: Among ``case``, ``space`` and ``empty``.
    """
    spaced = f"trim(regexp_replace({column}, '{_BLANKS}', ' ', 'g'), ' ')"
    made = spaced if "space" in steps else column
    made = f"lower({made})" if "case" in steps else made
    return f"CASE WHEN lower({spaced}) NOT IN ({_NOTHING}) THEN {made} END" if "empty" in steps else made


def normalised_source_sql(relation: str, columns: Mapping[str, Collection[str]]) -> str:
    """Return the SQL of a source whose text columns are normalised.

    Args:
        relation: What is read as the source.
        columns: By quoted name of a column of text, the steps of its normalisation; see ``normalised_sql``.
    """
    if not columns:
        return relation
    made = ", ".join(f"{normalised_sql(name, steps)} AS {name}" for name, steps in columns.items())
    return f"(SELECT * REPLACE ({made}) FROM {relation})"


def with_replaced_values_sql(source: str, expressions: Sequence[str], join_clauses: Sequence[str]) -> str:
    """Return the SQL of a source in which expressions replace the values of some columns.

    Args:
        source: What is read.
        expressions: Expressions over its records ``s`` that replace columns, each with the name of the column.
        join_clauses: What is joined to these for it.
    """
    return f"(SELECT s.* REPLACE ({', '.join(expressions)}) FROM {source} AS s {' '.join(join_clauses)})"


def bounded_sql(files: Sequence[tuple[str, str]], persons: Mapping[str, bool], key: str, most_records: int) -> str:
    """Return the SQL of a source with at most ``most_records`` of each person; those of no person stay.

    Of each person those records stay whose keyed digests are least: SHA-256 of the key, the digest of the file and the number of the row,
    with colons between. Records of no person all stay.

    Args:
        files: What each file is read as, with its ``file_row_number``, and its digest in hex.
        persons: As for ``core.recount.people.person_condition_sql``.
        key: Digest of the whole source, in hex.
        most_records: Records of a person at most.
    """
    numbered = " UNION ALL BY NAME ".join(f"SELECT *, '{digest}' AS skald_digest FROM {read}" for read, digest in files)
    drawn = f"sha256(concat_ws(':', '{key}', skald_digest, {NUMBER}))"
    number = f"row_number() OVER (PARTITION BY {', '.join(persons)} ORDER BY {drawn})"
    return f"""(
        SELECT * EXCLUDE ({NUMBER}, skald_digest) FROM ({numbered})
        QUALIFY NOT ({person_condition_sql(persons)}) OR {number} <= {most_records:d}
    )"""


def withheld_sql(source_table: str, kept_table: str, persons: Sequence[str]) -> str:
    """Return SQL that counts the withheld records and the persons who lose records.

    Args:
        source_table: What is read as the source.
        kept_table: What is read as the same without the records that are withheld.
        persons: Quoted names of what names a person.
    """
    names = ", ".join(persons)
    same = " AND ".join(f"g.{name} IS NOT DISTINCT FROM b.{name}" for name in persons)
    return f"""
        WITH g AS (SELECT {names}, count(*) AS records FROM {source_table} GROUP BY ALL),
        b AS (SELECT {names}, count(*) AS records FROM {kept_table} GROUP BY ALL)
        SELECT coalesce(sum(g.records - b.records), 0)::BIGINT, count(*) FILTER (g.records > b.records) FROM g JOIN b ON {same}
    """
