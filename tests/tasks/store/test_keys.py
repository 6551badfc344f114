"""Keys: what a step reads, the settings it uses and the code that makes its result, said in one place."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tasks.store import keys
from tasks.store.keys import IGNORED_MODULES, StepCode, code_of, fingerprint_of, key_of_all, module_with_imports
from tests import places
from tests.places import ROOT
from tests.tasks.store.declared_steps import CODES, DECLARED

PACKAGES = ("core", "schemas", "tasks", "flows")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
PLACES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES}
MODULES = sorted(name for name in PLACES if not name.endswith("__init__"))
PLAIN_FINGERPRINTS = {
    "tasks.relational.verified",
    "tasks.counting.coding", "tasks.engine.lineage", "tasks.composition.release_history", "tasks.publication.target",
    "tasks.source.person_records",
    "tasks.source.chunks", "tasks.source.extracts", "tasks.source.sources",
    "tasks.recount.original", "tasks.report.page", "tasks.store.keys", "tasks.store.work_folder",
    "tasks.writing.rewriting",
}  # fmt: skip
"""Modules that fingerprint something which is no result of a step: a source, a release, a folder, a hierarchy, a list of runs."""


def tree(module: str) -> ast.Module:
    """Return the parsed file of a module."""
    return places.tree(PLACES[module])


def imported(module: str) -> set[str]:
    """The modules below flows that a syntax tree imports."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} if node.module in MODULES else {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found & set(MODULES) if not name.startswith("flows.")}


def registered(module: str) -> set[tuple[str, str]]:
    """The modules below flows that a registry names, each with the field that it stands in; one without a name belongs to all fields."""
    named = {id(word.value): str(word.arg) for call in ast.walk(tree(module)) if isinstance(call, ast.Call) for word in call.keywords}
    paths = [(named.get(id(call), ""), str(getattr(call.args[0], "value", ""))) for call in calls(module, "Code")]
    return {(field, path.split(":")[0]) for field, path in paths if not path.startswith("flows.")}


def asked(module: str) -> set[str]:
    """The modules that one asks registries for: it imports the registry, and speaks of the field."""
    fields = {"", *(node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute))}
    registries = [name for name in imported(module) if name.startswith("schemas.") and not module.startswith("schemas.")]
    return {code for name in registries for field, code in registered(name) if field in fields}


def calls(module: str, name: str) -> list[ast.Call]:
    return [node for node in ast.walk(tree(module)) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


REGISTRY = "schemas.reading.registry"
COUNTING = {"tasks.counting.chunk_counts", "tasks.counting.histograms"}


@pytest.mark.slow
def test_the_scan_of_a_source_finds_what_its_syntax_tree_has() -> None:
    for module in MODULES:
        found = keys._read(module).imports
        assert imported(module) | asked(module) <= found, module
        # A word in a docstring may speak of a field too: that is code more, never less.
        assert found <= imported(module) | {code for name in imported(module) for _, code in registered(name)}, module
    assert {module: set(keys._registered(module)) for module in MODULES} == {module: registered(module) for module in MODULES}


@pytest.mark.slow
def test_code_is_imported_by_a_path_in_the_registry_alone() -> None:
    below = [module for module in MODULES if not module.startswith("flows.")]
    tricks = [
        module for module in below if any(f"{name}(" in ast.unparse(tree(module)) for name in ("import_module", "__import__", "exec"))
    ]
    # And in calls, which name a function that its caller has in hand; a worker's code is held against the caller's.
    assert tricks == ["schemas.reading.registry", "tasks.engine.remote.call_queues"]
    assert not [module for module in MODULES if calls(module, "Code") and not module.startswith("schemas.")]


@pytest.mark.house
def test_no_number_stands_for_code_and_keys_are_made_in_one_place() -> None:
    for module in MODULES:
        names = [node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        assert module.startswith("schemas") or not [name for name in names if "VERSION" in name], module
        assert module == "tasks.store.keys" or not calls(module, "Key"), module
        assert module in PLAIN_FINGERPRINTS or not calls(module, "fingerprint_of"), module


def test_every_step_has_a_name_of_its_own_and_code_that_is_there() -> None:
    # Equal ones would be one here, and be declared twice.
    declared = {id(step): step.keys for _, step in DECLARED if not step.under}
    assert len(CODES) > 40
    assert len(declared) > 20
    assert Counter(declared.values()).most_common(1)[0][1] == 1
    assert all(code.module in MODULES for code in CODES)


def test_a_step_is_found_by_the_module_and_the_variable_that_a_worker_is_told() -> None:
    assert all(getattr(import_module(step.__module__), step.variable) is step for _, step in DECLARED)


@pytest.mark.house
def test_packages_hold_no_code_that_a_key_would_not_see() -> None:
    packages = [name for name in PLACES if name.endswith("__init__")]
    assert not [name for name in packages if any(not isinstance(node, ast.Expr) for node in tree(name).body)]


@pytest.mark.house
def test_what_no_key_sees_cannot_change_a_result() -> None:
    apart = [module for module in MODULES if module.startswith(IGNORED_MODULES)]
    assert not [module for module in apart if any(name.startswith("core.") and name not in apart for name in imported(module))]
    assert not [code for code in CODES if code.module.startswith(IGNORED_MODULES)]
    seen = set().union(*(module_with_imports(code.module) for code in CODES))
    assert not seen & set(apart)
    assert not [module for module in seen if module.startswith("tasks.report")]
    taken = {
        alias.name
        for module in seen
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("schemas.errors.")
        for alias in node.names
    }
    assert {name for name in taken if not name.endswith("Error")} <= {"counted", "listed", "nearest", "shown_path", "verb_of"}


@pytest.mark.parametrize(
    ("step", "sees", "leaves"),
    [
        ("tasks.counting.chunk_counts", {"core.columns.domains", "core.histograms.histogram"}, {"core.lattice", "core.hierarchies"}),
        ("tasks.counting.histograms", {"core.histograms.cells", "tasks.counting.coding"}, {"core.histograms.rollups", "core.recoding"}),
        ("tasks.lattice.recodings", {"core.lattice.search", "core.recoding.recoding"}, {"tasks.writing", "core.mondrian"}),
        ("tasks.mondrian.cells", {"core.mondrian.cuts", "core.recoding.recoding"}, {"core.lattice.search"}),
        ("tasks.writing.cells", {"core.recoding.release_order", "core.privacy.pseudonyms"}, {"core.lattice"}),
        ("tasks.source.listing", set(), {"schemas.job"}),
    ],
)  # fmt: skip
def test_a_step_depends_on_the_code_that_it_reaches_and_on_no_other(step: str, sees: set[str], leaves: set[str]) -> None:
    found = module_with_imports(step)
    assert sees | {step} <= found
    assert not [module for module in found if module.startswith(tuple(leaves))]


def test_a_key_tells_step_code_and_every_difference_but_no_order_of_names() -> None:
    one, other = StepCode("one", "tasks.store.tables"), StepCode("other", "tasks.store.tables")
    elsewhere = StepCode("one", "tasks.store.database")
    assert len({one.key(1), one.key("1"), one.key([1]), one.key(1, 1), one.key(), one.key(None), other.key(1), elsewhere.key(1)}) == 8
    assert one.key({"a": 1, "b": [2]}) == one.key({"b": [2], "a": 1})
    assert one.made_by_this_code(one.key(1))
    assert not elsewhere.made_by_this_code(one.key(1))
    assert key_of_all([one.key(1)]) == one.key(1)
    assert len({key_of_all([one.key(1), one.key(2)]), key_of_all([one.key(2), one.key(1)]), one.key(1)}) == 3


def test_fingerprints_that_ids_of_releases_are_made_of_stay_as_they_are() -> None:
    assert fingerprint_of("a", 1, {"b": [None, 2.5]}) == "f6df4e033087df32506aee138e2e09c5"


def test_code_that_cannot_be_seen_gives_no_key() -> None:
    with pytest.raises(ModuleNotFoundError):
        StepCode("lost", "tasks.store.no_such_module").key()


ASK = """
import json, sys
from tasks.store import keys
assert not keys._read.cache_info().currsize, "read before it was asked for"
before = set(sys.modules)
codes = {module: keys.code_of(module) for module in json.loads(sys.argv[1])}
assert {name for name in set(sys.modules) - before} <= {"core", "schemas", "tasks", "flows"}, "imported what it looks at"
print(json.dumps(codes))
"""


def codes_at(path: Path) -> Any:
    """The codes of all steps, as a process of its own sees them in a folder or an archive."""
    modules = json.dumps(sorted({code.module for code in CODES}))
    command = [sys.executable, "-P", "-c", ASK, modules]
    asked = subprocess.run(command, cwd=path.parent, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages somewhere else."""
    folder = tmp_path_factory.mktemp("copied")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_keys_are_the_same_from_a_checkout_a_copy_and_an_archive(copied: Path) -> None:
    here = {step.module: code_of(step.module) for step in CODES}
    archive = copied.parent / "skald.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in copied.rglob("*.py"):
            packed.write(path, path.relative_to(copied))
    assert codes_at(copied) == here
    assert codes_at(archive) == here


@pytest.mark.parametrize(
    ("edited", "changes", "stays"),
    [
        ("core/lattice/search.py", {"tasks.lattice.recodings"}, {*COUNTING, "tasks.writing.cells"}),
        ("core/columns/domains.py", {"tasks.counting.chunk_counts", "tasks.lattice.recodings"}, {"tasks.source.csv_files"}),
        ("schemas/errors/base.py", set(), {code.module for code in CODES}),
        ("tasks/report/terms.py", set(), {code.module for code in CODES}),
    ],
)  # fmt: skip
def test_an_edit_changes_the_keys_of_the_steps_that_reach_it_and_of_no_other(
    copied: Path, edited: str, changes: set[str], stays: set[str]
) -> None:
    path, before = copied / edited, codes_at(copied)
    plain = path.read_text()
    path.write_text(plain + "\nEDITED = True\n")
    try:
        after = codes_at(copied)
    finally:
        path.write_text(plain)
    assert changes <= {module for module in before if before[module] != after[module]}
    assert stays <= {module for module in before if before[module] == after[module]}
