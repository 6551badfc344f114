"""Conversion of a job of several tables to one-table jobs.

By them each table's source is read and counted like that of any job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.errors.base import nearest
from schemas.job.columns import names
from schemas.job.identifiers import Identifier
from schemas.job.job import Job, digest_of, privacy_content, quasi_identifiers_content
from schemas.job.method import SkaldMethod
from schemas.job.output import Output
from schemas.job.policy import Policy
from schemas.job.privacy import Privacy, Suppression
from schemas.reading.model import plain
from schemas.registry.treatment_kinds import treatment_kind
from schemas.relational.tables_job import TablesJob


def table_job(job: TablesJob, name: str) -> Job:
    """Make the one-table job of a table without validation; key and references are withheld in it.

    Its columns of key and references are read but not published by themselves.
    """
    table = job.tables[name]
    # A key with a treatment is published as every key is, and not as a column of its own.
    columns = table.columns.model_copy(update={"withheld": [*table.columns.withheld, *table.linking], "identifiers": table.columns.dropped})
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
        overlaps=job.overlaps,
    )
    made._folder, made._is_scratch, made._method_of_several = job.folder, job.is_scratch, job.method.name
    made._may_be_empty, made._at_hand = bool(table.references), job.at_hand
    return made


def persons_job(job: TablesJob) -> Job:
    """Return one job for all tables joined by person, for comparison with other releases.

    The unit's columns keep their names, those of other tables are called ``table.column``. So releases of several tables and of one table
    can be compared: both know the columns of persons by the same names.
    """
    unit = job.tree.unit
    columns = {name: table.columns for name, table in job.tables.items()}
    models: dict[str, Any] = {
        section: {column_of_persons(job, name, column): spec for name, specs in by_table.items() for column, spec in specs.items()}
        for section, by_table in (("l", job.privacy.l), ("t", job.privacy.t))
    }
    made = unit_job(job)
    seen = columns[unit].model_copy(
        update={
            "person": job.tables[unit].key,
            "identifiers": columns[unit].identifiers,
            "quasi_identifiers": [
                qid.model_copy(update={"name": column_of_persons(job, name, qid.name)})
                for name, of_table in columns.items()
                for qid in of_table.quasi_identifiers
            ],
            "sensitive": [column_of_persons(job, name, column) for name, of_table in columns.items() for column in of_table.sensitive],
        }
    )
    for name, of_table in columns.items():
        # What is made of a value, or of its spelling, in any table: another release may make something else of it.
        seen._ways = seen._ways | {column_of_persons(job, name, column): way for column, way in of_table.ways.items()}
        spelled = {column: steps for column, steps in of_table.normalised.items() if column in of_table.sensitive}
        seen._spelled = seen._spelled | {column_of_persons(job, name, column): steps for column, steps in spelled.items()}
    joined = made.model_copy(update={"columns": seen, "privacy": Privacy(k=job.privacy.k, **models)})
    joined._folder = job.folder
    return joined


def column_of_persons(job: TablesJob, table: str, column: str) -> str:
    """Return the name of a table's column in the job joined by person."""
    return joined_column_name(job.tree.unit, table, column)


def joined_column_name(unit: str, table: str, column: str) -> str:
    """Return the name ``column`` for the unit's table, and ``table.column`` for other tables."""
    return column if table == unit else f"{table}.{column}"


def lasting_key(job: TablesJob) -> Identifier | None:
    """Return the unit's key column if its pseudonyms last, by a key or vault; None if new per release."""
    return next(iter(job.tables[job.tree.unit].columns.pseudonyms), None)


def unit_key_words(job: TablesJob) -> dict[str, str]:
    """Return a description of the unit key's lasting pseudonyms, by column; empty if new per release."""
    one = lasting_key(job)
    return {one.name: treatment_kind(one.treatment).words} if one else {}


def lasting_columns(job: TablesJob) -> list[str]:
    """Return the columns with lasting pseudonyms: a unit's key with a treatment, and references to it.

    Pseudonyms that are new in each release hold nothing of a column.
    """
    if lasting_key(job) is None:
        return []
    unit = job.tree.unit
    return list(dict.fromkeys([*job.tables[unit].key, *(name for table in job.tables.values() for name in table.referring.get(unit, ()))]))


def tables_policy_faults(policy: Policy, job: TablesJob) -> list[str]:
    """Return a message for each setting of several tables together that is weaker than the policy."""
    faults = [
        f"column '{name}' is never to be published, and its pseudonyms are those of other releases too; leave the treatment of the unit's "
        "key out, so that they are new in each release"
        for name in policy.banned(lasting_columns(job))
    ]
    if job.suppression.rows > policy.suppression.limit:
        least, most = plain(job.suppression.rows), plain(policy.suppression.limit)
        faults.append(f"suppression.rows is {least}, and the policy allows {most} at most")
    return faults


def tables_with_qids(job: TablesJob) -> list[str]:
    """Return the names of the tables that have quasi-identifiers."""
    return [name for name, table in job.tables.items() if table.columns.quasi_identifiers]


def unit_job(job: TablesJob) -> Job:
    """Return the one-table job of the unit (the table of persons), whose work folder all tables use."""
    return table_job(job, job.tree.unit)


def tables_digest(job: TablesJob) -> str:
    """Return the SHA-256, in hex, of the settings and hierarchy files that determine a release's content."""
    content = job.canonical()
    for name, table in content["tables"].items():
        of_table = table_job(job, name)
        table["columns"]["quasi_identifiers"] = quasi_identifiers_content(of_table)
        table["privacy"] = privacy_content(of_table)
    return digest_of(content)


def nearest_of_tables(name: str, job: TablesJob, *roles: str) -> str:
    """Return ``" (did you mean 'table.column'?)"`` for the closest column, or an empty string.

    Args:
        name: As it is written; the table may be left out.
        roles: Keys of ``columns``.
    """
    known = [f"{table}.{column}" for table, one in job.tables.items() for role in roles for column in names(getattr(one.columns, role))]
    return nearest(next((one for one in known if one.endswith(f".{name}")), name), known)


def tables_promise(job: TablesJob) -> dict[str, Any]:
    """Return k, known rows and privacy models by table as JSON data, without hierarchies."""
    known = job.privacy.known_rows
    promised: dict[str, Any] = {"k": job.privacy.k, "knows": "all" if known is None else {"rows": known}}
    for table in job.tables:
        for section, columns in table_job(job, table).privacy.summary().items():
            if section != "k":
                promised.setdefault(section, {})[table] = columns
    return promised


def most_rows_of(job: TablesJob) -> dict[str, int | None]:
    """Return the bound on published rows per person by table; None where there is no bound."""
    return {name: table.rows.most if table.rows else None for name, table in job.tables.items()}
