"""What a release of several tables and one of a table below the unit reveal together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.tables import tables
from schemas.errors.refusals import OverlapError
from schemas.release.increments import Overlap
from tests.conftest import Anonymise

pytestmark = pytest.mark.ci

VISITS = {"path": "visit.csv", "types": {"whose": "integer", "cost": "integer", "ward": "integer"}}
WARD = [{"name": "ward", "hierarchy": {"widths": [1, 10]}}]
Columns = dict[str, list[Any]]


class Published:
    """Two releases of sixty persons with a visit each: of visits alone, and of persons with their visits.

    Each a holds ten persons and each ward six, and both together hold one.
    """

    def __init__(self, folder: Path, anonymise: Anonymise) -> None:
        self.folder, self.anonymise = folder, anonymise
        (folder / "person.csv").write_text("pid,a\n" + "".join(f"{row},{row // 10}\n" for row in range(60)))
        self.write_visits(dict.fromkeys(range(60), 7))

    def write_visits(self, costs: dict[int, int]) -> None:
        (self.folder / "visit.csv").write_text("whose,cost,ward\n" + "".join(f"{row},{cost},{row % 10}\n" for row, cost in costs.items()))

    def alone(self, columns: Columns) -> Overlap | None:
        roles = {"person": "whose", "identifiers": ["whose"], **columns}
        self._write("alone", {"version": 1, "source": VISITS, "columns": roles, "method": {"name": "skald"}})
        return next(iter(self.anonymise(self.folder / "alone.yaml").manifest.overlaps or ()), None)

    def together(self, columns: Columns, *settings: str) -> Overlap | None:
        age = {"quasi_identifiers": [{"name": "a", "hierarchy": {"widths": [1]}}]}
        unit = {"source": {"path": "person.csv", "types": {"pid": "integer", "a": "integer"}}, "key": "pid", "columns": age}
        visit = {"source": VISITS, "references": {"whose": "person"}, "columns": columns}
        self._write("together", {"version": 2, "tables": {"person": unit, "visit": visit}})
        return next(iter(tables(self.folder / "together.yaml", settings).manifest.overlaps or ()), None)

    def _write(self, name: str, parts: dict[str, Any]) -> None:
        job = {"name": name, "privacy": {"k": 5}, "suppression": {"limit": 0.5}, "memory": "200MB", "target": name, "attacks": "off"}
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(job | parts))


@pytest.fixture
def published(tmp_path: Path, anonymise: Anonymise) -> Published:
    return Published(tmp_path, anonymise)


@pytest.mark.parametrize("alone_first", [True, False])
def test_persons_of_visits_are_those_to_whom_they_refer(published: Published, *, alone_first: bool) -> None:
    """The table of persons calls them otherwise."""
    by_ward, by_a = {"quasi_identifiers": WARD, "withheld": ["cost"]}, {"withheld": ["cost", "ward"]}
    if alone_first:
        published.alone(by_ward)
        with pytest.raises(OverlapError, match="Nothing was published"):
            published.together(by_a, "overlaps=refuse")
        overlap = published.together(by_a)
    else:
        published.together(by_a)
        overlap = published.alone(by_ward)
    assert overlap is not None
    assert (overlap.by, overlap.shared, overlap.shared_at_risk) == ("persons", 60, 60)


@pytest.mark.parametrize("alone_first", [True, False])
@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_values_of_visits_alone_and_with_their_persons_are_not_compared(published: Published, role: str, *, alone_first: bool) -> None:
    """One release has a line for each visit and the other rows of each person, of whom one pays more now."""
    alone, together = {"quasi_identifiers": WARD, role: ["cost"]}, {"sensitive": ["cost"], "withheld": ["ward"]}
    published.alone(alone) if alone_first else published.together(together)
    published.write_visits(dict.fromkeys(range(60), 7) | {9: 8})
    overlap = published.together(together) if alone_first else published.alone(alone)
    assert overlap is not None
    assert "both publish 'cost', one of them in rows of several tables" in (overlap.unmeasured or "")
    assert not overlap.is_safe


@pytest.mark.parametrize("alone_first", [True, False])
def test_labels_of_visits_that_the_other_release_publishes_as_values_are_told(published: Published, *, alone_first: bool) -> None:
    alone, together = {"quasi_identifiers": WARD, "withheld": ["cost"]}, {"insensitive": ["ward"], "withheld": ["cost"]}
    published.alone(alone) if alone_first else published.together(together)
    overlap = published.together(together) if alone_first else published.alone(alone)
    assert overlap is not None
    assert (overlap.exact, overlap.is_safe) == (("ward",), False)
