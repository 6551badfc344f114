"""Recount of a release of several tables by what its own manifest states, for whoever has no job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeGuard

from core.recount.histories import TablesRecount
from schemas.errors.base import VerificationError
from schemas.relational.fitting import column_list, tree_of
from schemas.relational.manifest import TablesManifest, files_by_table
from schemas.relational.tables_job import MOST_KNOWN_ROWS
from tasks.recount.tables import AskedHistories, count_histories, file_faults_of_table, table_as_read
from tasks.recount.untreated_tables import column_counts
from tasks.release.files import file_error
from tasks.store.database import database

MEMORY = 1_000_000_000
"""Bytes for the recount: a manifest of several tables does not state the job's memory."""
NOT_STATED = "k was not counted: the manifest does not state how its tables belong together, or what was promised."
NO_JOB = (
    "No job was given: rows and labels were not held against the sources. Which columns are quasi-identifiers is what the manifest states. "
    "Hidden values, the form of pseudonyms, bounds of rows and limits of suppression were not looked at."
)
NO_PUBLICATIONS = "How many people have each value of a column that says publish was not counted."
NO_ROLES = "Who stands out by untreated or sensitive columns together was not counted: the manifest does not state which are sensitive."
MODELS = {"l": "l-diversity", "t": "t-closeness"}


class StatedRecount(NamedTuple):
    """A recount by a manifest alone, None if too little is stated, and what was not counted.

    Attributes:
        unverified: What of the promise was not counted, in sentences.
    """

    recount: TablesRecount | None
    unverified: tuple[str, ...]


def recount_stated(manifest: TablesManifest, release: Path, release_name: str) -> StatedRecount:
    """Recount by a manifest alone; return counts, None if too little is stated, and what was not counted.

    Keys, references, quasi-identifiers and k are those that the manifest states. Faults raise ``VerificationError``.
    """
    unverified = (*_uncounted(manifest), NO_JOB)
    asked = _asked(manifest)
    if asked is None:
        return StatedRecount(None, (NOT_STATED, *unverified))
    files = files_by_table(manifest.files, release, manifest.tables)
    tables = {
        name: table_as_read(
            name,
            files[name],
            manifest.tables[name].levels,
            manifest.key_columns.get(name, ()),
            {other: column_list(columns) for columns, other in manifest.references.get(name, {}).items()},
            asked.tree,
            manifest.tables[name].passthrough,
        )
        for name in asked.tree.tables
    }
    if faults := [fault for name in asked.tree.tables for fault in _column_faults(manifest, name, files[name])]:
        raise VerificationError(release_name, faults)
    with TemporaryDirectory(prefix="skald-verify-") as spill, database(MEMORY, Path(spill)) as connection, file_error(release_name):
        found, faults = count_histories(asked, connection, tables)
        passed = {name: column_counts(connection, read, manifest.tables[name].passthrough) for name, read in tables.items()}
    if faults:
        raise VerificationError(release_name, faults)
    return StatedRecount(replace(found, passed=passed), unverified)


def _asked(manifest: TablesManifest) -> AskedHistories | None:
    """Return the promise that a manifest states, or None where it does not suffice for a recount."""
    tree, _ = tree_of({name: list(manifest.references.get(name, {}).values()) for name in manifest.tables})
    if tree is None or tree.unit != manifest.unit or not set(manifest.references) <= set(manifest.tables):
        return None
    for references in manifest.references.values():
        for columns, other in references.items():
            if len(column_list(columns) or ()) != len(manifest.key_columns.get(other, ())):
                return None
    k, knows = manifest.privacy.get("k"), manifest.privacy.get("knows", "all")
    rows = knows.get("rows") if isinstance(knows, Mapping) else None
    if not _is_number(k):
        return None
    if knows == "all":
        return AskedHistories(tree, k, None, {})
    few = _is_number(rows) and rows <= MOST_KNOWN_ROWS and bool(manifest.key_columns.get(tree.unit))
    return AskedHistories(tree, k, rows, {}) if few else None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _column_faults(manifest: TablesManifest, table: str, files: Sequence[Path]) -> list[str]:
    """Return a fault if a table's files lack columns that the manifest states, or their order."""
    references = [column for columns in manifest.references.get(table, {}) for column in column_list(columns)]
    linking = dict.fromkeys([*manifest.key_columns.get(table, ()), *references])
    stated, others = [*linking, *manifest.tables[table].levels], {*manifest.tables[table].passthrough}

    def fits(names: Sequence[str]) -> bool:
        return names[: len(stated)] == stated and others <= {*names[len(stated) :]}

    return file_faults_of_table(table, files, fits, "that the manifest states")


def _uncounted(manifest: TablesManifest) -> list[str]:
    """Return a sentence for each promise beside k that files and manifest alone cannot keep or break."""
    told = []
    for section, model in MODELS.items():
        by_table = manifest.privacy.get(section)
        for table, columns in by_table.items() if isinstance(by_table, Mapping) else ():
            told += [f"{model} of '{column}' of '{table}' was not counted: that takes the job." for column in columns]
    told += [NO_PUBLICATIONS] if manifest.published else []
    return [*told, *([NO_ROLES] if manifest.passthrough_together or manifest.sensitive_together else [])]
