"""Digests of 64 bits that identify persons by the values of their identifier columns.

No list of all persons is held, merged or agreed upon between chunks.

**Why a digest may stand for a person.** What must never happen is that one person counts as two. A digest is a function of the value, so
equal values have equal digests, in whatever file, chunk or process: nothing here depends on the machine or on a library's hash. Two
persons that share a digest count as one, so that a class seems to hold *fewer* people than it does. A collision errs to the safe side, and
neither chance nor an attacker who chooses identifiers can make a class pass that should fail. It is rare, too: of a million persons two
share a digest in one source out of 37 million, of 10⁹ in one out of 37. A single column of whole numbers cannot collide at all, because
mixing is one to one. So 128 bits, or an exact coding that has to be merged over all chunks, would buy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import holds_bytes, in_utc
from core.columns.numbers import dictionary_positions, null_mask, to_numpy
from core.compiling.compiled import small_in
from core.units.kernels import kernel

Digests = NDArray[np.uint64]

NOBODY = np.uint64(0)
"""The digest of a record that belongs to no person; no person has it."""
_START = np.uint64(0x9E3779B97F4A7C15)
LONGEST = 256
"""Bytes of a text up to which NumPy digests texts a word at a time."""


def digests_of(columns: Sequence[pa.Array], row_count: int) -> Digests:
    """Return the digest of each record's person, shape (rows,); NOBODY where any column is null.

    Args:
        columns: What names a person, one array of shape (rows,) per column, in their working types or dictionaries of these.
    """
    total = np.full(row_count, _START, np.uint64)
    missing = np.zeros(row_count, np.bool_)
    for column in columns:
        found, null = _digested(column)
        missing |= null
        combine(total, found)
    # One person in 2^64 has the digest of nobody; it joins another one.
    total[total == NOBODY] = 1
    total[missing] = NOBODY
    return total


def _digested(column: pa.Array) -> tuple[Digests, NDArray[np.bool_]]:
    """Return the digest of each value and a mask of the nulls, both of shape (n,).

    The digest of a null is undefined.
    """
    if isinstance(column, pa.DictionaryArray):
        entries, none = _digested(column.dictionary)
        place = dictionary_positions(column)
        return np.append(entries, NOBODY)[place], np.append(none, True)[place]
    if pt.is_floating(column.type):
        # What is not a number names nobody. Zero has two signs and is one value.
        values = to_numpy(pc.add(column.cast(pa.float64()), pa.scalar(0.0)))
        return _mixed(np.nan_to_num(values).view(np.uint64)), null_mask(column) | np.isnan(values)
    null = null_mask(column)
    if pt.is_integer(column.type) or pt.is_boolean(column.type):
        whole = to_numpy(pc.fill_null(column.cast(pa.int8()) if pt.is_boolean(column.type) else column, 0))
        # By value, whatever the width of the type.
        return _mixed(whole.astype(np.int64).view(np.uint64)), null
    if pt.is_fixed_size_binary(column.type):
        # Its bytes need be no text.
        column = column.cast(pa.binary())
    if not holds_bytes(column.type):
        column = column.cast(in_utc(column.type)).cast(pa.string())
    plain = column.cast(pa.large_binary())
    if not len(plain):
        return np.empty(0, np.uint64), null
    _, ends, data = plain.buffers()
    bounds = np.frombuffer(ends, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    return digest_texts(bounds, np.frombuffer(data or b"", np.uint8)), null


def _mix(number: Any) -> Any:
    """Mix the bits of a number or of numbers, 64 bits each (finaliser of SplitMix64).

    It is one to one, and every bit depends on every other.
    """
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


mix = kernel(_mix)


def _combined(total: Digests, digests: Digests) -> Digests:
    found: Digests = _mix(total * np.uint64(0xD1B54A32D192ED03) ^ digests)
    return found


def mixed_numbers(numbers: Digests) -> Digests:
    """Return the next output of SplitMix64 after each number, shape (n,).

    It is of Steele, Lea and Flood, OOPSLA 2014. Neighbouring numbers come out unrelated, and sums of mixed numbers identify sets.
    """
    found: Digests = _mix(numbers + np.uint64(0x9E3779B97F4A7C15))
    return found


@small_in(mixed_numbers)
@kernel
def _mixed(numbers: Digests) -> Digests:
    found = np.empty(numbers.shape[0], np.uint64)
    for row in range(numbers.shape[0]):
        found[row] = mix(numbers[row] + np.uint64(0x9E3779B97F4A7C15))
    return found


def _combine(total: Digests, digests: Digests) -> None:
    total[:] = _combined(total, digests)


@small_in(_combine)
@kernel
def combine(total: Digests, digests: Digests) -> None:
    """Combine the digests of a further column into ``total``, both of shape (n,).

    The order of columns counts.
    """
    for row in range(total.shape[0]):
        total[row] = mix(total[row] * np.uint64(0xD1B54A32D192ED03) ^ digests[row])


def _combine_entries(total: Digests, digests: Digests, positions: NDArray[np.int32]) -> None:
    total[:] = _combined(total, digests[positions])


@small_in(_combine_entries)
@kernel
def combine_entries(total: Digests, digests: Digests, positions: NDArray[np.int32]) -> None:
    """Combine each record's dictionary digest, given by position, into ``total``, shape (n,).

    ``total`` and ``positions`` have the shape (n,).
    """
    for row in range(total.shape[0]):
        total[row] = mix(total[row] * np.uint64(0xD1B54A32D192ED03) ^ digests[positions[row]])


def _digest_texts(bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> Any:
    lengths = np.diff(bounds)
    if lengths.max(initial=0) > LONGEST:
        return NotImplemented
    found = mixed_numbers(lengths.astype(np.uint64))
    for first in range(0, int(lengths.max(initial=0)), 8):
        [there] = np.nonzero(lengths > first)
        words = np.zeros(len(there), np.uint64)
        for place in range(8):
            [within] = np.nonzero(lengths[there] > first + place)
            words[within] |= data[bounds[:-1][there[within]] + first + place].astype(np.uint64) << np.uint64(8 * place)
        found[there] = _combined(found[there], words)
    return found


@small_in(_digest_texts)
@kernel
def digest_texts(bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> Digests:
    """Return the digest of each text, given by bytes and their bounds, shape (n,).

    Args:
        bounds: Shape (n + 1,), where each begins and the next one does.
        data: The bytes of all.
    """
    found = np.empty(bounds.shape[0] - 1, np.uint64)
    for row in range(found.shape[0]):
        start, end = bounds[row], bounds[row + 1]
        digest = mix(np.uint64(end - start) + np.uint64(0x9E3779B97F4A7C15))
        for first in range(start, end, 8):
            word = np.uint64(0)
            for place in range(min(first + 8, end) - 1, first - 1, -1):
                word = (word << np.uint64(8)) | np.uint64(data[place])
            digest = mix(digest * np.uint64(0xD1B54A32D192ED03) ^ word)
        found[row] = digest
    return found
