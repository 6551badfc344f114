"""Each table of a job of several as a job of its own, by which its source is read and counted as that of any job."""

from __future__ import annotations

from pathlib import Path

from schemas.job.digest import digest_of, privacy_content, quasi_identifiers_content
from schemas.job.job import Job
from schemas.job.method import SkaldMethod
from schemas.job.output import Output
from schemas.job.privacy import Privacy, Suppression
from schemas.relational.tables_job import TablesJob


def table_job(job: TablesJob, name: str) -> Job:
    """Returns the job of one table: its columns of key and references are read and not published by themselves."""
    table = job.tables[name]
    linking = list(dict.fromkeys([*table.key, *(column for columns in table.referring.values() for column in columns)]))
    columns = table.columns.model_copy(update={"withheld": [*table.columns.withheld, *linking]})
    # Its parts were validated with the job; what a job of one table asks beyond that does not hold of a table among several.
    made = Job.model_construct(
        version=1,
        name=job.name,
        source=table.source,
        columns=columns,
        privacy=Privacy(k=job.privacy.k, l=job.privacy.l.get(name, {}), t=job.privacy.t.get(name, {})),
        suppression=Suppression(limit=job.suppression.limit),
        method=SkaldMethod(objective=job.objective),
        memory=job.memory,
        target=job.target,
        output=Output(),
        artifacts=job.artifacts,
        work=job.work if job.work is not None else Path(".skald", job.name),
        chunk_rows=job.chunk_rows,
        threads=job.threads,
        run_by=job.run_by,
        attacks=job.attacks,
    )
    made._folder, made._is_scratch, made._method_of_several = job.folder, job.is_scratch, job.method.name
    made._may_be_empty = bool(table.references)
    return made


def unit_job(job: TablesJob) -> Job:
    """Returns the job of the unit's table, whose work folder is that of all."""
    return table_job(job, job.tree.unit)


def tables_digest(job: TablesJob) -> str:
    """Returns the SHA-256, in hex, of all that determines a release's content, the bytes of hierarchy files included."""
    content = job.canonical()
    for name, table in content["tables"].items():
        of_table = table_job(job, name)
        table["columns"]["quasi_identifiers"] = quasi_identifiers_content(of_table)
        table["privacy"] = privacy_content(of_table)
    return digest_of(content)
