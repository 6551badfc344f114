"""What OpenLineage events say of a release: its figures, and each of its tables as an output dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from schemas.job.job import Job
from schemas.release.manifest import Manifest

if TYPE_CHECKING:
    from schemas.relational.manifest import TablesManifest
    from schemas.relational.tables_job import TablesJob

ONLY_TABLE = ""
"""Stands for the name of the one table of a job that gives it none."""


class OutputTable(NamedTuple):
    """Release id, numbers of rows and files, and column types of a published table.

    Attributes:
        release: The release id.
        rows: Rows in its data files.
        files: How many data files it has.
        columns: Type by published column; None where the files tell it.
    """

    release: str
    rows: int
    files: int
    columns: Mapping[str, str | None]


def jobs_by_table(job: Job | TablesJob) -> dict[str, Job]:
    """Return the one-table job of each table, by its name; a job of one table by ``ONLY_TABLE``."""
    if isinstance(job, Job):
        return {ONLY_TABLE: job}
    from schemas.relational.table_jobs import table_job  # noqa: PLC0415 - what jobs of one table do without

    return {name: table_job(job, name) for name in job.tables}


def output_tables(manifest: Manifest | TablesManifest, columns: Mapping[str, Sequence[str]]) -> dict[str, OutputTable]:
    """Return the published tables of a release, by the names of ``jobs_by_table``.

    Args:
        manifest: Of the release.
        columns: Published columns of each of several tables, of which their manifest does not state all.
    """
    if isinstance(manifest, Manifest):
        kinds = {name: manifest.columns.get(name) for name in _columns(manifest)}
        return {ONLY_TABLE: OutputTable(manifest.release, manifest.released, len(manifest.files), kinds)}
    files = Counter(one.path.split("/")[1] for one in manifest.files)
    return {
        name: OutputTable(manifest.release, table.released, files[name], dict.fromkeys(columns[name]))
        for name, table in manifest.tables.items()
    }


def release_figures(manifest: Manifest | TablesManifest, *, new: bool) -> dict[str, Any]:
    """Return a release's figures for its event; those of several tables count persons, as k does.

    Other tables' rows in the source are no part of them: beside the published rows they would tell how many were withheld, which may be
    those of one person.
    """
    if isinstance(manifest, Manifest):
        counted: dict[str, Any] = {"unit": manifest.unit, "classes": manifest.classes, "suppressed": manifest.suppressed}
    else:
        # Null where fewer than k persons are left out, as the records are.
        suppressed = manifest.tables[manifest.unit].suppressed
        counted = {"unit": "person", "classes": manifest.histories, "suppressed": suppressed}
    return counted | {
        "release": manifest.release,
        "new": new,
        "k": manifest.privacy["k"],
        "smallestClass": manifest.min_class,
        "records": manifest.records,
        "released": manifest.released,
        "optimal": manifest.optimal,
        "policy": manifest.policy,
    }


def _columns(manifest: Manifest) -> list[str]:
    qids = [name for qid in manifest.asked.quasi_identifiers for name in qid.columns]
    return [*qids, *manifest.passthrough, *manifest.pseudonyms]
