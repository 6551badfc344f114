"""Words follow from what was counted: people where people were, and a maximum risk only where nothing speaks against it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.units.losses import PRESETS
from schemas.release.figures import RepeatedColumn
from tasks.report.terms import UnitWording, losses

RECORDS, PERSONS = UnitWording(), UnitWording("person")
REPEATING = UnitWording(
    "record", {"id": RepeatedColumn(mean=4.5, most=60, share=1.0), "name": RepeatedColumn(mean=6.0, most=9, share=0.25)}
)


def said(unit: UnitWording) -> str:
    told = [
        unit.promise(12),
        unit.lacking(12),
        unit.maximum_risk(12),
        unit.maximum_risk_in_short(12),
        unit.basis(),
        losses(unit.several)["c_avg"],
    ]
    return " ".join(map(str, [*told, *unit.risks().values()]))


def test_records_are_called_records_and_persons_persons() -> None:
    assert not re.search(r"person|people", said(RECORDS))
    assert not re.search(r"\brecords?\b", said(PERSONS).replace("records, suppressed", ""))


def test_every_unit_tells_of_the_same_risks_but_for_claims() -> None:
    assert RECORDS.risks().keys() == PERSONS.risks().keys()
    assert RECORDS.risks().keys() - REPEATING.risks().keys() == {"share_above"}
    shares = {name: share for name, (_, share, _) in RECORDS.risks().items()}
    assert shares == {name: share for name, (_, share, _) in PERSONS.risks().items()}


@pytest.mark.parametrize("unit", [REPEATING, UnitWording("person", linked=True)], ids=["repeating", "linked"])
@pytest.mark.parametrize("least", [1, 5, 12, 1000])
def test_no_threshold_is_claimed_where_identifiers_repeat_or_few_share_what_is_linked(unit: UnitWording, least: int) -> None:
    for text in (unit.maximum_risk(least), unit.maximum_risk_in_short(least)):
        assert not any(source in text or str(threshold) in text for threshold, source in PRESETS.items())


def test_the_warning_gives_both_figures_and_says_where_the_greatest_may_be_missed() -> None:
    assert "'id' 4.50 and 60, 'name' 6.00 and 9 or more" in REPEATING.warning()
    assert RECORDS.warning() == PERSONS.warning() == ""


def test_that_classes_are_of_records_is_said_only_where_they_are() -> None:
    told = {unit.one: " ".join(limit.text for limit in unit.limits()) for unit in (RECORDS, PERSONS)}
    assert "counted in records" in told["record"]
    assert "counted in records" not in told["person"]


def test_a_published_maximum_is_spelt_in_one_place() -> None:
    floors = [Path(folder) for folder in ("flows", "tasks", "core")]
    holding = [path for floor in floors for path in floor.rglob("*.py") if "preset_met" in path.read_text("utf-8")]
    assert sorted(map(str, holding)) == ["core/units/losses.py", "tasks/report/terms.py"]
