"""A release and its source as DuckDB reads both, and the columns that stand in both as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from core.recount.groups import RECORDS, Groups
from core.recount.truth import DigestPart
from schemas.errors.base import listed
from schemas.job.job import Job
from schemas.release.manifest import MASK, published_qids
from tasks.recount.original import Original
from tasks.recount.rows import ReleaseRows
from tasks.store.database import quote


@dataclass(frozen=True)
class ReleaseAndSource:
    """What is held against what.

    Attributes:
        rows: Of the release and of the source.
        unmasked: What the release is read as without the records that publish ``*`` in every quasi-identifier; ``release`` where none is so
            or all are.
        original: The source.
        types: DuckDB's types of the source's columns.
        published: Those of the release's columns.
        names: The columns that are published as they are.
    """

    rows: ReleaseRows
    unmasked: str
    original: Original
    types: dict[str, str]
    published: dict[str, str]
    names: Sequence[str]

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The database of what was counted."""
        return self.rows.connection

    @property
    def release(self) -> str:
        """What the release is read as."""
        return self.rows.release

    @property
    def source(self) -> str:
        """What the source is read as."""
        return self.rows.source

    @property
    def untreated_parts(self) -> list[DigestPart]:
        """What is published as it is, in both."""
        return [self._column(name) for name in self.names]

    def _column(self, name: str) -> DigestPart:
        column = quote(name)
        # A value that does not fit becomes null and is missed in the counts; CAST would end the recount, with the value in its message.
        source = f"s.{column}" if self.types[name] == self.published[name] else f"TRY_CAST(s.{column} AS {self.published[name]})"
        return DigestPart(f"r.{column}", source)

    def lacking(self, job: Job) -> list[str]:
        """Returns which columns of the release the source does not have."""
        wanted = [*(qid.name for qid in job.columns.quasi_identifiers), *self.names]
        absent = [name for name in wanted if name not in self.types]
        return [f"the source has no {listed(absent)}"] if absent else []


def release_and_source(job: Job, rows: ReleaseRows, original: Original) -> ReleaseAndSource:
    """Looks at the columns of both, and for masked records.

    Raises:
        duckdb.Error: the files or the source cannot be read.
    """
    types, published = rows.types("source"), rows.types("release")
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    names = [name for name in published if name not in others]
    return ReleaseAndSource(rows, _unmasked(job, rows), original, types, published, names)


def _unmasked(job: Job, rows: ReleaseRows) -> str:
    """Returns the records that are not masked; all of them where all look so, because that is what their levels publish."""
    release = rows.release
    if not job.suppression.masks:
        return release
    starred = " AND ".join(f"r.{quote(name)}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for name in published_qids(job))
    counts = Groups(f"{release} AS r", counts=((f"count(*) FILTER ({starred})", "masked"), *RECORDS))
    [(masked, records)] = rows.connection.execute(f"FROM {rows.grouped('release', counts)}").fetchall()
    return f"(SELECT * FROM {release} AS r WHERE NOT ({starred}))" if 0 < masked < records else release
