"""The rows of a recount as tasks read them, in parts; what they counted is added up here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from core.recount.groups import Groups
from schemas.job.job import Job
from tasks.engine.calls import Call
from tasks.engine.guard import Result
from tasks.engine.runs import Run
from tasks.engine.steps import map_step
from tasks.publication.recount_calls import RECOUNTED, RELEASE, SOURCE, TALLIES, Asked, Written, answer
from tasks.recount.rows import Rows, Side
from tasks.recount.shares.counts import files_sql
from tasks.source.chunks import Source
from tasks.store.database import literal
from tasks.store.store import Artifact

PHASE = "verify"


@dataclass
class RecountTasks:
    """Calls of tasks of a recount.

    Attributes:
        run: The run.
        job: The job as tasks have it.
    """

    run: Run
    job: Job
    _made: int = 0

    def each(
        self, function: Callable[..., Result], label: str, arguments: Sequence[tuple[Any, ...]], *, keyed: bool = True
    ) -> list[Result]:
        """Makes a call for each of some arguments, before which comes the job and after which the store; a keyed one gets a key too.

        Args:
            function: A function of a module.
            label: Names the calls.
            arguments: Of each call.
            keyed: Whether it leaves artefacts, under the key or others that are made of it.

        Raises:
            SkaldError: whatever a call raises.
        """
        self._made += 1
        calls = []
        for number, those in enumerate(arguments, start=1):
            # What is in a bucket may be gone or replaced tomorrow: no later run finds these calls made.
            key = RECOUNTED.once()
            ending = (key, self.run.store) if keyed else (self.run.store,)
            name = f"recount {self._made}, {label}: {number} of {len(arguments)}"
            calls.append(Call(key, name, (self.job, *those, *ending), elsewhere=True))
        return map_step(self.run, PHASE, function, calls)


class RowsInTasks(Rows):
    """Rows that tasks read, in parts; the database here has what was counted."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tasks: RecountTasks,
        parts: Sequence[Written],
        sources: Sequence[Source],
        published: Mapping[str, str],
    ) -> None:
        self.connection, self.release, self.source = connection, RELEASE, SOURCE
        self._tasks, self._parts, self._sources, self._published = tasks, parts, sources, published
        self._known: dict[tuple[Side, Groups], str] = {}

    def expect(self, side: Side, groups: Sequence[Groups]) -> None:
        """Has groups counted that will be asked for, all of them in one reading of each part."""
        if new := [one for one in dict.fromkeys(groups) if (side, one) not in self._known]:
            self._known |= {(side, one): sums for one, sums in zip(new, self._sums(side, new), strict=True)}

    def grouped(self, side: Side, groups: Groups) -> str:
        """Has the groups of each part counted, unless they were expected, and returns their sums."""
        if groups.tables:
            # What a name stands for may change; what is in the files does not.
            return self._sums(side, [groups])[0]
        self.expect(side, [groups])
        return self._known[side, groups]

    def _sums(self, side: Side, groups: Sequence[Groups]) -> list[str]:
        asked = [Asked(one.sql, one.before, {name: self.exported(name) for name in one.tables}, one.alone, one.wide) for one in groups]
        calls = [(part, None, asked) for part in self._parts] if side == "release" else [(None, part, asked) for part in self._sources]
        made = self._tasks.each(answer, f"count {side}", calls)
        return [f"({one.added_sql(self._read([part[place] for part in made]))})" for place, one in enumerate(groups)]

    def counted(self, statement: str, *sides: Side) -> str:
        """Has one task answer a statement on all rows of the given sides."""
        files = tuple(file for part in self._parts for file in part.files)
        written = self._parts[0]._replace(files=files) if "release" in sides else None
        sources = tuple(file for part in self._sources for file in part.files)
        source = self._sources[0].model_copy(update={"files": sources}) if "source" in sides else None
        return self._read(self._tasks.each(answer, "count all", [(written, source, [Asked(statement)])])[0])

    def types(self, side: Side) -> dict[str, str]:
        """Returns DuckDB's types of the columns of a side."""
        if side == "release":
            return dict(self._published)
        described = f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {SOURCE})"
        found = self._read(self._tasks.each(answer, "columns", [(None, self._sources[0], [Asked(described)])])[0])
        return {
            str(name): str(dtype) for name, dtype in self.connection.execute(f"SELECT column_name, column_type FROM {found}").fetchall()
        }

    def exported(self, relation: str) -> Artifact:
        """Writes what the database reads into the store, where tasks find it."""
        store, key = self._tasks.run.store, RECOUNTED.once()

        def write(path: Any) -> int:
            [(rows,)] = self.connection.execute(f"COPY (FROM {relation}) TO {literal(str(path))} (FORMAT parquet)").fetchall()
            return int(rows)

        return store.make(TALLIES.name, key, ".parquet", write)

    def _read(self, made: Sequence[Artifact]) -> str:
        return files_sql([self._tasks.run.store.path(one) for one in made])
