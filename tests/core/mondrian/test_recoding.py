"""What classes cost in distinct values: nothing where a class has one, the whole where it has all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.mondrian.recoding import label_partition
from tests.core.mondrian.test_fragments import cutting_of, records_of
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed


@pytest.mark.parametrize(("k", "cost"), [(1, 0), (6, 6)])
def test_a_record_costs_its_classs_share_of_the_distinct_values_if_it_has_several(k: int, cost: float) -> None:
    values = [1, 1, 2, 2, 3, 3]
    domain = observed("x", values, pa.int64())
    example = Example([(value,) for value in values], (domain,), (built({"widths": [2]}, domain),))
    cutting, codes, weights = cutting_of(example, k), records_of(example), np.ones(6, np.int64)
    assert label_partition(cutting, codes, weights, cutting.cut(codes, weights)).losses["ncp_distinct"] == pytest.approx(cost)
