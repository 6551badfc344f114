"""Files of arrays in NumPy's format, of which a full disk is reported as such.

NumPy gives no reason where it cannot write an array, and a process ends without a word where memory is mapped to a file on a full disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray


@contextmanager
def array_file(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """Open a new file of an array in C order at its first number; what is not written is 0.

    Args:
        path: The file.
        dtype: Of the array, without objects.
        shape: Of the array.
    """
    kind = np.dtype(dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape})
        end = file.tell() + kind.itemsize * prod(shape)
        yield file
        file.truncate(end)


def write_numbers(file: BinaryIO, numbers: NDArray[Any]) -> None:
    """Write numbers in C order at a file's position, as ``array_file`` opens it."""
    file.write(np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).data)


def write_array(path: Path, numbers: NDArray[Any]) -> int:
    """Write an array to a file of its own; return its length."""
    with array_file(path, numbers.dtype, numbers.shape) as file:
        write_numbers(file, numbers)
    return len(numbers)
