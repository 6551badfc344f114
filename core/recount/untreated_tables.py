"""SQL that counts the persons who stand out by what several tables publish untreated.

What a person publishes untreated is written out as a history is: with the untreated columns in the place of the labels. So whoever shares
it is counted by the statements that count who shares a history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from core.recount.groups import record_digest_sql
from core.recount.histories import (
    ReadTable,
    alias_of,
    choices_of_persons,
    linking_columns,
    row_person_table,
    rows_below_sql,
)
from core.recount.people import is_value_sql


def renamed_table(table: ReadTable, prefix: str, columns: Sequence[str]) -> ReadTable:
    """Return a table under another name, with other columns in the place of its quasi-identifiers.

    Args:
        prefix: Begins its new name, and those of the tables that it refers to.
        columns: Quoted names of the columns.
    """
    references = {f"{prefix} {other}": mine for other, mine in table.references.items()}
    return replace(table, name=f"{prefix} {table.name}", qids=tuple(columns), references=references)


def tables_with_columns(chains: Mapping[str, Sequence[str]], columns: Mapping[str, Collection[str]]) -> list[str]:
    """Return the tables that have any of some columns, or have a table below that does; and the unit.

    Args:
        chains: Of every table the tables above it, the unit's first.
    """
    having = {name for name in chains if columns.get(name)}
    above = {other for name in having for other in chains[name]}
    return [name for name, chain in chains.items() if name in having or name in above or not chain]


def same_persons_sql(unit: ReadTable, renamed: ReadTable) -> str:
    """Return SQL that makes the unit's table of row persons a view under the renamed table's name."""
    return f"CREATE OR REPLACE TEMP VIEW {row_person_table(renamed)} AS FROM {row_person_table(unit)}"


def column_persons_sql(table: ReadTable, column: str, *, floating: bool = False) -> str:
    """Return SQL that counts a column's distinct values, unique rows, rows with a value, unique persons.

    It yields distinct values, rows alone with theirs, rows that have one, and persons alone with one of theirs. It is right because
    GROUP BY has each value once, neither a null nor NaN (of a floating column) is a value, and where one person has a value, the least
    person is that one.
    """
    place = table.at(column)
    each = f"""
        SELECT count(*) AS many, count(DISTINCT person) AS persons, min(person) AS one
        FROM {row_person_table(table)} WHERE {is_value_sql(place, floating=floating)} GROUP BY {place}
    """
    return f"""
        SELECT count(*), count(*) FILTER (many = 1), coalesce(sum(many), 0)::BIGINT, count(DISTINCT one) FILTER (persons = 1)
        FROM ({each})
    """


def table_contents_sql(table: ReadTable, unit: ReadTable, columns: Sequence[str], made: str) -> str:
    """Return SQL that makes a table of persons with digests of their rows' labels and untreated values.

    Its columns are those that ``core.recount.groups.person_combination_counts_sql`` reads. A combination is that of the labels of row and
    person. It is right because equal values have equal digests, nulls too, and two that differ have equal ones with a chance of 1 in
    2^64.

    Args:
        table: The table, whose rows have persons.
        unit: The unit's table, with its labels beside the persons.
        columns: Quoted names of the columns.
        made: Name of the table that is made.
    """
    labels = [f"r.{table.at(name)}" for name in table.qids]
    labels += [f"u.{unit.at(name)}" for name in unit.qids] if table.references else []
    values = [f"r.{table.at(name)}" for name in columns]
    join = f" JOIN {row_person_table(unit)} AS u ON u.person = r.person" if table.references else ""
    return f"""
        CREATE OR REPLACE TEMP TABLE {made} AS
        SELECT {record_digest_sql(labels)} AS combination, r.person, {record_digest_sql(values)} AS content, count(*) AS records
        FROM {row_person_table(table)} AS r{join} WHERE r.person IS NOT NULL GROUP BY ALL
    """


def known_digest_table(table: ReadTable) -> str:
    """Return the quoted name of the temporary table with the digests of each row and its descendants."""
    return f'"digests {table.name}"'


def known_digests_sql(table: ReadTable, children: Sequence[ReadTable], known: Sequence[Mapping[str, Sequence[str]]]) -> str:
    """Return SQL that makes each row's digests of what may be known of it; run the children's first.

    The table is ``known_digest_table(table)``. The digests are ``text_0`` …, of 64 bits, one for each entry of ``known`` with the table.
    The sum of the digests of rows stands for the multiset of these rows. It is right because equal multisets have equal sums, and two that
    differ have equal ones with a chance of 1 in 2^64.

    Args:
        children: Tables of which rows may hang from its rows.
        known: What may be known: by table the quoted names of columns. Of a table that is not in it nothing is known.
    """

    def digest(number: int, columns: Mapping[str, Sequence[str]]) -> str:
        below = [f"{alias_of(child)}.{of_rows}" for child in children if child.name in columns for of_rows in ("many", f"text_{number}")]
        # DuckDB joins the digests of several values by exclusive or. The outer digest makes sums differ where rows exchange values.
        return f"hash({record_digest_sql([*(f'm.{name}' for name in columns[table.name]), *below])}) AS text_{number}"

    def sums(child: ReadTable) -> str:
        return ", ".join(f"sum(c.text_{number}) AS text_{number}" for number, columns in enumerate(known) if child.name in columns)

    joins = [rows_below_sql(table, child, known_digest_table(child), sums(child)) for child in children]
    digests = [digest(number, columns) for number, columns in enumerate(known) if table.name in columns]
    selected = ", ".join([*linking_columns(table), *digests])
    return f"CREATE TEMP TABLE {known_digest_table(table)} AS SELECT {selected} FROM {table.relation} AS m {' '.join(joins)}"


def text_persons_sql(rows: str, text: str, k: int) -> str:
    """Return SQL that counts persons whose text is unique, and persons whose text fewer than k have.

    Args:
        rows: Name of the table of the unit's rows.
        text: Its column of texts or digests.
    """
    texts = f"SELECT count(*) AS persons FROM {rows} GROUP BY {text}"
    return f"SELECT count(*) FILTER (persons = 1), coalesce(sum(persons) FILTER (persons < {k:d}), 0)::BIGINT FROM ({texts})"


def choice_persons_sql(unit: ReadTable, table_count: int, known_rows: int, k: int) -> str:
    """Return SQL on ``items`` that counts persons with a unique choice of rows, and with one below k.

    It is right because a choice is written once for each person who has it, and a person counts once, whatever the number of choices.
    Arguments as for ``core.recount.histories.choices_sql``.
    """
    every, group = choices_of_persons(unit, table_count, known_rows)
    return f"""
        {every}, shared AS (SELECT person, count(*) OVER (PARTITION BY {group}) AS persons FROM everything)
        SELECT count(DISTINCT person) FILTER (persons = 1), count(DISTINCT person) FILTER (persons < {k:d}) FROM shared
    """
