"""SQL statements that digest all published labels and values of each person over several tables.

They cover the rows that join to one pseudonym. A row is one digest of 64 bits, made of what it publishes and of the rows below it. Rows
below are a multiset, whose digest is the sum of those of its members with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.composition.pseudonym_sets import text_sql


class ShownTable(NamedTuple):
    """A table of a release as an attacker joins it; all names are quoted.

    Attributes:
        name: Plain, of the table.
        relation: What its files are read as.
        labels: Published quasi-identifiers.
        others: Everything else that is published, but for key and references.
        key: Columns of its key.
        references: The tables that it refers to, the nearest last, each with the columns that refer to it.
    """

    name: str
    relation: str
    labels: tuple[str, ...]
    others: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[tuple[str, tuple[str, ...]], ...]


KINDS = ("labels", "everything")


def digest_table(table: ShownTable) -> str:
    """Return the name of the table with the digests of a table's rows."""
    return f'"shown {table.name}"'


def row_digests_sql(table: ShownTable, below: Sequence[ShownTable], salt: str) -> str:
    """Return SQL that makes the table of digests of a table's rows and of all rows below them.

    Its columns are ``k0`` … and ``r0`` …, a row's key and reference, ``nearest``, ``labels`` and ``everything``. It is right because each
    row below is counted with the one row that its nearest whole reference finds.

    Args:
        table: The table.
        below: Those that refer to it, of which the same is made already.
        salt: Text that enters every digest, as an SQL string.
    """
    joins, texts = [], {"labels": text_sql(table.labels), "everything": text_sql([*table.labels, *table.others])}
    for place, child in enumerate(below):
        number = [name for name, _ in child.references].index(table.name)
        columns = [f"r{part}" for part in range(len(table.key))]
        sums = ", ".join(f"sum({kind}::HUGEINT) AS {kind}" for kind in KINDS)
        mine = f"SELECT {', '.join(columns)}, count(*) AS many, {sums} FROM {digest_table(child)} WHERE nearest = {number} GROUP BY ALL"
        same = " AND ".join(f"b{place}.{column} = m.{key}::VARCHAR" for column, key in zip(columns, table.key, strict=True))
        joins.append(f"LEFT JOIN ({mine}) AS b{place} ON {same}")
        for kind in KINDS:
            texts[kind] += f" || '/' || coalesce(b{place}.many, 0) || ':' || coalesce(b{place}.{kind}, 0)"
    made = ", ".join(f"md5_number_lower({salt} || {kind!r} || {text}) AS {kind}" for kind, text in texts.items())
    columns = [f"m.{column} AS k{place}" for place, column in enumerate(table.key)]
    if table.references:
        cases = [" AND ".join(f"m.{column} IS NOT NULL" for column in referring) for _, referring in table.references]
        nearest = " ".join(f"WHEN {whole} THEN {number}" for number, whole in reversed(list(enumerate(cases))))
        columns.append(f"CASE {nearest} END AS nearest")
        for part in range(max(len(referring) for _, referring in table.references)):
            # The nearer decides; a key that has fewer columns has no further part.
            parts = [f"m.{referring[part]}::VARCHAR" if part < len(referring) else "NULL" for _, referring in table.references]
            own = " ".join(f"WHEN {whole} THEN {one}" for whole, one in reversed(list(zip(cases, parts, strict=True))))
            columns.append(f"CASE {own} END AS r{part}")
    return f"CREATE TEMP TABLE {digest_table(table)} AS SELECT {', '.join([*columns, made])} FROM {table.relation} AS m {' '.join(joins)}"


def disclosed_persons_sql(unit: ShownTable, link: Sequence[str]) -> str:
    """Return SQL that yields the digests of each person's disclosed rows, by pseudonym.

    Its columns are ``key``, ``everything`` and ``labels``, as ``disclosed_sql`` has them of one table.

    Args:
        unit: The table with a row for each person, of which the digests are made.
        link: Expressions of the key, over ``k0`` ….
    """
    return f"SELECT md5_number_lower({text_sql(link)}) AS key, everything, labels FROM {digest_table(unit)}"
