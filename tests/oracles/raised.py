"""Which errors of ours a function may let out, as far as names in the code tell: what it raises, and what those it calls let out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

Function = tuple[str, str]
"""Module, and name in it, as in ``Store.make``."""
Call = tuple[Function, frozenset[str]]
"""Who is called, and what is caught around it."""


class Code:
    """The functions of some modules, read and not run."""

    def __init__(self, modules: Mapping[str, Path]) -> None:
        self.trees = {name: ast.parse(path.read_text()) for name, path in modules.items()}
        self.functions: dict[Function, ast.FunctionDef] = {}
        self.bases: dict[str, list[str]] = {}
        for module, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    self.functions[module, node.name] = node
                elif isinstance(node, ast.ClassDef):
                    self.functions |= {(module, f"{node.name}.{one.name}"): one for one in node.body if isinstance(one, ast.FunctionDef)}
                    if module.startswith("schemas.errors") and module != "schemas.errors.signals":
                        self.bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
        self.names = {module: dict(_imported(tree, self.trees)) for module, tree in self.trees.items()}

    def kinds(self, error: str) -> set[str]:
        """Return an error's class and all that it is a kind of."""
        return {error}.union(*(self.kinds(base) for base in self.bases.get(error, ())))

    def may_raise(self) -> dict[Function, set[str]]:
        """Return the errors that each function may let out."""
        raised, calls = {}, {}
        for function, node in self.functions.items():
            raised[function], calls[function] = set[str](), set[Call]()
            for one, caught in _within(node, frozenset()):
                if isinstance(one, ast.Raise) and (error := _named(one.exc)) in self.bases and not self.kinds(error) & caught:
                    raised[function].add(error)
                elif isinstance(one, ast.Call) and (called := self._called(function, one.func)) in self.functions:
                    calls[function].add((called, caught))
        grown = True
        while grown:
            grown = False
            for function, called in calls.items():
                for other, caught in called:
                    new = {one for one in raised[other] if not (self.kinds(one) | {"Exception", "BaseException"}) & caught}
                    grown |= not new <= raised[function]
                    raised[function] |= new
        return raised

    def documented(self, function: Function) -> set[str]:
        """Return the errors that a docstring names under ``Raises``."""
        _, _, told = (ast.get_docstring(self.functions[function]) or "").partition("Raises:\n")
        return {line.strip().split(":")[0] for line in told.splitlines() if ":" in line}

    def _called(self, function: Function, called: ast.expr) -> Function:
        module, name = function
        if isinstance(called, ast.Name):
            return self.names[module].get(called.id, (module, called.id))
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            owner = called.value.id
            if owner in {"self", "cls"}:
                return module, f"{name.split('.')[0]}.{called.attr}"
            if owner in self.names[module]:
                whole, inner = self.names[module][owner]
                return (whole, called.attr) if not inner else (whole, f"{inner}.{called.attr}")
        return "", ""


def _imported(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, Function]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, (whole, "") if whole in modules else (str(node.module), alias.name)


def _within(node: ast.AST, caught: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield all nodes below a node, each with the names of what is caught around it."""
    yield node, caught
    if isinstance(node, ast.Try):
        kinds = [kind for handler in node.handlers for kind in ast.walk(handler.type or ast.Name("BaseException"))]
        inside = caught | {
            kind.id if isinstance(kind, ast.Name) else kind.attr for kind in kinds if isinstance(kind, ast.Name | ast.Attribute)
        }
        for part in node.body:
            yield from _within(part, inside)
        for other in (*node.handlers, *node.orelse, *node.finalbody):
            yield from _within(other, caught)
        return
    for below in ast.iter_child_nodes(node):
        yield from _within(below, caught)


def _named(raised: ast.expr | None) -> str:
    """Return the class in ``raise Kind``, ``raise Kind(...)`` and ``raise Kind.made(...)``."""
    while isinstance(raised, ast.Call | ast.Attribute):
        raised = raised.func if isinstance(raised, ast.Call) else raised.value
    return raised.id if isinstance(raised, ast.Name) else ""
