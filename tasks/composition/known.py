"""By what the records of a run's source are known again in other releases, in the columns that each of these was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from core.composition.contents import kind_of
from schemas.release.increments import Overlap
from tasks.counting.contents import NOTHING_KNOWN, Digested, Sketches, contents_of_chunks, digested_by, read_sketches, sketch_contents
from tasks.engine.runs import Run
from tasks.source.chunks import ChunkedSource
from tasks.store.store import Artifact
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

    overlap: ClassVar[type[Overlap]] = Overlap
    """What is said of another release: what its figures count."""

    run: Run
    source: ChunkedSource
    _contents: dict[Digested, list[Artifact]] = field(default_factory=dict)
    _sketches: dict[Columns, Sketches] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """By what they are known where this release is the earlier one."""
        return self.with_kinds(self.digested.names)

    @property
    def digested(self) -> Digested:
        """The columns of which digests are kept where this release is the earlier one."""
        return digested_by(self.run.job, self.source.payload)

    @property
    def person(self) -> Columns:
        """The columns that name persons."""
        return self.with_kinds(self.run.job.columns.person)

    def with_kinds(self, names: Sequence[str]) -> Columns:
        """Returns columns of the source with the kinds of their values."""
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
        if not self.run.job.is_scratch:
            self.sketches(self.columns)

    def contents(self, by: Digested) -> list[Artifact]:
        """Returns the digests of the records of each chunk in some columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        if by not in self._contents:
            self._contents[by] = contents_of_chunks(self.run, self.source, by)
        return self._contents[by]

    def sketches(self, columns: Columns) -> Sketches:
        """Returns the sketch of what the records hold in some columns, and that of their persons.

        Raises:
            SkaldError: whatever a step raises.
        """
        if columns not in self._sketches:
            found = NOTHING_KNOWN
            by = self.digested if columns == self.columns else Digested(tuple(name for name, _ in columns))
            for part in sketch_contents(self.run, self.contents(by)):
                found = Sketches.of_all([found, read_sketches(part, self.run.store, found)])
            self._sketches[columns] = found
        return self._sketches[columns]

    def parts(self, by: Digested) -> Sequence[Part]:
        """Returns the records with their classes and digests; none where these are kept by fragment, and in other columns.

        Raises:
            SkaldError: whatever a step raises.
        """
        members: Sequence[Part] = self.run.members
        if any(part.in_fragment for part in members):
            return members if by == self.digested else ()
        return [part.model_copy(update={"contents": one}) for part, one in zip(members, self.contents(by), strict=True)]
