"""SQL that groups and counts rows, and who shares each combination of columns.

An attacker may know whatever a release publishes of a person. A record that is one of k by its quasi-identifiers is unique where its
other columns together are like no other's. So the combinations of these columns are counted as classes are, alone and with the labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.recount.people import NOBODY, person_condition_sql
from schemas.release.figures import KINDS, Kind, Together
from schemas.release.manifest import Manifest

RECORDS = (("count(*)", "records"),)

Named = tuple[tuple[str, str], ...]
"""Expressions, each with the name of its column."""


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


def value_groups(rows: str, expression: str) -> Groups:
    """Return the GROUP BY query that counts the ``records`` of each ``value`` of an expression over rows."""
    return Groups(rows, ((expression, "value"),))


_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
_NOTHING = "'', 'na', 'n/a', 'n.a.', 'nan', 'null', '#n/a', '<na>', '-', '--', '.', '?'"
NUMBER = "file_row_number"
"""What DuckDB calls the number of a row in its Parquet file, from 0."""


def normalised_sql(column: str, steps: Collection[str]) -> str:
    """Return the SQL of a text column normalised by ``steps``: case, blanks, null for a missing value.

    Args:
        steps: Among ``case``, ``space`` and ``empty``.
    """
    spaced = f"trim(regexp_replace({column}, '{_BLANKS}', ' ', 'g'), ' ')"
    made = spaced if "space" in steps else column
    made = f"lower({made})" if "case" in steps else made
    return f"CASE WHEN lower({spaced}) NOT IN ({_NOTHING}) THEN {made} END" if "empty" in steps else made


def normalised_source_sql(relation: str, columns: Mapping[str, Collection[str]]) -> str:
    """Return the SQL of a source whose text columns are normalised.

    Args:
        columns: By quoted name of a column of text, the steps of its normalisation; see ``normalised_sql``.
    """
    if not columns:
        return relation
    made = ", ".join(f"{normalised_sql(name, steps)} AS {name}" for name, steps in columns.items())
    return f"(SELECT * REPLACE ({made}) FROM {relation})"


def with_replaced_values_sql(source: str, expressions: Sequence[str], join_clauses: Sequence[str]) -> str:
    """Return the SQL of a source in which expressions replace the values of some columns.

    Args:
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
        kept_table: What is read as the source without the records that are withheld.
        persons: Quoted names of what names a person.
    """
    names = ", ".join(persons)
    same = " AND ".join(f"g.{name} IS NOT DISTINCT FROM b.{name}" for name in persons)
    return f"""
        WITH g AS (SELECT {names}, count(*) AS records FROM {source_table} GROUP BY ALL),
        b AS (SELECT {names}, count(*) AS records FROM {kept_table} GROUP BY ALL)
        SELECT coalesce(sum(g.records - b.records), 0)::BIGINT, count(*) FILTER (g.records > b.records) FROM g JOIN b ON {same}
    """


@dataclass(frozen=True)
class TogetherCount:
    """Counts of records or persons that are unique or rare by a combination of columns, in the unit of k.

    Attributes:
        unique: Records or persons alone with their combination.
        below_k: Records or persons who share it with fewer than k.
        with_classes: The same for the combination together with the labels of the quasi-identifiers.
        shape: A digest of the numbers of records that share each combination, with labels and without: equal for equal releases.
    """

    unique: int
    below_k: int
    with_classes: int
    shape: str

    @property
    def counts(self) -> tuple[int, int, int]:
        """The three counts ``unique``, ``below_k`` and ``with_classes``."""
        return self.unique, self.below_k, self.with_classes


def combined_groups(release: str, columns: Sequence[str], qids: Sequence[str]) -> Groups:
    """Return the GROUP BY query that counts records by combination of columns, with and without labels.

    Its columns are ``alone``, a digest of the columns, ``labelled``, one with the labels, and ``records``. It is right because equal values
    have equal digests, nulls too, and two that differ have equal ones with a chance of 1 in 2^64. So only 16 bytes are held for a
    combination, however wide it is.

    Args:
        columns: Quoted names of the columns.
        qids: Quoted names of the published quasi-identifiers.
    """

    alone, labelled = (record_digest_sql([f"r.{name}" for name in names]) for names in (columns, [*columns, *qids]))
    keys = (alone, "alone"), (labelled, "labelled")
    return Groups(f"{release} AS r", keys, wide=True)


def record_digest_sql(values: Sequence[str]) -> str:
    """Return the SQL expression for a digest of 64 bits of values of a row, of which there may be none."""
    return f"hash({', '.join(values) or '0'})"


def combination_counts_sql(combinations: str, k: int) -> str:
    """Return SQL that counts the records with a unique or rare combination of columns.

    It yields the fields of ``TogetherCount`` in their order.
    """
    return f"""
        WITH cells AS MATERIALIZED (FROM {combinations}),
        whole AS MATERIALIZED (SELECT sum(records)::BIGINT AS records FROM cells GROUP BY alone)
        SELECT (SELECT count(*) FILTER (records = 1) FROM whole),
            (SELECT coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT FROM whole),
            (SELECT coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT FROM cells),
            {_shape("whole", "cells")}
    """


def person_combination_counts_sql(contents: str, k: int) -> str:
    """Return SQL that counts the persons with a unique or rare combination of columns.

    A person with several combinations is below k if any of them is. It is right because each person counts once for a combination,
    however many of its records are theirs, and once in each figure. A row of the table is a person of a class and a content; grouped
    without the class, it is a person of a content.

    Args:
        contents: A table of ``combination``, ``person``, ``content`` (what is published of columns of a kind) and ``records``.
    """
    records = "sum(records)::BIGINT AS records"
    persons = f"count(*) FILTER (person <> {NOBODY}) AS persons, {records}"

    def who(shared: str, keys: str) -> str:
        return f"(SELECT count(DISTINCT person) FROM {contents} SEMI JOIN (FROM {shared}) USING ({keys}) WHERE person <> {NOBODY})"

    return f"""
        WITH cells AS MATERIALIZED (SELECT combination, content, {persons} FROM {contents} GROUP BY combination, content),
        people AS (SELECT content, person, {records} FROM {contents} GROUP BY content, person),
        whole AS MATERIALIZED (SELECT content, {persons} FROM people GROUP BY content)
        SELECT {who("whole WHERE persons = 1", "content")}, {who(f"whole WHERE persons < {k:d}", "content")},
            {who(f"cells WHERE persons < {k:d}", "combination, content")}, {_shape("whole", "cells")}
    """


def _shape(*tables: str) -> str:
    sums = (f"(SELECT coalesce(sum(hash(records)::HUGEINT), 0)::VARCHAR FROM {table})" for table in tables)
    return f"concat_ws(' ', {', '.join(sums)})"


def combination_claims(manifest: Manifest, counts: Mapping[Kind, TogetherCount], unit: str, unit_count: int) -> list[str]:
    """Return messages on a manifest's counts of column combinations that differ from the recount.

    Manifests of older versions have no such counts.
    """
    faults = []
    for kind, words in KINDS.items():
        said, found = manifest.together(kind), counts.get(kind)
        # Persons that are not at hand cannot be counted, and neither records nor what the source tells of classes say it.
        if said is None or said.unit != unit or (found is None and unit == "person"):
            continue
        if found is None or said != Together.from_counts(found.counts, manifest.privacy["k"], said.unit, unit_count):
            faults.append(f"the manifest does not say truly how many stand out by the {words} together")
    return faults
