"""What is dangerous about a release of several tables is said beside its manifest, for whoever reads no summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.terminal.tables import tables_summary, tables_warnings
from tests.tasks.recount.test_stated_tables import stated

COUNTS = {"shared": 40, "added": 9, "removed": 9, "changed": 0, "rounded": False, "unmeasured": ""}
ATTACK = {
    "name": "joins", "target": None, "knows": "all rows of the joined tables", "guesses": 40, "control_guesses": 0, "control_right": 0,
    "advantage": 0.0, "low": 0.0, "high": 0.1, "accepted": 0.0,
}  # fmt: skip
ATTACKED = {"people": 40, "sample": None, "seed": 0, "code": "", "unplayed": []}


def overlap(at_risk: int) -> dict[str, Any]:
    below = {"shared_at_risk": at_risk, "added_at_risk": 0, "removed_at_risk": 0, "values_at_risk": None}
    return {"release": "hospital-1", "k": 4, "by": "persons", "unit": "person"} | COUNTS | below


@pytest.mark.parametrize(("at_risk", "warned"), [(0, []), (3, ["Warning: Together with earlier releases this one tells more"])])
def test_earlier_releases_are_warned_of_and_each_has_a_line(tmp_path: Path, at_risk: int, warned: list[str]) -> None:
    manifest = stated(tmp_path, overlaps=[overlap(at_risk)])
    *said, earlier = tables_warnings(manifest)
    assert [line.startswith(sentence) for line, sentence in zip(said, warned, strict=True)] == [True] * len(warned)
    assert earlier.startswith(f"Earlier: hospital-1: {'below k = 4: 3 of 40' if at_risk else 'no person below k = 4'}")
    assert tables_summary(manifest, "there", {}, {}, new=True).splitlines()[1 : 1 + len(warned)] == said


@pytest.mark.parametrize("verdict", ["safe", "broken"])
def test_an_attack_that_breaks_the_release_is_a_warning(tmp_path: Path, verdict: str) -> None:
    manifest = stated(tmp_path, overlaps=[], attacks=[ATTACK | {"right": 2, "verdict": verdict}], attacked=ATTACKED)
    assert [line.startswith("Attacked before") for line in tables_warnings(manifest)] == [True] * (verdict == "broken")
