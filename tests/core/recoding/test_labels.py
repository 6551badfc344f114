"""Every record is covered by what its class publishes, and no class publishes more than it needs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clustering.merged_classes import ClassPublication, recode_records
from core.recoding.classes import Sets
from core.recoding.prices import generalise
from core.recoding.recoding import SUPPRESSED
from tests.oracles.hierarchies import built, domain_of, published
from tests.oracles.records import Records, mixed_records

PLACES = {"World": {"Asia": ["India", "Japan"], "Europe": ["France", "Italy"]}}


@st.composite
def classed(draw: st.DrawFn) -> tuple[Records, np.ndarray]:
    """Records with classes, dense from 0, some records in none."""
    records = draw(mixed_records())
    drawn = draw(st.lists(st.integers(-1, 5), min_size=len(records.rows), max_size=len(records.rows)))
    used = sorted({number for number in drawn if number >= 0})
    classes = np.array([used.index(number) if number >= 0 else -1 for number in drawn], np.int32)
    return records, np.zeros_like(classes) if not used else classes


def expected_label(records: Records, qid: int, members: list[int]) -> str | None:
    values = {records.rows[member][qid] for member in members}
    if len(values) == 1:
        return None if None in values else str(values.pop())
    if None not in values:
        return label_of_values(records, qid, members)
    beside = label_of_values(records, qid, [member for member in members if records.rows[member][qid] is not None])
    return "*" if beside == "*" else f"{{{beside}, null}}"


def label_of_values(records: Records, qid: int, members: list[int]) -> str | None:
    values = {records.rows[member][qid] for member in members}
    if records.numerical[qid]:
        return f"[{min(values)} - {max(values)}]" if len(values) > 1 else str(values.pop())
    hierarchy = records.hierarchies[qid]
    level = next(
        level for level in range(hierarchy.levels) if len({hierarchy.groups[level][records.codes[member, qid]] for member in members}) == 1
    )
    label = published(hierarchy, level)[records.codes[members[0], qid]]
    return None if label is None else str(label)


@given(classed())
def test_labels_are_ranges_and_lowest_common_ancestors(table: tuple[Records, np.ndarray]) -> None:
    records, classes = table
    sets = Sets.of(classes)
    for qid, (domain, hierarchy) in enumerate(zip(records.domains, records.hierarchies, strict=True)):
        label = generalise(None, records.codes[:, qid], sets, domain, hierarchy, "text")
        for number, text in enumerate(label.columns[hierarchy.qid].to_pylist()):
            assert text == expected_label(records, qid, np.flatnonzero(classes == number).tolist())
        assert ((label.penalties >= 0) & (label.penalties <= 1)).all()
        assert ((label.covered >= 0) & (label.covered <= label.penalties + 1e-9)).all()


@given(classed(), st.sampled_from(["hierarchy", "set"]))
def test_classes_that_publish_the_same_are_one(table: tuple[Records, np.ndarray], groups: str) -> None:
    records, classes = table
    ways = tuple("set" if groups == "set" and not numerical else None for numerical in records.numerical)
    recoded = recode_records(records.codes, classes, records.domains, records.hierarchies, ClassPublication(1, ways=ways))
    rows = [tuple(row.values()) for row in recoded.labels.to_pylist()]
    assert len(set(rows)) == len(rows)
    assert ((recoded.classes == SUPPRESSED) == (classes < 0)).all()
    assert np.bincount(recoded.classes[recoded.classes >= 0]).tolist() == recoded.sizes.tolist()
    assert recoded.suppressed == int((classes < 0).sum())
    # Records of one class of the algorithm are of one published class.
    assert len(set(zip(classes.tolist(), recoded.classes.tolist(), strict=True))) == len(set(classes.tolist()))
    lost = recoded.suppressed
    assert recoded.loss["dm_star"] == sum(size * size for size in recoded.sizes.tolist()) + lost * lost
    assert recoded.loss["dm_partitions"] <= recoded.loss["dm"]
    assert recoded.loss["gcp"] >= recoded.loss["gcp_held"] - 1e-9


@given(classed())
def test_sets_name_the_values_of_a_class(table: tuple[Records, np.ndarray]) -> None:
    records, classes = table
    sets = Sets.of(classes)
    for qid, (domain, hierarchy) in enumerate(zip(records.domains, records.hierarchies, strict=True)):
        if records.numerical[qid]:
            continue
        label = generalise("set", records.codes[:, qid], sets, domain, hierarchy, "text")
        for number, text in enumerate(label.columns[hierarchy.qid].to_pylist()):
            values = {records.rows[member][qid] for member in np.flatnonzero(classes == number)}
            if len(values) > 1:
                assert text == "{" + ", ".join([*sorted(values - {None}), *(["null"] if None in values else [])]) + "}"
            else:
                assert text == values.pop()


def test_bounds_are_two_columns_of_the_type_of_the_values() -> None:
    domain = domain_of([10, 20, 30], pa.int32(), nulls=1)
    hierarchy = built({"widths": [10]}, domain)
    sets = Sets.of(np.array([0, 0, 1, 1, 2, 2], np.int32))
    label = generalise(None, np.array([0, 1, 3, 3, 2, 3]), sets, domain, hierarchy, "bounds")
    assert label.columns["x_low"].to_pylist() == [10, None, None]
    assert label.columns["x_high"].to_pylist() == [20, None, None]
    assert label.columns["x_low"].type == pa.int32()
    assert label.penalties.tolist() == [0.5, 0, 1]
    text = generalise(None, np.array([0, 1, 3, 3, 2, 3]), sets, domain, hierarchy, "text")
    assert text.columns["x"].to_pylist() == ["[10 - 20]", None, "{30, null}"]
    assert text.penalties.tolist() == [0.5, 0, 0.5]


def test_a_block_of_the_listing_publishes_the_groups_of_its_level() -> None:
    domain = domain_of(["France", "India", "Italy", "Japan"], pa.string())
    hierarchy = built({"tree": PLACES}, domain)
    sets = Sets.of(np.array([0, 0, 1, 1], np.int32))
    lowest = generalise(None, np.array([0, 0, 1, 3]), sets, domain, hierarchy, "text")
    level = generalise(None, np.array([0, 0, 1, 3]), sets, domain, hierarchy, "text", least=np.array([1, -1]))
    assert lowest.columns["x"].to_pylist() == ["France", "Asia"]
    assert level.columns["x"].to_pylist() == ["Europe", "Asia"]


@pytest.mark.parametrize(("suppressed", "k", "masked"), [(3, 3, 3), (2, 3, 0), (0, 3, 0)])
def test_a_mask_of_fewer_than_k_is_dropped(suppressed: int, k: int, masked: int) -> None:
    domain = domain_of([1, 2], pa.int64())
    hierarchy = built({"widths": [1]}, domain)
    classes = np.array([0] * 5 + [-1] * suppressed, np.int32)
    recoded = recode_records(np.zeros((len(classes), 1), int), classes, [domain], [hierarchy], ClassPublication(k, "mask"))
    assert (recoded.suppressed, recoded.masked) == (suppressed, masked)
    assert recoded.labels["x"].to_pylist() == ["1"] + ["*"] * (masked > 0)
    assert int((recoded.classes == SUPPRESSED).sum()) == suppressed - masked


def test_losses_of_a_worked_example() -> None:
    # Ages 10, 20 | 30, 50 and places India, Japan | France, France; one more record is suppressed.
    age = domain_of([10, 20, 30, 50], pa.int64(), name="age")
    place = domain_of(["France", "India", "Italy", "Japan"], pa.string(), name="place")
    hierarchies = [built({"widths": [10]}, age), built({"tree": PLACES}, place)]
    records = np.array([[0, 1], [1, 3], [2, 0], [3, 0], [0, 2]])
    recoded = recode_records(records, np.array([0, 0, 1, 1, -1], np.int32), [age, place], hierarchies, ClassPublication(2))
    assert recoded.labels.to_pylist() == [{"age": "[10 - 20]", "place": "Asia"}, {"age": "[30 - 50]", "place": "France"}]
    ranges, leaves = (2 * 10 / 40 + 2 * 20 / 40) / 4, (2 * 2 / 4 + 2 * 1 / 4) / 4
    assert recoded.loss["numerical_loss"] == pytest.approx(ranges)
    assert recoded.loss["categorical_loss"] == pytest.approx(leaves)
    assert recoded.loss["total_loss"] == pytest.approx((ranges + leaves) / 2)
    assert recoded.loss["gcp"] == pytest.approx(((0.5 + 1.0 + 1) / 5 + (2 * 0.5 + 0 + 1) / 5) / 2)
    assert recoded.loss["dm"] == 2 * 2 + 2 * 2 + 1 * 5
    assert recoded.loss["c_avg"] == 1
    assert Counter(recoded.classes.tolist())[int(SUPPRESSED)] == 1
