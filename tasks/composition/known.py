"""By what the records of a run's source are known again in other releases, in the columns that each of these was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from core.composition.contents import Sketch, kind_of
from core.persons.digests import Digests
from schemas.job.job import Job
from tasks.composition.registry import is_scratch
from tasks.counting.contents import contents_key, keep_contents, known_by
from tasks.engine.runs import Run
from tasks.engine.steps import map_groups
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Key
from tasks.store.store import Artifact, Store
from tasks.writing.members import Part

Columns = tuple[tuple[str, str], ...]
"""Names of columns, each with the kind of its values."""


@dataclass(frozen=True)
class KnownRecords:
    """The records of a source as other releases know them; digests are made when they are asked for, once for the same columns.

    Attributes:
        run: The run.
        source: Its source.
    """

    run: Run
    source: Source
    _contents: dict[Columns, list[Artifact]] = field(default_factory=dict)
    _sketches: dict[Columns, Sketch] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """By what they are known where this release is the earlier one."""
        kinds = self.kinds
        return tuple((name, kinds[name]) for name in known_by(self.run.job))

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of values of each column of the source."""
        return {column.name: kind_of(column.type) for column in self.source.columns}

    def look(self) -> None:
        """Reads the records by what they will be known later; nothing for a release that is made to be counted and removed again.

        Raises:
            SkaldError: whatever a step raises.
        """
        if not is_scratch(self.run.job):
            self.sketch(self.columns)

    def contents(self, columns: Columns) -> list[Artifact]:
        """Returns what the records of each chunk hold in some columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        if columns not in self._contents:
            job, types, names = self.run.job, self.source.columns, [name for name, _ in columns]

            def key(chunk: Chunk) -> Key:
                return contents_key(job, types, names, chunk)

            self._contents[columns] = map_groups(
                self.run, "contents", _keep_contents, self.source.chunks, key, job, types, names, self.run.store
            )
        return self._contents[columns]

    def sketch(self, columns: Columns) -> Sketch:
        """Returns the sketch of what the records hold in some columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        if columns not in self._sketches:
            parts = self.contents(columns)
            self._sketches[columns] = Sketch.of_all([Sketch.of(_digests(self.run.store, part)) for part in parts])
        return self._sketches[columns]

    def parts(self, columns: Columns) -> Sequence[Part]:
        """Returns the records with their classes, known by some columns; none where classes are kept by fragment, and by other columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        members: Sequence[Part] = self.run.members
        if any(part.in_fragment for part in members):
            return members if columns == self.columns else ()
        return [part.model_copy(update={"contents": one}) for part, one in zip(members, self.contents(columns), strict=True)]


def _keep_contents(job: Job, types: pa.Schema, names: Sequence[str], store: Store, chunks: Sequence[Chunk]) -> list[Artifact]:
    return [keep_contents(job, types, names, chunk, store) for chunk in chunks]


def _digests(store: Store, part: Artifact) -> Digests:
    found: Digests = pq.read_table(store.path(part), columns=["content"])["content"].to_numpy()
    return found
