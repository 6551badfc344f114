"""Join attacks: persons found by all their rows in the joined tables of a release.

The attacker knows a person's rows in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.attacks.attacked_tables import Guesses

BY_JOIN = "all rows of the joined tables"
BY_TABLE = "all rows of this table, joined"


@dataclass(frozen=True)
class JoinedTable:
    """Table of a release as an attacker joins it, with quoted column names.

    Attributes:
        labels: Columns of quasi-identifiers.
        key: Columns of its key; none where nothing refers to it.
        parents: By table that it refers to, the nearer first, the columns of the reference.
    """

    name: str
    relation: str
    labels: tuple[str, ...]
    key: tuple[str, ...]
    parents: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def linking(self) -> list[str]:
        """Columns of the key and the references, each once."""
        return list(dict.fromkeys([*self.key, *(column for _, columns in self.parents for column in columns)]))

    def at(self, column: str) -> str:
        """Return the alias of a key or reference column; no job's column can have the same name."""
        return f"l{self.linking.index(column)}"


def rows_sql(table: JoinedTable, children: Sequence[JoinedTable]) -> str:
    """Return SQL that makes a table of row digests, referring rows included; run the children's first.

    It is correct because digests of rows are summed before they are joined, with their number, so that equal multisets of rows give equal
    sums. A digest has 64 bits: two rows that differ are taken for one with a chance of 1 in 2^64. DuckDB joins the digests of several
    values by exclusive or. The outer digest makes sums differ where rows exchange values.

    Args:
        table: The table.
        children: Those with a reference to it, of which the rows are made already.
    """
    # A null has a digest of its own.
    told, joins = [f"t.{label}" for label in table.labels], []
    for place, child in enumerate(children):
        nearer, columns = _reference(child, table.name)
        kept = [child.at(column) for column in columns]
        lacking = [f"NOT ({_all_there(list(map(child.at, one)))})" for one in nearer]
        where = " AND ".join([_all_there(kept), *lacking])
        own = ", ".join(kept)
        same = " AND ".join(f"t.{mine} = c{place}.{theirs}" for mine, theirs in zip(table.key, kept, strict=True))
        rows = (
            f"SELECT {own}, count(*) AS many, sum(digest::HUGEINT) AS digests FROM {row_digest_table(child)} WHERE {where} GROUP BY {own}"
        )
        joins.append(f"LEFT JOIN ({rows}) AS c{place} ON {same}")
        told += [f"coalesce(c{place}.many, 0)", f"coalesce(c{place}.digests, 0)"]
    selected = "".join(f"t.{column} AS {table.at(column)}, " for column in table.linking)
    statement = f"SELECT {selected}hash(hash({', '.join(told) or '0'})) AS digest"
    return f"CREATE OR REPLACE TEMP TABLE {row_digest_table(table)} AS {statement} FROM {table.relation} AS t {' '.join(joins)}"


def row_digest_table(table: JoinedTable) -> str:
    """Return the quoted name of the temporary table with the digests of a table's rows."""
    return f'"rows of {table.name}"'


def _reference(child: JoinedTable, parent: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the columns of a table's references to nearer parents, and to the given parent."""
    names = [name for name, _ in child.parents]
    place = names.index(parent)
    return [columns for _, columns in child.parents[:place]], child.parents[place][1]


def _all_there(columns: Sequence[str]) -> str:
    """Return the SQL condition that no column is null."""
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


def shared_rows_sql(unit: JoinedTable, k: int) -> str:
    """Return SQL that counts all persons, and those whose whole history fewer than k persons share."""
    shared = f"SELECT count(*) AS persons FROM {row_digest_table(unit)} GROUP BY digest"
    return f"SELECT coalesce(sum(persons), 0), coalesce(sum(persons) FILTER (persons < {k:d}), 0) FROM ({shared})"


def joined_guesses(table: str | None, person_count: int, persons_below_k: int, *, promised: bool) -> Guesses:
    """Return the guesses of a join attack; a guess is right if fewer than k persons share the rows.

    Args:
        table: The table that is joined to the persons; None for all of them.
        person_count: Persons of the release.
        persons_below_k: Those who share their rows with fewer than k.
        promised: Whether the job promises k against attackers who know all rows.
    """
    return Guesses("joins", table, BY_TABLE if table else BY_JOIN, person_count, persons_below_k, 0, 0, promised=promised)
