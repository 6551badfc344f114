"""Kernels that kernels call: the same results and exceptions, one machine code, in whatever order they are met."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.runtime import _nrt_python
from numba.core.runtime.nrt import rtsys

from core.compiling.dispatchers import Kernel, PartLibrary


def lesser(one: int, other: int) -> int:
    return min(one, other)


def refuse_negative(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    return number


lesser_kernel, refuse_kernel = Kernel(lesser), Kernel(refuse_negative)


def least_of(numbers: np.ndarray) -> int:
    found = refuse_kernel(numbers[0])
    for one in numbers:
        found = lesser_kernel(found, refuse_kernel(one))
    return found


least_kernel = Kernel(least_of)


def spread_of(numbers: np.ndarray) -> int:
    # Nothing comes of this call, so that the compiler drops it before the kernel below is linked, which makes the same one.
    lesser_kernel(numbers[0], numbers[0])
    return numbers.max() - least_kernel(numbers)


spread_kernel = Kernel(spread_of)


def test_a_kernel_gives_what_its_python_function_gives() -> None:
    numbers = np.array([7, 3, 9], np.int64)
    assert spread_kernel(numbers) == 6


def test_what_a_kernel_calls_is_compiled_as_a_part_of_it() -> None:
    below, above = Kernel(lesser), None

    def twice(one: int, other: int) -> int:
        return 2 * below(one, other)

    above = Kernel(twice)
    assert above(4, 3) == 6
    assert not below.overloads
    assert [type(made.library) for made in below._parts.values()] == [PartLibrary]
    # Python may call it afterwards.
    assert below(4, 3) == 3
    assert len(below.overloads) == 1


def test_an_exception_of_a_part_reaches_python() -> None:
    with pytest.raises(ValueError, match="negative"):
        least_kernel(np.array([5, -1], np.int64))


def test_kernels_are_compiled_for_each_type() -> None:
    assert least_kernel(np.array([5, 2], np.int32)) == 2
    assert least_kernel(np.array([0.5, 0.25])) == 0.25


@pytest.mark.ci
def test_what_was_kept_needs_no_compiler(tmp_path: Path) -> None:
    """A second process loads the code of all parts with that of their caller."""
    program = dedent(
        """
        import numpy as np
        from numba.core import event
        from core.mondrian.rows import order_of_rows, Rows
        compiled = []
        class Listener(event.Listener):
            def on_start(self, event): compiled.append(event)
            def on_end(self, event): pass
        event.register("numba:compile", Listener())
        rows = Rows(np.array([[3], [1], [2]], np.uint16), np.ones(3, np.int64), np.empty((3, 0), np.int32), np.arange(3, dtype=np.int32))
        print(order_of_rows(rows, (0, 3), 0).tolist(), len(compiled) > 0)
        """
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert said == ["[1, 2, 0] True", "[1, 2, 0] False"]


class Pair(NamedTuple):
    """Two arrays."""

    first: np.ndarray
    second: np.ndarray


def borrowed_sum(pair: Pair, rows: np.ndarray) -> int:
    """Looks at arrays in all ways that make none: fields, views, rows, another pair."""
    other, total = Pair(pair.second, pair.first[1:]), 0
    for row in rows:
        total += row[0]
    some = other.first if total > 0 else other.second
    other.second[:2] = 1
    return total + some[0] + rows[0][1] + len(rows[:, 1])


def made(pair: Pair) -> np.ndarray:
    return np.where(pair.first > 0, pair.first, pair.second)


def handed_back(pair: Pair) -> Pair:
    return pair


def copied_sum(pair: Pair, wanted: np.ndarray) -> int:
    return pair.first[wanted].sum() + (pair.second + 1)[0]


borrowed_kernel, made_kernel, back_kernel, copied_kernel = Kernel(borrowed_sum), Kernel(made), Kernel(handed_back), Kernel(copied_sum)


def uses_all(pair: Pair, rows: np.ndarray, wanted: np.ndarray) -> int:
    back = back_kernel(pair)
    return borrowed_kernel(back, rows) + made_kernel(back)[-1] + copied_kernel(pair, wanted)


@pytest.mark.ci
def test_parts_hold_no_array_longer_than_its_caller() -> None:
    caller = Kernel(uses_all)

    def given() -> tuple[Pair, np.ndarray, np.ndarray]:
        return Pair(np.arange(4), np.arange(4) + 5), np.arange(6).reshape(3, 2), np.array([False, True, True, False])

    arguments, found = given(), caller(*given())
    # Python calls the kernels below by themselves, which compiles them once more.
    assert found == uses_all(*given())
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(20):
        arguments[0].first[:] = np.arange(4)
        assert caller(*arguments) == found
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    # Whatever was made is gone, and what was borrowed is there.
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert sys.getrefcount(arguments[0].first) == sys.getrefcount(given()[0].first)
