"""Locations of a source: files of this machine, objects of a store, or a query of a database.

Folders of a file may name columns and their values (``region=North/part.parquet``), as Hive partitions do.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from schemas.errors.base import SourceError, counted, shown_path, verb_of
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.reading.typed_texts import is_spelling, sql_type
from tasks.engine.progress import notify
from tasks.source.listing import Stat, digest_while_stable, file_stat, is_hidden, matching_objects, table_format_here
from tasks.store.database import files_sql, literal, quote
from tasks.store.files import real_path, write_atomically
from tasks.store.keys import json_with_digest, values_with_digest
from tasks.store.place import target_of, work_of
from tasks.store.store import Artifact, Store

_FAMILIES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}
"""Schemes that lead to the same store as another one."""


def distinct_files(matched: Mapping[str, Set[str]]) -> list[str]:
    """Return names of matched files, sorted, each file once; raise if patterns match equal files.

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
    """Return a value that two names share if and only if they name the same file."""
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
    """A source file before its conversion to Parquet: name, local path, digest and stat.

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
    """A Parquet file of the source to read, with digests and the stat of the user's file.

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


def is_object(source_file: Located) -> bool:
    """Return whether a located file is an object of a store."""
    return source_file.path is None and source_file.stat is not None


def find_names(job: Job) -> list[str]:
    """Return the sorted names that the job's patterns match, none for a query; raise if there are none."""
    return list(_found(job))


def _found(job: Job) -> dict[str, Stat | None]:
    """Return the names that the job's patterns match, with the stats of objects."""
    found: dict[str, set[str]] = {}
    stats: dict[str, Stat] = {}
    aside = set[str]()
    for pattern, written in zip(job.source_pattern, job.source.path, strict=True):
        objects = matching_objects(pattern) if is_address(pattern) else {}
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
        skipped = f"{counted(len(aside), 'file')} of the source {verb_of(len(aside), 'are')} not read"
        notify(f"{skipped}, because a name or folder there begins with _ or a dot: such as '{shown_path(min(aside))}'.")
    if unexpected := sum(not _is_text(name) for name in found):
        raise ValuesError.file_names(unexpected)
    if own := _own(job, found):
        raise SourceError.own_files(len(own), own[0])
    return {name: stats.get(name) for name in distinct_files(found)}


def _own(job: Job, names: Iterable[str]) -> list[str]:
    """Return the names of files that the job's runs keep or publish, links followed."""
    work, target = work_of(job), target_of(job).folder
    targets = [target, real_path(target)] if target else []
    own = []
    for name in names:
        paths = [] if is_address(name) else [Path(name), real_path(Path(name))]
        if work.contains(name) or any(_is_released(path, folder) for path in paths for folder in targets):
            own.append(name)
    return own


def _is_text(name: str) -> bool:
    """Return whether a path can be written as text: systems allow any bytes in a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_released(path: Path, target: Path) -> bool:
    return path.is_relative_to(target) and Path(target, *path.relative_to(target).parts[:1], "manifest.json").is_file()


def _matching_here(pattern: str, written: str) -> set[Path]:
    """Return the files of this machine that a pattern matches."""
    _check_folders_listed(pattern)
    matched = {Path(name) for name in glob.glob(pattern, recursive=True)}  # noqa: PTH207 - the pattern is absolute
    files = {path for path in matched if path.is_file()}
    # As with a folder that cannot be listed: without what a link led to the source would be a part of itself.
    if dead := sorted(str(path) for path in matched - files if _leads_nowhere(path) and not is_hidden(str(path), pattern)):
        raise FileError.dead_link(dead[0], len(dead))
    if not files:
        if any(path.is_dir() for path in matched) and not glob.has_magic(written):
            raise FileError.path_is_folder(written, _most_common_ending(matched))
        raise SourceError.no_files(written)
    if table := table_format_here(map(str, files)):
        raise FileError.table_of_files(*table)
    return files


def _leads_nowhere(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


def _check_folders_listed(pattern: str) -> None:
    """Raise ``FileError`` if a folder in which a pattern looks for files cannot be listed."""
    # `glob` passes over one that is not ours to read, or whose mount is gone, and the source would be a part of itself.
    parts = Path(pattern).parts
    first = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for place in range(first, len(parts) + (parts[-1] == "**")):
        for folder in glob.iglob(str(Path(*parts[:place])), recursive=True):  # noqa: PTH207 - the pattern is absolute
            if Path(folder).name == "lost+found" or is_hidden(folder, pattern):
                continue
            try:
                os.scandir(folder).close()
            except (FileNotFoundError, NotADirectoryError):
                # Below ** a link to nothing may be of a file that nobody asks for.
                if _leads_nowhere(Path(folder)) and parts[place - 1] != "**":
                    raise FileError.dead_link(folder, 1) from None
            except OSError as error:
                raise FileError.not_listed(folder, error.strerror or "unknown reason") from None


def _most_common_ending(folders: Iterable[Path]) -> str:
    endings = Counter(path.suffix for folder in folders for path in folder.rglob("*") if path.is_file() and path.name[0] not in "_.")
    return endings.most_common(1)[0][0] if endings else ""


def find_files(job: Job) -> list[Path]:
    """Return the local files that the job's patterns match, sorted, each once; raise if nothing matches."""
    return sorted(Path(name) for name in find_names(job) if not is_address(name))


def locate_source_files(job: Job, store: Store) -> list[Located]:
    """Return a source's files: local ones with digests and stats, objects with stats, a query as one."""
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
    write_atomically(memo, lambda part: part.write_text(json_with_digest(digests)))
    return {name: digest for name, (digest, _) in digests.items()}


def _known_digests(memo: Path) -> dict[str, tuple[str, Stat]]:
    """Return the digests that were taken before; none if their file was altered."""
    try:
        return {name: (digest, tuple(stat)) for name, (digest, stat) in values_with_digest(memo).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


NULL = "__HIVE_DEFAULT_PARTITION__"
ARROW_TYPES = {
    "text": pa.string(), "integer": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip
# No leading zeros, because 007 would be published as 7; and no more digits than int64 surely holds.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")

Partition: TypeAlias = tuple[tuple[str, str | None, str], ...]
"""Name, value as text (None is null) and type, as in ``source.types``, of each column that the folders of a file name."""


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type of a type name of ``source.types``; ``decimal(p, s)`` is read from its text."""
    if name in ARROW_TYPES:
        return ARROW_TYPES[name]
    precision, scale = re.findall(r"\d+", name)
    return pa.decimal128(int(precision), int(scale))


def columns_of_folders(job: Job, files: Sequence[str]) -> list[Partition]:
    """Return each file's columns named by folders, none unless ``source.hive``; raise if they differ.

    Folders above the job's own name none: the same job would have other columns elsewhere. A column is of whole numbers where all its
    values are, without leading zeros, else text, unless ``source.types`` says otherwise.
    """
    if not job.source.hive:
        return [() for _ in files]
    folders = [file.removeprefix(f"{job.folder}/").split("/")[:-1] for file in files]
    found = list(map(columns_named_by_folders, folders))
    for file, columns, parts in zip(files, found, folders, strict=True):
        if len({name.lower() for name in columns}) < sum(len(columns_named_by_folders([part])) for part in parts):
            raise FileError.column_twice(file, "two of its folders", sorted(columns))
    for file, columns in zip(files, found, strict=True):
        if differing := sorted(columns.keys() ^ found[0].keys()):
            raise SourceError.schemas_differ(file, files[0], differing)
    types = {name: job.source.types.get(name) or _inferred([columns[name] for columns in found]) for name in found[0]}
    for name, dtype in types.items():
        wrong = sum(_scalar(columns[name], dtype) is None for columns in found)
        if wrong:
            raise SourceError.bad_rows(files[0], [f"{counted(wrong, 'folder')} whose '{name}' is not of the type that source.types gives"])
    return [tuple((name, value, types[name]) for name, value in columns.items()) for columns in found]


def columns_named_by_folders(folders: Sequence[str]) -> dict[str, str | None]:
    """Return by name the values, as text, of columns that folders ``name=value`` give; None is null."""
    columns: dict[str, str | None] = {}
    for folder in folders:
        name, mark, value = folder.partition("=")
        if name and mark:
            columns[unquote(name)] = None if value == NULL else unquote(value)
    return columns


def _inferred(values: Sequence[str | None]) -> str:
    there = [value for value in values if value is not None]
    return "integer" if there and all(_WHOLE.fullmatch(value) for value in there) else "text"


def _scalar(value: str | None, dtype: str) -> pa.Scalar | None:
    """Return a text as a scalar of a type, or None if it does not fit."""
    if value is not None and not is_spelling(value, dtype):
        return None
    try:
        return pa.array([value], pa.string()).cast(arrow_type(dtype))[0]
    except pa.ArrowException:
        return None


def check_folders_apart(file: str, schema: pa.Schema, partition: Partition) -> None:
    """Raise ``FileError`` if a file has a column that its folders name too, in whatever case."""
    own = {name.lower() for name in schema.names}
    if twice := [name for name, *_ in partition if name.lower() in own]:
        raise FileError.column_twice(file, "the file and a folder of it", twice)


def with_partition(schema: pa.Schema, partition: Partition) -> pa.Schema:
    """Return a file's schema with the columns of its folders appended."""
    for name, _, dtype in partition:
        schema = schema.append(pa.field(name, arrow_type(dtype)))
    return schema


def partition_column(partition: Partition, name: str, row_count: int) -> pa.Array | None:
    """Return a folder's value repeated as a column of ``row_count``; None if no folder names the column.

    Text is a dictionary, like the text of files.
    """
    for column, value, dtype in partition:
        if column == name:
            scalar = _scalar(value, dtype)
            assert scalar is not None
            repeated = pa.repeat(scalar, row_count)
            return repeated.dictionary_encode() if pt.is_string(scalar.type) else repeated
    return None


def relation_of_files(
    files: Sequence[tuple[str, Partition]],
    *,
    same_columns: bool = True,
    with_row_numbers: bool = False,
) -> str:
    """Return SQL of a relation of Parquet files, with the columns that their folders name.

    Args:
        files: Paths of Parquet files, each with its partition.
        same_columns: Whether they have the same columns; others are put together by the names of these.
        with_row_numbers: Whether the number of each row in its file is read too, as ``file_row_number``.
    """
    together: dict[Partition, list[str]] = {}
    for path, partition in files:
        together.setdefault(partition, []).append(path)
    parts = []
    for partition, paths in together.items():
        # DuckDB would take the folders for columns of types of its own choice, beside ours.
        asked = [
            "hive_partitioning = false",
            *["union_by_name = true"] * (not same_columns),
            *["file_row_number = true"] * with_row_numbers,
        ]
        read = f"read_parquet({files_sql(paths)}, {', '.join(asked)})"
        if len(together) == 1 and not partition:
            return read
        extra = "".join(
            f", {'NULL' if value is None else literal(value)}::{sql_type(dtype)} AS {quote(name)}" for name, value, dtype in partition
        )
        parts.append(f"SELECT *{extra} FROM {read}")
    return f"({' UNION ALL BY NAME '.join(parts)})"
