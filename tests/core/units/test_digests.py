"""A person has one digest wherever it stands: two for one would be one person counted twice."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units.digests import NOBODY, digests_of

TEXTS = st.lists(st.none() | st.text(max_size=20), max_size=30)
WHOLE = st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=30)


@given(TEXTS)
def test_equal_texts_have_equal_digests_however_they_are_written(values: list[str | None]) -> None:
    plain = pa.array(values, pa.string())
    found = digests_of([plain], len(values))
    padded = pa.array(["x", *values, None], pa.string()).slice(1, len(values))
    for other in (plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.binary()), padded):
        assert digests_of([other], len(values)).tolist() == found.tolist()
    for value, digest in zip(values, found, strict=True):
        assert digests_of([pa.array([value], pa.string())], 1)[0] == digest


@given(WHOLE)
def test_equal_numbers_have_equal_digests_whatever_their_width(values: list[int | None]) -> None:
    found = digests_of([pa.array(values, pa.int32())], len(values))
    assert digests_of([pa.array(values, pa.int64())], len(values)).tolist() == found.tolist()
    assert digests_of([pa.array(values, pa.int64()).dictionary_encode()], len(values)).tolist() == found.tolist()


@given(st.lists(st.text(max_size=12), unique=True, max_size=50), st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=50))
def test_different_persons_have_different_digests(texts: list[str], numbers: list[int]) -> None:
    assert len(set(digests_of([pa.array(texts, pa.string())], len(texts)).tolist())) == len(texts)
    assert len(set(digests_of([pa.array(numbers, pa.int64())], len(numbers)).tolist())) == len(numbers)


@given(st.lists(st.tuples(*[st.none() | st.sampled_from(["", "a", "b", "ab"])] * 3), max_size=30))
def test_a_person_of_three_columns_is_all_three_and_nobody_where_one_is_missing(keys: list[tuple[str | None, ...]]) -> None:
    columns = [pa.array([key[position] for key in keys], pa.string()) for position in range(3)]
    found = digests_of(columns, len(keys))
    assert [digest == NOBODY for digest in found] == [None in key for key in keys]
    by_key = {key: digest for key, digest in zip(keys, found.tolist(), strict=True) if None not in key}
    assert [by_key[key] for key in keys if None not in key] == [digest for digest in found.tolist() if digest != NOBODY]
    assert len(set(by_key.values())) == len(by_key)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, False, True, None]),
        pa.array([1.5, -2.0, 1.5, None]),
        pa.array([2**64 - 1, 0, 2**64 - 1, None], pa.uint64()),
        pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("1.50"), None]),
        pa.array([0, 1, 0, None], pa.timestamp("us", "+01:00")),
        pa.array([0, 1, 0, None], pa.date32()),
        pa.array([b"a", b"", b"a", None], pa.large_binary()),
        pa.array([b"\xff\x00", b"", b"\xff\x00", None], pa.binary()),
        pa.array([b"\xff\x00", b"\xff\x01", b"\xff\x00", None], pa.binary(2)),
    ],
    ids=lambda column: str(column.type),
)
def test_any_type_can_name_a_person(column: pa.Array) -> None:
    one, other, again, nobody = digests_of([column], 4).tolist()
    assert one == again != other
    assert nobody == NOBODY
    assert NOBODY not in {one, other}


def test_a_number_that_is_none_names_nobody_and_zero_is_one_person() -> None:
    found = digests_of([pa.array([float("nan"), 0.0, -0.0, None])], 4)
    assert found[0] == found[3] == NOBODY
    assert found[1] == found[2] != NOBODY


def test_numbers_are_told_apart_by_their_last_bit_however_small_or_large_they_are() -> None:
    for number in (5e-324, 1e-30, 0.1, 1.0, 1e30, -1e-30):
        beside = np.nextafter(number, np.inf)
        assert len(set(digests_of([pa.array([number, beside, -number, -beside])], 4).tolist())) == 4
    assert digests_of([pa.array([1.5, 1.5], pa.float32())], 2).tolist() == digests_of([pa.array([1.5, 1.5])], 2).tolist()


def test_every_byte_of_a_text_counts() -> None:
    texts = ["x" * place + "y" + "x" * (19 - place) for place in range(20)]
    assert len(set(digests_of([pa.array(texts)], 20).tolist())) == 20


def test_digests_are_the_same_on_every_machine() -> None:
    columns = [pa.array(["P-000017", "P-000018"]), pa.array([3, 3], pa.int8())]
    assert digests_of(columns, 2).tolist() == FIXED
    truths, numbers = pa.array([False, True]), pa.array([0, 1], pa.uint64())
    assert digests_of([truths], 2).tolist() == digests_of([numbers], 2).tolist() == TRUTHS
    assert digests_of([], 0).dtype == np.uint64


def test_of_no_texts_there_is_no_digest_whether_or_not_it_is_said_where_the_first_begins() -> None:
    nothing = pa.py_buffer(b"")
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        for column in (pa.array([], kind), pa.Array.from_buffers(kind, 0, [None, nothing, nothing])):
            assert digests_of([column], 0).tolist() == []


FIXED, TRUTHS = [16926848382263734226, 10303999239157948088], [13508326642384680972, 18149831327197778825]


def test_the_first_texts_of_a_column_have_as_many_digests() -> None:
    for kind in (pa.string(), pa.large_string(), pa.large_binary()):
        whole = pa.array(["a", "b", "c"], pa.string()).cast(kind)
        assert digests_of([whole.slice(0, 2)], 2).tolist() == digests_of([whole], 3).tolist()[:2]
