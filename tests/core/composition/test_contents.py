"""By what records are known again, and sketches of bounded size that tell whether two sources have any in common."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.columns.column_types import to_working_type
from core.units import source_digests
from core.units.source_digests import Likeness, Sketch, contents_of, kind_of
from tasks.composition.earlier import likeness
from tests.corpus.columns_of_types import FAMILIES, Kind

COLUMNS = [
    pa.array([1, 2, None, 1], pa.int64()),
    pa.array(["a", None, "b", "a"]),
    pa.array([0.5, 1.5, None, 0.5], pa.float64()),
    pa.array([date(2020, 1, 2), None, date(1999, 12, 31), date(2020, 1, 2)], pa.date32()),
    pa.array([Decimal("1.5"), None, Decimal("2.5"), Decimal("1.5")], pa.decimal128(4, 1)),
    pa.array([True, False, None, True]),
]


def test_digests_are_those_that_registries_hold() -> None:
    """If this changes, the format of the registry must: what was entered before would be known again no more, and nobody warned."""
    assert contents_of(COLUMNS, 4).tolist() == DIGESTS


DIGESTS = [5334709198954688625, 3120319194232032314, 14005110999905382822, 5334709198954688625]


def test_equal_values_are_equal_however_they_are_stored() -> None:
    stored = [COLUMNS[0].cast(pa.int16()), COLUMNS[1].dictionary_encode(), COLUMNS[2], *COLUMNS[3:]]
    assert contents_of(stored, 4).tolist() == contents_of(COLUMNS, 4).tolist()
    assert [kind_of(one.type) for one in stored] == [kind_of(one.type) for one in COLUMNS]
    assert len({kind_of(one) for one in (pa.int64(), pa.string(), pa.float64(), pa.date32())}) == 4
    assert kind_of(pa.float32()) != kind_of(pa.float64()), "its values are rounded"
    assert kind_of(pa.string()) == kind_of(pa.large_string()) == kind_of(pa.binary()), "their digests are those of the bytes"
    assert contents_of([pa.array(["a"])], 1).tolist() == contents_of([pa.array([b"a"])], 1).tolist()


EVERY = {f"{family} {name}": kind for family, kinds in FAMILIES.items() for name, kind in kinds.items()}


@pytest.mark.parametrize("kind", EVERY.values(), ids=list(EVERY))
def test_values_of_every_type_that_can_be_published_are_told_apart(kind: Kind) -> None:
    column = to_working_type(kind.column())
    found = contents_of([column], len(column)).tolist()
    assert len(set(found)) == len(set(map(repr, column.to_pylist())))
    assert kind_of(kind.dtype) == kind_of(column.type)


def test_a_null_is_a_value_and_columns_have_their_places() -> None:
    found = contents_of([pa.array([None, None, 1, 0]), pa.array([1, None, None, 0])], 4)
    assert len(set(found.tolist())) == 4


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 5))
@example([*range(8)] * 3, 3)
@example([*range(9)] * 2, 2)
@example([*range(8)] * 5, 1)  # most records are doubles
@example([*range(8)] * 4 + [0], 1)  # just as many differ as are kept
@example([*range(32)], 1)
@example([*range(33)] * 2, 1)
def test_a_sketch_depends_on_the_records_alone(numbers: list[int], parts: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_digests, "SKETCH_SIZE", 8)
        digests = contents_of([pa.array(numbers, pa.int64())], len(numbers))
        whole = Sketch.of(digests)
        split = np.array_split(digests[::-1], parts)
        pieces, after = Sketch.of_all([Sketch.of(part) for part in split]), Sketch.of(digests[:0])
        for part in split:
            after = Sketch.of_all([after, Sketch.of(part, after)])
        for same in (pieces, after):
            assert (whole.digests.tolist(), whole.counts.tolist(), whole.is_complete) == (
                same.digests.tolist(),
                same.counts.tolist(),
                same.is_complete,
            )
        assert whole.digests.tolist() == sorted(set(digests.tolist()))[:8]
        assert whole.counts.tolist() == [digests.tolist().count(one) for one in whole.digests.tolist()]
        assert whole.is_complete == (len(set(digests.tolist())) <= 8)


@pytest.mark.parametrize("distinct", [100, 1_000_000])
def test_a_sketch_is_of_bounded_size_whatever_the_source(distinct: int) -> None:
    digests = np.random.default_rng(1).integers(0, distinct, 200_000).astype(np.uint64)
    sketch = Sketch.of(digests)
    assert len(sketch.digests) == min(distinct, source_digests.SKETCH_SIZE)
    assert sketch.digests.tolist() == np.unique(digests)[: source_digests.SKETCH_SIZE].tolist()


def test_a_sketch_reaches_as_far_as_it_knows_every_digest() -> None:
    few = np.array([1 << 40, 1 << 62], np.uint64)
    assert Sketch.of(few).reach == 1
    assert Sketch.of(few[:0]).reach == 1
    many = np.arange(source_digests.SKETCH_SIZE + 1, dtype=np.uint64) << np.uint64(50)
    assert Sketch.of(many).reach == float(many[source_digests.SKETCH_SIZE - 1]) / 2.0**64


def alike(mine: np.ndarray, theirs: np.ndarray) -> bool:
    first, other = (Sketch.of(contents_of([pa.array(side)], len(side))) for side in (mine, theirs))
    return likeness(first, first, other, other.reach).is_shared


RANDOM = np.random.default_rng(3)
UNIQUE = RANDOM.permutation(200_000)
DRAWN = RANDOM.integers(0, 500_000, 100_000)


@pytest.mark.parametrize(
    ("mine", "theirs", "shared"),
    [
        (UNIQUE[:50_000], UNIQUE[50_000:], False),
        (UNIQUE[:50_000], np.append(UNIQUE[:49_995], UNIQUE[-5:]), True),
        (UNIQUE[:50_000], UNIQUE[40_000:200_000], True),
        (UNIQUE[:5_000], UNIQUE[4_999:9_000], True),
        (DRAWN, RANDOM.integers(0, 500_000, 100_000), False),
        (DRAWN, RANDOM.integers(0, 500_000, 20_000), False),
        (DRAWN[:20_000], RANDOM.integers(0, 500_000, 100_000), False),
        (DRAWN, np.append(DRAWN[:30_000], RANDOM.integers(0, 500_000, 70_000)), True),
        (DRAWN % 1_000, RANDOM.integers(0, 1_000, 3_000), True),
    ],
    ids=[
        "others", "all but five", "a fifth", "one of small ones", "others by chance alike", "fewer others by chance alike",
        "more others by chance alike", "a third among chance", "too few values to tell",
    ],
)  # fmt: skip
def test_sketches_tell_the_same_records_from_such_as_are_alike_by_chance(mine: np.ndarray, theirs: np.ndarray, shared: bool) -> None:
    assert alike(mine, theirs) is shared
    assert alike(theirs, mine) is shared


def test_what_is_found_in_sources_without_doubles_is_the_same() -> None:
    assert Likeness(1e6, 1e6, 1, 1, 0.0, 0.0).is_shared
    assert not Likeness(1e6, 1e6, 0, 0, 0.0, 0.0).is_shared


@pytest.mark.parametrize(("doubled", "shared"), [((0.6, 0.1), True), ((0.1, 0.6), True), ((0.5, 0.5), False), ((0.5, 0.1), False)])
def test_where_most_records_of_either_have_doubles_whatever_is_alike_is_the_same(doubled: tuple[float, float], shared: bool) -> None:
    assert Likeness(1000, 1000, 5, 5, *doubled).is_shared is shared
    assert not Likeness(1000, 1000, 0, 0, *doubled).is_shared


@pytest.mark.parametrize(("first", "second", "shared"), [(128, 10, False), (129, 10, True), (10, 126, False), (10, 127, True)])
def test_three_deviations_more_than_chance_explains_on_either_side_are_the_same(first: int, second: int, shared: bool) -> None:
    """Chance explains a hundred on both sides, give or take the roots of 90 and of 80."""
    assert Likeness(1000, 500, first, second, 0.2, 0.1).is_shared is shared


def test_of_thirty_records_of_which_half_have_doubles_no_chance_explains_twenty_six() -> None:
    assert Likeness(30, 30, 26, 26, 0.5, 0.5).is_shared
    assert not Likeness(30, 30, 22, 22, 0.5, 0.5).is_shared
