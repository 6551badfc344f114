"""A release and its source as DuckDB reads both, and the columns that stand in both as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from core.recount.truth import Part
from schemas.errors.base import listed
from schemas.job.job import Job
from schemas.release.manifest import MASK, published_qids
from tasks.recount.original import Original
from tasks.store.database import quote


@dataclass(frozen=True)
class Sides:
    """What is held against what.

    Attributes:
        connection: The database.
        release: What it reads the data files as.
        unmasked: The same without the records that publish ``*`` in every quasi-identifier; ``release`` where none is so or all are.
        original: The source.
        types: DuckDB's types of the source's columns.
        published: Those of the release's columns.
        names: The columns that are published as they are.
    """

    connection: duckdb.DuckDBPyConnection
    release: str
    unmasked: str
    original: Original
    types: dict[str, str]
    published: dict[str, str]
    names: Sequence[str]

    @property
    def source(self) -> str:
        """What the source is read as."""
        return self.original.relation

    @property
    def beside(self) -> list[Part]:
        """What is published as it is, in both."""
        return [self._column(name) for name in self.names]

    def _column(self, name: str) -> Part:
        column = quote(name)
        # A value that does not fit becomes null and is missed in the counts; CAST would end the recount, with the value in its message.
        source = f"s.{column}" if self.types[name] == self.published[name] else f"TRY_CAST(s.{column} AS {self.published[name]})"
        return Part(f"r.{column}", source)

    def lacking(self, job: Job) -> list[str]:
        """Returns which columns of the release the source does not have."""
        wanted = [*(qid.name for qid in job.columns.quasi_identifiers), *self.names]
        absent = [name for name in wanted if name not in self.types]
        return [f"the source has no {listed(absent)}"] if absent else []


def sides_of(job: Job, connection: duckdb.DuckDBPyConnection, release: str, original: Original) -> Sides:
    """Looks at the columns of both, and for masked records."""
    types, published = (_types(connection, relation) for relation in (original.relation, release))
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    names = [name for name in published if name not in others]
    return Sides(connection, release, _unmasked(job, connection, release), original, types, published, names)


def _types(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _unmasked(job: Job, connection: duckdb.DuckDBPyConnection, release: str) -> str:
    """Returns the records that are not masked; all of them where all look so, because that is what their levels publish."""
    if not job.suppression.masks:
        return release
    starred = " AND ".join(f"r.{quote(name)}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for name in published_qids(job))
    [(masked, records)] = connection.execute(f"SELECT count(*) FILTER ({starred}), count(*) FROM {release} AS r").fetchall()
    return f"(SELECT * FROM {release} AS r WHERE NOT ({starred}))" if 0 < masked < records else release
