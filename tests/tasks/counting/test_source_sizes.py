"""The sizes of combinations of a histogram's rows are counted as Python counts them, however large and however many at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tasks.counting.source_sizes import _sizes_of, summed_sizes
from tests.house.replaced import SOURCE_SIZES_BATCH, SOURCE_SIZES_SMALL


@given(st.lists(st.integers(1, 12)), st.integers(1, 12), st.integers(1, 5))
def test_sizes_of_rows_are_those_that_are_there(counts: list[int], small: int, batch: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "histogram.parquet"
        pq.write_table(pa.table({"cell_0": pa.array(range(len(counts)), pa.int64()), "count": pa.array(counts, pa.int64())}), path)
        with patch(SOURCE_SIZES_SMALL, small), patch(SOURCE_SIZES_BATCH, batch):
            found = summed_sizes(list(_sizes_of(path)))
    assert found.by_size == Counter(counts)
