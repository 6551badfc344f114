"""Every way to make classes of single records keeps k different persons, however many records each of them has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.clustering.gower import Points, gower_points
from core.clustering.merged_classes import ClassPublication, Criteria, dense, merge_failing, recode_records, smaller_than, without_failing
from core.clustering.outlier_step import MondrianCut, OutlierResult, OutlierStep, separate_outliers
from core.clustering.semantic import Clustering
from core.clustering.vptree import VantageTree, canon_partition
from core.mondrian.ranks import CutAxis
from core.privacy.models import DistinctDiversity, EntropyDiversity
from core.privacy.promise import Promise
from core.recoding.recoding import SUPPRESSED
from core.units.persons import RowPersons
from tests.core.clustering.test_rayden import steps
from tests.oracles import rayden as oracle
from tests.oracles.clustering import generate_clusters
from tests.oracles.persons import values_of
from tests.oracles.records import Records, by_class, gower, mixed_records
from tests.oracles.tables import observed

trees = st.builds(
    VantageTree,
    st.integers(1, 5),
    st.sampled_from(["multiple", "median"]),
    st.sampled_from(["random", "farthest", "seed"]),
    st.integers(0, 3),
)


@st.composite
def row_persons(draw: st.DrawFn, most: int = 40) -> tuple[Records, RowPersons]:
    """Records, and whose they are: of some persons one record, of some several, of one nearly all; some are nobody's."""
    records = draw(mixed_records(most=most))
    persons = draw(st.integers(0, 14))
    whose = st.one_of(st.integers(0, persons), st.integers(0, persons), st.just(0), st.just(-1))
    people = draw(st.lists(whose, min_size=len(records.rows), max_size=len(records.rows)))
    return records, RowPersons.of_records(np.array(people, np.int32))


def people_of(unit: RowPersons) -> NDArray[np.int32]:
    assert unit.people is not None
    return unit.people


def persons_in(classes: NDArray[np.int32], unit: RowPersons) -> list[int]:
    """How many persons each published class has, counted one by one."""
    return [oracle.size(sorted(part), people_of(unit).tolist()) for part in by_class(classes)]


def distance(records: Records) -> oracle.Distance:
    return lambda first, second: gower(records, first, second)


@given(row_persons(), trees)
def test_partitions_are_those_of_the_rule_written_out(table: tuple[Records, RowPersons], tree: VantageTree) -> None:
    records, unit = table
    classes = tree.partition(gower_points(records.codes, records.domains), people=unit.people)
    whole = [list(range(len(records.rows)))]
    expected = oracle.vp_tree(whole, tree.k, tree.split, tree.vantage, tree.seed, distance(records), people_of(unit).tolist())
    assert by_class(classes) == {frozenset(part) for part in expected}
    assert len(expected) == 1 or min(persons_in(classes, unit)) >= tree.k


@given(mixed_records(), trees)
def test_persons_of_one_record_each_are_as_records(records: Records, tree: VantageTree) -> None:
    points, everybody = gower_points(records.codes, records.domains), np.arange(len(records.rows), dtype=np.int32)
    assert np.array_equal(tree.partition(points, people=everybody), tree.partition(points))


def handled(points: Points, tree: VantageTree, step: OutlierStep, unit: RowPersons) -> OutlierResult:
    def cut(rows: NDArray[np.intp], groups: NDArray[np.int32]) -> NDArray[np.int32]:
        return tree.partition(points.take(rows), groups, unit.take(rows).people)

    return separate_outliers(points, tree.partition(points, people=unit.people), step, cut, unit)


@given(row_persons(), steps, st.sampled_from(["multiple", "median"]), st.sampled_from(["random", "farthest", "seed"]))
def test_outliers_are_handled_as_the_algorithms_written_out(
    table: tuple[Records, RowPersons], step: OutlierStep, split: str, vantage: str
) -> None:
    records, unit = table
    outcome = handled(gower_points(records.codes, records.domains), VantageTree(step.k, split, vantage), step, unit)  # type: ignore[arg-type]
    options = (step.k, step.alpha, step.chaining, step.leave, step.pool, split, vantage, distance(records))
    expected, detected, pool = oracle.rayden(len(records.rows), *options, people_of(unit).tolist())
    assert by_class(outcome.classes) == {frozenset(part) for part in expected}
    assert (outcome.detected, outcome.records_left) == (detected, len(pool))
    assert outcome.recovered == sum(record in part for part in expected for record in pool)
    assert min(persons_in(outcome.classes, unit), default=step.k) >= step.k


@given(row_persons(), st.integers(1, 5), st.booleans(), st.sampled_from(["values", "parents"]))
def test_blocks_are_closed_with_the_record_by_which_they_have_k_persons(
    table: tuple[Records, RowPersons], k: int, scaled: bool, start: str
) -> None:
    records, unit = table
    found = Clustering(k, start, scaled).blocks(records.codes, records.domains, records.hierarchies, unit)  # type: ignore[arg-type]
    expected = generate_clusters(records, k, start, scaled, people_of(unit).tolist())
    assert [np.flatnonzero(found.classes == block).tolist() for block in range(len(found.levels))] == expected
    assert len(expected) == 1 or min(persons_in(found.classes, unit)) >= k


@given(row_persons(), trees)
def test_canon_keeps_k_persons(table: tuple[Records, RowPersons], tree: VantageTree) -> None:
    records, unit = table
    assume(oracle.size(range(len(records.rows)), people_of(unit).tolist()) >= tree.k)
    assert min(persons_in(canon_partition(records.codes, records.domains, tree, unit.people), unit)) >= tree.k


@pytest.mark.slow
@given(row_persons(most=60), steps)
def test_mondrian_with_outliers_keeps_k_persons(table: tuple[Records, RowPersons], step: OutlierStep) -> None:
    records, unit = table
    assume(unit.per_class(np.zeros(len(records.rows), np.int32))[0] >= step.k)
    axes = [CutAxis(domain.qid, np.arange(domain.size), None, bool(domain.nulls)) for domain in records.domains]
    cut = MondrianCut(records.codes, axes, step.k, unit)
    parts = cut.partition()
    assert min(persons_in(parts, unit)) >= step.k
    outcome = separate_outliers(gower_points(records.codes, records.domains), parts, step, cut, unit)
    assert min(persons_in(outcome.classes, unit), default=step.k) >= step.k
    assert step.pool == "suppress" or outcome.suppressed == 0


@given(row_persons(), st.integers(1, 6), st.data())
def test_classes_of_too_few_persons_are_merged_and_counted_anew(table: tuple[Records, RowPersons], k: int, data: st.DataObject) -> None:
    records, unit = table
    drawn = data.draw(st.lists(st.integers(-1, 7), min_size=len(records.rows), max_size=len(records.rows)))
    classes = dense(np.array(drawn, np.int32))
    parts = [np.flatnonzero(classes == number).tolist() for number in range(classes.max() + 1)]
    small = smaller_than(k, unit)
    merged, _ = merge_failing(gower_points(records.codes, records.domains), classes, small)
    expected = oracle.merge_small(parts, k, distance(records), people_of(unit).tolist())
    assert by_class(merged) == {frozenset(part) for part in expected}
    published = without_failing(merged, small)
    assert min(persons_in(published, unit), default=k) >= k


@given(row_persons(), st.integers(1, 4), st.sampled_from([DistinctDiversity("s", 2), EntropyDiversity("s", 1.6)]), st.data())
def test_everybody_counts_once_for_each_of_their_values(table: tuple[Records, RowPersons], k: int, model, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    records, unit = table
    size = len(records.rows)
    values = data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=size, max_size=size))
    classes = dense(np.array(data.draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size)), np.int32))
    domain = observed("s", values, pa.string())
    codes = np.array([[*domain.values.to_pylist(), None].index(value) for value in values])
    whole = unit.count(codes, domain.size)
    somebody = [None if person < 0 else person for person in people_of(unit).tolist()]
    counted = values_of(somebody, classes.tolist(), codes.tolist())
    spread = unit.spread(classes, codes, whole)
    found = list(zip(spread.owners.tolist(), spread.values.tolist(), spread.counts.tolist(), strict=True))
    assert found == sorted((group, value, count) for group, mine in counted.items() if group != -1 for value, count in mine.items())
    assert whole.tolist() == [values_of(somebody, [0] * size, codes.tolist())[0][value] for value in range(domain.size)]
    criteria = Criteria(Promise(k, (model,)), {"s": codes}, {"s": whole}, unit)
    assert not (criteria.failing(classes) < smaller_than(k, unit)(classes)).any()


def test_k_persons_of_whom_one_has_all_the_values_are_diverse_and_not_even() -> None:
    """Three persons; one of them has been there with each disease, the others with the same one."""
    people, codes = np.array([0, 0, 0, 1, 2], np.int32), np.array([0, 1, 2, 0, 0])
    unit, classes = RowPersons.of_records(people), np.zeros(5, np.int32)
    whole = unit.count(codes, 3)
    assert whole.tolist() == [3, 1, 1]

    def fails(model) -> bool:  # type: ignore[no-untyped-def]
        return bool(Criteria(Promise(3, (model,)), {"s": codes}, {"s": whole}, unit).failing(classes)[0])

    assert not fails(DistinctDiversity("s", 3))
    assert fails(EntropyDiversity("s", 2.9))


@pytest.mark.parametrize("k", [2, 3])
def test_somebody_with_all_the_records_is_no_class(k: int) -> None:
    points, unit = Points.of(np.arange(40, dtype=np.int32)[:, None], 1), RowPersons.of_records(np.zeros(40, np.int32))
    tree = VantageTree(k)
    assert tree.partition(points, people=unit.people).max() == 0
    assert (handled(points, tree, OutlierStep(k), unit).classes == SUPPRESSED).all()


def test_a_far_record_of_somebody_who_stays_may_leave_and_the_last_one_of_somebody_who_is_needed_may_not() -> None:
    rows = np.array([[0], [1], [2], [3], [4], [5], [6], [1 << 20]], np.int32)
    points, classes, step = Points.of(rows, 1), np.zeros(8, np.int32), OutlierStep(3, pool="suppress", leave="bounded")
    tree = VantageTree(3, "median")

    def left(people: list[int]) -> int:
        unit = RowPersons.of_records(np.array(people, np.int32))
        return separate_outliers(points, classes, step, lambda taken, groups: tree.partition(points.take(taken), groups), unit).records_left

    assert left([0, 0, 0, 1, 1, 1, 2, 2]) == 1
    assert left([0, 0, 0, 1, 1, 1, 1, 2]) == 0
    assert left([0, 0, 0, 1, 1, 1, 2, -1]) == 1


@given(row_persons(), trees)
def test_class_sizes_are_told_in_persons(table: tuple[Records, RowPersons], tree: VantageTree) -> None:
    records, unit = table
    classes = without_failing(tree.partition(gower_points(records.codes, records.domains), people=unit.people), smaller_than(tree.k, unit))
    assume((classes >= 0).any())
    made = recode_records(records.codes, classes, records.domains, records.hierarchies, ClassPublication(tree.k), unit=unit)
    counts = persons_in(made.classes, unit)
    assert made.loss["c_avg"] == pytest.approx(sum(counts) / len(counts) / tree.k)
    partitions = persons_in(classes, unit)
    assert made.loss["c_avg_partitions"] == pytest.approx(sum(partitions) / len(partitions) / tree.k)
