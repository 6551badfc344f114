"""Hierarchy files with values: drafted from a source or for a job, or completed with missing values.

They can be read by their owner alone, because they hold values.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from core.columns.column_types import normalised
from core.columns.domains import Domain
from core.formats.proposals import Proposal
from core.hierarchies.drafts import RANGES, Draft, UnlistedRows, draft_hierarchy, rows_for_unlisted_values
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.hierarchies.levels import checked_table, read_table, spellings, table_levels
from schemas.errors.base import StorageError, nearest
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.job.source import suffix
from schemas.registry.hierarchies import CsvHierarchy
from schemas.registry.hierarchy_kinds import hierarchy_kind
from tasks.counting.chunk_counts import axis_names
from tasks.counting.source_domains import count_domains
from tasks.planning.draft_text import yaml_name
from tasks.planning.open_sources import OpenSource, SourceOptions, open_for_draft
from tasks.planning.pilot_runs import column_values, counted_values, normalised_domain
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tasks.store.files import private_folder, write_atomically
from tasks.store.tables import load_domains
from tasks.writing.pseudonyms import with_key_fingerprints


class DraftedHierarchy(NamedTuple):
    """A drafted hierarchy and the number of source records it was drafted from."""

    draft: Draft
    records: int


class CompletedHierarchy(NamedTuple):
    """A completed hierarchy file: path, new rows, and numbers of values and of unlisted records.

    ``values`` counts all values of the column, ``records`` the records whose value was missing in the file.
    """

    path: Path
    placed: UnlistedRows
    values: int
    records: int


def draft_file(given: SourceOptions, column: str, out: Path) -> DraftedHierarchy:
    """Write a drafted hierarchy as a CSV file for a source's column; return it; raise if the file exists.

    Args:
        out: The file; one that exists stays as it is.
    """
    if out.exists():
        raise StorageError(f"'{out}' exists and stays as it is. Name another file with --out, or move it away.")
    with open_for_draft(given, out) as front:
        domain = column_values(front, column)
    draft = draft_hierarchy(domain)
    if draft.rows:
        checked_table(column, f"'{out}'", draft.rows)
    write_listed(out, draft.rows)
    return DraftedHierarchy(draft, domain.records)


def write_listed(out: Path, rows: Sequence[Sequence[str]], delimiter: str = ";") -> None:
    """Write the rows of a hierarchy to a private CSV file, replacing an existing one."""
    text = _lines(rows, delimiter, "\n")
    write_atomically(out, lambda part: part.write_text(text, "utf-8", newline=""))


def complete_file(job: Job, column: str) -> CompletedHierarchy:
    """Append the source's unlisted values to a job's hierarchy file; return the file and its new rows.

    The file becomes readable by its owner alone.

    Args:
        job: The job; its source is counted, and the counts stay for its run.
        column: A quasi-identifier with a CSV hierarchy, or a sensitive column whose t has one.
    """
    closeness = job.privacy.t.get(column)
    spec = closeness.hierarchy if closeness and closeness.hierarchy else _qid(job, column).hierarchy
    if not isinstance(spec, CsvHierarchy):
        raise HierarchyError.no_file(column, hierarchy_kind(spec).name)
    table = read_table(column, spec, job.folder)
    domain = domain_of(job, column)
    missing, records = _missing(domain, table.columns[0])
    if missing and len(table.columns) == 1:
        reason = "has one column as the job reads it, values without groups; check the delimiter that the job gives. Nothing was changed"
        raise HierarchyError.unreadable(column, str(spec.csv), reason)
    rows = list(zip(*(level.to_pylist() for level in table.columns), strict=True))
    found = rows_for_unlisted_values(missing, rows)
    path = job.folder / spec.csv
    if missing:
        checked_table(column, f"'{spec.csv}'", [*rows, *found.rows])
        before = spec.file_content(job.folder).decode("utf-8")
        end = "\r\n" if "\r\n" in before else "\n"
        text = before + ("" if before.endswith(("\n", "\r")) else end) + _lines(found.rows, spec.delimiter, end)
        write_atomically(path, lambda part: part.write_text(text, "utf-8", newline=""))
    return CompletedHierarchy(path, found, len(domain.values), records)


def levels_of_values(job: Job, column: str) -> tuple[Domain, Hierarchy]:
    """Return a QID's domain, counted from the source, and its hierarchy; raise if it is no QID."""
    qid = _qid(job, column)
    domain = domain_of(job, column)
    return domain, build_hierarchy(qid, domain, job.folder)


def domain_of(job: Job, column: str) -> Domain:
    """Return a column's domain, counting a job's source as its run would, which reuses the counts."""
    with open_run(job) as run:
        source = with_key_fingerprints(job, read_source(run))
        merged = count_domains(run, source)
        names = axis_names(job)
        return load_domains(run.store, merged, names)[names.index(column)]


def _qid(job: Job, column: str) -> QuasiIdentifier:
    known = {qid.name: qid for qid in job.columns.quasi_identifiers}
    if column not in known:
        raise HierarchyError.no_qid(column, nearest(column, known))
    return known[column]


def _missing(domain: Domain, listed: pa.Array) -> tuple[list[str], int]:
    """Return the values, as text, that a hierarchy does not list in any spelling, and their records."""
    texts = spellings(domain.values)
    if not texts:
        raise HierarchyError.unlisted_type(domain.qid, str(domain.values.type))
    lacking = pc.and_(*(pc.invert(pc.is_in(text.cast(pa.large_string()), listed)) for text in (texts * 2)[:2]))
    return texts[0].filter(lacking).to_pylist(), int(domain.counts[lacking.to_numpy(zero_copy_only=False)].sum())


def _lines(rows: Sequence[Sequence[str]], delimiter: str, end: str) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    return text.getvalue()


MOST_VALUES, MOST_BANDS = 5_000, 200
FOLDER = "hierarchies"
DELIMITERS = (";", ",", "\t", "|")


def with_drafted_hierarchies(front: OpenSource, proposals: Sequence[Proposal], out: Path) -> tuple[list[Proposal], list[Path]]:
    """Give quasi-identifiers existing or drafted CSV hierarchies; return proposals and files written.

    Args:
        out: The job file; hierarchies are written into a folder next to it.
    """
    beside = list(_beside(front.files, out.parent))
    found, written = [], []
    for one in proposals:
        if one.role != "quasi_identifier" or one.hierarchy is None:
            found.append(one)
            continue
        read = _with_spellings(front, one)
        used = _used(front, one, beside, out.parent) or (_used(front, read, beside, out.parent) if read.normalise else None)
        if used is None and _wants_groups(one):
            used, path = _made(front, read, out.parent)
            written += [path] if path else []
        found.append(used or read)
    return found, written


def _with_spellings(front: OpenSource, one: Proposal) -> Proposal:
    """Have texts normalised of which some equal others but for case or blanks."""
    if one.profile.kind != "text" or one.profile.distinct > MOST_VALUES:
        return one
    values = _domain(front, one).values
    several = {steps: len(values) - len(pc.unique(normalised(values, steps))) for steps in (("case",), ("space",), ("case", "space"))}
    most = max(several.values())
    return replace(one, normalise=next(steps for steps, same in several.items() if same == most)) if most else one


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
    # One that is there is somebody's, and does not fit these values.
    path = free_path(folder, one.profile.name)
    write_listed(path, draft.rows)
    return replace(one, hierarchy=_spec(f"{FOLDER}/{path.name}", ";"), hint=f"{draft.how}; edit the file"), path


def free_path(folder: Path, name: str) -> Path:
    """Return an unused CSV path in the job's ``hierarchies`` folder, which is created if missing."""
    place = folder / FOLDER
    if not place.is_dir():
        private_folder(place)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "column"
    return next(path for number in count(1) if not (path := place / f"{stem}{f'-{number}' if number > 1 else ''}.csv").exists())


def _spec(path: str, delimiter: str) -> str:
    said = "" if delimiter == ";" else f", delimiter: {yaml_name(delimiter)}"
    return f"{{csv: {yaml_name(path)}{said}}}"


def _domain(front: OpenSource, one: Proposal) -> Domain:
    counted = counted_values(front.connection, "everything", one.profile.name, one.profile.kind if front.texts else None)
    return normalised_domain(counted, one.normalise)
