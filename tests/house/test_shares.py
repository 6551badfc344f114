"""A share in a sentence is never rounded to none or to all, and a count stands with its noun's right number."""

from __future__ import annotations

import ast
import re

import pytest

from schemas.errors.base import counted
from schemas.reading.model import share_text
from tests.places import ROOT, tree

pytestmark = pytest.mark.house

FOLDERS = ("schemas", "core", "tasks", "flows")
ITS_OWN = "schemas/reading/model.py"


def formats(pattern: str) -> set[tuple[str, int]]:
    """Return the files and lines of the product in which an f-string has a value with a format like the pattern."""
    return {
        (path.relative_to(ROOT).as_posix(), node.lineno)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr)
        if re.fullmatch(pattern, "".join(str(getattr(one, "value", "")) for one in node.format_spec.values))
    }


@pytest.mark.parametrize(
    ("share", "places", "text"),
    [
        (0, 1, "0.0%"),
        (1, 1, "100.0%"),
        (0.0004, 1, "less than 0.1%"),
        (0.9996, 1, "more than 99.9%"),
        (1e-9, 2, "less than 0.01%"),
        (1 - 1e-9, 2, "more than 99.99%"),
        (0.25, 0, "25%"),
        (0.004, 0, "less than 1%"),
        (0.05, 0, "5%"),
    ],
)
def test_a_share_is_not_rounded_to_none_or_to_all(share: float, places: int, text: str) -> None:
    assert share_text(share, places) == text


def test_a_share_in_a_narrow_column_is_not_rounded_either() -> None:
    assert [share_text(share, narrow=True) for share in (0, 0.0004, 0.25, 0.9996, 1)] == ["0.0%", "<0.1%", "25.0%", ">99.9%", "100.0%"]


def test_shares_in_sentences_are_written_by_one_function() -> None:
    """A format of its own would say 0.0% of somebody and 100.0% of all but somebody; differences have a sign."""
    assert not {(path, line) for path, line in formats(r"[^+]*%") if path != ITS_OWN}


def test_a_share_of_a_page_is_not_rounded_either() -> None:
    pages = sorted((ROOT / "tasks" / "report" / "templates").glob("*.html"))
    assert pages
    assert not [page.name for page in pages if re.search(r"%\.\df\"\s*[|%]\s*(format\()?\s*\(?100", page.read_text())]


@pytest.mark.parametrize(("count", "text"), [(1, "1 class"), (0, "0 classes"), (2, "2 classes")])
def test_nouns_in_s_have_a_plural(count: int, text: str) -> None:
    assert counted(count, "class") == text
