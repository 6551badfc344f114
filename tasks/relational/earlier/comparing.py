"""Comparison of a release of several tables with earlier ones, and its entry in the release registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from schemas.errors.refusals import OverlapError
from schemas.job.job import hierarchies_of
from schemas.relational.manifest import TablesManifest
from tasks.composition.overlaps import overlaps_of, register_release
from tasks.composition.pseudonym_families import Joining, join_releases
from tasks.composition.registry import Registered, ReleaseRegistry, open_registry
from tasks.composition.release_history import STEP, Entry, keep_entry, promises_by_column
from tasks.counting.domains import axis_names
from tasks.relational.earlier.disclosed import ShownTables, disclosed_by_tables
from tasks.relational.earlier.known_persons import ComparablePersons


@dataclass
class ComparedTables:
    """A release of several tables and its comparison, while the release registry is locked.

    Attributes:
        known: Its persons.
        registry: The registry; None for a release that is made to be counted and removed again.
        joining: What its pseudonyms join it to.
        said: What its manifest says of earlier releases.
    """

    known: ComparablePersons
    registry: ReleaseRegistry | None
    joining: Joining
    said: dict[str, Any]

    def enter(self, manifest: TablesManifest) -> Registered | None:
        """Enter the release into the registry before its publication, as not yet published.

        The entry counts only once the release is published. None is returned where there is no registry.
        """
        if self.registry is None:
            return None
        known, job = self.known, self.known.run.job
        digested = tuple(map(known.with_kinds, known.digested))
        entry = Entry(
            release=manifest.release,
            files=tuple((file.name, file.digest, file.rows) for file in known.source.files),
            chunks=(),
            names=tuple(axis_names(job)),
            hierarchies=hierarchies_of(job),
            settings="",
            recoded=None,
            code=STEP.key(),
            parts=() if known.unmeasured else tuple(known.parts(known.digested)),
            digested=(digested[0], digested[1], digested[2]),
            promised=promises_by_column(job),
            untold=known.unmeasured,
            seal=manifest.seal,
        )
        keep_entry(entry, known.run.store)
        return register_release(known, manifest.release, self.registry, self.joining.families)

    def record_publication(self, entry: Registered | None) -> None:
        """Record in the registry that the release was published."""
        if self.registry and entry:
            self.registry.record_publication(entry)
            self.joining.commit()


@contextmanager
def compared_tables(persons: ComparablePersons, shown: ShownTables) -> Iterator[ComparedTables]:
    """Compare a release of several tables with earlier ones under the registry's lock.

    The registry stays locked, so that of two releases at once one knows of the other.
    """
    with open_registry(persons.run.job) as registry:
        joining = Joining()
        with persons.run.phase("overlaps"):
            if registry:
                joining = join_releases(persons.run, persons.source, shown.release, registry, disclosed_by_tables(shown))
            try:
                said = overlaps_of(persons, shown.release, registry, joining.joined)
            except OverlapError:
                joining.withdraw()
                raise
        said["overlaps"] = said["overlaps"] and tuple(one.reported() for one in said["overlaps"])
        yield ComparedTables(persons, registry, joining, said)
