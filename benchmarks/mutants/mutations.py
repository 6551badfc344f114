"""Small faults for a module: each changes one place of its code, as a careless author would."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
STATEMENTS = [
    (r"(?<![<>=!])<=(?!=)", "<"),
    (r"(?<![<>=!])<(?![<>=])", "<="),
    (r"(?<![<>=!])>=(?!=)", ">"),
    (r"(?<![<>=!-])>(?![<>=])", ">="),
    (r"\bAND\b(?! \d)", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"),
    (r"\bIS NOT DISTINCT FROM\b", "="),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bDISTINCT (?!FROM)", ""),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bUNION ALL\b", "UNION"),
    (r"\bANTI JOIN\b", "SEMI JOIN"),
]
"""What is changed in SQL, and into what."""
COMMUTATIVE = {
    "min", "max", "minimum", "maximum", "gcd", "lcm", "array_equal", "logical_and", "logical_or", "bitwise_and", "bitwise_or", "union1d",
    "intersect1d", "fmin", "fmax",
}  # fmt: skip
"""Functions whose arguments may come in any order: to swap them is no fault."""
SQL = re.compile(r"\b(SELECT|FROM|WHERE|GROUP BY|JOIN|FILTER|HAVING|OVER)\b")


Change = tuple[str, int, int, str]
"""The kind of a fault, the first character that is replaced, the one after the last, and the new text."""


class Mutant(NamedTuple):
    """A fault at one place.

    Attributes:
        kind: What is changed: a comparison, a constant and so on.
        path: The module's file, from the root of the repository.
        function: The function that holds the place, with its class.
        line: The line, from 1; for readers, as it changes with the file.
        begin: The first character of the file that is replaced.
        end: The first one after them.
        before: What stands there.
        after: What stands there instead.
        number: How many places of the function before it have the same text and the same fault.
    """

    kind: str
    path: str
    function: str
    line: int
    begin: int
    end: int
    before: str
    after: str
    number: int = 0

    @property
    def name(self) -> str:
        """Its name, which stays when the file changes elsewhere."""
        return f"{self.path}:{self.function}: {_short(self.before)} -> {_short(self.after)}" + (f" #{self.number}" if self.number else "")

    def rank(self, seed: int) -> str:
        """Its place in the order of a sample: a digest, so that a sample stays when other mutants come or go."""
        return blake2b(f"{seed}:{self.name}".encode(), digest_size=8).hexdigest()

    def applied(self, source: str) -> str:
        """Return the text of the module with the fault."""
        return source[: self.begin] + self.after + source[self.end :]


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Return every fault that can be put into a module, in the order of its text."""
    found, seen = list[Mutant](), dict[str, int]()
    for one in sorted(_Places(path, source).found(), key=lambda one: (one.begin, one.end, one.after)):
        number = seen.get(one.name, 0)
        seen[one.name] = number + 1
        found.append(one._replace(number=number))
    return found


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text)


class _Places:
    """The places of one module."""

    def __init__(self, path: str, source: str) -> None:
        self._path, self._source = path, source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()

    def found(self) -> Iterator[Mutant]:
        yield from self._functions(ast.parse(self._source).body, "")

    def _functions(self, body: Sequence[ast.stmt], within: str) -> Iterator[Mutant]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from self._functions(node.body, f"{within}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                for statement in node.body:
                    yield from self._walk(statement, f"{within}{node.name}")

    def _walk(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        # Words of errors and what only the type checker reads change nothing that is counted.
        if isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
        # Where lists have one length, as they always should, it is the same whether ``zip`` asks.
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return
        for kind, begin, end, after in self._changes(node):
            before, line = self._source[begin:end], self._source.count("\n", 0, begin) + 1
            if before != after:
                yield Mutant(kind, self._path, function, line, begin, end, before, after)
        for field, child in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list"):
                continue
            for one in child if isinstance(child, list) else [child]:
                # Below a string with values in it, places are not told before Python 3.12.
                if isinstance(one, ast.AST) and not isinstance(node, ast.JoinedStr):
                    yield from self._walk(one, function)

    def _changes(self, node: ast.AST) -> Iterator[Change]:
        """Yield what is replaced at a node."""
        match node:
            case ast.Compare():
                yield from self._compared(node)
            case ast.BoolOp():
                yield from self._joined(node)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                yield ("term", *self._of(node), self._text(node.left))
                yield ("term", *self._of(node), self._text(node.right))
            case ast.UnaryOp(op=ast.Not()):
                yield ("condition", *self._of(node), f"({self._text(node.operand)})")
            case ast.Constant(value=bool()):
                yield ("constant", *self._of(node), str(not node.value))
            case ast.Constant(value=int() | float()):
                yield ("constant", *self._of(node), f"({self._text(node)} + 1)")
            case ast.Call():
                yield from self._called(node)
            case ast.comprehension():
                for condition in node.ifs:
                    yield ("condition", *self._of(condition), "True")
            case ast.If() | ast.IfExp():
                yield ("condition", *self._of(node.test), "True")
                yield ("condition", *self._of(node.test), "False")
            case ast.JoinedStr() | ast.Constant(value=str()):
                yield from self._stated(node)

    def _compared(self, node: ast.Compare) -> Iterator[Change]:
        operands = [node.left, *node.comparators]
        for operator, (left, right) in zip(node.ops, pairwise(operands), strict=True):
            begin, end = self._of(left)[1], self._of(right)[0]
            before, after = COMPARISONS[type(operator)]
            pattern = re.compile(r"\s+".join(map(re.escape, before.split())))
            if found := pattern.search(self._source, begin, end):
                yield "comparison", found.start(), found.end(), after

    def _joined(self, node: ast.BoolOp) -> Iterator[Change]:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        texts = [self._text(value) for value in node.values]
        yield ("condition", *self._of(node), "(" + f" {other} ".join(f"({text})" for text in texts) + ")")
        for place in range(len(texts)):
            left = [f"({text})" for text in texts[:place] + texts[place + 1 :]]
            yield ("condition", *self._of(node), "(" + f" {word} ".join(left) + ")")

    def _called(self, node: ast.Call) -> Iterator[Change]:
        given = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
        if len(given) < len(node.args):
            return
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for one, other in pairwise(given) if called not in COMMUTATIVE else ():
            between = self._source[self._of(one)[1] : self._of(other)[0]]
            yield "argument", self._of(one)[0], self._of(other)[1], self._text(other) + between + self._text(one)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max") and len(given) > 1:
            yield ("term", *self._of(node.func), "max" if node.func.id == "min" else "min")
            yield from (("term", *self._of(node), self._text(argument)) for argument in given)

    def _stated(self, node: ast.expr) -> Iterator[Change]:
        """Yield what is replaced in SQL, outside of the values that are put into it."""
        begin, text = self._of(node)[0], self._text(node)
        if not SQL.search(text):
            return
        depth, outside = 0, []
        for sign in text:
            depth += (sign == "{") - (sign == "}")
            outside.append(depth == 0)
        for pattern, after in STATEMENTS:
            for found in re.finditer(pattern, text):
                if outside[found.start()]:
                    yield "statement", begin + found.start(), begin + found.end(), after

    def _of(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        # Columns are counted in bytes of UTF-8.
        text = self._lines[line - 1]
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    def _text(self, node: ast.expr) -> str:
        begin, end = self._of(node)
        return self._source[begin:end]
