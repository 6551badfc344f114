"""Where the source is: files of this machine, each with a digest of its content; objects of a store, which are listed; or a query."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from schemas.errors.base import SourceError, counted
from schemas.errors.shown import shown_path
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.source import is_address
from tasks.engine.progress import notify
from tasks.source.object_store import Stat, is_hidden, matching, table_format_here
from tasks.source.stable_files import digest_while_stable, file_stat
from tasks.store.files import real_path, write_atomically
from tasks.store.secret import seal, unsealed
from tasks.store.store import Artifact, Store
from tasks.store.work_folder import is_of_work

_FAMILIES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}
"""Schemes that lead to the same store as another one."""


def each_once(matched: Mapping[str, Set[str]]) -> list[str]:
    """Return the names of the files that patterns matched, one for each file, in their order.

    A file that overlapping patterns or other spellings of the same path (``a/../b`` for ``b``) reach is taken once, by its shortest name.

    Args:
        matched: By path or address, the patterns that it matches, as the job has them.
    """
    files: dict[tuple[str | int, ...], dict[str, list[str]]] = {}
    for name in sorted(matched, key=lambda name: (len(name), name)):
        files.setdefault(_identity(name), {}).setdefault(_spelled_out(name), []).append(name)
    if twice := [list(spellings.values()) for spellings in files.values() if len(spellings) > 1]:
        patterns = {pattern for names in twice for one in names for name in one for pattern in matched[name]}
        raise SourceError.same_files(sorted(patterns), len(twice), twice[0][0][0], twice[0][1][0])
    return sorted(names[0] for spellings in files.values() for names in spellings.values())


def _identity(name: str) -> tuple[str | int, ...]:
    """Return what two names have in common if and only if they are names of one file."""
    if is_address(name):
        return (_spelled_out(name),)
    try:
        stat = Path(name).stat()
    except OSError:
        return (name,)
    # Some file systems of networks number their files anew or not at all; size and time tell those apart.
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat.st_ino else (str(Path(name).resolve()),)


def _spelled_out(name: str) -> str:
    if not is_address(name):
        return os.path.normpath(name)
    scheme, path = name.split("://", 1)
    return f"{_FAMILIES.get(scheme.lower(), scheme.lower())}://{path}"


class Located(NamedTuple):
    """One file of the source, before it is Parquet.

    Attributes:
        name: Path or address as the user knows it; what the query is called where there is no file.
        path: Where its bytes are on this machine; None for an object of a store, and for a query of a server.
        digest: BLAKE3 of them, in hex; empty for an object, which nobody has read yet, and for a query.
        stat: What changes when the file does; None for a query.
    """

    name: str
    path: Path | None
    digest: str
    stat: Stat | None


class Readable(NamedTuple):
    """A Parquet file to read, and what tells its content apart.

    Attributes:
        path: The file; None where it is an object of a store, which is read there.
        digest: Of its rows in their order; what is counted of them is kept under it.
        stat: What changes when the user's file does; None for rows of a database, which are kept as they were.
        content: Of its rows in any order, where they come in none.
        converted: Of the Parquet file, where the user's was converted: what it became depends on the job, and on how it was done.
        converted_file: The artefact that the Parquet file is, where it is one; what is looked for when the store has it no more.
    """

    path: Path | None
    digest: str
    stat: Stat | None
    content: str | None = None
    converted: str | None = None
    converted_file: Artifact | None = None


def is_object(one: Located) -> bool:
    """Return whether something is in a store, and not on this machine or in a database."""
    return one.path is None and one.stat is not None


def find_names(job: Job) -> list[str]:
    """Return the paths and addresses that the job's patterns match, each once, in the order of their names; none for a query."""
    return list(_found(job))


def _found(job: Job) -> dict[str, Stat | None]:
    """Return the same names with what a store's listing says of its objects, which none of them has to be asked for again."""
    found: dict[str, set[str]] = {}
    stats: dict[str, Stat] = {}
    aside = set[str]()
    for pattern, written in zip(job.source_pattern, job.source.path, strict=True):
        objects = matching(pattern) if is_address(pattern) else {}
        matched = list(objects) if is_address(pattern) else [str(path) for path in _matching_here(pattern, written)]
        hidden = {name for name in matched if is_hidden(name, pattern)}
        if len(hidden) == len(matched):
            raise FileError.hidden_alone(written, len(hidden))
        aside |= hidden
        stats |= objects
        for name in matched:
            if name not in hidden:
                found.setdefault(name, set()).add(written)
    if aside := aside - found.keys():
        skipped = f"{counted(len(aside), 'file')} of the source {'is' if len(aside) == 1 else 'are'} not read"
        notify(f"{skipped}, as programs begin with _ or a dot the names of what is no data (yet): such as '{shown_path(min(aside))}'.")
    if unexpected := sum(not _is_text(name) for name in found):
        raise ValuesError.file_names(unexpected)
    if own := _own(job, found):
        raise SourceError.own_files(len(own), own[0])
    return {name: stats.get(name) for name in each_once(found)}


def _own(job: Job, names: Iterable[str]) -> list[str]:
    """Return those names that are of what the job's runs keep or publish; of folders it is told where they really are."""
    # What is in a bucket has no folder here but one that a run makes for itself.
    works = [] if job.work_address else [job.work_path, real_path(job.work_path)]
    targets = [] if job.target_address else [job.target_path, real_path(job.target_path)]
    own = []
    for name in names:
        paths = [] if is_address(name) else [Path(name), real_path(Path(name))]
        kept = is_of_work(job, name) or any(path.is_relative_to(work) for path in paths for work in works)
        if kept or any(_is_released(path, target) for path in paths for target in targets):
            own.append(name)
    return own


def _is_text(name: str) -> bool:
    """Return whether a path can be written down: systems take any bytes for a name, and what tells of it takes text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_released(path: Path, target: Path) -> bool:
    return path.is_relative_to(target) and Path(target, *path.relative_to(target).parts[:1], "manifest.json").is_file()


def _matching_here(pattern: str, written: str) -> set[Path]:
    """Return the files of this machine that a pattern matches."""
    matched = {Path(name) for name in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - the pattern is absolute
    files = {path for path in matched if path.is_file()}
    if not files:
        if any(path.is_dir() for path in matched) and not glob.has_magic(written):
            raise FileError.folder(written, _most_common_ending(matched))
        raise SourceError.no_files(written)
    if table := table_format_here(map(str, files)):
        raise FileError.table_of_files(*table)
    return files


def _most_common_ending(folders: Iterable[Path]) -> str:
    endings = Counter(path.suffix for folder in folders for path in folder.rglob("*") if path.is_file() and path.name[0] not in "_.")
    return endings.most_common(1)[0][0] if endings else ""


def find_files(job: Job) -> list[Path]:
    """Return the files of this machine that the job's patterns match, each once, in the order of their names."""
    return sorted(Path(name) for name in find_names(job) if not is_address(name))


def located(job: Job, store: Store) -> list[Located]:
    """Return the files of this machine with their digests, and the objects of stores as they are listed."""
    if FORMATS[job.source.format].pathless:
        return [Located("source.query", None, "", None)]
    found, here = _found(job), list[tuple[str, Path, Stat]]()
    for name, listed in found.items():
        if listed is None:
            try:
                here.append((name, Path(name), file_stat(Path(name))))
            except OSError:
                raise SourceError.unreadable(name, job.source.format) from None
    read, stats = _digests(job, here, store), {name: stat for name, _, stat in here}
    return [
        Located(name, None, "", listed) if listed is not None else Located(name, Path(name), read[name], stats[name])
        for name, listed in found.items()
    ]


def _digests(job: Job, files: Sequence[tuple[str, Path, Stat]], store: Store) -> dict[str, str]:
    # Reading a large source only to digest it is dear, so a file whose size, times and inode are known is not read again.
    memo = store.folder / "digests.json"
    known = _known_digests(memo)
    digests: dict[str, tuple[str, Stat]] = {}
    for name, path, stat in files:
        try:
            seen = known.get(name)
            digests[name] = (seen[0] if seen and seen[1] == stat else digest_while_stable(path, name, stat), stat)
        except OSError:
            raise SourceError.unreadable(name, job.source.format) from None
    write_atomically(memo, lambda part: part.write_text(seal(digests)))
    return {name: digest for name, (digest, _) in digests.items()}


def _known_digests(memo: Path) -> dict[str, tuple[str, Stat]]:
    """Return the digests that were taken before; none if a single character of them was changed since."""
    try:
        return {name: (digest, tuple(stat)) for name, (digest, stat) in unsealed(memo).items()}
    except (ValueError, TypeError, AttributeError):
        return {}
