"""The recount stands alone: nothing that writes a release is used to judge it, directly or by way of others."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from schemas.reading.registry import Code
from schemas.registry.hierarchy_kinds import HIERARCHIES, HierarchyKind
from tests import places
from tests.places import ROOT

pytestmark = pytest.mark.house

RECOUNT = ("core.recount", "tasks.recount")
WRITERS = (
    "tasks.writing",
    "tasks.lattice",
    "tasks.mondrian",
    "tasks.records",
    "tasks.counting",
    "tasks.relational.making",
)
PLUMBING = {
    "tasks.engine.progress": "tells whoever watches of files that are not read, gives memory back to the system",
    "tasks.release.manifest": "reads the manifest of a folder, refuses names that lead out of it, keys the digests of job and source",
    "tasks.source.unpacked": "says in which unit moments of old Parquet are read",
    "tasks.source.listing": "says which files are data, tells addresses from paths, digests the source's files",
    "tasks.source.locations": "finds the source's files, takes a file with two names once, reads the columns that folders name",
    "tasks.source.duckdb_objects": "lets DuckDB read the source's objects",
    "tasks.source.pinned_objects": "is what DuckDB reads them by",
    "tasks.source.pinned": "reads the source's objects as they were listed",
    "tasks.store.database": "opens DuckDB, quotes names",
    "tasks.store.files": "digests a file, removes what a killed command spilled",
    "tasks.store.keys": "digests what JSON can say, reads the secret of keyed digests, tells kept digests from altered ones",
    "tasks.store.place": "keeps files in folders and buckets, opens object stores",
    "tasks.store.store": "names artefacts, which digests of locations are kept as",
    "tasks.store.work_folder": "spills in the job's work folder",
}
"""What both sides use of ``tasks/``, and for what: it knows files and names, and neither classes nor labels nor hierarchies."""


@cache
def modules() -> dict[str, Path]:
    """Return the files of the two floors that compute, by dotted name."""
    found = {}
    for floor in ("core", "tasks"):
        for path in (ROOT / floor).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def tree(module: str) -> ast.Module:
    return places.tree(modules()[module])


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of these floors that a module imports, inside functions too, and the packages that they are in."""
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    whole = {".".join(name.split(".")[:length]) for name in names for length in range(1, name.count(".") + 2)}
    return frozenset(name for name in whole if name in modules())


def rooms(*names: str) -> set[str]:
    return {module for module in modules() if module.startswith(tuple(f"{name}." for name in names)) or module in names}


def closure(starts: Iterable[str]) -> set[str]:
    """Return the modules with all that they import, and those that these import, and so on."""
    seen: set[str] = set()
    left = list(starts)
    while left:
        module = left.pop()
        if module not in seen:
            seen.add(module)
            left += imported(module)
    return seen - {"core", "tasks"}


def verdict_of() -> set[str]:
    return closure(rooms(*RECOUNT))


def written() -> set[str]:
    return closure(rooms(*WRITERS))


def floor(modules_of: set[str], name: str) -> set[str]:
    """Return the modules of one floor that hold code."""
    return {module for module in modules_of if module.startswith(f"{name}.") and modules()[module].stat().st_size}


def test_no_module_of_core_serves_both_sides() -> None:
    assert len(floor(verdict_of(), "core")) > 5
    assert len(floor(written(), "core")) > 30
    assert floor(verdict_of(), "core") & floor(written(), "core") == set()


def test_both_sides_share_named_plumbing_and_nothing_else_of_tasks() -> None:
    assert floor(verdict_of(), "tasks") & floor(written(), "tasks") == PLUMBING.keys()


@pytest.mark.parametrize("module", PLUMBING)
def test_plumbing_knows_neither_classes_nor_labels_nor_hierarchies(module: str) -> None:
    assert floor(closure([module]), "core") == set()
    assert not {name for name in imported_from_schemas(module) if "hierarch" in name}


def imported_from_schemas(module: str) -> set[str]:
    taken = {str(node.module) for node in ast.walk(tree(module)) if isinstance(node, ast.ImportFrom)}
    return {name for name in taken if name.startswith("schemas")}


def test_no_writer_uses_the_recount() -> None:
    assert not written() & (rooms(*RECOUNT) - {"tasks"})


def test_what_a_kind_of_hierarchy_lends_to_the_recount_is_the_recounts_own() -> None:
    for kind in HIERARCHIES.values():
        for field in fields(HierarchyKind):
            code = getattr(kind, field.name)
            if isinstance(code, Code):
                assert code.path.startswith("core.recount.") == field.name.startswith("recount_"), (kind.name, field.name)


def test_the_recount_calls_no_code_by_name_but_its_own() -> None:
    lent = {field.name for field in fields(HierarchyKind)} - {"name", "schema", "words"}
    for module in verdict_of():
        attributes = {node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute) and ast.unparse(node.value) != "pa"}
        assert not {name for name in attributes & lent if not name.startswith("recount_")}, module
        names = {node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name)}
        assert not names & {"import_module", "__import__", "importlib", "Code", "METHODS", "OBJECTIVES"}, module
