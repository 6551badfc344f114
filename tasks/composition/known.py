"""By what the records of a run's source are known again in other releases, in the columns that each of these was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.parquet as pq

from core.composition.contents import Sketch, kind_of
from core.persons.digests import NOBODY
from tasks.composition.registry import Sketches, is_scratch
from tasks.counting.contents import known_by
from tasks.counting.phases import tell_contents
from tasks.engine.runs import Run
from tasks.source.chunks import Source
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
    _sketches: dict[Columns, Sketches] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """By what they are known where this release is the earlier one."""
        return self._with_kinds(known_by(self.run.job))

    @property
    def person(self) -> Columns:
        """The columns that name persons."""
        return self._with_kinds(self.run.job.columns.person)

    def _with_kinds(self, names: Sequence[str]) -> Columns:
        kinds = self.kinds
        return tuple((name, kinds[name]) for name in names)

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
            self.sketches(self.columns)

    def contents(self, columns: Columns) -> list[Artifact]:
        """Returns what the records of each chunk hold in some columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        if columns not in self._contents:
            self._contents[columns] = tell_contents(self.run, self.source, [name for name, _ in columns])
        return self._contents[columns]

    def sketches(self, columns: Columns) -> Sketches:
        """Returns the sketch of what the records hold in some columns, and that of their persons.

        Raises:
            SkaldError: whatever a step raises.
        """
        if columns not in self._sketches:
            found = [_sketches(self.run.store, part) for part in self.contents(columns)]
            self._sketches[columns] = Sketches(*(Sketch.of_all(parts) for parts in zip(*found, strict=True)))
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


def _sketches(store: Store, part: Artifact) -> Sketches:
    table = pq.read_table(store.path(part))
    persons = table["person"].to_numpy() if "person" in table.column_names else np.empty(0, np.uint64)
    return Sketches(Sketch.of(table["content"].to_numpy()), Sketch.of(persons[persons != NOBODY]))
