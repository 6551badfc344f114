"""What NumPy does with small arrays in the place of a loop is what the loop does."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compiling.compiled import Loop, SmallArrays, compiled_loops_only, compiler, small_in
from tests.places import ROOT

Case = Callable[[np.random.Generator, int], tuple[Any, ...]]
SIZES = (3, 2, 5)
STARTS = np.array([0, 3, 5])
WEIGHTS = np.array([0, 10, 20, 0, 5, 0, 1, 2, 3, 4])


def codes(random: np.random.Generator, n: int, order: str = "C") -> Any:
    return np.asarray(np.stack([random.integers(0, size, n) for size in SIZES], axis=1), np.uint16, order=order)  # type: ignore[call-overload]


def counts(random: np.random.Generator, n: int, dtype: Any = np.int64) -> Any:
    return random.integers(0, 9, n).astype(dtype)


def slots(n: int) -> Any:
    return np.full(1 << max(4, (2 * n).bit_length()), -1, np.int32)


def weights(random: np.random.Generator, size: int) -> Any:
    return random.integers(0, 10, size).astype(np.int32)


def of_classes(random: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Classes, records class by class and where each class begins; no class is empty."""
    classes = np.unique(random.integers(0, 4, n), return_inverse=True)[1]
    order = np.argsort(classes, kind="stable")
    return classes, order, np.searchsorted(classes[order], np.arange(classes.max(initial=-1) + 1))


def packed(random: np.random.Generator, n: int) -> Any:
    return np.sort((random.integers(0, 5, n + 1) << 4) | random.integers(1, 9, n + 1))


def members(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    classes = random.integers(-1, 4, n).astype(np.int32)
    ends = np.append(0, np.cumsum(np.bincount(classes[classes >= 0], minlength=4)))
    return classes, ends[:-1].copy(), np.zeros(ends[-1], np.int64)


def distinct(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    _, order, starts = of_classes(random, n)
    return random.integers(0, 6, n).astype(np.uint8), order, starts, 6


def texts(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    lengths = random.choice([0, 1, 7, 8, 9, 16, 40], n)
    return np.append(0, np.cumsum(lengths)).astype(np.int64), random.integers(0, 256, int(lengths.sum())).astype(np.uint8)


def digests(random: np.random.Generator, n: int) -> Any:
    return random.integers(0, 2**64, n, np.uint64, endpoint=False) * random.integers(0, 2, n).astype(np.uint64)


def folded(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    shape = (3, n + 1, 4)
    return random.integers(0, 9, shape), random.integers(0, 3, n + 1), np.ones((3, 3, 4), np.int64)


CASES: dict[str, Case] = {
    "core.columns.kernels.add_cells": lambda r, n: (codes(r, n, "F"), STARTS, WEIGHTS, counts(r, n), np.ones(30, np.int64)),
    "core.columns.kernels.number_cells": lambda r, n: (codes(r, n), STARTS, WEIGHTS),
    "core.columns.kernels.sum_equal_cells": lambda r, n: (r.integers(0, 20, n), counts(r, n, np.int32), slots(n)),
    "core.columns.kernels.number_distinct": lambda r, n: (r.integers(-9, 20, n), slots(n)),
    "core.columns.kernels.number_values": lambda r, n: (
        r.integers(-(2**62), 2**62, 5)[r.integers(0, 5, n)], slots(8), int(r.integers(1, 8))
    ),
    "core.columns.kernels.add_numbers": lambda r, n: (r.integers(0, 30, n), counts(r, n), np.ones(30, np.int64)),
    "core.columns.kernels.count_numbers": lambda r, n: (r.integers(-3, 30, n).astype(np.int32), np.ones(30, np.int64)),
    "core.columns.kernels.entries_at": lambda r, n: (counts(r, 8, np.uint8), r.integers(0, 8, n).astype(np.int32)),
    "core.columns.kernels.occupied": lambda r, n: (r.integers(0, 3, n),),
    "core.columns.kernels.unpack_cells": lambda r, n: (r.integers(0, 30, n), np.array(SIZES), 1, np.zeros((n, 4), np.uint16)),
    "core.histograms.kernels.add_two_code_cells": lambda r, n: (
        codes(r, n)[:, 1:], weights(r, 2), weights(r, 5), counts(r, n, np.int32), np.ones(20, np.int32)
    ),
    "core.histograms.kernels.add_three_code_cells": lambda r, n: (
        codes(r, n), weights(r, 3), weights(r, 2), weights(r, 5), counts(r, n), np.ones(30, np.int64)
    ),
    "core.histograms.kernels.fold_axis": lambda r, n: (*folded(r, n), 1, 3, 1, 4),
    "core.histograms.kernels.fold_last": lambda r, n: (folded(r, n)[0][..., 0].copy(), folded(r, n)[1], np.ones((3, 3), np.int64)),
    "core.histograms.kernels.occupied_counts": lambda r, n: (counts(r, n, np.int32),),
    "core.histograms.kernels.pack_counts": lambda r, n: (r.integers(5, 99, n), counts(r, n), 5, 4, np.ones(n + 2, np.int64)),
    "core.histograms.kernels.sum_packed": lambda r, n: (packed(r, n), 5, 4, np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)),
    "core.recoding.classes.gather_members": members,
    "core.recoding.classes.count_distinct": distinct,
    "core.units.losses.add_classes": lambda r, n: (counts(r, n), r.integers(0, 2, n).astype(bool)),
    "core.units.digests._mixed": lambda r, n: (digests(r, n),),
    "core.units.digests.combine": lambda r, n: (digests(r, n), digests(r, n)),
    "core.units.digests.combine_entries": lambda r, n: (digests(r, n), digests(r, 3), r.integers(0, 3, n).astype(np.int32)),
    "core.units.digests.digest_texts": texts,
}  # fmt: skip


def loop_of(name: str) -> Loop:
    module, _, function = name.rpartition(".")
    found = getattr(import_module(module), function)
    assert isinstance(found, Loop)
    return found


def same(one: Any, other: Any) -> None:
    """Equal values of equal types: where a loop returns no array, an equal number."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            same(first, second)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


SCRATCH = {"sum_equal_cells": 2, "number_distinct": 1, "number_values": 1}
"""Arguments that a loop writes to for itself alone."""


@pytest.mark.parametrize("name", CASES)
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 2, 9, 40]))
def test_arrays_do_what_the_loop_does(name: str, seed: int, n: int) -> None:
    loop = loop_of(name)
    given_ones = CASES[name](np.random.default_rng(seed), n)
    once, again = deepcopy(given_ones), deepcopy(given_ones)
    assert loop.in_arrays is not None
    same(loop.compiled(*once), loop.in_arrays(*again))
    scratch = SCRATCH.get(loop.__name__)
    for place, (one, other) in enumerate(zip(once, again, strict=True)):
        if place != scratch:
            same(one, other)


def test_every_form_in_arrays_is_held_against_its_loop() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "core").rglob("*.py") if "small_in(" in path.read_text()
    }
    found = {
        f"{module}.{name}"
        for module in modules - {"core.compiling.compiled"}
        for name, one in vars(import_module(module)).items()
        if isinstance(one, Loop) and one.in_arrays is not None and one.__module__ == module
    }
    assert found == set(CASES)


def added(numbers: Any) -> Any:
    return numbers.sum()


def refused(numbers: Any) -> Any:
    return -1 if len(numbers) < 3 else NotImplemented


def admitted(room: SmallArrays, loop: Any, *lengths: int) -> list[bool]:
    return [room.admit((np.empty(length), 7, np.int64(7)), loop) for length in lengths]


def test_small_work_is_done_in_arrays_until_there_was_much_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    new: Any = small_in(refused)(compiler()(added))
    assert not new.is_kept
    with compiled_loops_only():
        assert new(np.ones(2)) == 2
    kept: Any = small_in(refused)(compiler()(added))
    assert kept.is_kept
    room = SmallArrays(of_kept=70_000, of_new=2_000_000)
    assert admitted(room, kept, 65_537, 65_536, 4_000, 3_000) == [False, True, False, True]
    assert admitted(room, new, 2**20 + 1, 2**20) == [False, True]
    assert (room.of_kept, room.of_new) == (70_000 - 68_536 - 512, 2_000_000 - 2**20 - 256)
    room = SmallArrays()
    room.end()
    assert admitted(room, kept, 0) == [False]
    assert admitted(room, new, *[2**20] * 9) == [True] * 7 + [False] * 2


def test_what_arrays_do_not_take_is_done_by_the_loop() -> None:
    loop: Any = small_in(refused)(compiler()(added))
    assert loop.in_arrays(np.ones(3)) is NotImplemented
    assert loop(np.ones(3)) == 3
