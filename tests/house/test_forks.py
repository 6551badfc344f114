"""Where forks and memories may stand: each count may fall and never rise. Lower the ceiling with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.house import replaced
from tests.places import ROOT, tree

pytestmark = pytest.mark.house

FLOORS = ("schemas", "core", "tasks", "flows")
WORKERS = {"count_remote_workers", "remote_takes_all_chunks"}
BUCKETS = {"target_address", "work_address"}
EMPTY = {"dict", "defaultdict", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}
PRIVATE_BY_PATH = re.compile(r"(?:setattr|patch)\(\s*[\"'](?:schemas|core|tasks|flows)(?:\.\w+)*\.(?:_\w+|[A-Z][A-Z_0-9]+)[\"']")
"""A test that sets a constant, or what begins with an underscore, by its dotted path."""
Found = Callable[[ast.Module], bool]


@cache
def trees() -> dict[str, ast.Module]:
    paths = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): tree(path) for path in paths}


def asks_for_the_person(tree: ast.Module) -> bool:
    """Return whether a file reads ``columns.person``, which decides whose records are counted."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "person")
    return any("columns" in ast.unparse(node.value) for node in nodes)


def asks_for_workers(tree: ast.Module) -> bool:
    """Return whether a file asks if calls go to other machines."""
    return any(getattr(node, "attr", getattr(node, "id", None)) in WORKERS for node in ast.walk(tree))


def asks_for_a_bucket(tree: ast.Module) -> bool:
    """Return whether a file asks for the address of a target or work folder in a bucket."""
    return any(isinstance(node, ast.Attribute) and node.attr in BUCKETS for node in ast.walk(tree))


def asks_for_a_kind_of_place(tree: ast.Module) -> bool:
    """Return whether a file asks if the target or the work of a job is a folder or a bucket."""

    def asks(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "folder":
            return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in {"target_of", "work_of"}
        return isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and "Bucket" in ast.unparse(node.args[1])

    return any(map(asks, ast.walk(tree)))


def remembers(tree: ast.Module) -> bool:
    """Return whether a module begins with an empty dictionary, which calls fill."""

    def is_empty(value: ast.expr | None) -> bool:
        if isinstance(value, ast.Dict):
            return not value.keys
        return isinstance(value, ast.Call) and ast.unparse(value.func).split("[")[0] in EMPTY and not value.args

    return any(isinstance(node, ast.Assign | ast.AnnAssign) and is_empty(node.value) for node in tree.body)


def comparisons_with_k(tree: ast.Module) -> int:
    """Count comparisons of something with ``k`` by size."""

    def is_k(node: ast.expr) -> bool:
        return (isinstance(node, ast.Attribute) and node.attr == "k") or (isinstance(node, ast.Name) and node.id == "k")

    def sizes(node: ast.Compare) -> Iterator[bool]:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            yield isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and (is_k(left) or is_k(right))

    return sum(any(sizes(node)) for node in ast.walk(tree) if isinstance(node, ast.Compare))


@pytest.mark.parametrize(
    ("found", "most"),
    [(asks_for_the_person, 53), (asks_for_workers, 11), (asks_for_a_bucket, 2), (asks_for_a_kind_of_place, 11), (remembers, 3)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_fork_stands_in_no_more_files(found: Found, most: int) -> None:
    files = [name for name, tree in trees().items() if found(tree)]
    assert len(files) <= most, files


def test_comparisons_with_k_grow_no_more() -> None:
    counts = {name: count for name, tree in trees().items() if (count := comparisons_with_k(tree))}
    assert sum(counts.values()) <= 75, counts


def test_what_tests_replace_by_its_path_is_named_in_one_place() -> None:
    """Who moves a constant changes one line of tests, and each line names what is there."""
    files = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    assert not [str(path.relative_to(ROOT)) for path in files if PRIVATE_BY_PATH.search(path.read_text("utf-8"))]
    for path in {value for name, value in vars(replaced).items() if name.isupper()}:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path


def test_what_is_counted_is_found() -> None:
    assert asks_for_the_person(ast.parse("if job.columns.person is not None: pass"))
    assert asks_for_workers(ast.parse("count_remote_workers()")) and not asks_for_workers(ast.parse("workers()"))
    assert asks_for_a_bucket(ast.parse("job.target_address"))
    assert asks_for_a_kind_of_place(ast.parse("target_of(job).folder is None")) and not asks_for_a_kind_of_place(ast.parse("work.folder"))
    assert asks_for_a_kind_of_place(ast.parse("isinstance(work, BucketWork)"))
    assert remembers(ast.parse("_loaded: dict[str, int] = {}")) and not remembers(ast.parse("NAMES = {'a': 1}"))
    assert comparisons_with_k(ast.parse("a >= k; 0 < b < job.privacy.k; k == 2; c > 3")) == 2
    assert PRIVATE_BY_PATH.search('patch.setattr("core.columns.coding.WORD", 3)')
