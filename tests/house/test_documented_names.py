"""What a docstring lists as arguments or attributes is there under that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.places import ROOT, tree

pytestmark = pytest.mark.house

FOLDERS = ("schemas", "core", "tasks", "flows", "data", "benchmarks")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def listed(docstring: str, section: str) -> list[str]:
    """Return the names that a section of a docstring lists, such as ``first, second: what they are``."""
    lines = docstring.split(f"{section}:\n", 1)
    if len(lines) == 1:
        return []
    body = re.split(r"\n\s*\n", lines[1], maxsplit=1)[0].split("\n")
    indent = len(body[0]) - len(body[0].lstrip())
    heads = (re.match(r"([\w, *]+?)(?: \([^)]*\))?:", line[indent:]) for line in body if line[:indent].isspace())
    return [name.strip(" *") for head in heads if head and not head[0].startswith(" ") for name in head[1].split(",")]


def arguments(function: Function) -> set[str]:
    """Return the names of a function's arguments."""
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if one}


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that a class has: of its body, and those that its methods give to ``self``."""
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            yield line.target.id
        elif isinstance(line, ast.Assign):
            yield from (target.id for target in line.targets if isinstance(target, ast.Name))
        elif isinstance(line, Function):
            yield line.name
            yield from (one.attr for one in ast.walk(line) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))


def missing(node: ast.AST) -> list[str]:
    """Return the names that the docstring of a class or function lists and that are not there."""
    if not isinstance(node, ast.ClassDef | Function) or not (docstring := ast.get_docstring(node)):
        return []
    if isinstance(node, Function):
        return [name for name in listed(docstring, "Args") if name not in arguments(node)]
    made = [arguments(line) for line in node.body if isinstance(line, ast.FunctionDef) and line.name == "__init__"]
    faults = [name for name in listed(docstring, "Args") if made and name not in made[0]]
    return faults + [name for name in listed(docstring, "Attributes") if name not in set(attributes(node))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_list_names_that_are_there(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    found = [(path, node, name) for path in paths for node in ast.walk(tree(path)) for name in missing(node)]
    assert not [f"{path.relative_to(ROOT)}:{node.lineno} {name}" for path, node, name in found]
