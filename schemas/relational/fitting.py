"""Tree of a job's tables, and checks of the parts of a job of several tables against each other.

See DESIGN.md, section 13.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.errors.base import counted, listed, nearest
from schemas.job.columns import REST, ROLES, names, role_faults
from schemas.job.identifiers import DROP
from schemas.reading.model import part_of
from schemas.registry.treatment_kinds import TREATMENTS, treatment_of


@dataclass(frozen=True)
class TableTree:
    """The unit's table, and the chain of references of every other table.

    Attributes:
        unit: The table with a row for each person.
        chains: Of every table the tables from the unit down to the one that it hangs from, parents first; empty for the unit.
    """

    unit: str
    chains: Mapping[str, tuple[str, ...]]

    @property
    def tables(self) -> list[str]:
        """Names of all tables, each after the tables that it references."""
        return list(self.chains)

    def branch_of(self, table: str) -> str:
        """Return the child of the unit (the table of persons) above a table, or the table if it is that child."""
        return (*self.chains[table], table)[1]

    @property
    def branches(self) -> list[str]:
        """Names of the child tables of the unit (the table of persons), one per branch of the tree."""
        return [table for table, chain in self.chains.items() if len(chain) == 1]

    def branch_tables(self, branch: str) -> list[str]:
        """Return all tables of a branch, from the unit's child table down, parents first."""
        return [table for table in self.chains if table != self.unit and self.branch_of(table) == branch]

    def tables_below(self, table: str) -> list[str]:
        """Return the tables whose rows reference a table, directly or through other tables."""
        return [other for other, chain in self.chains.items() if table in chain]


def tree_of(references: Mapping[str, Sequence[str]]) -> tuple[TableTree | None, list[str]]:
    """Return the tree of tables and no fault, or None and a message for each fault.

    Args:
        references: The tables that each table refers to, one for each of its references.
    """
    faults = _reference_faults(references)
    units = [table for table, referred in references.items() if not referred]
    if not units:
        faults.append("tables: every table refers to another, and one must be the unit, with a row for each person and no reference")
    if len(units) > 1:
        faults.append(
            f"tables: {listed(units)} refer to no other table, and one alone can be the unit; give the others a reference, "
            "or join tables of codes to the tables that use them first"
        )
    if faults:
        return None, faults
    chains: dict[str, tuple[str, ...]] = {units[0]: ()}
    while len(chains) < len(references):
        ready = [table for table in references if table not in chains and set(references[table]) <= chains.keys()]
        if not ready:
            circle = [table for table in references if table not in chains]
            return None, [f"tables: the references of {listed(circle)} lead in a circle; every table must hang from the unit"]
        for table in ready:
            deepest = max(references[table], key=lambda one: len(chains[one]))
            chain = (*chains[deepest], deepest)
            if others := [one for one in references[table] if one not in chain]:
                faults.append(
                    f"tables.{table}: refers to {listed([deepest, *others])}, of which none hangs from the other; keep one way to the unit"
                )
            chains[table] = chain
    return (None, faults) if faults else (TableTree(units[0], chains), [])


def _reference_faults(references: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the faults of references between tables."""
    faults = []
    for table, referred in references.items():
        for other in dict.fromkeys(referred):
            if other not in references:
                faults.append(f"tables.{table}.references: there is no table '{other}'{nearest(other, references)}")
            elif other == table:
                faults.append(f"tables.{table}.references: the table refers to itself, which is a circle; leave that reference out")
            elif (times := list(referred).count(other)) > 1:
                faults.append(
                    f"tables.{table}.references: has {counted(times, 'reference')} to '{other}', so that a row would be of several persons "
                    "(a transfer, say); make a row for each"
                )
    return faults


_TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
OF_ONE_TABLE = ("person", "most_records", "linkable", "accept_untreated")


def column_list(value: object) -> list[str]:
    """Split a raw key or reference, text with commas or a list, into column names, without validation."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) for part in value if isinstance(part, str) and part] if isinstance(value, list | tuple) else []


def raw_linking_columns(table: Mapping[str, Any]) -> list[str]:
    """Return the columns of a raw table's key and references, without validation."""
    return [column for written in (table.get("key"), *_mapping(table.get("references"))) for column in column_list(written)]


def table_faults(job: Mapping[str, Any]) -> list[str]:
    """Return a message for each conflict between the parts of a job of several tables."""
    faults = list[str]()
    tables = {str(name): _mapping(table) for name, table in _mapping(job.get("tables")).items()}
    faults += _name_faults(tables)
    if not tables:
        return faults
    references = {name: [str(other) for other in _mapping(table.get("references")).values()] for name, table in tables.items()}
    tree, wrong = tree_of(references)
    faults += wrong
    for name, table in tables.items():
        faults += _of_table(name, table, tables)
        faults += _treatment_faults(name, table, is_unit=tree is not None and name == tree.unit)
    if tree is not None and tables[tree.unit].get("rows") is not None:
        faults.append(f"tables.{tree.unit}.rows: the unit has one row for each person; leave rows out")
    if not any(list(names(_columns(table).get("quasi_identifiers"))) for table in tables.values()):
        faults.append("tables: no table has a quasi-identifier, so that nothing could be generalised; give one that role")
    return faults + _privacy_faults(_mapping(job.get("privacy")), tables)


def _name_faults(tables: Mapping[str, object]) -> list[str]:
    """Return the faults of table names, which become folder names."""
    faults = [
        f"tables: '{name}' cannot be a folder's name; use letters, digits, '_' and '-'"
        for name in tables
        if not _TABLE_NAME.fullmatch(name)
    ]
    folded = [name.lower() for name in tables]
    if alike := [name for name in tables if folded.count(name.lower()) > 1]:
        faults.append(f"tables: {listed(alike)} differ in case alone; rename one")
    return faults


def _of_table(name: str, table: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the conflicts within one table, and between it and the tables that it references."""
    columns, place = _columns(table), f"tables.{name}"
    faults = [f"{place}.columns: {sentence}" for sentence in role_faults(columns)]
    faults += [
        f"{place}.columns.{setting}: is for jobs of one table; key and references say whose row it is"
        for setting in OF_ONE_TABLE
        if columns.get(setting) not in (None, [], False)
    ]
    key, referring = column_list(table.get("key")), {}
    for written, other in _mapping(table.get("references")).items():
        referring[str(other)] = column_list(written)
        their = column_list(_mapping(tables.get(str(other))).get("key"))
        if str(other) in tables and not their:
            faults.append(f"tables.{other}: has no key, and '{name}' refers to it; say which column names a row (key)")
        elif their and len(their) != len(referring[str(other)]):
            faults.append(
                f"{place}.references: {counted(len(referring[str(other)]), 'column')} for the key of '{other}', which has {len(their)}; "
                'write them as "a, b" in the order of the key'
            )
    used = [column for referred in referring.values() for column in referred]
    if twice := sorted({column for column in used if used.count(column) > 1}):
        faults.append(f"{place}.references: {listed(twice)} would refer to two tables; give each reference columns of its own")
    for role in ROLES:
        faults += [
            f"{place}.columns.{role}: '{column}' is of the key or of a reference, which is published as pseudonyms; leave it out here"
            for column in names(_untreated(columns.get(role)))
            if column in {*key, *used}
        ]
    return faults


def lasting_treatments() -> list[str]:
    """Return the names of the treatments that a unit's key may have.

    Their pseudonyms identify rows, and are no values of a source.
    """
    return [name for name, kind in TREATMENTS.items() if kind.tells_apart and kind.meets == "never" and not kind.per_subject]


def _untreated(entries: object) -> object:
    """Return the identifiers that have no treatment."""
    return [one for one in entries if _treatment(one) is None] if isinstance(entries, list) else entries


def _treatment(entry: object) -> object:
    """Return the treatment of an identifier, validated or raw, or None if it is left out."""
    said = part_of(entry, "treatment")
    return None if said == DROP else said


def _treatment_faults(name: str, table: Mapping[str, Any], *, is_unit: bool) -> list[str]:
    """Return the faults of a table's identifiers with treatments; only the unit's key may have one."""
    key, entries = column_list(table.get("key")), _columns(table).get("identifiers")
    faults = []
    for entry in entries if isinstance(entries, list) else []:
        treatment = _treatment(entry)
        if treatment is None:
            continue
        column, kind = next(names([entry]), ""), treatment_of(treatment)
        place = f"tables.{name}.columns.identifiers: '{column}'"
        if not is_unit or key != [column]:
            faults.append(f"{place} has a treatment; only the unit's key can have one, if it is one column; leave the treatment out")
        elif kind is not None and kind not in lasting_treatments():
            faults.append(f"{place} is published by {kind}, which does not name rows; choose one of {listed(lasting_treatments())}")
    return faults


def _privacy_faults(privacy: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the conflicts between privacy settings and tables."""
    faults = []
    if isinstance(privacy.get("knows"), Mapping) and (_mapping(privacy.get("l")) or _mapping(privacy.get("t"))):
        faults.append("privacy.knows: l and t are of persons with one history, whom knows: {rows: m} does not make; leave one of them out")
    if isinstance(privacy.get("knows"), Mapping) and len(tables) == 1:
        faults.append("privacy.knows: there is no table below the unit of which rows could be known; leave it out")
    for kind in ("l", "t"):
        for name, columns in _mapping(privacy.get(kind)).items():
            if name not in tables:
                faults.append(f"privacy.{kind}: there is no table '{name}'{nearest(str(name), tables)}")
                continue
            known = list(names(_columns(tables[name]).get("sensitive")))
            faults += [
                f"privacy.{kind}.{name}: column '{column}' is not under tables.{name}.columns.sensitive{nearest(str(column), known)}"
                for column in _mapping(columns)
                if column not in known
            ]
    keyless = [name for name, table in tables.items() if not _mapping(table.get("references")) and not column_list(table.get("key"))]
    if keyless and (_mapping(privacy.get("l")) or _mapping(privacy.get("t"))):
        faults.append(f"tables.{keyless[0]}: has no key, and l and t are counted of persons; say which column names one (key)")
    return faults


def _columns(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns of a table as a mapping, without ``insensitive: rest``."""
    columns = _mapping(table.get("columns"))
    return {key: value for key, value in columns.items() if not (key == "insensitive" and value == REST)}


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
