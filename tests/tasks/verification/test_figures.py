"""Figures of a manifest that follow from others are worked out anew, and each that is said otherwise is named."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from core.recount.classes import Recount
from core.recount.figures import figure_faults
from core.recount.labels.label_losses import ColumnLoss
from core.recount.people import PersonCount
from schemas.release.terms import LatticeFigures
from tests.core.recount.test_classes import PERSONS, manifest

SIZES = {10: 4, 15: 1, 40: 1}
FOUND = Recount(records=95, classes=6, min_class=10, failing=0, exposed=0, masked=0, sizes=SIZES)
DRAWN = LatticeFigures(levels=(3, 2), heights={"passes": (0, 1, 2, 1), "fails": (1, 1, 0, 0)}, nodes={}, whole=False)
LEVELLED: dict[str, Any] = {
    "node": (1, 0), "levels": {"age": 1, "zip": 0}, "tops": {"age": 2, "zip": 1}, "search": {"nodes": 6}, "lattice": DRAWN,
}  # fmt: skip


def wrong(found: Recount = FOUND, *, proved: bool = True, **said: Any) -> list[str]:
    """The figures that are named, of a manifest that lists files with all that was released."""
    released = said.get("released", 95)
    files = [{"path": "data/0.parquet", "rows": released - 5, "sha256": ""}, {"path": "data/1.parquet", "rows": 5, "sha256": ""}]
    faults = figure_faults(manifest(**({"files": files} | said)), found, proved=proved)
    return [name for fault in faults for name in re.findall("'([^']+)'", fault.removeprefix("the manifest's ").partition(" cannot be")[0])]


def test_losses_follow_from_the_sizes_of_classes() -> None:
    squares = 4 * 10**2 + 15**2 + 40**2
    true = {"dm": squares + 5 * 100, "dm_star": squares + 5**2, "suppression_rate": 0.05, "c_avg": 95 / 6 / 5}
    assert wrong(loss=true) == wrong(loss={}) == []
    for name, value in true.items():
        assert wrong(loss=true | {name: value + 1}) == [f"loss.{name}"]
    assert wrong(loss=true | {"c_avg": true["c_avg"] * (1 + 1e-12)}) == [], "floats that were added up in another order"


@pytest.mark.parametrize(
    ("starred", "sizes"),
    [(5, {10: 4, 15: 1, 40: 1, 5: 1}), (9, {10: 4, 15: 1, 36: 1, 9: 1}), (9, {10: 4, 15: 1, 32: 1, 4: 1, 9: 1})],
)
def test_masked_records_are_no_class_of_those_whose_level_is_the_star(starred: int, sizes: dict[int, int]) -> None:
    found = replace(FOUND, records=100, classes=len(sizes), masked=starred, sizes=sizes)
    kept = [size for size, many in sizes.items() for _ in range(many) if size != starred] + [starred - 5]
    squares = sum(size**2 for size in kept)
    # With those whose level is the star masked records are one class, of which nobody can take them out.
    average = 95 / 6 / 5 if starred == 5 else 100 / sum(sizes.values()) / 5
    true = {"dm": squares + 5 * 100, "dm_star": squares + 5**2, "suppression_rate": 0.05, "c_avg": average}
    said = {"released": 100, "masked": 5, "classes": len(sizes)}
    assert wrong(found, loss=true, **said) == []
    for name in ("dm", "dm_star", "c_avg"):
        assert wrong(found, loss=true | {name: true[name] - 1}, **said) == [f"loss.{name}"]


def test_of_a_release_of_masked_records_alone_the_mean_class_is_none() -> None:
    found = Recount(records=100, classes=1, min_class=100, failing=0, exposed=0, masked=100, sizes={100: 1})
    true = {"dm": 100 * 100, "dm_star": 100**2, "suppression_rate": 1.0, "c_avg": 0.0}
    said = {"released": 100, "suppressed": 100, "masked": 100, "classes": 1}
    assert wrong(found, loss=true, **said) == []
    assert wrong(found, loss=true | {"c_avg": 1.0}, **said) == ["loss.c_avg"]


def test_where_there_are_no_records_none_is_suppressed() -> None:
    found = Recount(records=0, classes=0, min_class=0, failing=0, exposed=0, masked=0, sizes={})
    said = {"records": 0, "released": 0, "suppressed": 0, "classes": 0, "files": []}
    true = {"dm": 0, "dm_star": 0, "suppression_rate": 0.0, "c_avg": 0.0}
    assert wrong(found, loss=true, **said) == []
    for name in true:
        assert wrong(found, loss=true | {name: 1.0}, **said) == [f"loss.{name}"]


def test_what_the_worst_class_keeps_is_what_was_counted_of_what_was_asked_for() -> None:
    found = replace(FOUND, measured={"l": {"s": 3.0, "d": 2.5}, "t": {"s": 0.25}})
    asked = {"k": 5, "l": {"s": {"distinct": 2}, "d": {"entropy": 2}}, "t": {"s": {"t": 0.3}}}
    said = {"l": {"s": 3.0, "d": 2.5}}
    assert wrong(found, privacy=asked, measured=said) == []
    assert wrong(found, privacy=asked, measured={"l": {"s": 4.0, "d": 2.5}}) == ["measured.l.s"]
    assert wrong(found, privacy=asked, measured={"l": {"d": 2.5}}) == ["measured.l.s"]
    assert wrong(found, privacy={"k": 5, "l": {"s": {"distinct": 2}}}, measured=said) == ["measured.l.d"]
    older = said | {"t": {"s": 0.2}}
    assert wrong(found, privacy=asked, measured=older) == ["measured.t.s"]
    assert wrong(found, proved=False, privacy=asked, measured=older) == [], "without the source nobody knows how far a class is from it"


def test_values_of_nobody_are_in_the_files_and_no_persons_so_that_less_may_be_said_where_persons_are_not_counted() -> None:
    found = replace(FOUND, measured={"l": {"s": 3.0}})
    said: dict[str, Any] = {"privacy": {"k": 5, "l": {"s": {"distinct": 2}}}, "persons": PERSONS}
    counted = replace(found, persons=PersonCount(60, 1, 0, 5, 0, 0, 0, sizes={10: 6}))
    assert wrong(found, measured={"l": {"s": 2.0}}, **said) == wrong(found, measured={"l": {"s": 3.0}}, **said) == []
    assert wrong(found, measured={"l": {"s": 4.0}}, **said) == wrong(found, measured={}, **said) == ["measured.l.s"]
    assert wrong(counted, measured={"l": {"s": 2.0}}, **said) == ["measured.l.s"]


def test_penalties_are_those_of_the_labels_and_of_what_was_dropped() -> None:
    found = replace(FOUND, losses={"age": ColumnLoss(19.0, 0.0, numeric=True), "zip": ColumnLoss(45.0, 0.0, numeric=False)})
    ncp = {"age": 0.24, "zip": 0.5}
    assert wrong(found, ncp=ncp, loss={"gcp": 0.37, "gcp_held": 0.37}) == []
    assert wrong(found, ncp={"age": 0.24, "zip": 0.6}) == ["ncp.zip"]
    assert wrong(found, ncp={"age": 0.24}) == ["ncp.zip"]
    assert wrong(found, ncp=ncp, loss={"gcp": 0.36}) == ["loss.gcp"]
    assert wrong(found, ncp=ncp, loss={"gcp_held": 0.36}) == ["loss.gcp_held"]
    assert wrong(found, proved=False, ncp={"age": 0.9, "zip": 0.9}) == []
    assert wrong(found, ncp={"age": 0.9, "zip": 0.9}, search={"nodes": 6, "passing": 3}) == [], "earlier versions tell of the source"


def test_figures_that_are_sums_are_those_of_their_parts() -> None:
    sources = [{"digest": "0", "records": 60}, {"digest": "1", "records": 40}]
    assert wrong(sources=sources) == []
    assert wrong(sources=[*sources, {"digest": "2", "records": 1}]) == ["sources"]
    assert wrong(sources=[*sources, {"digest": "2", "records": None}]) == ["sources"]
    assert wrong(released=96) == []
    assert wrong(files=[{"path": "data/0.parquet", "rows": 94, "sha256": ""}]) == ["files.rows"]
    assert wrong(suppressed_for={"k": 3, "linked": 2}) == []
    assert wrong(suppressed_for={"k": 3, "linked": 3}) == ["suppressed_for"]
    bands = [{"least": 1, "most": 1, "classes": 8, "records": 8}, {"least": 2, "most": None, "classes": 7, "records": 92}]
    assert wrong(source_sizes=bands, risk={"before": {"records": 100, "classes": 15}}) == []
    assert wrong(source_sizes=bands, risk={"before": {"records": 100, "classes": 14}}) == ["source_sizes"]
    assert wrong(source_sizes=bands, risk={"before": {"records": 99, "classes": 15}}) == ["source_sizes"]
    assert wrong(source_sizes=(), risk={"before": {"records": 99, "classes": 15}}) == []


def test_figures_of_levels_fit_each_other() -> None:
    assert wrong(**LEVELLED) == []
    assert wrong(**LEVELLED | {"node": (1, 1)}) == ["node"]
    assert wrong(**LEVELLED | {"levels": {"zip": 1, "age": 0}}) == ["levels"]
    assert wrong(**LEVELLED | {"levels": {"age": 3, "zip": 0}, "node": (3, 0), "lattice": None}) == ["levels"]
    assert wrong(**LEVELLED | {"search": {"nodes": 7}}) == ["search.nodes"]
    assert wrong(**LEVELLED | {"search": {}}) == ["search.nodes"]
    assert wrong(**LEVELLED | {"search": {"nodes": 6, "passing": 7}}) == ["search.passing"]
    assert wrong(**LEVELLED | {"search": {"nodes": 6, "passing": 6}}) == []
    assert wrong(levels={"age": 1}) == ["levels"]


@pytest.mark.parametrize(
    ("drawn", "is_right"),
    [
        ({}, True), ({"levels": (3,)}, False), ({"levels": (3, 3)}, False), ({"levels": (1, 2)}, False), ({"levels": (2, 2)}, False),
        ({"levels": (2, 3)}, False),
        ({"heights": {"passes": (0, 1, 2, 1), "fails": (1, 2, 0, 0)}}, False), ({"heights": {"passes": (1, 2, 2)}}, False),
        ({"heights": {"passes": (1, 2, 1, 1)}}, False), ({"heights": {"passes": (1, 2, 2, 1)}}, True),
    ],
)  # fmt: skip
def test_a_picture_is_one_of_the_lattice_whose_levels_are_named(drawn: dict[str, Any], is_right: bool) -> None:
    assert wrong(**LEVELLED | {"lattice": DRAWN.model_copy(update=drawn)}) == ([] if is_right else ["lattice"])


def test_of_persons_that_were_not_counted_the_mean_class_follows_from_nothing() -> None:
    assert wrong(loss={"c_avg": 99.0}) == ["loss.c_avg"]
    assert wrong(loss={"c_avg": 99.0}, persons=PERSONS) == []
    counted = replace(FOUND, persons=PersonCount(60, 1, 0, 5, 0, 0, 0, sizes={10: 6}))
    assert wrong(counted, loss={"c_avg": 10 / 5}, persons=PERSONS) == []
    assert wrong(counted, loss={"c_avg": 95 / 6 / 5}, persons=PERSONS) == ["loss.c_avg"]


def test_a_picture_has_the_node_that_is_named() -> None:
    drawn = LatticeFigures(levels=(2, 2), heights={"passes": (1, 2, 1), "fails": (0, 0, 0)}, nodes={}, whole=False)
    shown: dict[str, Any] = LEVELLED | {"search": {"nodes": 4}, "lattice": drawn}
    assert wrong(**shown) == []
    assert wrong(**shown | {"node": (2, 0), "levels": {"age": 2, "zip": 0}}) == ["lattice"]
