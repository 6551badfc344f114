"""The recount works the risk out anew, and it is the one that a run states."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.classes import risk_of_files
from core.units.losses import release_risk

SIZES = st.dictionaries(st.integers(1, 400), st.integers(1, 50), max_size=8)


@given(SIZES, st.integers(0, 9), st.data())
@example({11: 1, 12: 1, 1: 2}, 0, None)
def test_both_figures_are_the_same(classes: dict[int, int], suppressed: int, data: st.DataObject | None) -> None:
    starred = data.draw(st.sampled_from([0, *classes])) if data else 0
    masked = data.draw(st.sampled_from([0, starred, max(starred - 1, 0)])) if data else 0
    assert risk_of_files(classes, starred, suppressed, masked) == release_risk(classes, starred, suppressed, masked)


def test_masked_records_are_in_no_class_unless_others_look_alike() -> None:
    assert risk_of_files({5: 2, 3: 1}, 3, 3, 3)["classes"] == 2
    assert risk_of_files({5: 2, 3: 1}, 3, 3, 2)["classes"] == 3
    assert risk_of_files({3: 1}, 3, 3, 3) == {"records": 0, "classes": 0, "suppressed": 3}
    assert risk_of_files({11: 1, 12: 1}, 0, 0, 0)["records_above"] == 11
