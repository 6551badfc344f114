"""Pseudonym families: columns whose pseudonyms link releases, and the index of each family.

A family is all columns that are published as pseudonyms of one key or vault, whatever they are called. Several columns that name a person
together are a family besides. The registry keeps an index of each family (`core.composition.pseudonym_sets`). For each pseudonym it
holds the person and digests of all that releases disclosed of it. It holds no pseudonym and no value; everything in it is keyed with
the registry's secret. A run reads and writes this one file, however many releases there were. The new index is written before a
release is published, and replaces the old one after publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
from pydantic import ValidationError

from core.composition.pseudonym_sets import (
    OLD,
    all_releases_sql,
    columns_together_sql,
    joined_people_sql,
    keyed_disclosures_sql,
    remaining_pseudonyms_sql,
)
from schemas.errors.base import StorageError
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.registry.treatment_kinds import treatment_kind
from schemas.release.figures import reported_count
from schemas.release.increments import Joined
from tasks.composition.registry import Registered, ReleaseRegistry
from tasks.engine.runs import Run
from tasks.source.chunks import ChunkedSource
from tasks.store.database import connect, literal, parquet_sql, write_parquet
from tasks.store.files import file_digest, write_atomically
from tasks.store.keys import json_with_digest, values_with_digest
from tasks.store.store import Artifact

HEAD, NEXT, SETS = ".family", ".next", ".sets"
FORMAT = 1
EMPTY = "SELECT 0::UBIGINT AS key, 0::UBIGINT AS owner, 0::UBIGINT AS everything, 0::UBIGINT AS labels WHERE false"
INDEX_LOST = "the index of what earlier releases disclosed under these pseudonyms is gone or damaged"


class Disclosed(NamedTuple):
    """Digests of what a release discloses under the pseudonyms of some columns.

    Attributes:
        digests: Table of ``key``, ``everything`` and ``labels``.
        owners: Table of ``key`` and ``owner``; None where each pseudonym counts as a person.
    """

    columns: tuple[str, ...]
    digests: Artifact
    owners: Artifact | None


class Head(FrozenModel):
    """Header of a family's index: its file, its releases and their least k.

    Attributes:
        key: Identifies the registry's secret.
        file: Name of the file with the digests; ``sha256`` of it.
        k: The smallest k that they promise.
    """

    format: int
    family: str
    key: str
    file: str
    sha256: str
    releases: tuple[str, ...]
    k: int


@dataclass(frozen=True)
class Joining:
    """Pseudonym families of a release, the links found, and the new indexes that await publication.

    Attributes:
        families: Ids of the families.
        joined: The links to earlier releases.
        pending: Heads that are written and wait for the publication.
    """

    families: tuple[str, ...] = ()
    joined: tuple[Joined, ...] = ()
    pending: tuple[Path, ...] = ()

    def commit(self) -> None:
        """Replace old pseudonym index files by the new ones; call it once the release is published."""
        for path in self.pending:
            _commit(path)

    def withdraw(self) -> None:
        """Delete the new pseudonym index files of a release that is not published."""
        for path in self.pending:
            _withdraw(path)


def family_of(job: Job, source: ChunkedSource, columns: Sequence[str], registry: ReleaseRegistry) -> str:
    """Return a keyed id of linking columns, equal for jobs that may give one person equal pseudonyms.

    Pseudonyms are equal where treatment and key or vault are. Settings count only where different values may get equal pseudonyms by
    design: these are joined under one name and settings alone. Encryption with other settings may give equal pseudonyms to different
    values by chance. These are counted as one person.
    """
    specs, parts = {one.name: one.treatment for one in job.columns.pseudonyms}, []
    for name in columns:
        kind = treatment_kind(specs[name])
        by_key = kind.tells_apart and len(columns) == 1
        parts.append([None if by_key else name, kind.name, None if kind.tells_apart else specs[name].canonical(), source.keys.get(name)])
    return registry.secret.keyed("family", parts)[:24]


def join_releases(run: Run, source: ChunkedSource, release: str, registry: ReleaseRegistry, disclosed: Sequence[Disclosed]) -> Joining:
    """Count people linked to earlier releases by pseudonym; write new indexes, pending until publication.

    Args:
        disclosed: What the release discloses, by linking columns.
    """
    if not disclosed:
        return Joining()
    families: dict[str, list[Disclosed]] = {}
    for one in disclosed:
        families.setdefault(family_of(run.job, source, one.columns, registry), []).append(one)
    entries, _ = registry.entries()
    found = [_joined(run, release, registry, family, entries) for family in families.items()]
    return Joining(tuple(families), tuple(one for one, _ in found if one), tuple(path for _, path in found if path))


def _joined(
    run: Run, release: str, registry: ReleaseRegistry, one: tuple[str, Sequence[Disclosed]], entries: Sequence[Registered]
) -> tuple[Joined | None, Path | None]:
    """Return the people that a release links to earlier ones of a family, and the new index's header.

    The first is None where there are no earlier releases, or where new pseudonyms link to none of them.
    """
    family, columns = one[0], tuple(name for each in one[1] for name in each.columns)
    others = [entry for entry in entries if entry.release != release]
    head = _head(registry, family, {entry.release for entry in entries})
    kept, lost = (head.releases if head else ()), _lost(registry, family, head)
    absent = [entry for entry in others if (entry.key_families is not None and family in entry.key_families) and entry.release not in kept]
    reasons = [INDEX_LOST] if absent or lost else []
    older = [entry for entry in others if entry.key_families is None and entry.pseudonyms_may_be_there]
    reasons += ["another version of this program made some, and kept nothing of what their pseudonyms join"] if older else []
    known = [name for name in kept if name != release]
    k, releases = min([run.job.privacy.k, *([head.k] if head else [])]), len({*known, *(entry.release for entry in (*absent, *older))})
    try:
        figures, path = _folded(run, release, registry, one, head if not lost else None)
    except UnmeasuredError as reason:
        return Joined(columns=columns, releases=releases, k=k, unmeasured=str(reason)), None
    if any(each.owners for each in one[1]):
        # Persons whom no pseudonym shows.
        figures = {name: reported_count(count, k) for name, count in figures.items()}
    unexpected_ones = not (reasons or figures["people"] or figures["below_k"])
    if not releases or unexpected_ones:
        # New pseudonyms of the same key join nothing.
        return None, path
    found = Joined(columns=columns, releases=releases, k=k, unmeasured="; ".join(reasons))
    return (found.model_copy(update=figures) if known and not lost else found), path


def _folded(
    run: Run, release: str, registry: ReleaseRegistry, one: tuple[str, Sequence[Disclosed]], head: Head | None
) -> tuple[dict[str, int], Path | None]:
    """Merge a release into a family's index; return the figures and the path of the new header."""
    family, disclosed = one
    k = min(run.job.privacy.k, head.k if head else run.job.privacy.k)
    secret = literal(registry.secret.keyed("pseudonym sets", family))
    whose = literal(f"{list(run.job.columns.person)}")
    old = f"FROM {parquet_sql([registry.folder / head.file])}" if head else EMPTY
    digests, owners = columns_together_sql(
        {literal(", ".join(each.columns)): _read_sql(run, each.digests) for each in disclosed},
        [_read_sql(run, each.owners) for each in disclosed if each.owners],
    )
    with connect(run.job, run.spill, last=True) as connection:
        try:
            connection.execute(f"CREATE TEMP VIEW {OLD} AS {old}")
            connection.execute(keyed_disclosures_sql(digests, owners, secret, literal(release), whose))
            again = bool(head and release in head.releases)
            connection.execute(all_releases_sql(is_published_again=again))
            [row] = connection.execute(joined_people_sql(k)).fetchall()
            figures = dict(zip(("people", "below_k", "by_labels", "smallest"), map(int, row), strict=True))
            return figures, None if again else _write(registry, release, family, head, k, connection)
        except duckdb.OutOfMemoryException:
            raise UnmeasuredError("what they disclose together takes more than the job's memory") from None


def _read_sql(run: Run, made: Artifact) -> str:
    return parquet_sql([run.store.path(made)])


def _write(registry: ReleaseRegistry, release: str, family: str, head: Head | None, k: int, connection: duckdb.DuckDBPyConnection) -> Path:
    """Write a family's index with one more release next to the old one; return the path of its header."""
    file = registry.folder / f"{family}-{registry.secret.keyed('sets', family, release)[:12]}{SETS}"

    write_atomically(file, lambda part: write_parquet(connection, remaining_pseudonyms_sql(), part, "COMPRESSION uncompressed"))
    made = Head(
        format=FORMAT, family=family, key=registry.key, file=file.name, sha256=file_digest(file), k=k,
        releases=(*(head.releases if head else ()), release),
    )  # fmt: skip
    path = registry.folder / f"{family}.{release}{NEXT}"
    write_atomically(path, lambda part: part.write_text(json_with_digest(made.model_dump(mode="json"))))
    return path


def _read(path: Path) -> Head | None:
    """Read an index header; None if it is invalid or of another format."""
    try:
        found = Head.model_validate(values_with_digest(path))
    except ValidationError:
        return None
    return found if found.format == FORMAT else None


def _head(registry: ReleaseRegistry, family: str, published: set[str]) -> Head | None:
    """Return the header of a family's index, after completing or undoing what a killed run left."""
    for path in sorted(registry.folder.glob(f"{family}.*{NEXT}")):
        if path.name[len(family) + 1 : -len(NEXT)] in published:
            _commit(path)
        else:
            _withdraw(path)
    return _read(registry.folder / f"{family}{HEAD}")


def _lost(registry: ReleaseRegistry, family: str, head: Head | None) -> bool:
    """Return whether a family's index existed and is now missing, damaged or keyed with another secret."""
    if head is None:
        return (registry.folder / f"{family}{HEAD}").exists()
    try:
        return head.family != family or head.key != registry.key or file_digest(registry.folder / head.file) != head.sha256
    except (OSError, StorageError):
        return True


def _commit(path: Path) -> None:
    """Replace a family's index header by a new one and remove the old index."""
    new = _read(path)
    if new is None:
        path.unlink(missing_ok=True)
        return
    head = path.with_name(f"{new.family}{HEAD}")
    old = _read(head)
    try:
        path.replace(head)
    except OSError as error:
        raise StorageError.not_writable(str(path.parent), error.strerror or "unknown reason") from None
    if old is not None and old.file != new.file and old.file.endswith(SETS):
        with suppress(OSError):
            (path.parent / Path(old.file).name).unlink()


def _withdraw(path: Path) -> None:
    """Remove a new index header and its index."""
    new = _read(path)
    with suppress(OSError):
        if new is not None and new.file.endswith(SETS):
            (path.parent / Path(new.file).name).unlink()
        path.unlink()
