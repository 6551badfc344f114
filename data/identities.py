"""Patient numbers, names and addresses in the style of the SKALD paper's Table I.

Names and streets are Faker's for India. Faker makes one word at a time, so it fills small pools once and Arrow combines them; a patient's
number is written digit by digit into one byte matrix, which becomes an Arrow string column without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

POOL_SEED = 1
POOL_DRAWS = 4_000

# Table I agrees with ages on the last day of this year: P0001-9112-1 was born in December 1991 and is 33.
YEAR = 2_024

MAX_NUMBER = 999_999_999
ID_LENGTH = len("P000000001-9112-1")


class Pools(NamedTuple):
    """Distinct words to combine, each an Arrow array of strings in alphabetical order."""

    first_names: pa.Array
    last_names: pa.Array
    houses: pa.Array
    streets: pa.Array


@lru_cache(maxsize=1)
def pools() -> Pools:
    """Return the pools of words, drawn from Faker's locale en_IN with a fixed seed."""
    from faker import Faker  # noqa: PLC0415 - start-up that only who makes data should pay

    fake = Faker("en_IN")
    fake.seed_instance(POOL_SEED)

    def pool(word: Callable[[], str]) -> pa.Array:
        return pa.array(sorted({word() for _ in range(POOL_DRAWS)}), pa.string())

    return Pools(pool(fake.first_name), pool(fake.last_name), pool(fake.building_number), pool(fake.street_name))


def names(count: int, rng: np.random.Generator) -> pa.Array:
    """Return ``count`` full names as Arrow strings."""
    return _combined(pools().first_names, " ", pools().last_names, count, rng)


def addresses(count: int, rng: np.random.Generator) -> pa.Array:
    """Return ``count`` addresses, house and street, as Arrow strings."""
    return _combined(pools().houses, ", ", pools().streets, count, rng)


def patient_ids(first: int, ages: NDArray[np.int16], rng: np.random.Generator) -> pa.Array:
    """Return patient numbers such as ``P000000001-9112-1``.

    Running number, year and month of birth, a digit from 1 to 3. The running number alone makes them unique.

    Args:
        first: running number of the first patient; numbers past `MAX_NUMBER` begin again at 0.
        ages: shape (n,), whole years at the end of `YEAR`.
        rng: source of the month and the last digit.
    """
    numbers = np.arange(first, first + ages.size)
    text = np.full((ages.size, ID_LENGTH), ord("-"), np.uint8)
    text[:, 0] = ord("P")
    triples, pairs = _digits(3), _digits(2)
    # The last block reaches one past the last number, a record that is never asked for.
    text[:, 1:4] = triples[numbers // 1_000_000 % 1_000]
    text[:, 4:7] = triples[numbers // 1_000 % 1_000]
    text[:, 7:10] = triples[numbers % 1_000]
    text[:, 11:13] = pairs[(YEAR - ages) % 100]
    text[:, 13:15] = pairs[rng.integers(1, 13, ages.size, np.uint8)]
    text[:, 16] = ord("0") + rng.integers(1, 4, ages.size, np.uint8)
    offsets = np.arange(0, text.size + 1, ID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(ages.size, pa.py_buffer(offsets), pa.py_buffer(text))


def _combined(left: pa.Array, between: str, right: pa.Array, count: int, rng: np.random.Generator) -> pa.Array:
    """Return random pairs of words, joined by a separator."""
    some = left.take(pa.array(rng.integers(0, len(left), count, np.int32)))
    others = right.take(pa.array(rng.integers(0, len(right), count, np.int32)))
    return pc.binary_join_element_wise(some, others, between)


@lru_cache(maxsize=2)
def _digits(width: int) -> NDArray[np.uint8]:
    """Return the ASCII digits of all numbers of a width, zero-padded, shape (10**width, width)."""
    text = "".join(f"{number:0{width}d}" for number in range(10**width))
    return np.frombuffer(text.encode("ascii"), np.uint8).reshape(-1, width)
