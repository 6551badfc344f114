"""The groups of a listed hierarchy for the studio's editor, with values named by line number.

Rare values thus need no name on the page. The file of a hierarchy holds values. It is the job's own and readable by its owner alone. A
file that is not in ``hierarchies`` next to the job is copied there first.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from core.columns.domains import Domain
from core.hierarchies.drafts import STAR, draft_hierarchy
from core.hierarchies.levels import checked_table, read_table, spellings, table_levels
from schemas.errors.base import StorageError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import Job
from schemas.registry.hierarchies import CsvHierarchy, HierarchySpec
from schemas.registry.hierarchy_kinds import hierarchy_kind
from tasks.planning.listed_hierarchies import DELIMITERS, FOLDER, free_path, write_listed
from tasks.studio.sample import PeopleSample

MOST_CHIPS, MOST_GROUPS = 60, 60


class Chip(NamedTuple):
    """A value that enough people share: its line number, its text, and its number of people."""

    line: int
    text: str
    people: int


class ValueGroup(NamedTuple):
    """A group of values on the first level above the values.

    Attributes:
        line: Number of a line that is in it, by which it is named.
        label: Its label; None where too few people share it.
        people: How many people have a value of it; None where these are too few.
        chips: Its values, as far as they are shown.
        rarer: How many values more it lists.
    """

    line: int
    label: str | None
    people: int | None
    chips: list[Chip]
    rarer: int


class ListedGroups(NamedTuple):
    """A listed hierarchy: its groups, the digest and path of its file, and the number of further groups."""

    groups: list[ValueGroup]
    digest: str
    path: str
    others: int


def rows_of_listed_hierarchy(job: Job, name: str, spec: HierarchySpec) -> list[tuple[str, ...]]:
    """Return the rows (value, then its labels) of a listed hierarchy; raise for other kinds."""
    read = hierarchy_kind(spec).table
    if read is None:
        raise HierarchyError("This hierarchy lists no values. Make a list of groups first.")
    table = read(name, spec, job.folder)
    return list(zip(*(level.to_pylist() for level in table.columns), strict=True))


def digest_of_rows(rows: Sequence[Sequence[str]]) -> str:
    """Return a digest of a hierarchy's rows, salted per process, by which a page notices changes."""
    return hashlib.sha256(repr(list(rows)).encode() + _SALT).hexdigest()[:32]


_SALT = os.urandom(16)
"""Of this process: a digest of values alone would confirm a guess."""


def listed_groups(job: Job, name: str, spec: HierarchySpec, sample: PeopleSample, least: int) -> ListedGroups:
    """Return the groups of a listed hierarchy, with values that at least ``least`` people share.

    Args:
        name: Of the column.
        sample: Of the source.
        least: People who must share a value or label for it to be shown.
    """
    rows = rows_of_listed_hierarchy(job, name, spec)
    steps = job.columns.normalised.get(name, [])
    people, hidden = _people_of(rows, sample.domain(name, steps)), sample.rare_values(name, least, steps)
    found: dict[str, list[int]] = {}
    for line, row in enumerate(rows):
        found.setdefault(row[1] if len(row) > 1 else STAR, []).append(line)
    groups = []
    for label, lines in found.items():
        total = sum(people[line] for line in lines)
        shared = sorted((line for line in lines if people[line] >= least), key=lambda line: -people[line])
        chips = [Chip(line, rows[line][0], people[line]) for line in shared[:MOST_CHIPS]]
        named = label if total >= least and label not in hidden else None
        groups.append(ValueGroup(lines[0], named, total if total >= least else None, chips, len(lines) - len(chips)))
    groups.sort(key=lambda one: -(one.people or 0))
    return ListedGroups(groups[:MOST_GROUPS], digest_of_rows(rows), str(getattr(spec, "csv", "")), max(len(groups) - MOST_GROUPS, 0))


def _people_of(rows: Sequence[Sequence[str]], domain: Domain) -> list[int]:
    """Return how many people of a sample have the value of each line."""
    counts: dict[str, int] = {}
    for texts in spellings(domain.values):
        counts |= dict(zip(texts.to_pylist(), domain.counts.tolist(), strict=True))
    return [counts.get(row[0], 0) for row in rows]


def with_moved_values(rows: Sequence[tuple[str, ...]], lines: Sequence[int], to: int | None, label: str) -> list[tuple[str, ...]]:
    """Return a hierarchy's rows with some values moved to another or new group; raise if unknown.

    Args:
        rows: All lines, each from the value to its coarsest label.
        lines: Numbers of the lines that move.
        to: A line of the group they move to; None for a new group.
    """
    if not lines or not all(0 <= line < len(rows) for line in (*lines, *([to] if to is not None else []))):
        raise HierarchyError("There is no such value or group in the list any more. Load the page again.")
    # A list without groups gets a level for them, on which every value still stands for itself.
    bare = len(rows[0]) < 2 or (len(rows[0]) == 2 and len({row[1] for row in rows}) == 1)
    deep = [(row[0], row[0], *row[1:]) for row in rows] if bare else list(rows)
    if to is None:
        if not label or any(row[1] == label for row in deep):
            raise HierarchyError("A new group needs a name that no other group has.")
        above = (label, *deep[lines[0]][2:])
    else:
        above = deep[to][1:]
    chosen = set(lines)
    return [(row[0], *above) if line in chosen else row for line, row in enumerate(deep)]


def lines_of_rare(rows: Sequence[Sequence[str]], group: int, shown: Sequence[int]) -> list[int]:
    """Return the line numbers of the values in a line's group that are not shown; empty for no line."""
    if not 0 <= group < len(rows):
        return []
    return [line for line, row in enumerate(rows) if row[1:2] == rows[group][1:2] and line not in set(shown)]


def write_groups(job: Job, name: str, spec: HierarchySpec, rows: Sequence[Sequence[str]]) -> dict[str, object] | None:
    """Check and write a listed hierarchy to the job's file; return its new job entry, None if the same.

    Args:
        name: Of the column.
        spec: The list as it is, in a file or in the job, from which it moves into a file.
        rows: All lines.
    """
    checked_table(name, "the list", rows)
    if isinstance(spec, CsvHierarchy):
        path = job.folder / spec.csv
        if path.parent == job.folder / FOLDER and not path.is_symlink():
            write_listed(path, rows, spec.delimiter)
            return None
    path = free_path(job.folder, name)
    write_listed(path, rows)
    nulls = getattr(spec, "nulls", None)
    return {"csv": f"{FOLDER}/{path.name}", **({} if nulls is None else {"nulls": nulls})}


def draft_groups(job: Job, name: str, domain: Domain) -> dict[str, object]:
    """Write drafted groups of a column to a new file; return its job entry; raise without values."""
    draft = draft_hierarchy(domain)
    if not draft.rows:
        raise HierarchyError("The column has no values to group.")
    path = free_path(job.folder, name)
    checked_table(name, f"the file '{path.name}'", draft.rows)
    write_listed(path, draft.rows)
    return {"csv": f"{FOLDER}/{path.name}"}


def import_groups(job: Job, name: str, path: str, sample: PeopleSample) -> dict[str, object]:
    """Return the job entry of an existing hierarchy file, delimiter detected; raise if it does not fit.

    Its delimiter is found by trying.
    """
    file = Path(path).expanduser()
    file = file if file.is_absolute() else job.folder / file
    if not file.is_file():
        raise StorageError("There is no file of that name. Give its path, absolute or relative to the job file.")
    relative = os.path.relpath(file, job.folder)
    first: HierarchyError | None = None
    for delimiter in DELIMITERS:
        spec = CsvHierarchy(csv=Path(relative), delimiter=delimiter)
        try:
            table = read_table(name, spec, job.folder)
            if len(table.columns) > 1:
                table_levels(name, sample.domain(name, job.columns.normalised.get(name, [])), table)
                return {"csv": str(spec.csv), **({} if delimiter == ";" else {"delimiter": delimiter})}
        except HierarchyError as error:
            first = first or error
    raise first or HierarchyError("The file lists values without groups. Each line is a value and its groups, the finest first.")
