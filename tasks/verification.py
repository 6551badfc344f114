"""Recounts written files with DuckDB and refuses what does not keep the job's promise."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import isfinite
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from core.domains import Domain
from core.hidden_values import telling, telling_bounds
from core.hierarchy import build_hierarchy
from core.pseudonym_recount import forms_sql, is_compared, pseudonym_faults, shared_sql
from core.recoding import published_columns
from core.risk import release_risk
from core.verification import Recount, closeness_sql, column_faults, diversity_sql, manifest_faults, promise_faults, recount_sql
from schemas.columns import QuasiIdentifier
from schemas.errors import SourceError, StorageError, VerificationError, counted
from schemas.hierarchy import WidthsHierarchy
from schemas.job import Job
from schemas.privacy import ClosenessSpec
from schemas.release import Manifest, published_payload, published_qids
from schemas.tables import release_schema
from tasks.artifacts import file_digest
from tasks.database import connect, literal, quote
from tasks.sources import find_files
from tasks.tables import checked


def recount(job: Job, files: Sequence[Path], spill: Path, what: str, reference: Sequence[Path] = ()) -> Recount:
    """Counts the classes of the data files and checks columns, classes and the spread of sensitive values against the job.

    Args:
        job: All that is known.
        files: The written Parquet files.
        spill: Folder for DuckDB's spill files.
        what: How the release is called in a message.
        reference: Parquet files of the source, from whose distribution t-closeness is measured; the data files themselves without any.
            Pseudonyms are compared with the identifiers in them.

    Raises:
        VerificationError: the files do not keep the job's promise, or cannot be read.
    """
    faults = _columns(job, files)
    if faults:
        raise VerificationError(what, faults)
    source, qids = _read(files), [quote(name) for name in published_qids(job)]
    with connect(job, spill, last=True) as connection:
        try:
            classes = count_classes(connection, files, published_qids(job), job.privacy.k)
            spread, measured = _spread(job, connection, source, qids, _read(reference or files, job.source.drift == "evolve"))
            hidden = _hidden_faults(job, connection, source)
            hidden += _pseudonym_faults(job, connection, source, qids, reference)
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise VerificationError(what, [f"the files cannot be counted ({type(error).__name__})"]) from None
    found = replace(classes, measured=measured)
    if faults := promise_faults(job, found) + spread + hidden:
        raise VerificationError(what, faults)
    return found


def count_classes(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], columns: Sequence[str], k: int) -> Recount:
    """Counts the classes of Parquet files.

    Args:
        connection: The database.
        files: The files.
        columns: Names of the published QID columns.
        k: What a class must reach.
    """
    statement = recount_sql([literal(str(path)) for path in files], [quote(name) for name in columns], k)
    [(*numbers, sizes)] = connection.execute(statement).fetchall()
    return replace(Recount(*numbers), sizes=sizes)


def _read(files: Sequence[Path], drift: bool = False) -> str:
    return f"read_parquet([{', '.join(literal(str(path)) for path in files)}]{', union_by_name = true' if drift else ''})"


def _spread(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], reference: str
) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Counts the classes that break a promise on sensitive values; returns the faults, and the worst class by promise and column."""
    faults, measured = [], {"l": dict[str, float](), "t": dict[str, float]()}
    for column, diversity in job.privacy.l.items():
        failing, classes, measured["l"][column] = _counts(connection, diversity_sql(source, qids, quote(column), diversity))
        if failing:
            faults.append(f"{failing:,} of {classes:,} classes lack the l-diversity of '{column}' that the job promises")
    for column, closeness in job.privacy.t.items():
        levels = _whole(job, connection, column, closeness, reference)
        failing, classes, measured["t"][column] = _counts(connection, closeness_sql(source, qids, quote(column), closeness, levels))
        if failing:
            faults.append(f"{failing:,} of {classes:,} classes are farther from the whole in '{column}' than t = {closeness.t}")
    return faults, {promise: columns for promise, columns in measured.items() if columns}


def _hidden_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """Counts the labels that tell values which the job hides."""
    faults = []
    for qid in job.columns.quasi_identifiers:
        if not qid.least:
            continue
        names = published_columns(qid.name, job.intervals == "bounds" and isinstance(qid.hierarchy, WidthsHierarchy))
        listed = connection.sql(f"SELECT DISTINCT {', '.join(map(quote, names))} FROM {source}")
        columns = [column.combine_chunks() for column in listed.to_arrow_table().columns]
        listed.close()
        told = telling(qid, columns[0], job.folder) if len(columns) == 1 else telling_bounds(qid, *columns)
        if told:
            faults.append(f"{counted(told, 'label')} of '{qid.name}' {'tells' if told == 1 else 'tell'} values that the job hides")
    return faults


def _pseudonym_faults(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], reference: Sequence[Path]
) -> list[str]:
    """Counts pseudonyms of another form, in masked records, or equal to values of the source."""
    faults, masks = [], job.suppression.treatment == "mask"
    for one in job.columns.pseudonyms:
        column = quote(one.name)
        [counts] = connection.execute(forms_sql(source, qids, column, one)).fetchall()
        shared = None
        if is_compared(one) and reference:
            [shared] = connection.execute(shared_sql(source, _read(reference), column)).fetchall()
        faults += pseudonym_faults(one, masks, counts, shared)
    return faults


def _counts(connection: duckdb.DuckDBPyConnection, statement: str) -> tuple[int, int, float]:
    [(failing, classes, worst)] = connection.execute(statement).fetchall()
    return int(failing), int(classes), float(worst) if worst is not None and isfinite(worst) else 0.0


def _whole(job: Job, connection: duckdb.DuckDBPyConnection, column: str, closeness: ClosenessSpec, reference: str) -> int:
    """Makes the table of all values with their shares, places and groups; returns the number of levels of the groups."""
    name = quote(column)
    statement = f"SELECT {name} AS value, count(*) AS records FROM {reference} GROUP BY value ORDER BY value NULLS LAST"
    counted_values = connection.sql(statement)
    values = counted_values.to_arrow_table()
    counted_values.close()
    counts = values["records"].to_numpy()
    columns = {"value": values["value"], "share": counts / max(counts.sum(), 1), "place": np.arange(len(values))}
    levels = 0
    if closeness.hierarchy is not None:
        known = values["value"].combine_chunks()
        missing = known.null_count
        domain = Domain(column, known.drop_null(), counts[: len(counts) - missing], int(counts[len(counts) - missing :].sum()))
        hierarchy = build_hierarchy(QuasiIdentifier(name=column, hierarchy=closeness.hierarchy), domain, job.folder)
        levels = hierarchy.top
        columns |= {f"level_{level}": hierarchy.groups[level].astype(np.int64) for level in range(1, levels + 1)}
    connection.register("whole_rows", pa.table(columns))
    connection.execute("CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM whole_rows")
    connection.unregister("whole_rows")
    return levels


def source_files(job: Job) -> list[Path]:
    """Returns the source's Parquet files, or none where they are not there any more or are of another format."""
    if job.source.format != "parquet":
        return []
    try:
        return find_files(job)
    except SourceError:
        return []


def _columns(job: Job, files: Sequence[Path]) -> list[str]:
    faults: list[str] = []
    for path in files:
        try:
            names = pq.read_schema(path).names
            faults += column_faults(job, names)
            payload = published_payload(job)
            qids = published_qids(job)
            rest = [name for name in names if name not in qids] if payload is None else payload
            if not faults:
                text = qids if job.suppression.treatment == "mask" else []
                checked(_first_rows(path), release_schema([*qids, *rest], text), "release")
        except (OSError, pa.ArrowException):
            faults.append("a data file cannot be read as Parquet")
        except StorageError:
            faults.append("a data file's columns are not those of the job, in its order and types")
    return list(dict.fromkeys(faults))


def _first_rows(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return pa.Table.from_batches(list(islice(file.iter_batches(1000), 1)), file.schema_arrow)


def data_files(release: Path) -> list[Path]:
    """Returns the data files of a release folder.

    Raises:
        StorageError: it has none.
    """
    files = sorted((release / "data").glob("*.parquet")) if release.is_dir() else []
    if not files:
        raise StorageError.not_a_release(str(release), "it has no data/*.parquet")
    return files


def read_manifest(release: Path) -> Manifest | None:
    """Returns the manifest of a release, or None if it has none.

    Raises:
        StorageError: there is one, but it is not a manifest.
    """
    path = release / "manifest.json"
    if not path.exists():
        return None
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise StorageError.not_a_release(str(release), "manifest.json cannot be read as a manifest") from None


def verify_release(job: Job, release: Path) -> tuple[Recount, Manifest | None]:
    """Verifies a published release: its files against its manifest, its classes against the job.

    A folder without a manifest, such as another tool's release, is recounted all the same; only then nothing is known of suppression.

    Raises:
        StorageError: the folder is not a release.
        VerificationError: anything that does not hold, all at once where the files can be counted.
    """
    files, manifest = data_files(release), read_manifest(release)
    faults = file_faults(release, files, manifest) if manifest else []
    # DuckDB makes the folder if it has to spill; a run of the job has another one.
    spill = job.work_path / f"verify-{os.getpid()}"
    try:
        found = recount(job, files, spill, f"'{release}'", source_files(job) if job.privacy.t or job.columns.pseudonyms else ())
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    if manifest:
        faults += manifest_faults(job, manifest, found)
        faults += risk_faults(manifest, found)
    if faults:
        raise VerificationError(f"'{release}'", faults)
    return found, manifest


def risk_faults(manifest: Manifest, found: Recount) -> list[str]:
    """Returns whether the risk of a manifest is not that of the recounted classes."""
    if "after" not in manifest.risk or manifest.risk["after"] == release_risk(found, manifest.suppressed, manifest.masked):
        return []
    return ["the manifest's risk is not that of the classes in the files"]


def file_faults(release: Path, files: Sequence[Path], manifest: Manifest) -> list[str]:
    """Returns what data files are missing, added or altered since a release was published."""
    promised = {release / file.path: file.sha256 for file in manifest.files}
    there = set(files)
    faults = []
    if missing := promised.keys() - there:
        faults.append(f"{counted(len(missing), 'data file')} of the manifest missing")
    if strange := there - promised.keys():
        faults.append(f"{counted(len(strange), 'data file')} not in the manifest")
    if altered := [path for path in there & promised.keys() if file_digest(path) != promised[path]]:
        faults.append(f"{counted(len(altered), 'data file')} altered since publication")
    return faults
