"""A sample of a job's source in memory: one record of each person, at most 20,000.

It is drawn from the first million records. A value is shown only if k people of the sample share it; then k people of the source do
too.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import normalised
from core.columns.domains import Domain
from core.evaluation.singled_out import Digests, code_digests
from core.formats.proposals import ColumnProfile
from schemas.errors.base import SourceError
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.reading.typed_texts import standard_sql
from tasks.planning.open_sources import read_like_a_run
from tasks.planning.profiles import most_first_records, planning_connection, profile_columns
from tasks.planning.samples import Sample, files_in_utf8, parquet_sample
from tasks.source.csv_files import csv_sql
from tasks.store.database import literal, quote

MOST_PEOPLE = 20_000
TYPES = {"text": "VARCHAR", "integer": "BIGINT", "double": "DOUBLE", "timestamptz": "TIMESTAMPTZ"}


@dataclass(frozen=True, eq=False)
class PeopleSample:
    """A table with one record each of sampled people, and column profiles.

    Attributes:
        table: One record of each; a column that no release can hold is text.
        profiles: The profile of each column in the sample.
        records: How many were looked at.
        is_complete: Whether these are all records of the source.
        unit: ``person`` where the job names one, else ``record``.
    """

    table: pa.Table
    profiles: tuple[ColumnProfile, ...]
    records: int
    is_complete: bool
    unit: str
    _domains: dict[tuple[str, tuple[str, ...]], Domain] = field(default_factory=dict, init=False, repr=False)

    @property
    def people(self) -> int:
        """Return the number of people in the sample."""
        return int(self.table.num_rows)

    @property
    def names(self) -> list[str]:
        """Return the names of all columns, in the order of the source."""
        return [one.name for one in self.profiles]

    def values(self, name: str, steps: Sequence[str] = ()) -> pa.Array:
        """Return a column of the sample, shape (people,), with its texts normalised.

        The steps are those of the job's ``normalise``.
        """
        return normalised(pa.concat_arrays([pa.nulls(0, self.table[name].type), *self.table[name].chunks]), steps)

    def domain(self, name: str, steps: Sequence[str] = ()) -> Domain:
        """Return the domain of a column: distinct values with numbers of people; cached."""
        key = name, tuple(steps)
        if key not in self._domains:
            self._domains[key] = self._counted(name, steps)
        return self._domains[key]

    def _counted(self, name: str, steps: Sequence[str]) -> Domain:
        counted = pc.value_counts(self.values(name, steps).drop_null())
        values, counts = counted.field("values"), counted.field("counts").to_numpy()
        order = pc.sort_indices(values)
        numbers = counts[order.to_numpy()].astype(np.int64)
        nulls = self.people - int(numbers.sum())
        # Each has one record here, so that records are people.
        return Domain(name, values.take(order), numbers, nulls, numbers if self.unit == "person" else None)

    def shared_values(self, name: str, least: int, most_values: int | None = None) -> list[tuple[str, int]]:
        """Return the values that at least ``least`` people share, as text with counts, most frequent first.

        These are the ``most_values`` most frequent ones; None for all.
        """
        domain = self.domain(name)
        kept = np.flatnonzero(domain.counts >= least)
        ordered = kept[np.argsort(-domain.counts[kept], kind="stable")][:most_values]
        texts = domain.values.take(pa.array(ordered)).to_pylist()
        return [(value_text(value), int(domain.counts[place])) for value, place in zip(texts, ordered.tolist(), strict=True)]

    def rare_values(self, name: str, least: int, steps: Sequence[str]) -> frozenset[str]:
        """Return the values that fewer than ``least`` people share, as text.

        No label that is shown may be one of them.
        """
        domain = self.domain(name, steps)
        few = np.flatnonzero(domain.counts < least)
        return frozenset(map(value_text, domain.values.take(pa.array(few)).to_pylist()))

    @cached_property
    def codes(self) -> dict[str, NDArray[np.int64]]:
        """Return by column an integer code per person, shape (people,), -1 for null; cached."""
        found = {}
        for name in self.names:
            coded = self.values(name).dictionary_encode()
            found[name] = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return found

    @cached_property
    def digests(self) -> dict[str, Digests]:
        """Return by column the additive digests of the people's codes, cached, shape (people,)."""
        return {name: code_digests(codes, place) for place, (name, codes) in enumerate(self.codes.items())}


def value_text(value: object) -> str:
    """Return a value as the studio shows it: floats with 12 digits, ``true`` and ``false``, else ``str``."""
    if isinstance(value, float):
        return f"{value:.12g}"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def people_sample_of(job: Job, source: Mapping[str, Any]) -> PeopleSample:
    """Draw a sample of a job's source with one record per person, the same each time; return it.

    Args:
        source: The job's ``source`` section.
    """
    where = " ".join(job.source.path) or "the database"
    try:
        with _opened(job, source) as (connection, relation):
            return _drawn(connection, relation, job)
    except duckdb.Error:
        # DuckDB's message would quote the value that it could not read.
        raise SourceError.unreadable(where, job.source.format) from None


def _drawn(connection: duckdb.DuckDBPyConnection, relation: str, job: Job) -> PeopleSample:
    named = [str(name) for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    if lacking := [f"'{name}'" for name in job.columns.person if name not in named]:
        raise SourceError.unknown_columns(lacking)
    most = most_first_records(len(named))
    connection.execute(f"CREATE TEMP VIEW first AS SELECT {_columns(named, job)} FROM {relation} LIMIT {most}")
    [(records,)] = connection.execute("SELECT count(*) FROM first").fetchall()
    if not records:
        raise SourceError.empty(1)
    each = f"DISTINCT ON ({', '.join(map(quote, job.columns.person))}) " if job.columns.person else ""
    # On one thread, because which records come first would else be a matter of chance.
    connection.execute("SET threads = 1")
    drawn = f"SELECT * FROM (SELECT {each}* FROM first) USING SAMPLE reservoir({MOST_PEOPLE} ROWS) REPEATABLE (1)"
    connection.execute(f"CREATE TEMP TABLE sample AS {drawn}")
    connection.execute("CREATE TEMP VIEW source AS FROM sample")
    profiles, _ = profile_columns(connection, all_are_texts=False)
    shown = ", ".join(quote(one.name) if one.kind != "other" else f"{quote(one.name)}::VARCHAR AS {quote(one.name)}" for one in profiles)
    table = connection.sql(f"SELECT {shown} FROM sample").to_arrow_table()
    return PeopleSample(_plain(table), profiles, int(records), records < most, "person" if job.columns.person else "record")


def _columns(names: Sequence[str], job: Job) -> str:
    """Return SQL that casts the columns to the job's types, with null for values that do not fit.

    A run reports how many do not fit.
    """
    if not FORMATS[job.source.format].sample or job.source.format != "csv":
        return "*"
    types = job.source.types
    return ", ".join(
        f"TRY_CAST({standard_sql(quote(name), types[name], job.source.spelling)} AS {TYPES.get(types[name], types[name].upper())}) "
        f"AS {quote(name)}"
        if name in types
        else quote(name)
        for name in names
    )


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with one text type and without dictionary encoding."""
    kinds = [one.value_type if pa.types.is_dictionary(one) else one for one in table.schema.types]
    kinds = [pa.string() if pa.types.is_large_string(one) or pa.types.is_string_view(one) else one for one in kinds]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


@contextmanager
def _opened(job: Job, source: Mapping[str, Any]) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    connection, ending = planning_connection(), ExitStack()
    try:
        if FORMATS[job.source.format].sample and not job.source.hive and not any("://" in one for one in job.source.path):
            yield connection, _in_place(job, ending).relation
        else:
            yield connection, read_like_a_run(connection, ending, source, job.name, job.folder).relation
    finally:
        connection.close()
        ending.close()


def _in_place(job: Job, ending: ExitStack) -> Sample:
    files = files_here(job)
    if not files:
        raise SourceError.no_files(" ".join(job.source.path))
    if job.source.format != "csv":
        return parquet_sample(None, files)  # type: ignore[arg-type]
    read = ending.enter_context(files_in_utf8(files, job.source.encoding))
    nulls = f"[{', '.join(map(literal, job.source.null_values or ['']))}]"
    said = f"delim = {literal(job.source.delimiter)}, nullstr = {nulls}, header = true, all_varchar = true, quote = '\"', escape = '\"'"
    return Sample(csv_sql(read, said), {}, texts=True)


def files_here(job: Job) -> list[Path]:
    """Return the sorted local files that the patterns of a job's source match."""
    # Patterns are absolute, which Path.glob does not take.
    patterns = [one for one in job.source_pattern if "://" not in one]
    found = {Path(one) for pattern in patterns for one in glob.glob(pattern, recursive=True)}  # noqa: PTH207
    return sorted(one for one in found if one.is_file())
