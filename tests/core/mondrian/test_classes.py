"""What leaves of equal labels are together keeps what is promised of persons, also where that does not hold of every union."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.partition import Rules
from core.mondrian.recoding import Cutting
from core.mondrian.replay import RowTable, cut_and_publish, cutting_by_persons, one_class_keeps
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from core.units.persons import RowPersons
from tests.core.mondrian.test_replay import cutting_of
from tests.laws import tried
from tests.oracles.persons import values_of

MODELS: list[PrivacyModel] = [
    DistinctDiversity("s", 2),
    EntropyDiversity("s", 1.7),
    RecursiveDiversity("s", Fraction(2), 2),
    Closeness("s", 0.3),
]
# A person, an age, a colour, a sensitive value: of few kinds each, so that people and labels meet again and again.
RECORD = st.tuples(
    st.one_of(st.none(), st.integers(0, 12)), st.integers(0, 11), st.sampled_from(["red", "gold", "blue", "aqua"]), st.integers(0, 2)
)


def prepared(records: list[tuple[int | None, int, str, int]], model: PrivacyModel, refused: str = "stop") -> tuple[Cutting, RowTable]:
    cutting, codes = cutting_of([record[1:3] for record in records], 2)
    whose = RowPersons.of_records(np.array([-1 if record[0] is None else record[0] for record in records], np.int32))
    rows = np.column_stack([codes, np.array([record[3] for record in records], codes.dtype)])
    rules = Rules(Promise(2, (model,)), ("s",), (np.bincount([record[3] for record in records], minlength=3),), refused=refused)
    # By hierarchy both, so that leaves far from one another publish the same group.
    coarse = replace(cutting, rules=rules, ways=("hierarchy", "hierarchy"))
    table = RowTable.of(rows, np.ones(len(rows), np.int64), whose)
    return cutting_by_persons(coarse, table), table


@pytest.mark.slow
@given(st.lists(RECORD, min_size=4, max_size=60), st.sampled_from(MODELS))
@tried(150)
def test_every_published_class_keeps_the_model_of_persons(records: list[tuple[int | None, int, str, int]], model: PrivacyModel) -> None:
    cutting, rows = prepared(records, model)
    if not one_class_keeps(cutting, rows):
        return
    made, published = cut_and_publish(cutting, rows)
    classes = published.numbers[made.of_rows()].tolist()
    everybody = [record[0] for record in records]
    whole = values_of(everybody, [0] * len(records), [record[3] for record in records])[0]
    counted = values_of(everybody, classes, [record[3] for record in records])
    for number in set(classes):
        persons = {person for person, mine in zip(everybody, classes, strict=True) if mine == number} - {None}
        values = np.array(sorted(counted[number]), np.int64)
        sizes = np.array([counted[number][value] for value in values.tolist()], np.int64)
        spread = Spread(np.zeros(len(values), np.int64), values, sizes, np.array([whole[value] for value in range(3)], np.int64))
        assert len(persons) >= 2
        assert not model.failing(np.array([len(persons)]), {"s": spread})[0]


@pytest.mark.parametrize(("model", "kept"), list(zip(MODELS, [True, False, False, False], strict=True)))
def test_presence_alone_is_kept_by_unions(model: PrivacyModel, kept: bool) -> None:
    assert Promise(3, (model,)).is_closed_under_union is kept
    assert Promise(3).is_closed_under_union


@pytest.mark.slow
def test_leaves_that_fail_together_are_merged_with_their_neighbours() -> None:
    """Three leaves keep the model; two of them publish the same, and share the two people of the value that is rare in both."""
    first = [*((person, 0, "red", 1) for person in (8, 9)), *((person, 1, "red", 0) for person in range(4))]
    second = [*((person, 2, "red", 0) for person in range(4, 8)), *((person, 3, "red", 1) for person in (8, 9))]
    third = [*((person, 20, "blue", 1) for person in range(10, 14)), *((person, 21, "blue", 0) for person in (14, 15))]
    cutting, rows = prepared([*first, *second, *third], EntropyDiversity("s", 1.8), "next")
    assert one_class_keeps(cutting, rows)
    assert cutting.cut(rows.codes, rows.weights, rows.unit).classes == 3
    made, published = cut_and_publish(cutting, rows)
    assert (made.classes, published.sizes.tolist()) == (1, [18])
