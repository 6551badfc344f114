"""Stars, rounds and masks where persons count: every published class has k people, and everybody counts once for each of their values."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import Hierarchy
from core.local_suppression.local_transformation import NodeEvaluator, transform_locally
from core.local_suppression.losses import costs_of
from core.local_suppression.recoding import recode_parts
from core.local_suppression.residual import Residual
from core.local_suppression.suppressed_records import treat_suppressed
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from core.units.class_table import SelectedPersons, exact_hierarchy
from tests.core.local_suppression.test_cell_suppression import MODELS, slow
from tests.core.local_suppression.test_suppressed_records import Case, Made, as_text, cases, found_in, made_of, published
from tests.core.units.tables_of_people import People
from tests.laws import tried
from tests.oracles import lattice
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed


@dataclass(frozen=True)
class PeopleCase:
    """A case, and whose each record is."""

    case: Case
    people: list[int | None]


def repeated(hierarchy: Hierarchy) -> Hierarchy:
    """The same groups, called by their number at every level, so that several levels have groups of one name."""
    above = [
        pa.array([None if label is None else str(group) for group, label in enumerate(labels.to_pylist())], pa.string())
        for labels in hierarchy.labels[1:-1]
    ]
    return replace(hierarchy, labels=(hierarchy.labels[0], *above, hierarchy.labels[-1]))


@st.composite
def people_cases(draw: st.DrawFn) -> PeopleCase:
    case = draw(cases(MODELS))
    if draw(st.booleans()):
        example = replace(case.example, hierarchies=tuple(map(repeated, case.example.hierarchies)))
        case = replace(case, example=example)
    size = len(case.example.rows)
    most = draw(st.integers(0, 12))
    whose = st.one_of(st.integers(0, most), st.integers(0, most), st.just(0), st.none())
    return PeopleCase(case, draw(st.lists(whose, min_size=size, max_size=size)))


def rows_of(asked: PeopleCase) -> list[tuple[Any, ...] | None]:
    """What each record is published as."""
    return made_with_people(asked).rows


def made_with_people(asked: PeopleCase) -> Made:
    """What comes of a case where persons count."""
    case, example = asked.case, asked.case.example
    domain = observed("x", case.values, pa.int64())
    rows = [(*row, value) for row, value in zip(example.rows, case.values, strict=True)]
    whole = Example(rows, (*example.domains, domain), (*example.hierarchies, exact_hierarchy(domain)))
    root = whole.histogram((0,) * len(whole.domains))
    whose = SelectedPersons.of(People(whole, asked.people).persons_of(root), [root], [domain])
    evaluator = NodeEvaluator(example.hierarchies, (domain,), case.model)
    first = evaluator.at(Residual(root, whose), case.node)
    left = evaluator.records_failing(Residual(root, whose), first)
    levels, left = transform_locally(first, left, case.rounds, evaluator, lambda rest: found_in(rest, evaluator))
    treated = treat_suppressed(levels, left, case.treatment, evaluator, example.domains)
    recoding = recode_parts(treated.parts, example.hierarchies, treated.dropped)
    classes = np.concatenate([stage.classes[stage.classes >= 0] for stage in recoding.stages])
    costs = costs_of(treated.parts, classes, example.domains, example.hierarchies, 1, treated.unpublished)
    return Made(treated, levels, recoding, costs, published(example, recoding))


def safe(model: Promise | PrivacyModel, members: list[int], asked: PeopleCase) -> bool:
    """The model by its definition, person by person."""
    people, values = asked.people, asked.case.values
    match model:
        case Promise(k, models):
            return len({people[member] for member in members} - {None}) >= k and all(safe(one, members, asked) for one in models)
    mine = {(people[member], values[member]) for member in members if people[member] is not None}
    everyone = {pair for pair in zip(people, values, strict=True) if pair[0] is not None}
    if not mine:
        return False
    if isinstance(model, Closeness):
        shares, wholes = (Counter(value for _, value in pairs) for pairs in (mine, everyone))
        moved = sum(abs(shares[value] / len(mine) - wholes[value] / len(everyone)) for value in wholes)
        return moved / 2 <= model.t + 1e-9
    return slow([((), value) for _, value in mine], model)(list(range(len(mine))))


@given(people_cases())
@tried(300)
def test_every_published_class_is_safe_by_a_recount_of_the_people(asked: PeopleCase) -> None:
    assert_safe(asked)


def assert_safe(asked: PeopleCase) -> None:
    classes: defaultdict[Any, list[int]] = defaultdict(list)
    for position, row in enumerate(rows_of(asked)):
        if row is not None:
            classes[row].append(position)
    assert all(safe(asked.case.model, members, asked) for members in classes.values())


def test_two_rounds_that_publish_one_label_make_no_class_that_is_unsafe() -> None:
    """Of ``0`` two people, one of each illness; of ``1`` and ``2``, which the next level calls ``0``, one more and one of these again."""
    rows, values = [(0,), (0,), (1,), (2,)], [0, 1, 0, 1]
    domain = observed("qid", [row[0] for row in rows], pa.int64())
    groups = tuple(np.array(level, np.uint32) for level in ([0, 1, 2], [1, 0, 0], [0, 0, 0]))
    labels = (domain.values, pa.array(["0", "1"]), pa.array(["*"]))
    hierarchy = Hierarchy("qid", groups, labels, (None,) * 3, (3, 2, 1))
    model = Promise(2, (EntropyDiversity("x", 2.0),))
    asked = PeopleCase(Case(Example(rows, (domain,), (hierarchy,)), values, (0,), model, 1, "drop"), [1, 2, 3, 2])
    assert rows_of(asked) == [("0",), ("0",), None, None]
    others = replace(asked, people=[1, 2, 3, 4])
    assert rows_of(others) == [("0",)] * 4


def test_a_class_of_a_round_that_is_masked_saves_the_mask() -> None:
    """One person has both records that are left; the class of the round has another one, and is masked with them."""
    rows = [(0, 0), (0, 1), (1, 0), (1, 0)]
    domains = tuple(observed(f"qid {qid}", [row[qid] for row in rows], pa.int64()) for qid in range(2))
    hierarchies = tuple(built({"widths": [2]}, domain) for domain in domains)
    case = Case(Example(rows, domains, hierarchies), [0] * 4, (0, 0), Promise(2), 1, "mask")
    asked = PeopleCase(case, [1, 2, 1, 1])
    assert rows_of(asked) == [("*", "*")] * 4
    assert made_with_people(asked).treated.uneven == 0


@given(people_cases())
@tried(100)
def test_what_is_safe_at_the_node_stays_as_it_is(asked: PeopleCase) -> None:
    example, found = asked.case.example, rows_of(asked)
    at_node = [tuple(map(as_text, lattice.published(row, example.ladders, asked.case.node))) for row in example.rows]
    members: defaultdict[Any, list[int]] = defaultdict(list)
    for position, row in enumerate(at_node):
        members[row].append(position)
    kept = [position for group in members.values() if safe(asked.case.model, group, asked) for position in group]
    assert all(found[position] == at_node[position] for position in kept)


@given(cases(MODELS))
@tried(100)
def test_where_everybody_has_one_record_it_is_as_without_persons(case: Case) -> None:
    assert rows_of(PeopleCase(case, list(range(len(case.values))))) == made_of(case).rows


def has_too_many_cells(seed: int) -> PeopleCase:
    """Some dozen people with records all over three QIDs, most of whose combinations fail at the node of all."""
    random = np.random.default_rng(seed)
    size, qids = int(random.integers(20, 70)), int(random.integers(1, 4))
    rows = [tuple(map(int, row)) for row in random.integers(0, int(random.integers(2, 6)), (size, qids))]
    domains = tuple(observed(f"qid {qid}", [row[qid] for row in rows], pa.int64()) for qid in range(qids))
    hierarchies = tuple(repeated(built({"widths": [2, 4]}, domain)) for domain in domains)
    values = random.integers(0, 1 + int(random.integers(0, 4)), size).tolist()
    whose = [None if person > 30 else int(person) for person in random.geometric(random.choice([0.03, 0.1, 0.3]), size)]
    k, others = int(random.integers(1, 5)), [DistinctDiversity("x", 2), EntropyDiversity("x", 1.5), EntropyDiversity("x", 2.0)]
    others += [Closeness("x", 0.25), Closeness("x", 0.5), RecursiveDiversity("x", Fraction(2), 2)]
    model = Promise(k, (others[int(random.integers(len(others)))],)) if random.random() < 0.7 else Promise(k)
    node = tuple(int(random.integers(hierarchy.top)) for hierarchy in hierarchies)
    case = Case(
        Example(rows, domains, hierarchies), values, node, model, int(random.integers(4)), str(random.choice(["drop", "mask", "cell"]))
    )
    return PeopleCase(case, whose)


@pytest.mark.parametrize("seed", range(40))
def test_so_it_is_where_people_are_in_many_classes(seed: int) -> None:
    assert_safe(has_too_many_cells(seed))
