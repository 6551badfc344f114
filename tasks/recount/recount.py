"""Recounts written files with DuckDB and refuses what does not keep the job's promise."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from core.columns.domains import Domain
from core.hierarchies.disclosing_labels import telling, telling_bounds
from core.hierarchies.hierarchy import build_hierarchy
from core.privacy.risk import release_risk
from core.recount.classes import Recount, manifest_faults, promise_faults, recount_sql
from core.recount.pseudonyms import forms_sql, is_compared, pseudonym_faults, shared_sql
from schemas.errors.base import SourceError, VerificationError, counted
from schemas.hierarchies.hierarchy import HierarchySpec
from schemas.job.columns import QuasiIdentifier
from schemas.job.connection import is_address
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.release.manifest import Manifest, published_columns, published_qids
from tasks.recount.columns import column_faults_of, read_faults
from tasks.release.files import TEXT, Csv, data_files, layout_of, relation_of
from tasks.release.manifest import read_manifest
from tasks.source.locations import find_files
from tasks.source.partitions import partitions, relation
from tasks.store.database import connect, quote
from tasks.store.files import file_digest


def recount(job: Job, files: Sequence[Path], spill: Path, what: str, reference: str = "", layout: Csv = TEXT) -> Recount:
    """Counts the classes of the data files and checks columns, classes and the spread of sensitive values against the job.

    Args:
        job: All that is known.
        files: The written files.
        spill: Folder for DuckDB's spill files.
        what: How the release is called in a message.
        reference: What DuckDB reads the source as, from whose distribution t-closeness is measured; the data files themselves if empty.
            Pseudonyms are compared with the identifiers in it.
        layout: How CSV files are read.

    Raises:
        VerificationError: the files do not keep the job's promise, or cannot be read.
    """
    if faults := column_faults_of(job, files) if files[0].suffix == ".parquet" else []:
        raise VerificationError(what, faults)
    qids = [quote(name) for name in published_qids(job)]
    with connect(job, spill, last=True) as connection:
        try:
            source = relation_of(connection, files, layout)
            if faults := read_faults(job, connection, source) if files[0].suffix != ".parquet" else []:
                raise VerificationError(what, faults)
            classes = count_classes(connection, source, published_qids(job), job.privacy.k, by_qid=job.suppression.is_local)
            spread, measured = _spread(job, connection, source, qids, reference or source)
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


def count_classes(connection: duckdb.DuckDBPyConnection, source: str, columns: Sequence[str], k: int, *, by_qid: bool = False) -> Recount:
    """Counts the classes of data files.

    Args:
        connection: The database.
        source: What DuckDB reads them as.
        columns: Names of the published QID columns.
        k: What a class must reach.
        by_qid: Whether the records with ``*`` are counted for each column too.
    """
    statement = recount_sql(source, [quote(name) for name in columns], k, by_qid=by_qid)
    [(*numbers, sizes, withheld)] = [row if by_qid else (*row, ()) for row in connection.execute(statement).fetchall()]
    return replace(Recount(*numbers), sizes=sizes, withheld=dict(zip(columns, withheld, strict=False)))


def _spread(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], reference: str
) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Counts the classes that break a promise on sensitive values; returns the faults, and the worst class by promise and column."""
    faults: list[str] = []
    measured: dict[str, dict[str, float]] = {}
    for kind, column, spec in job.privacy.models:
        levels = _whole(job, connection, column, spec.hierarchy, reference) if kind.of_whole else 0
        failing, classes, worst = _counts(connection, kind.statement(source, qids, quote(column), spec, levels))
        measured.setdefault(kind.section, {})[column] = worst
        if failing:
            faults.append(f"{failing:,} of {classes:,} classes {kind.broken(column, spec)}")
    return faults, measured


def _hidden_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """Counts the labels that tell values which the job hides."""
    faults = []
    for qid in job.columns.quasi_identifiers:
        if not qid.hides:
            continue
        names = published_columns(job, qid)
        listed = connection.sql(f"SELECT DISTINCT {', '.join(map(quote, names))} FROM {source}")
        columns = [column.combine_chunks() for column in listed.to_arrow_table().columns]
        listed.close()
        told = telling(qid, columns[0], job.folder) if len(columns) == 1 else telling_bounds(qid, *columns)
        if told:
            faults.append(f"{counted(told, 'label')} of '{qid.name}' {'tells' if told == 1 else 'tell'} values that the job hides")
    return faults


def _pseudonym_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], reference: str) -> list[str]:
    """Counts pseudonyms of another form, in masked records, or equal to values of the source."""
    faults, masks = [], job.suppression.masks
    for one in job.columns.pseudonyms:
        column = quote(one.name)
        [counts] = connection.execute(forms_sql(source, qids, column, one)).fetchall()
        shared = None
        if is_compared(one) and reference:
            [shared] = connection.execute(shared_sql(source, reference, column)).fetchall()
        faults += pseudonym_faults(one, masks, counts, shared)
    return faults


def _counts(connection: duckdb.DuckDBPyConnection, statement: str) -> tuple[int, int, float]:
    [(failing, classes, worst)] = connection.execute(statement).fetchall()
    return int(failing), int(classes), float(worst) if worst is not None and isfinite(worst) else 0.0


def _whole(job: Job, connection: duckdb.DuckDBPyConnection, column: str, along: HierarchySpec | None, reference: str) -> int:
    """Makes the table of all values with their shares, places and groups; returns the number of levels of the groups."""
    name = quote(column)
    statement = f"SELECT {name} AS value, count(*) AS records FROM {reference} GROUP BY ALL ORDER BY 1 NULLS LAST"
    counted_values = connection.sql(statement)
    values = counted_values.to_arrow_table()
    counted_values.close()
    counts = values["records"].to_numpy()
    columns = {"value": values["value"], "share": counts / max(counts.sum(), 1), "place": np.arange(len(values))}
    levels = 0
    if along is not None:
        known = values["value"].combine_chunks()
        missing = known.null_count
        domain = Domain(column, known.drop_null(), counts[: len(counts) - missing], int(counts[len(counts) - missing :].sum()))
        hierarchy = build_hierarchy(QuasiIdentifier(name=column, hierarchy=along), domain, job.folder)
        levels = hierarchy.top
        columns |= {f"level_{level}": hierarchy.groups[level].astype(np.int64) for level in range(1, levels + 1)}
    connection.register("whole_rows", pa.table(columns))
    connection.execute("CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM whole_rows")
    connection.unregister("whole_rows")
    return levels


def source_relation(job: Job) -> str:
    """Returns what DuckDB reads the source as, or nothing where it is not there any more, is elsewhere or of another format."""
    if FORMATS[job.source.format].convert is not None or any(map(is_address, job.source.path)):
        return ""
    try:
        files = [str(path) for path in find_files(job)]
        return relation(list(zip(files, partitions(job, files), strict=True)), alike=job.source.drift == "freeze")
    except SourceError:
        return ""


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
        layout = layout_of(files, manifest.columns if manifest else {}, job.output.delimiter)
        found = recount(job, files, spill, f"'{release}'", source_relation(job) if job.privacy.t or job.columns.pseudonyms else "", layout)
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
