"""The laws of the house: who may know whom, how large a room is, what may be called what."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.oracles.raised import Code
from tests.places import ROOT, tree

pytestmark = pytest.mark.house

MAY_USE = {
    "schemas": {"schemas"},
    "core": {"core", "schemas"},
    "data": {"data", "schemas"},
    "tasks": {"tasks", "core", "schemas"},
    "flows": {"flows", "tasks", "core", "schemas", "data"},
}
FLOORS = ("schemas", "core", "tasks", "flows")
MOST_FILES = 18
MODULES = [path for package in MAY_USE for path in sorted((ROOT / package).rglob("*.py"))]
NAMES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
NO_NAMES = {
    "utils", "util", "helpers", "helper", "manager", "handler", "common", "misc", "base_utils",
    "dives", "rounds", "elsewhere", "examination", "told", "telling", "strict", "acceptance", "hidden_values", "held_values",
}  # fmt: skip
"""What says nothing, or nothing to somebody who does not know the neighbours."""


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the dotted names that a file imports, wherever in it: modules, and what is taken from them."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name} imports by a relative path"
            names |= {f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in NAMES else str(node.module) for alias in node.names}
    return frozenset(names)


def arrows() -> dict[str, set[str]]:
    """Return which modules of ours each module imports."""
    return {name: {one for one in imported(path) if one in NAMES} - {name} for name, path in NAMES.items()}


def room(module: str) -> str:
    """Return the folder of a module; a file that lies on a floor itself is a room of its own."""
    parts = module.split(".")
    return ".".join(parts[:2])


def circles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the sets of more than one node that reach each other (Tarjan 1972, without recursion: reachability both ways)."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set[str](), [start]
        while waiting:
            for following in graph.get(waiting.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        reach[start] = seen
    found = {frozenset(other for other in reach[one] if one in reach.get(other, ())) for one in graph if one in reach[one]}
    return [set(circle) for circle in found]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[0] for name in imported(path)} & MAY_USE.keys()
    assert ours <= MAY_USE[package]


def test_no_circle_of_files() -> None:
    assert not circles(arrows())


@pytest.mark.parametrize("floor", FLOORS)
def test_no_circle_of_rooms_within_a_floor(floor: str) -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for module, used in arrows().items():
        if module.split(".")[0] == floor:
            rooms[room(module)] |= {room(one) for one in used if one.split(".")[0] == floor} - {room(module)}
    assert not circles(rooms)


def test_a_circle_would_be_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [{"a", "b", "c"}]
    assert not circles({"a": ["b", "c"], "b": ["c"], "c": []})


def test_a_folder_has_few_enough_files_to_be_a_room() -> None:
    count: dict[Path, int] = defaultdict(int)
    for top in (*MAY_USE, "tests", "benchmarks"):
        for path in (ROOT / top).rglob("*.py"):
            count[path.parent.relative_to(ROOT)] += 1
    assert not {str(folder): files for folder, files in count.items() if files > MOST_FILES}


def test_a_file_says_what_it_holds() -> None:
    assert not [name for name in NAMES if name.split(".")[-1] in NO_NAMES]


@pytest.mark.parametrize("floor", FLOORS)
def test_a_public_function_has_its_name_alone_on_its_floor(floor: str) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in NAMES.items():
        if name.split(".")[0] == floor:
            for node in tree(path).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    found[node.name].append(name)
    assert not {function: modules for function, modules in found.items() if len(modules) > 1}


def test_a_public_class_has_its_name_alone() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in NAMES.items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    assert not {one: modules for one, modules in found.items() if len(modules) > 1}


def test_all_errors_live_in_one_room() -> None:
    """Whatever is an exception by its base is defined in ``schemas/errors``."""
    unexpected = []
    for name, path in NAMES.items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not name.startswith("schemas.errors"):
                bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
                unexpected += [f"{name}.{node.name}" for base in bases if base.endswith(("Error", "Exception", "Warning"))]
    assert not unexpected


def test_a_public_function_says_what_it_raises() -> None:
    """Also what it lets through, where a reader can act on it: in flows and in what Python calls.

    A command's docstring is its help, and its errors become exit codes.
    """
    code = Code(NAMES)
    silent = []
    for (module, name), errors in code.may_raise().items():
        public = not any(part.startswith("_") for part in name.split("."))
        if public and module.startswith(("flows.", "skald")) and not module.startswith(("flows.commands", "flows.cli")):
            told = code.documented((module, name))
            silent += [f"{module}.{name}: {error}" for error in errors if not code.kinds(error) & told]
    assert not silent


def test_errors_are_documented_where_a_reader_can_act_on_them() -> None:
    """A list of errors below flows repeats what callees raise, and nobody checks it."""
    assert not [
        name for name, path in NAMES.items() if not name.startswith(("flows", "data")) and re.search(r"^ +Raises:$", path.read_text(), re.M)
    ]


def test_core_and_schemas_know_no_prefect() -> None:
    assert not [path for path in MODULES if path.relative_to(ROOT).parts[0] in {"core", "schemas"} and "prefect" in str(imported(path))]


def test_no_module_of_flows_bears_the_name_of_a_standard_one() -> None:
    assert not {path.stem for path in (ROOT / "flows").glob("*.py")} & (sys.stdlib_module_names - {"__init__"})


def test_modules_are_short_enough_to_read() -> None:
    assert not [str(path.relative_to(ROOT)) for path in MODULES if len(path.read_text().splitlines()) > 400]


def test_make_check_looks_where_laws_of_the_house_are() -> None:
    """Only it runs them: one that stands elsewhere would be run by nobody."""
    looked_at = re.search(r'-m "house and not slow" (.*)', (ROOT / "Makefile").read_text())
    assert looked_at
    files = {path for pattern in looked_at[1].split() for found in ROOT.glob(pattern) for path in (found, *found.rglob("*.py"))}
    marked = {path for path in (ROOT / "tests").rglob("*.py") if "pytest.mark.house" in path.read_text("utf-8")}
    assert len(marked) > 5
    assert marked <= files
