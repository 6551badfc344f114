"""Runs that are gathered in two levels give the files that are gathered from all of them at once, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.engine.runs import AFTER_PUBLICATION
from tasks.writing import two_level_shuffle
from tests.conftest import Anonymise
from tests.jobs import digests, people, people_job

SETTINGS = ("chunk_rows=30", "rows_per_file=40", "privacy.k=4")


@pytest.mark.ci
@pytest.mark.parametrize("method", [{"name": "skald"}, pytest.param({"name": "rayden"}, marks=pytest.mark.slow)], ids=["cells", "records"])
def test_two_levels_give_the_bytes_of_one(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: dict[str, str]
) -> None:
    table = people(400)
    expected = digests(anonymise(people_job(tmp_path / "one", table, method=method), *SETTINGS).folder)
    assert len(expected) > 4
    rows = list[int]()
    write = two_level_shuffle.write_shuffle_part

    def counted(path: Path, runs: list[Path], numbers: range, columns: int) -> int:
        rows.append(write(path, runs, numbers, columns))
        return rows[-1]

    monkeypatch.setattr(two_level_shuffle, "write_shuffle_part", counted)
    monkeypatch.setattr(two_level_shuffle, "count_remote_workers", lambda: 2)
    made = anonymise(people_job(tmp_path / "two", table, method=method), *SETTINGS)
    assert digests(made.folder) == expected
    # Of fourteen runs four groups, each set apart by shelves of as many files as there are shelves, or one more.
    assert (len(rows) % 4, sum(rows)) == (0, made.manifest.released)
    assert "shuffle_parts" in AFTER_PUBLICATION
    assert not (tmp_path / "two" / ".skald" / "people" / "artifacts" / "shuffle_parts").exists()
