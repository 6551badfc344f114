"""The page about the house is true of the house: every room is named, every path exists, the picture is that of the imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.house_picture import FLOORS, PICTURE, arrows_of, house, needed, rooms_of
from tests.places import ROOT

pytestmark = pytest.mark.house

PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
FOLDERS = (*FLOORS, "data", "tests", "benchmarks", "deployments", "docs")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
NAMED = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w/.-]*\w)`")
MODULE = re.compile(r"python -m ((?:benchmarks|docs|flows)[\w.]*)")


@pytest.mark.parametrize("floor", FLOORS)
def test_every_room_is_on_the_page(floor: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert set(re.findall(rf"\| `{floor}/(\w+)` \|", text)) == set(rooms_of(floor))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    places = {name: ROOT / name.replace(".", "/") for name in MODULE.findall(text)}
    assert not [name for name, place in places.items() if not (place.with_suffix(".py").is_file() or (place / "__main__.py").is_file())]


@pytest.mark.parametrize("floor", FLOORS)
def test_every_room_stands_right_of_those_it_uses_and_no_arrow_crosses_one(floor: str) -> None:
    places = FLOORS[floor][1]
    assert set(places) == set(rooms_of(floor)), "say in docs/house_picture.py where the room stands"
    taken = set(places.values())
    assert len(taken) == len(places)
    for room, used in needed(arrows_of(floor)):
        (right, _), (left, row) = places[room], places[used]
        assert right > left, f"{room} uses {used}"
        assert not [column for column in range(left + 1, right) if (column, row) in taken], f"{room} to {used}"


def test_the_picture_is_that_of_the_house() -> None:
    assert PICTURE.read_text("utf-8") == house().alone(), "draw it again: python -m docs.house_picture"


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "index.md").read_text("utf-8")
    for page in folder.glob("*.md"):
        if page.stem != "index":
            assert f"\n{page.stem}\n" in listed
            assert f"({page.name})" in listed
            assert {"## Context", "## Decision", "## Consequences"} <= set(page.read_text("utf-8").splitlines())
