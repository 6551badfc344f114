"""The rows that a recount counts, of the release and of its source: all at hand in one database, or in parts that tasks count apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import duckdb

from core.recount.groups import Alike, Groups, alike_sql, alikeness_sql

Side = Literal["release", "source"]
SAMPLED, COPIES = 1 << 15, 4
"""Records of a file that are looked at, and how many times each must be there on average for equal ones to be put together."""
TOGETHER = "together"
"""The table of the records of a release, equal ones as one."""


class ReleaseRows(ABC):
    """What is counted.

    Attributes:
        connection: A database for what was counted.
        release: What statements read the data files as.
        source: The same of the source; empty without one.
    """

    connection: duckdb.DuckDBPyConnection
    release: str
    source: str

    @abstractmethod
    def grouped(self, side: Side, groups: Groups) -> str:
        """Counts groups of all rows of a side; returns what the database reads them as, each group once.

        Raises:
            duckdb.Error: the files cannot be read.
            SkaldError: whatever a task raises.
        """

    def expect(self, _side: Side, _groups: Sequence[Groups]) -> None:
        """Is told which groups of a side will be asked for: where each reading costs, one serves all of them.

        Raises:
            duckdb.Error: the files cannot be read.
            SkaldError: whatever a task raises.
        """
        return

    @abstractmethod
    def counted(self, statement: str, *sides: Side) -> str:
        """Returns what the database reads the answer of a statement as that needs all rows of the given sides at once.

        Raises:
            duckdb.Error: the files cannot be read.
            SkaldError: whatever a task raises.
        """

    @abstractmethod
    def types(self, side: Side) -> dict[str, str]:
        """Returns DuckDB's types of the columns of a side.

        Raises:
            duckdb.Error: the files cannot be read.
        """

    def alike(self, release: str) -> Alike:
        """Returns records of the release as statements count them for which equal ones are the same, each by itself or together.

        Args:
            release: What they are read as.
        """
        return Alike(release)

    def records(self, side: Side) -> int:
        """Returns how many records a side has."""
        [(records,)] = self.connection.execute(f"FROM {self.grouped(side, Groups(getattr(self, side)))}").fetchall()
        return int(records)


class RowsHere(ReleaseRows):
    """Rows that the database reads itself, which takes all cores of the machine for it.

    Attributes:
        wide: Whether whole records are read by one thread, one side after the other: each holds a row group of all columns, and buffers.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, release: str, source: str = "", *, wide: bool = False) -> None:
        self.connection, self.release, self.source, self.wide = connection, release, source, wide
        self._tables, self._copies = 0, ""

    def concatenate(self, parts: Sequence[str]) -> None:
        """Puts equal records of the release together, where there are many: each is read once then, and not for every question.

        Whether there are, some of them tell; if these mislead, the database has more to hold and to set aside, and counts the same.

        Args:
            parts: What some of the files are read as, each by itself.

        Raises:
            duckdb.Error: they cannot be read.
        """
        if self.wide:
            return
        [(records, different)] = self.connection.execute(alikeness_sql(parts, SAMPLED)).fetchall()
        if records < COPIES * different:
            return
        # Names know no case.
        self._copies, taken = "copies", {name.lower() for name in self.types("release")}
        while self._copies in taken:
            self._copies += "_"
        self.connection.execute(alike_sql(self.release, self._copies, TOGETHER))

    def alike(self, release: str) -> Alike:
        """Returns records of the release, equal ones together if they were put together."""
        return Alike(release.replace(self.release, TOGETHER), self._copies) if self._copies else Alike(release)

    def grouped(self, _side: Side, groups: Groups) -> str:
        """Makes what the statement reads, and returns it as part of the statement that is to come.

        Raises:
            duckdb.Error: the files cannot be read.
        """
        for statement in groups.before:
            self.connection.execute(statement)
        if not (groups.alone or (groups.wide and self.wide)):
            return f"({groups.sql})"
        # Afterwards there are as many threads as the job asked for.
        [(threads,)] = self.connection.execute("SELECT current_setting('threads')").fetchall()
        self._tables += 1
        self.connection.execute("SET threads = 1")
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE grouped_{self._tables} AS {groups.sql}")
        self.connection.execute(f"SET threads = {threads:d}")
        return f"grouped_{self._tables}"

    def counted(self, statement: str, *_: Side) -> str:
        """Returns the statement as part of the one that is to come."""
        return f"({statement})"

    def types(self, side: Side) -> dict[str, str]:
        """Returns DuckDB's types of the columns of a side.

        Raises:
            duckdb.Error: the files cannot be read.
        """
        return types_of(self.connection, getattr(self, side))


def types_of(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Returns DuckDB's types of the columns of what it reads."""
    return {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
