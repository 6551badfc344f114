"""Pilot runs of a draft on a sample in memory, to choose quasi-identifiers and method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa

from core.clustering.merged_classes import RecordRecoding
from core.columns.coding import Coder
from core.columns.column_types import normalised
from core.columns.domains import Domain
from core.formats.proposals import Proposal
from core.hierarchies.hierarchy import build_hierarchy
from core.histograms.histogram import Histogram, count_cells
from core.recoding.release_order import record_hashes
from schemas.errors.base import SkaldError, SourceError, nearest
from schemas.errors.tables import FileError
from schemas.job.job import Job, load_job
from schemas.reading.regular_files import GivenJob
from tasks.counting.coding import CellCoder, Coding
from tasks.lattice.promises import check_promise
from tasks.planning.forecast import WRITE, Way, expected_gcp
from tasks.planning.open_sources import OpenSource
from tasks.planning.profiles import strictest_kinds
from tasks.records.coding import JobRecords
from tasks.records.recodings import recode_with_method
from tasks.store.database import quote

CASTS: dict[str, str] = {
    "integer": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
    # Moments with an offset are looked at in UTC, in which they are published.
    **dict.fromkeys(("timestamp", "timestamptz"), "TIMESTAMP"),
}  # fmt: skip


def column_values(front: OpenSource, column: str) -> Domain:
    """Return a column's domain, counted over all records of a source; raise if column or records lack.

    Args:
        column: Its name; in a CSV file it is of the type that ``skald init`` would give it.
    """
    names = [str(row[0]) for row in front.connection.execute("DESCRIBE everything").fetchall()]
    if column not in names:
        raise FileError.no_column(column, nearest(column, names))
    kind = strictest_kinds(front.connection, [column])[column] if front.texts else None
    domain = counted_values(front.connection, "everything", column, kind)
    if not domain.records:
        raise SourceError.empty(len(front.files))
    return domain


def typed_column_sql(column: str, kind: str | None) -> str:
    """Return SQL of a column, cast to the type of ``kind`` if it is given."""
    return f"CAST({quote(column)} AS {CASTS[kind]})" if kind in CASTS else quote(column)


def counted_values(connection: duckdb.DuckDBPyConnection, relation: str, column: str, kind: str | None) -> Domain:
    """Return a column's domain: distinct values in ascending order with counts, and nulls, of a relation.

    Args:
        kind: What its texts are read as; None to take them as they are.
    """
    counts = f"SELECT {typed_column_sql(column, kind)} AS value, count(*) AS n FROM {relation} GROUP BY 1 ORDER BY 1 NULLS LAST"
    table = connection.sql(counts).to_arrow_table()
    values, numbers = table["value"].combine_chunks(), table["n"].to_numpy().astype(np.int64)
    nulls = int(numbers[-1]) if values.null_count else 0
    found = values.drop_null()
    return Domain(column, found.cast(pa.string()) if pa.types.is_large_string(found.type) else found, numbers[: len(found)], nulls)


def normalised_domain(domain: Domain, steps: Sequence[str]) -> Domain:
    """Return a column's domain with texts normalised by some steps and their counts merged."""
    read = normalised(domain.values, steps)
    if not steps or read is domain.values:
        return domain
    sums = pa.table({"value": read, "n": domain.counts}).group_by("value").aggregate([("n", "sum")]).sort_by("value")
    values, counts = sums["value"].combine_chunks(), sums["n_sum"].to_numpy().astype(np.int64)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    return replace(domain, values=values.drop_null(), counts=counts[there], nulls=domain.nulls + int(counts[~there].sum()))


GOOD = 0.4
"""GCP up to which columns that are less well known are taken as quasi-identifiers."""
MOST_QIDS = 30
NEARLY = 1.02
"""How much more one level for each whole column may lose than another way, before that is proposed: a reader understands it at once."""
KMEMBER = "method: {name: kmember}"
TRIED: tuple[Way, ...] = ("least GCP", "mondrian, score: ncp")
MOST_CLUSTERED, MOST_LEVELS = 200_000, 12
"""Records up to which clustering is affordable, and quasi-identifiers up to which one level for each is looked for."""


class PilotRun(NamedTuple):
    """Accepted quasi-identifiers of a pilot run, its best method, and the GCP of each method.

    Attributes:
        accepted_proposals: Columns that are less well known and quasi-identifiers in it.
        method: The line of the job that asks for the way that lost least.
        gcp: What that lost on the sample; None where nothing could be tried.
        figures: What each way lost, by the line that asks for it.
    """

    accepted_proposals: tuple[Proposal, ...]
    method: str
    gcp: float | None
    figures: dict[str, float]


def best_draft(
    connection: duckdb.DuckDBPyConnection,
    certain: int,
    candidates: Sequence[Proposal],
    text: Callable[[Sequence[Proposal], str], str],
    sensitive_codes: Callable[[str], pa.Array],
    folder: Path,
) -> PilotRun:
    """Run pilots with ever fewer candidate quasi-identifiers; return the first of low, else least, loss.

    Args:
        connection: Has the table ``sample`` and the view ``source``.
        certain: How many quasi-identifiers there are without the candidates.
        candidates: Columns that may be quasi-identifiers, the best known first.
        text: Returns the job with some of them as quasi-identifiers, and a method.
        sensitive_codes: Returns, for a column of which l is asked, the number from 0 of each sampled record's published value.
        folder: To which the job's paths are relative.
    """
    taken = list(candidates[: max(MOST_QIDS - certain, 0)])
    tried, sample = list[PilotRun](), SampleColumns(connection)
    while taken or certain:
        figures = _lost(sample, text(taken, WRITE[TRIED[0]]), sensitive_codes, folder, certain + len(taken))
        tried.append(_chosen(tuple(taken), figures))
        if not taken or (figures and min(figures.values()) <= GOOD) or (len(taken) == 1 and not certain):
            break
        taken = taken[: len(taken) - max(len(taken) // 3, 1)]
    measured = [one for one in tried if one.gcp is not None]
    if not measured:
        return PilotRun(tuple(candidates[: max(MOST_QIDS - certain, 0)]), WRITE[TRIED[1]], None, {})
    good = [one for one in measured if one.gcp is not None and one.gcp <= GOOD]
    found = good[0] if good else min(measured, key=lambda one: one.gcp or 0.0)
    [(records,)] = connection.execute("SELECT count(*) FROM source").fetchall()
    if int(records) > MOST_CLUSTERED:
        return found
    clustered = _clustered(sample, text(found.accepted_proposals, KMEMBER), sensitive_codes, folder)
    return found if clustered is None else _chosen(found.accepted_proposals, {**found.figures, KMEMBER: clustered})


def _chosen(taken: tuple[Proposal, ...], figures: dict[str, float]) -> PilotRun:
    if not figures:
        return PilotRun(taken, WRITE[TRIED[1]], None, {})
    least = min(figures.values())
    method = next(way for way, lost in figures.items() if lost <= NEARLY * least)
    return PilotRun(taken, method, figures[method], figures)


class SampleColumns:
    """Columns of the sample as jobs read them, each read and counted once for all pilot runs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._read: dict[tuple[str, str | None, tuple[str, ...]], tuple[Domain, pa.Array]] = {}

    def read(self, column: str, kind: str | None, steps: Sequence[str]) -> tuple[Domain, pa.Array]:
        """Return a column's domain and its values, shape (records,).

        Args:
            kind: What its texts are read as; None to take them as they are.
            steps: How its texts are normalised.
        """
        key = column, kind, tuple(steps)
        if key not in self._read:
            domain = normalised_domain(counted_values(self._connection, "sample", column, kind), steps)
            # In the order of insertion, as DuckDB keeps it, so that columns read one by one stay together.
            values = self._connection.sql(f"SELECT {typed_column_sql(column, kind)} FROM sample").to_arrow_table()
            self._read[key] = domain, normalised(values.column(0).combine_chunks(), steps)
        return self._read[key]


@dataclass(frozen=True, eq=False)
class CodedPeople:
    """A sample of people as columns, with domains and hierarchies of a job over the sample.

    Attributes:
        coding: Domains and hierarchies over the sample.
        columns: The values of each QID, then of each sensitive column that a promise looks at, each of shape (people,).
    """

    job: Job
    coding: Coding
    columns: list[pa.Array]

    @property
    def people(self) -> int:
        """Return the number of people."""
        return len(self.columns[0])

    def histogram(self) -> Histogram:
        """Return the histogram of the sample's cells at the finest node."""
        coder = CellCoder.at(self.coding, self.coding.finest)
        words = coder.cells(self.columns)
        counts = np.ones(len(words[0]), np.int64)
        return Histogram(self.coding.finest, coder.packing, *count_cells(words, coder.packing.product, counts))

    def recode_records(self) -> RecordRecoding:
        """Return the recoding of the sample's records by the job's method."""
        domains = (*self.coding.domains, *self.coding.sensitive)
        codes = [Coder(domain).code(column) for domain, column in zip(domains, self.columns, strict=True)]
        records = JobRecords.of(self.coding, codes, record_hashes([], self.people), None, (self.people,))
        return recode_with_method(self.job, self.coding, records)[0]


def _sample(sample: SampleColumns, text: str, sensitive_codes: Callable[[str], pa.Array], folder: Path) -> CodedPeople:
    job = load_job(GivenJob(text, folder))
    qids = job.columns.quasi_identifiers
    # Where persons are named the sample has one record of each, so that records are persons.
    read = [sample.read(qid.name, job.source.types.get(qid.name), job.columns.normalised.get(qid.name, [])) for qid in qids]
    domains = tuple(replace(domain, persons=domain.counts) if job.columns.person else domain for domain, _ in read)
    hierarchies = tuple(build_hierarchy(qid, domain, job.folder) for qid, domain in zip(qids, domains, strict=True))
    published = {name: sensitive_codes(name) for name in job.privacy.columns}
    coding = Coding(domains, hierarchies, ("trial", uuid4().hex), tuple(_numbered(*one) for one in published.items()))
    # All of them as one class must keep what is asked.
    check_promise(job, coding)
    return CodedPeople(job, coding, [*(values for _, values in read), *published.values()])


def _numbered(name: str, numbers: pa.Array) -> Domain:
    """Return the domain of a column whose values are numbered from 0."""
    counts = np.bincount(np.asarray(numbers.drop_null())).astype(np.int64)
    return Domain(name, pa.array(np.arange(len(counts)), numbers.type), counts, numbers.null_count)


def _lost(sample: SampleColumns, text: str, sensitive_codes: Callable[[str], pa.Array], folder: Path, qids: int) -> dict[str, float]:
    """Return the GCP of each method on the sample; empty if the draft does not fit the values."""
    try:
        coded = _sample(sample, text, sensitive_codes, folder)
        cells = coded.histogram()
        ways = TRIED if qids <= MOST_LEVELS else TRIED[1:]
        return {WRITE[way]: expected_gcp(coded.job, coded.coding, way, cells) for way in ways}
    except (SkaldError, duckdb.Error):
        # A draft is a draft: its run will say in a sentence what is wrong with it.
        return {}


def _clustered(sample: SampleColumns, text: str, sensitive_codes: Callable[[str], pa.Array], folder: Path) -> float | None:
    """Return the GCP of k-member clustering on the sample; None if it cannot be tried."""
    try:
        return float(_sample(sample, text, sensitive_codes, folder).recode_records().loss["gcp"])
    except (SkaldError, duckdb.Error):
        return None
