"""Keyed hashes of values, and secrets derived from a pseudonym key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MARK = b"\xffskald "
"""No UTF-8 text begins like this, so the hash of a value is never a derived key, whatever values somebody brings into the data."""


def derive_key(key: bytes, purpose: str) -> bytes:
    """Return 32 bytes derived from a key for one purpose, so that uses of the key are independent."""
    return hmac.digest(key, _MARK + purpose.encode(), "sha256")


def fingerprint(key: bytes) -> str:
    """Return a fingerprint of a key, 16 hexadecimal digits that do not reveal the key."""
    return derive_key(key, "fingerprint")[:8].hex()


def digests(values: pa.Array, key: bytes) -> bytes:
    """Return the HMAC-SHA-256 (RFC 2104) of each value, 32 bytes each, as one byte string.

    The two hashed blocks of the key are kept and copied, which is three times as fast as a call of ``hmac`` for each value.

    Args:
        values: Text without nulls, shape (n,); its UTF-8 bytes are hashed.
        key: Of any length.
    """
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    hashed = []
    for value in values.cast(pa.large_binary()).to_pylist():
        first, second = inner.copy(), outer.copy()
        first.update(value)
        second.update(first.digest())
        hashed.append(second.digest())
    return b"".join(hashed)


def keyed_hash(values: pa.Array, key: bytes, length: int) -> pa.Array:
    """Return the first ``length`` hexadecimal digits of each value's keyed hash, as large text."""
    return fixed_width(digests(values, key).hex(), 64, length)


def day_shifts(subjects: pa.Array, key: bytes, days: int) -> NDArray[np.int32]:
    """Return the days by which each subject's dates are shifted, shape (n,), pseudorandom by the key.

    They are even from -days to days, and never 0.
    """
    # The order of bytes is fixed, so that all machines shift alike; of 64 bits the remainder is as good as even.
    drawn = np.frombuffer(digests(subjects, derive_key(key, "shift")), ">u8").reshape(-1, 4)[:, 0] % np.uint64(2 * days)
    shift = drawn.astype(np.int32) - days
    return np.where(shift < 0, shift, shift + 1).astype(np.int32)


def fixed_width(text: str, width: int, kept: int) -> pa.Array:
    """Return ASCII text cut into pieces of ``width`` characters, as large text.

    Of each piece the first ``kept`` characters stay.
    """
    # The buffer of an Arrow array is made at once: no Python text per value.
    characters = np.ascontiguousarray(np.frombuffer(text.encode(), np.uint8).reshape(-1, width)[:, :kept])
    ends = np.arange(len(characters) + 1, dtype=np.int64) * kept
    return pa.LargeStringArray.from_buffers(len(characters), pa.py_buffer(ends), pa.py_buffer(characters))


@dataclass(frozen=True)
class TreatmentInputs:
    """Key, vault and subjects that a pseudonym treatment may need besides the values.

    Attributes:
        key: Its key; empty if it has none.
        find_pseudonyms: Finds what a vault has for each text of an array: its token, or for a token its text.
        subjects: Whose values they are, as long as these; of any type that has texts.
    """

    key: bytes = b""
    find_pseudonyms: Callable[[pa.Array], pa.Array] | None = None
    subjects: pa.Array | None = None
