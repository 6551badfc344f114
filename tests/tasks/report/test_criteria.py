"""A question of the Working Party is answered with yes wherever one thing speaks against a release, whatever else does not."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.release.figures import PassedColumn, RepeatedColumn
from schemas.release.increments import Overlap
from schemas.release.manifest import Linked, Manifest, OneValue
from schemas.release.report import Criterion
from schemas.release.terms import Terms
from tasks.report.criteria import criteria_of

TERMS = Terms(
    limit="0.05", treatment="drop", objective="dm_star", identifiers=(), quasi_identifiers=(), sensitive=("disease",), insensitive=(),
    memory=1,
)  # fmt: skip
LIMITED: dict[str, Any] = {
    "privacy": {"k": 5, "l": {"disease": {"distinct": 2}}},
    "measured": {"l": {"disease": 3}},
    "one_value": {"disease": OneValue(classes=0, records=0, share=0.0)},
}
"""Of a release about which nothing is to be said in answer to any of the three questions."""
LINKED = Linked(columns=("person",), people=90, sets=8, smallest=5, below_k=0, share=0.0, accepted=False)
SAFE = Overlap(release="people-1", k=5, shared=100, shared_at_risk=0, added=0, added_at_risk=0, removed=0, removed_at_risk=0)
PASSED = PassedColumn(distinct=9, unique_records=0, values=95, looked_at=9)
SINGLING, LINKING, INFERRING = "Singling out", "Linkability", "Inference"


def answers(terms: Terms = TERMS, **changes: Any) -> dict[str, Criterion]:
    made: dict[str, Any] = {
        "release": "people-0", "name": "people", "job": "0", "inputs": "0", "method": "skald", "records": 100, "released": 95,
        "suppressed": 5, "masked": 0, "classes": 7, "min_class": 5, "node": None, "levels": None, "loss": {}, "ncp": {},
        "optimal": "certified", "search": {}, "files": (), "versions": {}, "seconds": {}, "peak_rss": 0, "asked": terms,
    }  # fmt: skip
    return {one.name: one for one in criteria_of(Manifest.model_validate(made | LIMITED | changes))}


def speaks_against(terms: Terms = TERMS, **changes: Any) -> set[str]:
    return {name for name, one in answers(terms, **changes).items() if not one.kept}


def test_nothing_speaks_against_a_release_of_which_nothing_is_known_that_does() -> None:
    assert speaks_against() == set()
    assert speaks_against(linked=(LINKED,)) == {LINKING}, "that all share their set does not make records unlinkable"
    assert speaks_against(passthrough={"note": PASSED}) == set()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"linked": (LINKED.model_copy(update={"left_over": 1}),)}, {SINGLING, LINKING}),
        ({"linked": (LINKED.model_copy(update={"smallest": 4, "below_k": 4, "share": 4 / 90}),)}, {SINGLING, LINKING}),
        ({"passthrough": {"note": PASSED.model_copy(update={"unique_records": 1})}}, {SINGLING}),
        ({"passthrough": {"note": PASSED.model_copy(update={"reasons": ("e-mail addresses",)})}}, {SINGLING, LINKING}),
        ({"repeats": {"person": RepeatedColumn(mean=2.0, most=3, share=1.0)}}, {SINGLING}),
        ({"pseudonyms": {"person": "a keyed hash"}}, {LINKING}),
        ({"overlaps": (SAFE,)}, {LINKING}),
        ({"unmeasured_overlaps": 1}, {LINKING}),
        ({"one_value": {"disease": OneValue(classes=1, records=5, share=0.05)}}, {INFERRING}),
        ({"privacy": {"k": 5}}, {INFERRING}),
    ],
    ids=["left over", "linked", "alone", "looks", "repeats", "pseudonyms", "overlap", "unmeasured overlap", "one value", "unguarded"],
)
def test_one_thing_alone_is_enough_to_speak_against_it(changes: dict[str, Any], expected: set[str]) -> None:
    assert speaks_against(**changes) == expected


def test_without_a_sensitive_column_nothing_is_claimed_of_inference() -> None:
    unnamed = TERMS.model_copy(update={"sensitive": ()})
    assert speaks_against(unnamed, one_value={}, privacy={"k": 5}, measured={}) == {INFERRING}
    assert answers(unnamed, one_value={}, privacy={"k": 5}, measured={})[INFERRING].answer == "Not measured."


def test_the_worst_of_several_overlaps_is_told() -> None:
    worse = SAFE.model_copy(update={"release": "people-2", "shared_at_risk": 7})
    [told] = [figure for figure in answers(overlaps=(SAFE, worse))[LINKING].figures if "other releases" in figure]
    assert "2 other releases" in told
    assert "of 7 records at worst" in told
