"""Which tests reach which function, measured once for a state of the code.

A trial then runs only the few tests that can notice its fault.

A copy of the repository notes each call of a function of ours. Loops that numba compiles note nothing: noting would compile them anew.
What was measured is kept until a function comes or goes; where files of tests change, they alone are measured again.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.mutants.copied import Copy

NOTED = "__reached__"
"""The set of functions that a process has called, among the names that Python itself gives to every module."""
DEFINED = f"import builtins\nbuiltins.{NOTED} = set()\n"
FOLDER = "SKALD_REACHED"
"""The variable that names the folder to which processes of tests write what each test has reached."""
DECORATORS = {"kernel", "njit"}
"""What marks a function that numba compiles."""
PLUGIN = "benchmarks.mutants.reach_plugin"
LAYERS = ("core", "tasks")
"""The modules of which it is measured what tests reach."""
READERS = ("tests/house", "tests/registries", "tests/benchmarks", "tests/test_*.py", "tests/tasks/store/test_keys.py")
"""Tests that read the text of the code, or of documents, and not what it does: they notice no fault."""


class Reach(NamedTuple):
    """What a test costs and reaches.

    Attributes:
        test: Its name, as pytest takes it.
        seconds: CPU seconds with all that is made for it.
        functions: The functions that it or one of its fixtures calls, each as ``path:name``.
    """

    test: str
    seconds: float
    functions: frozenset[str]


def modules(root: Path) -> list[str]:
    """Return the modules of which it is measured what tests reach, from the root."""
    return [str(path.relative_to(root)) for layer in LAYERS for path in sorted((root / layer).rglob("*.py"))]


def files_of_tests(root: Path) -> list[str]:
    """Return the files of tests that can notice a fault, from the root."""
    read = {path for pattern in READERS for found in root.glob(pattern) for path in (found.rglob("*.py") if found.is_dir() else [found])}
    return [str(path.relative_to(root)) for path in sorted((root / "tests").rglob("test_*.py")) if path not in read]


def state_of(root: Path, tests: Iterable[str] = ()) -> str:
    """Return the digest of the product, of what tests share, and of some files of tests."""
    product = [path for layer in ("core", "tasks", "schemas", "flows", "data") for path in (root / layer).rglob("*.py")]
    shared = [path for path in (root / "tests").rglob("*.py") if not path.name.startswith("test_")]
    digest = blake2b(digest_size=12)
    for path in [*sorted(product), *sorted(shared), *(root / test for test in tests)]:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def reached(root: Path, file: Path, marks: str, processes: int, within: Sequence[str] = ("tests",)) -> list[Reach]:
    """Return what tests reach: from the file what still holds, measured and kept there what is missing.

    Args:
        root: The repository.
        file: Where it is kept.
        marks: As pytest's ``-m``.
        processes: How many of them run tests.
        within: Files and folders of tests that are asked for.
    """
    state, every = [_names_of(root), marks], {test: _digest(root / test) for test in files_of_tests(root)}
    tests = {test: digest for test, digest in every.items() if any(Path(test).is_relative_to(one) for one in within)}
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
    found: dict[str, list[list[object]]] = kept["found"] if kept.get("state") == state else {}
    before: dict[str, str] = kept["tests"] if found else {}
    missing = [test for test, digest in tests.items() if before.get(test) != digest]
    if missing:
        with TemporaryDirectory() as folder:
            lines = _measured(Copy(root, Path(folder)).folder, missing, marks, processes)
        found = {test: lines for test, lines in found.items() if test not in missing}
        for line in lines:
            found.setdefault(str(line[0]).split("::")[0], []).append(line)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"state": state, "tests": before | tests, "found": found}), "utf-8")
    known = (line for test, lines in found.items() if test in tests for line in lines)
    return [Reach(str(test), float(str(seconds)), frozenset(functions)) for test, seconds, functions in known]  # type: ignore[call-overload]


def noting(source: str, path: str) -> str:
    """Return a module whose functions note that they are called; a module with compiled loops as it is."""
    tree = ast.parse(source)
    if kernels(tree):
        return source
    for name, function in _functions(tree.body, ""):
        at = 1 if ast.get_docstring(function, clean=False) is not None else 0
        function.body[at:at] = ast.parse(f"{NOTED}.add({f'{path}:{name}'!r})").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def kernels(tree: ast.Module) -> set[str]:
    """Return the functions of a module that numba compiles."""
    return {
        name
        for name, made in _functions(tree.body, "")
        if any(isinstance(one, ast.Name) and one.id in DECORATORS for one in _decorators(made))
    }


def callers(sources: Mapping[str, str], path: str, function: str) -> set[str]:
    """Return the functions whose calls are noted and that lead to one whose calls are not.

    They are of its module and of those that import it, by the name that they use.

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


def tests_of(reaches: Sequence[Reach]) -> Mapping[str, Sequence[Reach]]:
    """Return the tests of each function, cheapest first."""
    found: dict[str, list[Reach]] = {}
    for one in sorted(reaches, key=lambda one: (one.seconds, one.test)):
        for function in one.functions:
            found.setdefault(function, []).append(one)
    return found


def _measured(copy: Path, tests: Sequence[str], marks: str, processes: int) -> list[list[object]]:
    """Run tests in a copy whose modules note calls; return a line for each test that passed.

    The copy is of no other use from then on.
    """
    for path in modules(copy):
        place = copy / path
        place.write_text(noting(place.read_text("utf-8"), path), "utf-8")
    (copy / "sitecustomize.py").write_text(DEFINED, "utf-8")
    (copy / "asked.txt").write_text("".join(f"{test}\n" for test in tests), "utf-8")
    noted = copy / "reached"
    noted.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "--no-header", "-p", PLUGIN, "-m", marks, "@asked.txt"]
    if processes > 1:
        command += ["-n", str(processes), "--dist", "worksteal"]
    environment = os.environ | {"PYTHONPATH": str(copy), FOLDER: str(noted)}
    subprocess.run(command, cwd=copy, env=environment, check=False)
    lines = [json.loads(line) for file in sorted(noted.iterdir()) for line in file.read_text("utf-8").splitlines()]
    return [[test, seconds, functions] for test, seconds, passed, functions in lines if passed]


def _names_of(root: Path) -> str:
    """Return the digest of the names of all functions.

    As long as they stay, what is reached stays nearly as it is.

    Where it does not, a test is not asked, and a fault that it would notice counts as one that nobody notices.
    """
    digest = blake2b(digest_size=12)
    for path in modules(root):
        names = [name for name, _ in _functions(ast.parse((root / path).read_text("utf-8")).body, "")]
        digest.update(f"{path}: {names}\n".encode())
    return digest.hexdigest()


def _digest(file: Path) -> str:
    return blake2b(file.read_bytes(), digest_size=12).hexdigest()


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
