"""A quasi-identifier of millions of different values takes no more memory than was asked for, and what program and libraries take."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cliffs.__main__ import Line, play
from benchmarks.cliffs.tables import Shape
from benchmarks.wide.__main__ import BESIDE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_a_run_on_millions_of_different_numbers_holds_its_memory(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ended = play(Line("values", "two million", Shape(4_000_000, values=2_000_000), {"memory": "512MB"}), method, seconds=600)
    assert not isinstance(ended, str), ended
    cost, _, manifest = ended
    assert 100_000_000 < cost.peak < 512_000_000 + BESIDE
    assert manifest["released"] + manifest["suppressed"] == manifest["records"] == 4_000_000
