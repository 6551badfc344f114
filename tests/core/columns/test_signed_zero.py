"""Zero has two signs and is one value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.columns.column_types import to_working_type


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_negative_zero_is_zero(dtype: pa.DataType) -> None:
    column = to_working_type(pa.array([-0.0, 0.0, None, -1.5], dtype))
    assert column.type == dtype
    assert column.null_count == 1
    assert np.signbit(column.drop_null().to_numpy()).tolist() == [False, False, True]
