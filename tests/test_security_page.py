"""Every promise of SECURITY.md is held by tests that it names."""

from __future__ import annotations

import ast
import re

import pytest

from tests.places import ROOT, tree

pytestmark = pytest.mark.house

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISED = ("Promised against whoever gets a release", "Promised against damage")
NAMED = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>\w+)`")


def promises() -> list[str]:
    """Return the sentences of the lists of promises, each with what follows it up to the next."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return [" ".join(one.split()) for title in PROMISED for one in re.split(r"^- ", sections[title], flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("promise", promises())
def test_a_promise_names_tests_that_are_there_and_never_skipped(promise: str) -> None:
    named = NAMED.findall(promise)
    assert named
    for file, test in named:
        functions = {node.name: node for node in tree(ROOT / "tests" / file).body if isinstance(node, ast.FunctionDef)}
        assert test in functions
        assert not [mark for mark in functions[test].decorator_list if "skip" in ast.unparse(mark)]


def test_each_promise_is_one_sentence_before_its_tests() -> None:
    for promise in promises():
        said = promise.partition(" Tests: ")[0]
        assert said.endswith(".")
        assert NAMED.search(said) is None
