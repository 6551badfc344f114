"""A recoding publishes for each record exactly its groups at the node, a star, or nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import Coder, PackedWords
from core.recoding.recoding import (
    SUPPRESSED,
    Assigner,
    Intervals,
    Recoding,
    Treatment,
    read_recoding,
    recode,
    recoding_tables,
    release_columns,
    take_labels,
)
from tests.house.replaced import CODING_WORD, RECODING_LOOK_UP_CELLS
from tests.laws import tried
from tests.oracles import lattice
from tests.oracles.hierarchies import built, domain_of
from tests.oracles.tables import Example, examples, nodes_of, observed

TREATMENTS = st.sampled_from(["drop", "mask"])
Case = tuple[Example, tuple[int, ...], int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    example = draw(examples())
    return example, draw(nodes_of(example)), draw(st.integers(1, 6))


def recoded(case: Case, treatment: Treatment, intervals: Intervals = "text") -> Recoding:
    example, node, k = case
    histogram, masks = example.histogram(node), treatment == "mask"
    failing = histogram.counts < k
    masked = failing if masks and k <= histogram.counts[failing].sum() else None
    return recode(histogram, example.hierarchies, failing, intervals, masks=masks, masked=masked)


def cells(example: Example, recoding: Recoding) -> PackedWords:
    """The cell of each record, in the order of the records."""
    parts = zip(example.domains, example.hierarchies, recoding.node, strict=True)
    coders = [Coder(domain, hierarchy.groups[level]) for domain, hierarchy, level in parts]
    return recoding.packing.pack([coder.code(example.column(position)) for position, coder in enumerate(coders)])


def published(example: Example, recoding: Recoding) -> list[tuple[Any, ...] | None]:
    """What each record is published as; None if it is not."""
    labels = list(zip(*(column.to_pylist() for column in recoding.labels.columns), strict=True))
    classes = Assigner(recoding).assign(cells(example, recoding))
    return [None if number == SUPPRESSED else labels[number] for number in classes]


def expected(case: Case, treatment: Treatment) -> list[tuple[Any, ...] | None]:
    """The same, counted record by record."""
    example, node, k = case
    rows = [lattice.published(row, example.ladders, node) for row in example.rows]
    sizes = Counter(rows)
    if treatment == "drop":
        return [row if sizes[row] >= k else None for row in rows]
    lost = sum(size for size in sizes.values() if size < k)
    stars = ("*",) * len(node) if lost >= k else None
    return [tuple(None if value is None else str(value) for value in row) if sizes[row] >= k else stars for row in rows]


@given(cases(), TREATMENTS)
@tried(150)
def test_each_record_is_published_as_its_groups_as_stars_or_not_at_all(case: Case, treatment: Treatment) -> None:
    recoding = recoded(case, treatment)
    rows = published(case[0], recoding)
    assert rows == expected(case, treatment)
    assert sorted(recoding.sizes.tolist()) == sorted(Counter(row for row in rows if row is not None).values()) or treatment == "mask"
    assert int(recoding.sizes.sum()) == sum(row is not None for row in rows)


@given(cases(), TREATMENTS)
def test_no_class_has_fewer_than_k_records_and_each_has_as_many_as_it_says(case: Case, treatment: Treatment) -> None:
    recoding = recoded(case, treatment)
    classes = Assigner(recoding).assign(cells(case[0], recoding))
    counted = np.bincount(classes[classes != SUPPRESSED], minlength=len(recoding.sizes))
    assert counted.tolist() == recoding.sizes.tolist()
    assert all(size >= case[2] for size in counted)
    assert len(recoding.labels) == len(recoding.sizes)


@given(cases(), TREATMENTS)
def test_a_mask_publishes_every_record_or_leaves_out_fewer_than_k(case: Case, treatment: Treatment) -> None:
    lost = sum(row is None for row in published(case[0], recoded(case, "mask")))
    assert lost == 0 or lost < case[2]
    assert lost <= sum(row is None for row in published(case[0], recoded(case, "drop")))


@given(cases(), TREATMENTS)
def test_a_cell_that_no_record_has_is_suppressed(case: Case, treatment: Treatment) -> None:
    recoding = recoded(case, treatment)
    every = tuple(np.arange(recoding.packing.product, dtype=np.int64) for _ in recoding.words)
    assigned = Assigner(recoding).assign(every)
    there = {number for number in recoding.words[0].tolist()}
    assert [number for number, found in enumerate(assigned) if found != SUPPRESSED] == sorted(there)


@given(cases(), TREATMENTS)
def test_look_up_search_and_several_words_assign_alike(case: Case, treatment: Treatment) -> None:
    plain = published(case[0], recoded(case, treatment))
    with patch(RECODING_LOOK_UP_CELLS, 0):
        assert published(case[0], recoded(case, treatment)) == plain
        with patch(CODING_WORD, 8):
            assert published(case[0], recoded(case, treatment)) == plain


@given(cases(), TREATMENTS)
def test_a_recoding_comes_back_from_its_tables(case: Case, treatment: Treatment) -> None:
    recoding = recoded(case, treatment)
    back = read_recoding(*recoding_tables(recoding), recoding.node, case[0].hierarchies, "text")
    assert published(case[0], back) == published(case[0], recoding)
    assert back.labels.equals(recoding.labels)
    assert (back.sizes.tolist(), back.packing) == (recoding.sizes.tolist(), recoding.packing)


@given(cases(), TREATMENTS, st.randoms(use_true_random=False))
def test_a_recoding_does_not_depend_on_the_order_of_the_records(case: Case, treatment: Treatment, order: Any) -> None:
    example, node, k = case
    rows = list(example.rows)
    order.shuffle(rows)
    one, other = recoded(case, treatment), recoded((Example(rows, example.domains, example.hierarchies), node, k), treatment)
    assert one.labels.equals(other.labels)
    assert (one.classes.tolist(), one.sizes.tolist()) == (other.classes.tolist(), other.sizes.tolist())


@given(cases(), st.data())
def test_labels_of_a_file_are_those_of_its_classes_and_hold_no_other_entry(case: Case, data: st.DataObject) -> None:
    recoding = recoded(case, "mask")
    if not len(recoding.sizes):
        return
    drawn = data.draw(st.lists(st.integers(0, len(recoding.sizes) - 1), max_size=12))
    classes = np.array(sorted(drawn), np.int32)
    columns = take_labels(recoding.labels, classes)
    assert list(columns) == recoding.labels.column_names
    for name, column in columns.items():
        every = recoding.labels[name].to_pylist()
        assert column.to_pylist() == [every[number] for number in classes]
        entries = column.dictionary.to_pylist()
        assert sorted(entries) == sorted({value for value in column.to_pylist() if value is not None})


def test_labels_that_are_no_text_stay_of_their_type() -> None:
    labels = pa.table({"a": pa.array([1, None, 3], pa.int16()), "b": pa.array(["x", None, "z"], pa.large_string())})
    columns = take_labels(labels, np.array([0, 0, 1], np.int32))
    assert columns["a"].equals(pa.array([1, 1, None], pa.int16()))
    assert columns["b"].dictionary.equals(pa.array(["x"], pa.large_string()))


def widths_example() -> Example:
    rows: list[tuple[Any, ...]] = [(1, "a"), (2, "a"), (9, "b"), (None, "b"), (None, "b")]
    numbers, letters = observed("n", [row[0] for row in rows], pa.int64()), observed("t", [row[1] for row in rows], pa.string())
    return Example(rows, (numbers, letters), (built({"widths": [1, 5]}, numbers), built({"tree": {"*": ["a", "b"]}}, letters)))


@pytest.mark.parametrize(
    ("node", "rows"),
    [
        ((0, 0), [(1, 1, "a"), (2, 2, "a"), (9, 9, "b"), (None, None, "b"), (None, None, "b")]),
        ((1, 0), [(0, 4, "a"), (0, 4, "a"), (5, 9, "b"), (None, None, "b"), (None, None, "b")]),
        ((2, 1), [(None, None, "*")] * 5),
    ],
)
def test_bounds_are_two_columns_for_numbers_and_null_where_there_is_no_number(node: tuple[int, int], rows: list[Any]) -> None:
    example = widths_example()
    recoding = recoded((example, node, 1), "drop", "bounds")
    assert recoding.labels.column_names == release_columns(example.hierarchies, "bounds") == ["n_low", "n_high", "t"]
    assert published(example, recoding) == rows
    assert [recoding.labels.schema.field(name).type for name in ("n_low", "n_high")] == [pa.int64()] * 2
    back = read_recoding(*recoding_tables(recoding), node, example.hierarchies, "bounds")
    assert published(example, back) == rows


def test_a_mask_makes_text_of_every_column_whether_or_not_it_masks() -> None:
    example = widths_example()
    for k in (1, 2):
        labels = recoded((example, (0, 0), k), "mask").labels
        assert [field.type for field in labels.schema] == [pa.string(), pa.string()]
    assert recoded((example, (0, 0), 1), "drop").labels.schema.field("n").type == pa.int64()


def test_nothing_is_published_where_every_class_fails() -> None:
    example = widths_example()
    recoding = recoded((example, (0, 0), 9), "drop")
    assert published(example, recoding) == [None] * 5
    assert (len(recoding.labels), len(recoding.sizes)) == (0, 0)
    with patch(RECODING_LOOK_UP_CELLS, 0):
        assert published(example, recoding) == [None] * 5


def test_a_star_in_the_data_is_told_from_the_mask_by_its_own_class() -> None:
    """A value that is itself ``*`` may share its text with the mask, never make a class of fewer than k records."""
    rows: list[tuple[Any, ...]] = [("*",)] * 3 + [("a",)] * 2 + [("b",)] * 1
    domain = observed("q", [row[0] for row in rows], pa.string())
    example = Example(rows, (domain,), (built({"tree": {"all": ["*", "a", "b"]}}, domain_of(domain.values, name="q")),))
    recoding = recoded((example, (0,), 3), "mask")
    assert published(example, recoding) == [("*",)] * 6
    assert recoding.sizes.tolist() == [3, 3]
