"""Which tests reach which function: measured once, so that a trial runs the few tests that can notice its fault, cheapest first.

A copy of the repository notes each call of a function of ours. Loops that numba compiles note nothing: noting would compile them anew.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

NOTED = "__reached__"
"""The set of functions that a process has called, among the names that Python itself gives to every module."""
DEFINED = f"import builtins\nbuiltins.{NOTED} = set()\n"
FOLDER = "SKALD_REACHED"
"""The variable that names the folder to which processes of tests write what each test has reached."""
DECORATORS = {"kernel", "njit"}
"""What marks a function that numba compiles."""
PLUGIN = "benchmarks.mutants.reach_plugin"


class Reach(NamedTuple):
    """What a test costs and reaches.

    Attributes:
        test: Its name, as pytest takes it.
        seconds: CPU seconds with all that is made for it.
        functions: The functions that it calls, each as ``path:name``.
    """

    test: str
    seconds: float
    functions: frozenset[str]


def noting(source: str, path: str) -> str:
    """Returns a module whose functions note that they are called; a module with compiled loops as it is."""
    tree = ast.parse(source)
    if kernels(tree):
        return source
    for name, function in _functions(tree.body, ""):
        at = 1 if ast.get_docstring(function, clean=False) is not None else 0
        function.body[at:at] = ast.parse(f"{NOTED}.add({f'{path}:{name}'!r})").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def kernels(tree: ast.Module) -> set[str]:
    """Returns the functions of a module that numba compiles."""
    return {
        name
        for name, made in _functions(tree.body, "")
        if any(isinstance(one, ast.Name) and one.id in DECORATORS for one in _decorators(made))
    }


def callers(sources: Mapping[str, str], path: str, function: str) -> set[str]:
    """Returns the noted functions above one that notes nothing: of its module and of those that import it, by the name that they use.

    Args:
        sources: The text of each module that may call it, by path.
        path: Its module.
        function: Its name, with its class.
    """
    found, left, seen = set[str](), [(path, function)], set[tuple[str, str]]()
    while left:
        at, called = one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        module, (*within, last) = at.removesuffix(".py").replace("/", "."), called.split(".")
        # What makes an object is called by the name of its class.
        wanted = within[-1] if within and last.startswith("__") else last
        for other, text in sources.items():
            if other != at and f"from {module} import" not in text:
                continue
            tree = _parsed(text)
            for name, made in _functions(tree.body, ""):
                if wanted in {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(made)}:
                    found.add(f"{other}:{name}")
                    left += [(other, name)] if kernels(tree) else []
    return found


def measured(copy: Path, paths: Sequence[str], tests: Sequence[str], marks: str, processes: int) -> list[Reach]:
    """Runs tests in a copy whose modules note calls, and returns what each test that passed has reached.

    Args:
        copy: A copy of the repository, which is of no other use afterwards.
        paths: The modules that note calls, from the copy's folder.
        tests: Files and folders of tests.
        marks: As pytest's ``-m``.
        processes: How many of them run tests.
    """
    for path in paths:
        place = copy / path
        place.write_text(noting(place.read_text("utf-8"), path), "utf-8")
    (copy / "sitecustomize.py").write_text(DEFINED, "utf-8")
    noted = copy / "reached"
    noted.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "--no-header", "-p", PLUGIN, "-m", marks, *tests]
    if processes > 1:
        command += ["-n", str(processes), "--dist", "worksteal"]
    subprocess.run(command, cwd=copy, env=os.environ | {"PYTHONPATH": str(copy), FOLDER: str(noted)}, check=False)
    lines = [line for file in sorted(noted.iterdir()) for line in file.read_text("utf-8").splitlines()]
    return [Reach(test, seconds, frozenset(functions)) for test, seconds, passed, functions in map(json.loads, lines) if passed]


def written(reaches: Sequence[Reach], file: Path) -> None:
    """Keeps them in a file, a test a line."""
    file.write_text("".join(json.dumps([one.test, one.seconds, sorted(one.functions)]) + "\n" for one in reaches), "utf-8")


def read(file: Path) -> list[Reach]:
    """Returns them from the file."""
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return [Reach(test, seconds, frozenset(functions)) for test, seconds, functions in lines]


def cheapest_of(reaches: Sequence[Reach]) -> Mapping[str, Sequence[Reach]]:
    """Returns the tests of each function, cheapest first."""
    found: dict[str, list[Reach]] = {}
    for one in sorted(reaches, key=lambda one: (one.seconds, one.test)):
        for function in one.functions:
            found.setdefault(function, []).append(one)
    return found


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _decorators(function: ast.FunctionDef) -> list[ast.expr]:
    return [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]


def _functions(body: Sequence[ast.stmt], within: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{within}{node.name}", node
