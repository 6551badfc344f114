"""Whatever becomes of the records that a node suppresses: every published class is safe, and every figure is that of the records."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from math import floor, log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import Coder
from core.lattice.search import Search
from core.local_suppression.local_transformation import LIMIT, NodeEvaluator, transform_locally
from core.local_suppression.losses import SuppressionCosts, costs_of, objective_value
from core.local_suppression.recoding import read_stages, recode_parts, stages_table
from core.local_suppression.residual import Residual, ResidualLevel
from core.local_suppression.suppressed_records import MaskableClasses, TreatedRecords, classes_to_mask, treat_suppressed
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel
from core.privacy.promise import Promise
from core.recoding.recoding import SUPPRESSED, Recoding, Treatment, read_recoding, recoding_tables
from core.units.class_table import exact_hierarchy
from tests.core.local_suppression.test_cell_suppression import combined, slow
from tests.laws import tried
from tests.oracles import lattice
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, examples, nodes_of, observed

VALUES = 4
MODELS = st.builds(Promise, st.integers(1, 6)) | st.builds(
    lambda k, other: Promise(k, (other,)),
    st.integers(1, 4),
    st.builds(DistinctDiversity, st.just("x"), st.integers(1, 3))
    | st.builds(EntropyDiversity, st.just("x"), st.sampled_from([1.5, 2.0]))
    | st.builds(Closeness, st.just("x"), st.sampled_from([0.1, 0.25, 0.5])),
)


@dataclass(frozen=True)
class Case:
    """A table, the sensitive value of each record, a node of all, what classes must keep, and how records that fail are treated."""

    example: Example
    values: list[int]
    node: tuple[int, ...]
    model: Promise
    rounds: int
    treatment: Treatment


@st.composite
def cases(draw: st.DrawFn, models: st.SearchStrategy[Promise] = MODELS) -> Case:
    example = draw(examples(most_qids=3, most_records=30))
    values = draw(st.lists(st.integers(0, VALUES - 1), min_size=len(example.rows), max_size=len(example.rows)))
    treatment = draw(st.sampled_from(["drop", "mask", "cell", "cell"]))
    return Case(example, values, draw(nodes_of(example)), draw(models), draw(st.integers(0, 3)), treatment)


@dataclass(frozen=True)
class Made:
    """What came of a case."""

    treated: TreatedRecords
    levels: list[ResidualLevel]
    recoding: Recoding
    costs: SuppressionCosts
    rows: list[tuple[Any, ...] | None]


def made_of(case: Case) -> Made:
    example = case.example
    domain = observed("x", case.values, pa.int64())
    whole = Example(
        [(*row, value) for row, value in zip(example.rows, case.values, strict=True)],
        (*example.domains, domain),
        (*example.hierarchies, exact_hierarchy(domain)),
    )
    evaluator = NodeEvaluator(example.hierarchies, (domain,), case.model)
    root = Residual(whole.histogram((0,) * len(whole.domains)))
    first = evaluator.at(root, case.node)
    left = evaluator.records_failing(root, first)
    levels, left = transform_locally(first, left, case.rounds, evaluator, lambda rest: found_in(rest, evaluator))
    treated = treat_suppressed(levels, left, case.treatment, evaluator, example.domains)
    recoding = recode_parts(treated.parts, example.hierarchies, treated.dropped)
    classes = np.concatenate([stage.classes[stage.classes >= 0] for stage in recoding.stages])
    costs = costs_of(treated.parts, classes, example.domains, example.hierarchies, 1, treated.unpublished)
    return Made(treated, levels, recoding, costs, published(example, recoding))


def found_in(rest: Any, evaluator: NodeEvaluator) -> Any:
    most = floor(LIMIT * rest.records)
    return Search(rest.cells, evaluator.axes, evaluator.promise.of_size, most, sensitive=evaluator.sensitive, persons=rest.persons).run()


def published(example: Example, recoding: Recoding) -> list[tuple[Any, ...] | None]:
    """What each record is published as, looked up stage by stage."""
    classes = np.full(len(example.rows), SUPPRESSED)
    for stage in (recoding, *recoding.later):
        parts = zip(example.domains, example.hierarchies, stage.node, strict=True)
        codes = [Coder(domain, hierarchy.groups[level]).code(example.column(qid)) for qid, (domain, hierarchy, level) in enumerate(parts)]
        classes = np.where(classes == SUPPRESSED, stage.assigner.assign(stage.packing.pack(codes)), classes)
    labels = list(zip(*(column.to_pylist() for column in recoding.labels.columns), strict=True))
    return [None if number < 0 else labels[number] for number in classes]


@given(cases())
@tried(120)
def test_every_published_class_is_safe_by_a_recount_of_the_records(case: Case) -> None:
    made = made_of(case)
    classes: defaultdict[Any, list[int]] = defaultdict(list)
    for position, row in enumerate(made.rows):
        if row is not None:
            classes[row].append(position)
    table = [((), value) for value in case.values]
    safe = slow_of(table, case.model)
    assert all(safe(members) for members in classes.values())
    labels = list(zip(*(column.to_pylist() for column in made.recoding.labels.columns), strict=True))
    assert dict(zip(labels, made.recoding.sizes.tolist(), strict=True)) == {row: len(members) for row, members in classes.items()}


def as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def slow_of(table: Any, model: Promise | PrivacyModel) -> Any:
    """The oracle's model measures from a whole in which every value occurs once more; here the whole is the records."""
    values = [value for _, value in table]
    whole = Counter(values)

    def safe(members: list[int]) -> bool:
        match model:
            case Closeness(_, t):
                mine = Counter(values[member] for member in members)
                return sum(abs(mine[one] / len(members) - whole[one] / whole.total()) for one in whole) / 2 <= t + 1e-9
            case Promise(k, models):
                return len(members) >= k and all(slow_of(table, one)(members) for one in models)
        return slow(table, model)(members)

    return safe


@given(cases())
@tried(100)
def test_what_is_safe_at_the_node_stays_as_it_is(case: Case) -> None:
    made = made_of(case)
    ladders = case.example.ladders
    at_node = [tuple(map(as_text, lattice.published(row, ladders, case.node))) for row in case.example.rows]
    members: defaultdict[Any, list[int]] = defaultdict(list)
    for position, row in enumerate(at_node):
        members[row].append(position)
    safe = slow_of([((), value) for value in case.values], case.model)
    kept = [position for group in members.values() if safe(group) for position in group]
    assert all(made.rows[position] == at_node[position] for position in kept)
    # Never fewer than with drop, which publishes just these.
    assert sum(row is not None for row in made.rows) >= len(kept)
    assert made.costs.suppressed <= len(made.rows) - len(kept)


@given(cases())
@tried(100)
def test_losses_are_those_of_every_published_value(case: Case) -> None:
    made = made_of(case)
    example, records = case.example, len(case.example.rows)
    parts = [level_of(made, position, case) for position in range(records)]
    masked = [node is not None and all(withheld) and index > 0 for node, withheld, index in parts]
    dropped = [node is None for node, *_ in parts]
    sizes = Counter(row for row, mask in zip(made.rows, masked, strict=True) if row is not None and not mask).values()
    suppressed = sum(masked) + sum(dropped)
    assert (made.costs.suppressed, made.costs.masked) == (suppressed, sum(masked))
    assert made.costs.loss["dm"] == sum(size**2 for size in sizes) + suppressed * records
    assert made.costs.loss["dm_star"] == sum(size**2 for size in sizes) + suppressed**2
    prices = {"gcp": [0.0] * len(example.domains), "gcp_covered": [0.0] * len(example.domains), "entropy": [0.0] * len(example.domains)}
    for row, (node, withheld, _) in zip(example.rows, parts, strict=True):
        for qid, (value, ladder) in enumerate(zip(row, example.ladders, strict=True)):
            column = [other[qid] for other in example.rows]
            if node is None or (withheld[qid] and node[qid] < len(ladder) - 1):
                same, price, wide = column, 1.0, 1.0
            else:
                label = ladder[node[qid]][value]
                same = [one for one in column if ladder[node[qid]][one] == label]
                price, wide = penalty(label, value, same, column), covered(same, column)
            prices["gcp"][qid] += price / records
            prices["gcp_covered"][qid] += wide / records
            prices["entropy"][qid] += (log2(len(same)) - log2(column.count(value))) / records
    assert made.costs.ncp == pytest.approx(prices["gcp"])
    assert made.costs.loss["gcp"] == pytest.approx(np.mean(prices["gcp"]))
    weights = [float(1 + qid) for qid in range(len(example.domains))]
    for objective in ("gcp_covered", "entropy"):
        asked = objective, made.treated.parts, example.domains, example.hierarchies, sum(dropped)
        # Under its own name only a value is told that follows from labels.
        assert objective_value(*asked) == {}
        assert objective_value(*asked, weights) == {"weighted": pytest.approx(np.average(prices[objective], weights=weights), abs=1e-9)}


def penalty(label: Any, value: Any, same: list[Any], column: list[Any]) -> float:
    """NCP of what a value is published as: an interval over the range, or values over values, one at least where it has another name."""
    numbers = [one for one in column if one is not None]
    if label == "*":
        return float(len(set(column)) > 1)
    if len(set(numbers)) < 2:
        renamed = isinstance(label, str) and label != str(value) and len(set(column)) > 1
        return 1 / len(set(column)) if renamed and len(set(same)) < 2 else covered(same, column)
    mine = [one for one in same if one is not None]
    if found := re.fullmatch(r"\[(-?\d+) - (-?\d+)\]", str(label)):
        mine = [max(int(found[1]), min(numbers)), min(int(found[2]), max(numbers))]
    return (max(mine) - min(mine)) / (max(numbers) - min(numbers)) if mine else 0.0


def covered(same: list[Any], column: list[Any]) -> float:
    return len(set(same)) / len(set(column)) if len(set(same)) > 1 else 0.0


def level_of(made: Made, position: int, case: Case) -> tuple[tuple[int, ...] | None, list[bool], int]:
    """The node at which a record is published, which of its values are withheld there, and in which part."""
    example = case.example
    # A record that an earlier node leaves out may have a combination that a later one publishes of others.
    parts = made.treated.parts if made.rows[position] is not None else []
    for index, part in enumerate(parts):
        cells = part.cells
        codes = [
            int(hierarchy.groups[level][code_of(domain, row_value)])
            for domain, hierarchy, level, row_value in zip(
                example.domains, example.hierarchies, cells.node, example.rows[position], strict=True
            )
        ]
        where = np.flatnonzero((cells.codes == np.array(codes)).all(axis=1))
        if len(where):
            return cells.node, part.withheld(example.hierarchies)[where[0]].tolist(), index
    return None, [], -1


def code_of(domain: Any, value: Any) -> int:
    return len(domain.values) if value is None else domain.values.to_pylist().index(value)


@given(cases())
@tried(40)
def test_a_recoding_of_several_stages_comes_back_from_its_tables(case: Case) -> None:
    recoding = made_of(case).recoding
    back = read_recoding(*recoding_tables(recoding), recoding.node, case.example.hierarchies, "text")
    stages = read_stages(stages_table(recoding.later), [stage.node for stage in recoding.later], case.example.hierarchies)
    assert published(case.example, replace(back, later=stages)) == published(case.example, recoding)


def test_rounds_publish_what_the_node_of_all_fails_at_levels_of_its_own() -> None:
    rows = [(value, 0) for value in range(8)] * 3 + [(8, value) for value in range(8)]
    domains = tuple(observed(f"qid {qid}", [row[qid] for row in rows], pa.int64()) for qid in range(2))
    example = Example(rows, domains, tuple(built({"widths": [1, 4]}, domain) for domain in domains))
    none = made_of(Case(example, [0] * len(rows), (0, 0), Promise(3), 0, "drop"))
    once = made_of(Case(example, [0] * len(rows), (0, 0), Promise(3), 1, "drop"))
    assert (none.costs.suppressed, once.costs.suppressed) == (8, 0)
    assert [level.node for level in once.levels] == [(0, 0), (0, 1)]
    assert Counter(once.rows)["8", "[0 - 3]"] == 4


def test_a_mask_that_lacks_units_takes_the_class_that_loses_least() -> None:
    model = Promise(7)
    left = combined([((number,), 0) for number in range(5)])
    rich = combined([((0,), 0), ((0,), 1), ((1,), 0), ((1,), 1), ((1,), 1)])
    lenders = [MaskableClasses(rich, np.array([0, 1]), np.array([1.0, 0.1]))]
    given_back = classes_to_mask(left, lenders, model)
    assert given_back is not None
    assert given_back[0].tolist() == [False, True]
    assert classes_to_mask(combined([((0,), 0)]), lenders, model) is None
    assert classes_to_mask(left, [MaskableClasses(combined([((0,), 0)] * 3), np.array([0]), np.array([1.0]))], Promise(9)) is None
