"""Search for earlier releases that share records with a source, by file digests and record sketches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from core.units.source_digests import Likeness, Sketch, kind_of
from schemas.job.job import Job
from schemas.relational.manifest import TablesManifest
from schemas.relational.table_jobs import joined_column_name
from schemas.release.increments import Overlap
from schemas.release.manifest import Manifest
from tasks.composition.registry import Registered, ReleaseRegistry
from tasks.counting.contents import NO_CONTENTS, DigestedColumns, Sketches, contents_of_chunks, digested_by, read_sketches, sketch_contents
from tasks.engine.runs import Run
from tasks.release.manifest import files_in, target_manifests
from tasks.source.chunks import ChunkedSource
from tasks.store.keys import FolderSecret, read_secrets
from tasks.store.place import target_of
from tasks.store.store import Artifact
from tasks.writing.people import KeptRecords

Columns = tuple[tuple[str, str], ...]
"""Names of columns, each with the kind of its values."""


@dataclass(frozen=True)
class KnownRecords:
    """Digests and sketches of a source's records, to compare with other releases.

    They are computed on demand, once for the same columns.

    Attributes:
        most: At most how many units the source has by what the release states; None where the release states how many.
    """

    overlap: ClassVar[type[Overlap]] = Overlap
    """What is said of another release: what its figures count."""

    run: Run
    source: ChunkedSource
    most: int | None = None
    _contents: dict[DigestedColumns, list[Artifact]] = field(default_factory=dict)
    _sketches: dict[Columns, Sketches] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """Return name and kind of each column by which later releases match this one's records, as pairs."""
        return self.with_kinds(self.digested.names)

    @property
    def digested(self) -> DigestedColumns:
        """Return the columns whose digests this release keeps for comparison with later ones."""
        return digested_by(self.run.job, self.source.payload)

    @property
    def exact(self) -> tuple[str, ...]:
        """Return the names of the columns that are published as values, or in part.

        Whoever knows a value knows what a mask leaves of it. Labels and pseudonyms with a secret are none.
        """
        masked = [one.name for one in self.run.job.columns.pseudonyms if one.treatment.secret is None]
        return tuple(sorted({*self.digested.untreated, *self.digested.values, *masked}))

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Return the names of the quasi-identifiers, in the order of the job."""
        return tuple(qid.name for qid in self.run.job.columns.quasi_identifiers)

    @property
    def person_columns(self) -> Columns:
        """Return name and kind of each source column that names persons, as pairs."""
        return self.with_kinds(self.run.job.columns.person)

    @property
    def tables_below(self) -> tuple[str, ...]:
        """Return the names of the tables below the unit, of several tables; empty of one."""
        return ()

    @property
    def person_names(self) -> tuple[Columns, ...]:
        """Return all names of the columns that name persons, each with its kind; empty without any."""
        return (self.person_columns,) if self.person_columns else ()

    @property
    def digested_kinds(self) -> tuple[Columns, Columns, Columns]:
        """Return name and kind of each digested column that links records, shows changes, or is sensitive.

        The first two are digested as in the source, the sensitive ones as they are published.
        """
        by, published = self.digested, self.published_kinds
        return self.with_kinds(by.names), self.with_kinds(by.untreated), tuple((name, published[name]) for name in by.values)

    def with_kinds(self, names: Sequence[str]) -> Columns:
        """Return name and kind of the values of each given source column, as pairs."""
        kinds = self.kinds
        return tuple((name, kinds[name]) for name in names)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Return each source column's type family, within which equal values have equal digests."""
        return {**self.published_kinds, **{name: kind_of(dtype) for name, dtype in self.source.source_types.items()}}

    @property
    def published_kinds(self) -> Mapping[str, str]:
        """Return the type family of each column's values as they are published."""
        return {column.name: kind_of(column.type) for column in self.source.columns}

    def paired_columns(self, shown: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        """Return the columns, as numbers, of each digest of one or two columns of rows, by its name."""
        return {}

    def compute_sketches(self) -> None:
        """Compute and cache the sketches by which later releases match this source; skip a scratch job."""
        if not self.run.job.is_scratch:
            self.sketches(self.columns)

    def contents(self, columns: DigestedColumns) -> list[Artifact]:
        """Return each chunk's artefact of record digests in some columns, computed once."""
        if columns not in self._contents:
            self._contents[columns] = contents_of_chunks(self.run, self.source, columns)
        return self._contents[columns]

    def sketches(self, columns: Columns) -> Sketches:
        """Return merged sketches of the source's records in some columns and of its persons, made once."""
        if columns not in self._sketches:
            found = NO_CONTENTS
            by = self.digested if columns == self.columns else DigestedColumns(tuple(name for name, _ in columns))
            for part in sketch_contents(self.run, self.contents(by)):
                found = Sketches.of_all([found, read_sketches(part, self.run.store, found)])
            self._sketches[columns] = found
        return self._sketches[columns]

    def count_in_files(self, digests: Set[str]) -> int:
        """Return how many records the source files with some digests hold, each file once."""
        return sum({file.digest: file.rows for file in self.source.files if file.digest in digests}.values())

    def parts(self, columns: DigestedColumns) -> Sequence[KeptRecords]:
        """Return the records with their classes and digests; empty if kept by fragment in other columns."""
        members: Sequence[KeptRecords] = self.run.members
        if any(part.in_fragment for part in members):
            return members if columns == self.digested else ()
        return [part.model_copy(update={"contents": one}) for part, one in zip(members, self.contents(columns), strict=True)]


UNREGISTERED = "the registry does not know it, so that its records are not known again"
OTHER_COLUMNS = "its records are linked by columns that this job lacks or reads in another type, so that they are not known again"
_ID = re.compile(r"[\w.-]{1,200}")


class Earlier(NamedTuple):
    """An earlier release that may share records with the source: id, k, linkage key, common files.

    Attributes:
        release: Its id.
        k: The k that it promises.
        records: N of its source; 0 where that is not known.
        most: At most how many units its source has by what the release states; None where it states ``records``.
        files: Plain digests of those files of the source that it is made of too.
        is_reported: Whether these files hold all records that both have in common.
        linkage_key: Columns by which its records are matched; none where the source lacks any of them.
        persons: Whether both name persons by the same columns, so that records match by these too.
        work: The work folder of its job; None where that is the one of this job, as far as is known.
        untold: Why it cannot be compared, as the end of a sentence; empty if it can, as far as is known.
        doubtful: Whether the sketches have nothing in common, although the records outside them may.
        unread: Whether its sketch was not read, so that it is only known to have the same columns.
        exact: Quasi-identifiers of either release that the other one publishes as values; None where the registry does not say.
        tables_below: The names of its tables below the unit; none of one table, or where that is not known.
    """

    release: str
    k: int
    records: int = 0
    files: frozenset[str] = frozenset()
    is_reported: bool = False
    linkage_key: Columns = ()
    persons: bool = False
    work: Path | None = None
    untold: str = ""
    doubtful: bool = False
    unread: bool = False
    most: int | None = None
    exact: tuple[str, ...] | None = ()
    tables_below: tuple[str, ...] = ()


def earlier_releases(records: KnownRecords, release: str, registry: ReleaseRegistry, most_related: int | None = None) -> Iterator[Earlier]:
    """Yield releases that may share records with the source: registered, damaged, then unregistered ones.

    Args:
        most_related: Number of releases that share records after which no further sketches are read, which bounds the cost of a run.
            Later ones with the same columns are yielded as ``unread``. None reads all.
    """
    job = records.run.job
    entries, damaged = registry.entries()
    replayed = job.replay.name if job.replay else None
    # What was replayed comes first: it is what readers will lay beside this one.
    others = sorted((entry for entry in entries if entry.release != release), key=lambda entry: entry.release != replayed)
    keyed, read = KeyedSketches(records, registry), 0
    for entry in others:
        if found := _related(records, entry, registry, keyed if most_related is None or read < most_related else None):
            read += not found.doubtful
            yield found
    for name in damaged:
        # What cannot be read may be of any records.
        if name != release:
            yield Earlier(name if _ID.fullmatch(name) else "unknown", job.privacy.k, untold="its entry in the registry is damaged")
    seen = {release, *damaged, *(entry.release for entry in others)}
    yield from _of_manifests(job, records.source, records.kinds, seen)


class KeyedSketches:
    """The sketches of a source keyed with the registry's secret, computed once for the same columns."""

    def __init__(self, known: KnownRecords, registry: ReleaseRegistry) -> None:
        self._known, self._registry = known, registry
        self._made: dict[Columns, tuple[Sketches, Sketches]] = {}

    def of(self, columns: Columns) -> tuple[Sketches, Sketches]:
        """Return the sketches of the source in some columns, keyed and plain."""
        if columns not in self._made:
            mine = self._known.sketches(columns)
            self._made[columns] = self._registry.keyed_sketches(mine), mine
        return self._made[columns]


def exact_of_both(known: KnownRecords, qids: Iterable[str], exact: Iterable[str], tables: Sequence[str]) -> tuple[str, ...]:
    """Return the quasi-identifiers of this or another release that the other publishes as values.

    Args:
        tables: Those below the unit of the other release; none of one table, or where they are not known.
    """
    here, there, qids, exact = *names_in_one(known, tables), {*qids}, {*exact}
    alike = (here(known.exact) & there(qids)) | (there(exact) & here(known.quasi_identifiers))
    # Older registries do not say that a release is of several tables. Then its names are those of this one.
    return tuple(sorted(alike | ({*known.exact} & qids) | (exact & {*known.quasi_identifiers})))


Names = Callable[[Iterable[str]], set[str]]


def names_in_one(known: KnownRecords, tables: Sequence[str]) -> tuple[Names, Names]:
    """Return for each of two releases what makes its names of columns those that both have.

    A job of one table calls the columns of a table below the unit as that table does, without the table's name.
    """

    def plain(names: Iterable[str], below: Sequence[str]) -> set[str]:
        return {next((name.removeprefix(f"{table}.") for table in below if name.startswith(f"{table}.")), name) for name in names}

    sides = (known.tables_below, tables) if bool(known.tables_below) != bool(tables) else ((), ())
    return partial(plain, below=sides[0]), partial(plain, below=sides[1])


def columns_of_rows(known: KnownRecords, earlier: Earlier, published: Set[str]) -> list[str]:
    """Return the columns that one of two releases publishes with a table's name, and the other without it."""
    own = {*known.digested.untreated, *known.digested.values}
    here, there = names_in_one(known, earlier.tables_below)
    return sorted(here(own - published) & there(published - own))


def _related(known: KnownRecords, entry: Registered, registry: ReleaseRegistry, keyed: KeyedSketches | None) -> Earlier | None:
    """Return what a registered release shares with the source; None if nothing.

    Without sketches it is returned if it may share records.
    """
    persons = not {entry.person, *entry.person_names}.isdisjoint(known.person_names)
    found = Earlier(
        entry.release,
        entry.k,
        entry.records,
        linkage_key=entry.linkage_key,
        persons=persons,
        work=Path(entry.work),
        most=entry.most,
        exact=None if entry.exact is None else exact_of_both(known, entry.qids, entry.exact, entry.tables_below),
        tables_below=entry.tables_below,
    )
    if entry.key != registry.key:
        return found._replace(untold="the key of the registry is another one now, so that its records are not known again")
    here = registry.keyed_files(known.source)
    files = frozenset(digest for keyed, digest in here.items() if keyed in entry.files)
    if entry.linkage_key != tuple((name, known.kinds.get(name)) for name, _ in entry.linkage_key):
        found = found._replace(linkage_key=())
        if not persons:
            # A query for other columns, say. Records cannot be told to be the same ones, and neither to be others.
            alike = files or {*known.quasi_identifiers} <= set(entry.columns) or set(entry.qids) <= set(known.kinds)
            # A job that looks at other columns tonight looks at the same people.
            alike = alike or entry.work == known.run.job.work_location
            return found._replace(untold=OTHER_COLUMNS) if alike else None
    if files:
        return found._replace(
            files=files, is_reported=_are_common_in_files(Counter(registry.keyed_file_digests(known.source)), Counter(entry.files))
        )
    return found._replace(unread=True) if keyed is None else _by_sketches(known, entry, registry, keyed, found)


def _by_sketches(known: KnownRecords, entry: Registered, registry: ReleaseRegistry, keyed: KeyedSketches, found: Earlier) -> Earlier | None:
    """Compare the sketches of a registered release with the source's; None if they share nothing."""
    theirs = registry.sketches_of(entry)
    if theirs is None:
        return found._replace(untold="the sketch of its records is gone or damaged")
    pairs = list(zip(*keyed.of(found.linkage_key or known.columns), theirs, entry.reach, strict=True))
    records, whose = (likeness(*pair) for pair in pairs)
    persons = found.persons
    if (found.linkage_key and records.is_shared) or (persons and whose.common_of_first):
        return found
    unsure = [not (one.is_complete and other.is_complete) for _, one, other, _ in pairs]
    return found._replace(doubtful=True) if (found.linkage_key and unsure[0]) or (persons and unsure[1]) else None


def _are_common_in_files(mine: Counter[str], theirs: Counter[str]) -> bool:
    """Return whether the equal files of two sources hold all records that both have in common.

    They do if only one source has further files and no file is in either twice.
    """
    return max(*mine.values(), *theirs.values()) == 1 and (mine.keys() <= theirs.keys() or theirs.keys() <= mine.keys())


def likeness(keyed: Sketch, mine: Sketch, theirs: Sketch, reach: float) -> Likeness:
    """Return the record counts by which the overlap of two sources is estimated from their sketches.

    Args:
        keyed: The sketch of the first source, keyed by the registry.
        mine: The same sketch with plain digests.
        theirs: The keyed sketch of the other source.
        reach: The share of all digests that ``theirs`` covers.
    """
    within = mine.digests <= np.uint64(min(reach * 2.0**64, 2.0**64 - 2048))
    _, here, there = np.intersect1d(keyed.digests, theirs.digests, return_indices=True)
    # The plain digests of the others are not known, but so many of them are within the reach of this one.
    share = min(mine.reach / reach, 1.0) if reach else 1.0
    return Likeness(
        mine=float(mine.counts[within].sum()),
        theirs=float(theirs.counts.sum()) * share,
        common_of_first=int(mine.counts[here].sum()),
        common_of_second=int(theirs.counts[there].sum()),
        mine_doubled=mine.doubles,
        theirs_doubled=theirs.doubles,
    )


def _of_manifests(job: Job, source: ChunkedSource, kinds: Mapping[str, str], known: set[str]) -> Iterator[Earlier]:
    """Yield releases in the target that the registry does not list, by their manifests.

    They were made before there was a registry, or elsewhere, or the registry was lost.
    """
    mine, secrets = [file.digest for file in source.files if file.rows], read_secrets(job)
    for name, manifest in target_manifests(target_of(job), known):
        if manifest is None:
            # What cannot be read may be of any records.
            yield Earlier(name if _ID.fullmatch(name) else "unknown", job.privacy.k, untold="its manifest cannot be read")
        elif manifest.release not in known:
            found = _of_tables(manifest, kinds) if isinstance(manifest, TablesManifest) else _of_manifest(manifest, mine, secrets, kinds)
            if found:
                yield found


def _of_tables(manifest: TablesManifest, kinds: Mapping[str, str]) -> Earlier | None:
    """Return a release of several tables if it has a quasi-identifier that is a column of the source."""
    qids = {joined_column_name(manifest.unit, name, column) for name, table in manifest.tables.items() for column in table.levels}
    if qids.isdisjoint(kinds):
        return None
    return Earlier(manifest.release, int(manifest.privacy["k"]), manifest.records or 0, untold=UNREGISTERED)


def _of_manifest(manifest: Manifest, mine: Sequence[str], secrets: Sequence[FolderSecret], kinds: Mapping[str, str]) -> Earlier | None:
    """Return an unregistered release that shares source files or a quasi-identifier with the source."""
    found = Earlier(manifest.release, int(manifest.privacy["k"]), manifest.records, exact=None)
    if files := frozenset(files_in(manifest, mine, secrets)):
        plain = len(set(mine)) == len(mine) and len({file.digest for file in manifest.sources}) == len(manifest.sources)
        return found._replace(files=files, is_reported=plain and len(files) in {len(mine), len(manifest.sources)})
    if set(manifest.hierarchies or manifest.levels or ()).isdisjoint(kinds):
        return None
    return found._replace(untold=UNREGISTERED)
