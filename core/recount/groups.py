"""Statements that group rows and count them: so parts of the rows can be counted apart, by several tasks, and the counts be added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

RECORDS = (("count(*)", "records"),)

Named = tuple[tuple[str, str], ...]
"""Expressions, each with the name of its column."""


class Alike(NamedTuple):
    """Records of a release, equal ones together or each by itself.

    Attributes:
        relation: What they are read as.
        copies: Quoted name of the column that tells how many records a row stands for; empty where each row is one.
    """

    relation: str
    copies: str = ""

    @property
    def counted(self) -> str:
        """The expression that counts the records of a group."""
        return f"coalesce(sum({self.copies}), 0)::BIGINT" if self.copies else "count(*)"


def alike_sql(release: str, copies: str, table: str) -> str:
    """Returns the statement that makes the table of the different records of a release, with how often each is there.

    It is right because GROUP BY takes nulls as equal, and whatever is counted of groups of records by the values of their columns is the
    same for equal ones: what was counted one by one is the sum of the copies.

    Args:
        release: What is read.
        copies: Quoted name of a column that it does not have.
        table: Name of the table.
    """
    return f"CREATE TEMP TABLE {table} AS SELECT *, count(*) AS {copies} FROM {release} GROUP BY ALL"


def alikeness_sql(parts: Sequence[str], rows: int) -> str:
    """Returns the statement that counts records, so many at the beginning of each of some parts of a release, and the different ones.

    Args:
        parts: What each is read as.
        rows: How many records of each are looked at.
    """
    some = " UNION ALL ".join(f"(SELECT * FROM {part} LIMIT {rows:d})" for part in parts)
    return f"SELECT coalesce(sum(copies), 0)::BIGINT, count(*) FROM (SELECT count(*) AS copies FROM ({some}) AS r GROUP BY r)"


@dataclass(frozen=True)
class Groups:
    """A statement on rows, such that what it yields of all of them are the sums of what it yields of parts, whatever the parts are.

    Attributes:
        rows: What is read, with its alias, joins and conditions.
        keys: What rows are grouped by.
        counts: What is added up in each group, each a 64-bit whole number.
        first: How many groups of least key are looked at, if not all are.
        tables: Tables beside the rows that are joined.
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
        """The statement."""
        columns = ", ".join(f"{expression} AS {name}" for expression, name in (*self.keys, *self.counts))
        return f"SELECT {columns} FROM {self.rows}{self._ending}"

    def added_sql(self, parts: str) -> str:
        """Returns the statement that adds up what was counted of parts.

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
