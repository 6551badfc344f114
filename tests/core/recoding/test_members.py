"""Records are gathered class by class, in their own order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.recoding.classes import records_by_class
from tests.laws import tried


@given(st.lists(st.integers(-2, 5), max_size=40))
@tried(100)
def test_each_class_has_its_records_in_their_order_and_those_of_none_are_left_out(classes: list[int]) -> None:
    order, ends = records_by_class(np.array(classes, np.int32))
    assert order.tolist() == sorted((row for row, number in enumerate(classes) if number >= 0), key=lambda row: (classes[row], row))
    assert ends.tolist() == [sum(0 <= other < number for other in classes) for number in range(max([-1, *classes]) + 2)]
    assert order.dtype == ends.dtype == np.int64
