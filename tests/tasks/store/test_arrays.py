"""Files of arrays are what NumPy reads, and a full disk is told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tasks.store.tables import array_file, write_array, write_numbers

PAIRS = np.dtype([("person", "<i4"), ("class", "<i8")])
numbers = st.sampled_from([np.dtype("i4"), np.dtype("u1"), np.dtype("f8"), PAIRS]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
)


@given(numbers, st.booleans())
def test_what_is_written_is_what_numpy_reads(tmp_path_factory: pytest.TempPathFactory, array: Any, transposed: bool) -> None:
    path, wanted = tmp_path_factory.mktemp("array") / "one.npy", array.T if transposed else array
    assert write_array(path, wanted) == len(wanted)
    read = np.load(path)
    assert read.dtype == wanted.dtype
    assert read.shape == wanted.shape
    assert read.tobytes() == wanted.tobytes()


def test_rows_may_be_written_in_any_order_and_what_is_left_out_is_zero(tmp_path: Path) -> None:
    with array_file(tmp_path / "one.npy", np.uint32, (3, 4)) as file:
        start = file.tell()
        file.seek(start + 4 * 6)
        write_numbers(file, np.array([6, 7], np.uint32))
        file.seek(start)
        write_numbers(file, np.array([9, 1], np.uint32))
    assert np.load(tmp_path / "one.npy").tolist() == [[9, 1, 0, 0], [0, 0, 6, 7], [0, 0, 0, 0]]
    assert np.load(tmp_path / "one.npy", mmap_mode="c")[1].tolist() == [0, 0, 6, 7]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_full_disk_is_the_reason_that_is_given(size: int) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        write_array(Path("/dev/full"), np.zeros(size))
