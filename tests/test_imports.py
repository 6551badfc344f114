"""Imports go one way: flows → tasks → core → schemas."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

MAY_USE = {
    "schemas": {"schemas"},
    "core": {"core", "schemas"},
    "data": {"data", "schemas"},
    "tasks": {"tasks", "core", "schemas"},
    "flows": {"flows", "tasks", "core", "schemas", "data"},
}
MODULES = [path for package in MAY_USE for path in sorted((ROOT / package).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """Returns the dotted names that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name} imports by a relative path"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[0] for name in imported(path)} & MAY_USE.keys()
    assert ours <= MAY_USE[package]


def test_core_and_schemas_know_no_prefect() -> None:
    assert not [path for path in MODULES if path.relative_to(ROOT).parts[0] in {"core", "schemas"} and "prefect" in str(imported(path))]


def test_the_recount_knows_nothing_of_search_or_recoding() -> None:
    assert not [name for name in imported(ROOT / "core" / "verification.py") if name.startswith("core")]


def test_no_module_of_flows_bears_the_name_of_a_standard_one() -> None:
    assert not {path.stem for path in (ROOT / "flows").glob("*.py")} & (sys.stdlib_module_names - {"__init__"})


def test_modules_are_short_enough_to_read() -> None:
    assert not [str(path.relative_to(ROOT)) for path in MODULES if len(path.read_text().splitlines()) > 300]
