"""Hierarchy files of a draft: existing files next to the data, and files made from the values.

Files that are made can be read by their owner alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from core.columns.domains import Domain
from core.formats.proposals import Proposal
from core.hierarchies.drafts import RANGES, draft_hierarchy
from core.hierarchies.table import read_table, table_levels
from schemas.errors.hierarchies import HierarchyError
from schemas.hierarchies.hierarchy import CsvHierarchy
from schemas.job.source import suffix
from tasks.planning.draft_text import yaml_name
from tasks.planning.listed_hierarchies import write_listed
from tasks.planning.open_sources import OpenSource
from tasks.planning.pilot_runs import counted_values
from tasks.store.files import private_folder

MOST_VALUES, MOST_BANDS = 5_000, 200
FOLDER = "hierarchies"
DELIMITERS = (";", ",", "\t", "|")


def with_drafted_hierarchies(front: OpenSource, proposals: Sequence[Proposal], out: Path) -> tuple[list[Proposal], list[Path]]:
    """Give quasi-identifiers hierarchies from files; return the proposals and the files written.

    Args:
        front: The source.
        proposals: For all columns.
        out: The job file; hierarchies are written into a folder next to it.
    """
    beside = list(_beside(front.files, out.parent))
    found, written = [], []
    for one in proposals:
        if one.role != "quasi_identifier" or one.hierarchy is None:
            found.append(one)
            continue
        used = _used(front, one, beside, out.parent)
        if used is None and _wants_groups(one):
            used, path = _made(front, one, out.parent)
            written += [path] if path else []
        found.append(used or one)
    return found, written


def _beside(files: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Yield the CSV files next to the data that are not data themselves, as possible hierarchies."""
    seen, data = set(), {file.resolve() for file in files}
    for place in dict.fromkeys(
        (*(file.parent.resolve() for file in files), *(file.parent.parent.resolve() for file in files), folder.resolve())
    ):
        for inside in (place, place / FOLDER):
            for path in sorted(inside.glob("*")) if inside.is_dir() else ():
                if suffix(path.name) == ".csv" and path.is_file() and path not in data and path not in seen:
                    seen.add(path)
                    yield path


def _names_it(path: Path, column: str) -> bool:
    """Return whether a file is named after a column: ``age.csv``, ``age-2.csv``, ``hierarchy_age.csv``."""
    mine, theirs = (re.sub(r"\W+|_+", "_", name.lower()) for name in (column, path.stem))
    before = theirs.removesuffix(f"_{mine}")
    return re.fullmatch(rf"{re.escape(mine)}(_[0-9]+)?", theirs) is not None or (before != theirs and "hierarch" in before)


def _used(front: OpenSource, one: Proposal, beside: Sequence[Path], folder: Path) -> Proposal | None:
    column = one.profile.name
    for path in (path for path in beside if _names_it(path, column)):
        domain = _domain(front, one)
        relative = os.path.relpath(path, folder.resolve())
        for delimiter in DELIMITERS:
            spec = CsvHierarchy(csv=Path(relative), delimiter=delimiter)
            try:
                table = read_table(column, spec, folder)
                if len(table.columns) > 1 and table_levels(column, domain, table):
                    return replace(one, hierarchy=_spec(relative, delimiter), hint="a file that was there")
            except HierarchyError:
                continue
    return None


def _wants_groups(one: Proposal) -> bool:
    """Return whether a text column has few enough values to draft groups of values for it.

    A prefix would only keep or withhold such texts; codes are grouped if they are few enough to be bands.
    """
    most = MOST_BANDS if _is_code(one) else MOST_VALUES
    return one.profile.kind == "text" and 2 < one.profile.distinct <= most


def _is_code(one: Proposal) -> bool:
    return "," in (one.hierarchy or "")


def _made(front: OpenSource, one: Proposal, folder: Path) -> tuple[Proposal | None, Path | None]:
    try:
        draft = draft_hierarchy(_domain(front, one))
    except HierarchyError:
        return None, None
    # What looks like a code has a ladder, which is the better one unless these are bands, such as 20-29.
    if len(draft.groups) < 3 or (_is_code(one) and draft.how != RANGES):
        return None, None
    place = folder / FOLDER
    if not place.is_dir():
        private_folder(place)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", one.profile.name).strip("-") or "column"
    # One that is there is somebody's, and does not fit these values.
    path = next(path for number in count(1) if not (path := place / f"{name}{f'-{number}' if number > 1 else ''}.csv").exists())
    write_listed(path, draft.rows)
    return replace(one, hierarchy=_spec(f"{FOLDER}/{path.name}", ";"), hint=f"{draft.how}; edit the file"), path


def _spec(path: str, delimiter: str) -> str:
    said = "" if delimiter == ";" else f", delimiter: {yaml_name(delimiter)}"
    return f"{{csv: {yaml_name(path)}{said}}}"


def _domain(front: OpenSource, one: Proposal) -> Domain:
    return counted_values(front.connection, "everything", one.profile.name, one.profile.kind if front.texts else None)
