"""Readers of a source's first records, by format, for drafting a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tasks.store.database import literal


@dataclass(frozen=True)
class Sample:
    """A source's files as DuckDB reads them, and the keys of ``source`` that describe them.

    Attributes:
        relation: What DuckDB reads them as.
        keys: What ``source`` says of them besides their path.
        texts: Whether every column is read as text, so that the job gives the types.
    """

    relation: str
    keys: Mapping[str, str] = field(default_factory=dict)
    texts: bool = False


def parquet_sample(_connection: duckdb.DuckDBPyConnection, files: Sequence[Path], *, hive: bool = False) -> Sample:
    """Return the sample of Parquet files; with ``hive``, also the columns their folders name."""
    return Sample(f"read_parquet([{_listed(files)}], hive_partitioning = {str(hive).lower()})")


def csv_sample(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> Sample:
    """Return the sample of CSV files, with the delimiter detected in the first file."""
    found = connection.execute(f"SELECT Delimiter FROM sniff_csv({literal(str(files[0]))})").fetchone()
    delimiter = str(found[0]) if found else ","
    # All as text: a type guessed from the front may not fit what follows, and as a number a code loses its leading zeros.
    relation = f"read_csv([{_listed(files)}], delim = {literal(delimiter)}, header = true, all_varchar = true, quote = '\"', escape = '\"')"
    return Sample(relation, {"format": "csv", "delimiter": delimiter}, texts=True)


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(literal(str(path)) for path in files)
