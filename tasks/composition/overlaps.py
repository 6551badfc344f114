"""Measurement of overlaps: the records at risk from this release together with earlier ones.

Earlier releases are found in the registry of the folder of jobs, whatever job, target, method or file they came from. Others are found
by their manifests in the target. Shared records are found by source files of equal content where possible, else by digests of the
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from schemas.errors.refusals import OverlapError
from schemas.errors.signals import UnmeasuredError
from schemas.job.method import METHODS
from schemas.release.increments import Joined, Overlap
from tasks.composition.by_contents import figures_by_contents, store_of_earlier
from tasks.composition.by_files import figures_by_files
from tasks.composition.earlier import Earlier, KnownRecords, earlier_releases, exact_of_both
from tasks.composition.pseudonym_families import Disclosed, Joining, join_releases
from tasks.composition.registry import FORMAT, Registered, ReleaseRegistry, open_registry
from tasks.composition.release_history import read_entry
from tasks.source.published_columns import shared_columns
from tasks.store.place import target_of

MOST = 3
"""Earlier releases that are measured at most, the newest first."""
MOST_RECORDS = 100_000_000
"""Records, counted once per earlier release, beyond which only one is measured: each costs about 0.03 to 1 CPU s per million."""


@dataclass(frozen=True)
class ComparedRecords:
    """A release's records or persons, compared with earlier releases, and the locked registry.

    Attributes:
        registry: The registry; None for a release that is made to be counted and removed again.
        joining: What its pseudonyms join it to.
        figures: What was found, by field of the manifest.
    """

    known: KnownRecords
    registry: ReleaseRegistry | None
    joining: Joining
    figures: Mapping[str, Any]

    @property
    def reported(self) -> dict[str, Any]:
        """The manifest's fields on earlier releases."""
        overlaps = self.figures["overlaps"]
        return {**self.figures, "overlaps": overlaps and tuple(one.reported() for one in overlaps)}

    def register(self, release: str) -> Registered | None:
        """Write a release into the registry before publication; return the entry, None without a registry."""
        return register_release(self.known, release, self.registry, self.joining.families) if self.registry else None

    def record_publication(self, entry: Registered | None) -> None:
        """Record the publication in the registry and commit pseudonym indexes; nothing without an entry."""
        if self.registry and entry:
            self.registry.record_publication(entry)
            self.joining.commit()


@contextmanager
def compared_records(known: KnownRecords, release: str, disclose: Callable[[], Sequence[Disclosed]]) -> Iterator[ComparedRecords]:
    """Compare a release with earlier ones, raise if refused; yield results with the registry locked.

    Args:
        disclose: Returns what the release discloses, by linking columns; not asked without a registry.
    """
    with open_registry(known.run.job) as registry:
        joining = Joining()
        with known.run.phase("overlaps"):
            if registry:
                joining = join_releases(known.run, known.source, release, registry, disclose())
            try:
                figures = overlaps_of(known, release, registry, joining.joined)
            except OverlapError:
                joining.withdraw()
                raise
        yield ComparedRecords(known, registry, joining, figures)


def overlaps_of(records: KnownRecords, release: str, registry: ReleaseRegistry | None, joined: Sequence[Joined] = ()) -> dict[str, Any]:
    """Return manifest fields on overlaps with earlier releases; raise ``OverlapError`` if the job refuses.

    Args:
        registry: The registry of the folder's jobs; None where none is open, so that no release is looked for.
    """
    job, source = records.run.job, records.source
    if registry is None:
        if job.overlaps == "refuse":
            raise OverlapError.overlap_unchecked()
        return {"overlaps": None, "joined": None}
    refuse, replayed = job.overlaps == "refuse", job.replay.name if job.replay else None
    limit = max(1, min(MOST, MOST_RECORDS // source.records))
    # One that the registry does not know may have been replayed too.
    earlier = sorted(earlier_releases(records, release, registry, None if refuse else limit), key=lambda one: one.release != replayed)
    related, doubtful = [one for one in earlier if not one.doubtful], [one for one in earlier if one.doubtful]
    most = len(earlier) if refuse else limit
    overlaps = [found for one in (*related[:most], *doubtful[:most]) if (found := _measured(records, one))]
    joins = [one for one in joined if not one.is_safe]
    pairs = [one for one in overlaps if not one.is_safe]
    if refuse and (pairs or joins):
        releases = max(len(pairs), *(one.releases for one in joins), 0)
        told = [*(one.reported().sentence() for one in pairs), *(one.sentence() for one in joins)]
        replays = METHODS[job.method.name].replays and not (
            replayed or job.is_of_several or shared_columns(job) or any(one.exact for one in pairs)
        )
        raise OverlapError.refused(releases, told, replays=replays, linked=bool(joins))
    return {"overlaps": tuple(overlaps), "unmeasured_overlaps": len(related[most:]), "joined": tuple(joined)}


def _measured(known: KnownRecords, earlier: Earlier) -> Overlap | None:
    """Return the overlap of this release and an earlier one; None if they have no records in common."""
    job, source = known.run.job, known.source
    # The weaker of the two promises: what both keep alone is what both together must not break.
    most = None
    if (known.most, earlier.most) != (None, None):
        most = known.most or source.records, earlier.most or earlier.records
    k = min(job.privacy.k, earlier.k)
    overlap = known.overlap(release=earlier.release, k=k, unmeasured=earlier.untold, most=most, exact=_exact(known, earlier))
    if earlier.files and earlier.is_reported:
        shared = sum(file.rows for file in source.files if file.digest in earlier.files)
        counts = {"shared": shared, "added": source.records - shared, "removed": earlier.records - shared}
        # Until persons are counted, the records of a file may be those of one.
        overlap = overlap.model_copy(update=counts | {"few_persons": bool(job.columns.person)})
    if overlap.unmeasured:
        return overlap
    if earlier.is_reported and not job.columns.person:
        try:
            return overlap.model_copy(update=figures_by_files(known.run, source, overlap))
        except UnmeasuredError:
            # Other hierarchies, another method or another job: their records can be compared all the same.
            pass
    try:
        figures = figures_by_contents(known, earlier, overlap.k)
    except UnmeasuredError as reason:
        # Its sketch has nothing in common with this one's. Else a job that runs every night on other people would be warned of, or refused
        # for, each release that is older than what is kept.
        return None if earlier.doubtful else overlap.model_copy(update={"unmeasured": str(reason)})
    return None if figures is None else overlap.model_copy(update=figures)


def _exact(known: KnownRecords, earlier: Earlier) -> tuple[str, ...]:
    """Return the quasi-identifiers of either release that the other publishes as values."""
    # Registries of older versions do not say it, nor does a manifest; the history does.
    entry = read_entry(earlier.release, store_of_earlier(known.run, earlier)) if earlier.exact is None else None
    if entry is None or entry.digested is None:
        return earlier.exact or ()
    _, *published = entry.digested
    return exact_of_both(known, entry.hierarchies, (name for columns in published for name, _ in columns), earlier.tables_below)


def register_release(records: KnownRecords, release: str, registry: ReleaseRegistry, families: Sequence[str]) -> Registered:
    """Write a release and its sketches into the registry before publication; return the entry."""
    job, source = records.run.job, records.source
    sketches = records.sketches(records.columns)
    entry = Registered(
        format=FORMAT,
        release=release,
        place=str(target_of(job).folder or ""),
        work=job.work_location,
        k=job.privacy.k,
        records=source.records,
        files=tuple(registry.keyed_file_digests(source)),
        linkage_key=records.columns,
        person=records.person_columns,
        person_names=records.person_names,
        tables_below=records.tables_below,
        columns=tuple(source.columns.names),
        qids=records.quasi_identifiers,
        exact=records.exact,
        sketch="",
        reach=(sketches.records.reach, sketches.persons.reach),
        key="",
        made=0.0,
        key_families=tuple(families),
        most=records.most,
    )
    return registry.enter(entry, registry.keyed_sketches(sketches))
