"""The pinned versions can be installed with the oldest Python that the project names."""

import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
PINNED = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines()]

pytestmark = pytest.mark.house


def test_the_oldest_python_can_have_every_pinned_version() -> None:
    named = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    [oldest] = [f"{one.version}.0" for one in named]
    refusing, looked_at = [], 0
    for one in PINNED:
        try:
            found = metadata(one.name)
        except PackageNotFoundError:
            continue
        if one.specifier.contains(found["Version"]):
            looked_at += 1
            refusing += [one.name for asked in found.get_all("Requires-Python") or () if not SpecifierSet(asked).contains(oldest)]
    assert refusing == []
    assert looked_at > 100
