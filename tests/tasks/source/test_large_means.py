"""Numbers of which no squared errors can be summed are refused where means are asked, and only there."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from schemas.errors.values import ValuesError
from schemas.job.identifiers import Publishing
from tasks.source.published_columns import check_counted_values
from tests.core.recoding.held_values import held_values


def test_numbers_whose_squares_are_infinite_have_no_means() -> None:
    counted = held_values(pa.array([-1.7e308, 0.0, 1.7e308, 2.0]), list(range(4)), 2, every=True).writer
    with pytest.raises(ValuesError, match=r"Column 'cost' holds 2 values beyond 1e\+140"):
        check_counted_values("cost", counted, Publishing(microaggregate=2), 10**9)
    check_counted_values("cost", counted, Publishing(round=Decimal(5)), 10**9)
