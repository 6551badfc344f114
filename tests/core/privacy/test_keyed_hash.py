"""Keys and keyed hashes: the standard's own result, and nothing of one use in another."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.pseudonyms import day_shifts, derive_key, digests, fingerprint, keyed_hash
from schemas.registry.treatments import is_strong

KEYS = st.binary(min_size=16, max_size=200)
VALUES = st.lists(st.text(), max_size=20)


def large(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


@given(VALUES, KEYS, st.integers(16, 64))
def test_a_keyed_hash_is_hmac_sha_256_of_the_text(values: list[str], key: bytes, length: int) -> None:
    expected = [hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:length] for value in values]
    assert keyed_hash(large(values), key, length).to_pylist() == expected


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 66, 200])
def test_a_key_is_hashed_first_where_it_is_longer_than_a_block(length: int) -> None:
    key = bytes(range(length))
    assert digests(large(["a", ""]), key) == b"".join(hmac.digest(key, value, "sha256") for value in (b"a", b""))


def test_rfc_4231_agrees() -> None:
    assert digests(large(["Hi There"]), b"\x0b" * 20).hex() == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"


@given(st.lists(st.text(), min_size=1, unique=True), KEYS, st.integers(1, 400))
def test_an_offset_depends_on_subject_and_key_alone_and_is_never_zero(subjects: list[str], key: bytes, days: int) -> None:
    found = day_shifts(large(subjects), key, days)
    assert ((found != 0) & (np.abs(found) <= days)).all()
    assert day_shifts(large(subjects[::-1]), key, days)[::-1].tolist() == found.tolist()


def test_offsets_are_spread_evenly() -> None:
    counts = np.bincount(day_shifts(large([str(number) for number in range(6000)]), b"k" * 16, 3) + 3, minlength=7)
    assert counts[3] == 0
    assert (abs(np.delete(counts, 3) - 1000) < 150).all()


@given(VALUES, KEYS)
def test_no_value_has_a_derived_key_as_its_hash(values: list[str], key: bytes) -> None:
    secrets = {derive_key(key, purpose).hex() for purpose in ("ff1", "shift", "fingerprint")}
    assert len(secrets) == 3
    assert not secrets & set(keyed_hash(large([*values, "skald ff1", "ÿskald ff1"]), key, 64).to_pylist())


def test_a_fingerprint_changes_with_the_key_and_is_none_of_it() -> None:
    keys = [os.urandom(32) for _ in range(100)]
    assert len({fingerprint(key) for key in keys}) == 100
    assert not any(fingerprint(key) in key.hex() for key in keys)


@pytest.mark.parametrize(
    "written", [bytes, bytes.hex, base64.b64encode, lambda key: str(int.from_bytes(key))], ids=["raw", "hex", "base64", "decimal"]
)
def test_128_random_bits_are_a_key_however_they_are_written(written: object) -> None:
    for _ in range(200):
        text = written(b"\xff" + os.urandom(16))  # type: ignore[operator]
        assert is_strong(text.encode() if isinstance(text, str) else text)


WEAK = [b"", b"short", bytes(range(200, 215)), bytes(range(15)).hex().encode(), b"a" * 100, b"1234567890" * 3, b"0101" * 40]


@pytest.mark.parametrize("key", WEAK, ids=range(len(WEAK)))
def test_what_cannot_hold_128_bits_is_no_key(key: bytes) -> None:
    assert not is_strong(key)
