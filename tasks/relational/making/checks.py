"""Checks of keys, references and types of several tables; all faults are reported at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pyarrow as pa

from core.columns.column_types import working_type
from schemas.errors.base import counted, listed, verb_of
from schemas.errors.tables import RelationError
from schemas.relational.table_jobs import lasting_key, persons_job
from schemas.relational.tables_job import TablesJob
from tasks.engine.runs import Run
from tasks.engine.steps import run_for_item
from tasks.relational.making.reading import EncodedTable, TableSource
from tasks.store.database import connect
from tasks.store.step import FileStep
from tasks.store.store import Store
from tasks.writing.pseudonyms import give_tokens


@dataclass(frozen=True)
class TableSet:
    """All tables of a job with their rows encoded in artefacts, parents first.

    Attributes:
        run: The run, with the unit's job.
        tables: By name, parents first.
    """

    run: Run
    job: TablesJob
    tables: Mapping[str, EncodedTable]

    @property
    def store(self) -> Store:
        """The store of the run, which holds the encoded rows of all tables."""
        return self.run.store

    @property
    def key(self) -> list[object]:
        """The part of a step's key that all tables' rows determine: names, artefact keys and linking columns."""
        return [[name, [chunk.sha256 for chunk in table.chunks], table.table.linking] for name, table in self.tables.items()]

    @property
    def sources(self) -> dict[str, TableSource]:
        """The source of each table, by name."""
        return {name: table.table for name, table in self.tables.items()}

    def with_tokens(self) -> Self:
        """Give vault tokens to unit keys without one; return tables with the vault's id, or themselves.

        Nothing happens where the job has no vault. A vault gets its id with its first tokens, and the release's id follows from it: that
        is to be made again.
        """
        unit = self.job.tree.unit
        if lasting_key(self.job) is None:
            return self
        encoded = self.tables[unit]
        with self.run.phase("pseudonyms"):
            source = give_tokens(persons_job(self.job), encoded.table.source, self.run.spill)
        return replace(self, tables={**self.tables, unit: replace(encoded, table=replace(encoded.table, source=source))})


def check_types(job: TablesJob, tables: Mapping[str, TableSource]) -> None:
    """Raise ``RelationError`` if types of references differ from those of the referenced keys."""
    faults = []
    for name, table in tables.items():
        for other, columns in job.tables[name].referring.items():
            for mine, theirs in zip(columns, job.tables[other].key, strict=True):
                kinds = [
                    working_type(where.source.columns.field(column).type) for where, column in ((table, mine), (tables[other], theirs))
                ]
                if not (kinds[0] == kinds[1] or all(map(pa.types.is_integer, kinds))):
                    faults.append(
                        f"'{mine}' of '{name}' is of type {kinds[0]} and '{theirs}' of '{other}', to which it refers, of {kinds[1]}; "
                        "write both in one type"
                    )
    if faults:
        raise RelationError(faults)


def key_counts_sql(relation: str, columns: list[str]) -> str:
    """Return the SQL that counts rows with an incomplete key, and keys that name several rows.

    It is right because GROUP BY has each combination once, and count(*) FILTER looks at each row by itself.
    """
    lacking = " OR ".join(f"{column} IS NULL" for column in columns)
    return f"""
        SELECT (SELECT count(*) FROM {relation} WHERE {lacking}),
               (SELECT count(*) FROM (SELECT 1 FROM {relation} WHERE NOT ({lacking}) GROUP BY {", ".join(columns)} HAVING count(*) > 1))
    """


def orphans_sql(relation: str, mine: list[str], other: str, theirs: list[str]) -> str:
    """Return the SQL that counts rows whose complete reference finds no row.

    It is right because an anti join keeps each row on the left that has no partner, once.
    """
    whole = " AND ".join(f"m.{column} IS NOT NULL" for column in mine)
    same = " AND ".join(f"m.{own} = o.{their}" for own, their in zip(mine, theirs, strict=True))
    return f"SELECT count(*) FROM {relation} AS m ANTI JOIN {other} AS o ON {same} WHERE {whole}"


def rows_without_reference_sql(relation: str, references: list[list[str]]) -> str:
    """Return the SQL that counts rows without any complete reference, which belong to no person."""
    lacking = " AND ".join("(" + " OR ".join(f"{column} IS NULL" for column in columns) + ")" for columns in references)
    return f"SELECT count(*) FROM {relation} WHERE {lacking}"


def _check(given: TableSet, _: None, path: Path) -> int:
    """Count the faults of keys and references of all tables; write counts and names, but no values."""
    found = []
    with connect(given.run.job, given.run.spill) as connection:
        for name, table in given.tables.items():
            spec, relation = given.job.tables[name], table.relation(given.store)
            if spec.key:
                [(lacking, repeated)] = connection.execute(
                    key_counts_sql(relation, [table.encoded_name(one) for one in spec.key])
                ).fetchall()
                found.append({"table": name, "key": spec.key, "nulls": lacking, "repeats": repeated})
            for other, columns in spec.referring.items():
                theirs = given.tables[other]
                places = [theirs.encoded_name(one) for one in given.job.tables[other].key]
                statement = orphans_sql(relation, [table.encoded_name(one) for one in columns], theirs.relation(given.store), places)
                [(orphans,)] = connection.execute(statement).fetchall()
                found.append({"table": name, "columns": columns, "refers": other, "orphans": orphans})
            if spec.references:
                references = [[table.encoded_name(one) for one in columns] for columns in spec.referring.values()]
                [(nobody,)] = connection.execute(rows_without_reference_sql(relation, references)).fetchall()
                found.append({"table": name, "nobody": nobody})
    path.write_text(json.dumps(found))
    return len(found)


RELATED = FileStep("related", make=_check, reads=lambda given, _: given.key, suffix=".json")
"""What is wrong with keys and references, in counts."""


def relation_faults(given: TableSet) -> tuple[list[str], bool]:
    """Return faults of keys and references as sentences, and whether each key names one row.

    References can be followed only if it does.
    """
    made = run_for_item(given.run, RELATED, given, None, "keys and references")
    found = json.loads(given.store.path(made).read_text())
    return list(_sentences(found, refuse=given.job.orphans == "refuse")), not any(one_found.get("repeats") for one_found in found)


def _sentences(found: list[dict[str, object]], *, refuse: bool) -> Iterator[str]:
    for one_found in found:
        table, numbers = one_found["table"], {name: int(str(value)) for name, value in one_found.items() if isinstance(value, int)}
        key, columns = (listed(map(str, names)) if isinstance(names := one_found.get(part), list) else "" for part in ("key", "columns"))
        if nulls := numbers.get("nulls"):
            lacking = f"{counted(nulls, 'row')} of '{table}' {verb_of(nulls, 'have')} no whole key"
            yield f"{lacking} ({key}); give each one, or leave them out of the source"
        if repeats := numbers.get("repeats"):
            yield f"{counted(repeats, 'key')} of '{table}' ({key}) {verb_of(repeats, 'name')} several rows; a key must name one row"
        if (orphans := numbers.get("orphans")) and refuse:
            yield (
                f"{counted(orphans, 'row')} of '{table}' {verb_of(orphans, 'refer')} by {columns} to rows that "
                f"'{one_found['refers']}' does not have; mend them, "
                "or say orphans: drop, which leaves them out and counts them"
            )
        if (nobody := numbers.get("nobody")) and refuse:
            of = f"{counted(nobody, 'row')} of '{table}' {verb_of(nobody, 'have')} no reference at all"
            yield f"{of}, and so no person; mend them, or say orphans: drop"
