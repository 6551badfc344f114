"""Hierarchy files with values: drafted from a source, or completed with a source's missing values.

They can be read by their owner alone, because they hold values.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from core.columns.domains import Domain
from core.hierarchies.drafts import Draft, UnlistedRows, draft_hierarchy, rows_for_unlisted_values
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.hierarchies.levels import spellings
from core.hierarchies.table import checked_table, read_table
from schemas.errors.base import StorageError, nearest
from schemas.errors.hierarchies import HierarchyError
from schemas.hierarchies.hierarchy import CsvHierarchy
from schemas.hierarchies.kinds import entry_of
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from tasks.counting.domains import axis_names
from tasks.counting.source_domains import count_domains, merge_domains
from tasks.planning.open_sources import SourceOptions, open_for_draft
from tasks.planning.pilot_runs import column_values
from tasks.pseudonyms.pseudonyms import with_keys
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tasks.store.files import write_atomically
from tasks.store.tables import load_domains

DELIMITER = ";"


class DraftedHierarchy(NamedTuple):
    """A drafted hierarchy and the number of records it was drafted from."""

    draft: Draft
    records: int


class CompletedHierarchy(NamedTuple):
    """A completed hierarchy file and its new rows.

    ``values`` counts all values of the column, ``records`` the records whose value was missing in the file.
    """

    path: Path
    placed: UnlistedRows
    values: int
    records: int


def draft_file(given: SourceOptions, column: str, out: Path) -> DraftedHierarchy:
    """Write a first hierarchy file for a column, readable by its owner alone.

    Args:
        given: The source.
        column: Its name.
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


def write_listed(out: Path, rows: Sequence[Sequence[str]], delimiter: str = DELIMITER) -> None:
    """Write the rows of a hierarchy to a CSV file, readable by its owner alone."""
    text = _lines(rows, delimiter, "\n")
    write_atomically(out, lambda part: part.write_text(text, "utf-8", newline=""))


def complete_file(job: Job, column: str) -> CompletedHierarchy:
    """Add the source's values that a job's hierarchy file lacks to the file.

    The file becomes readable by its owner alone.

    Args:
        job: The job; its source is counted, and the counts stay for its run.
        column: A quasi-identifier with a CSV hierarchy.
    """
    qid = _qid(job, column)
    spec = qid.hierarchy
    if not isinstance(spec, CsvHierarchy):
        raise HierarchyError.no_file(column, entry_of(spec).name)
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
        before = spec.content(job.folder).decode("utf-8")
        end = "\r\n" if "\r\n" in before else "\n"
        text = before + ("" if before.endswith(("\n", "\r")) else end) + _lines(found.rows, spec.delimiter, end)
        write_atomically(path, lambda part: part.write_text(text, "utf-8", newline=""))
    return CompletedHierarchy(path, found, len(domain.values), records)


def levels_of_values(job: Job, column: str) -> tuple[Domain, Hierarchy]:
    """Return a quasi-identifier's domain in the source, and its hierarchy."""
    qid = _qid(job, column)
    domain = domain_of(job, column)
    return domain, build_hierarchy(qid, domain, job.folder)


def domain_of(job: Job, column: str) -> Domain:
    """Count the domains of a job's source, as its run would; return that of one column.

    The counts are kept for the run.
    """
    with open_run(job) as run:
        source = with_keys(job, read_source(run))
        merged = merge_domains(run, source, count_domains(run, source))
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
