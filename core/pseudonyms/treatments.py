"""Transformations behind pseudonyms: texts, masks, format-preserving encryption, date shifts.

Every function takes distinct values, so that no record is looked at twice; loops are over these, where the library has no call for many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.pseudonyms.keyed_hash import derive_key
from schemas.errors.signals import UnfitError
from schemas.pseudonyms.treatments import EncryptSettings, MaskSettings, full_match_pattern

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def _cipher(key: bytes, **digits: Any) -> Any:
    """Return the FF1 cipher of a key, over an alphabet or the digits of a radix."""
    from ffx import FF1  # noqa: PLC0415 - loads a library of ciphers, which few jobs use

    return FF1(derive_key(key, "ff1"), **digits)


def has_text(dtype: pa.DataType) -> bool:
    """Return whether values of a type have one text each: text itself, whole numbers, dates."""
    return any(test(dtype) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_date))


def texts(values: pa.Array) -> pa.Array:
    """Return values as large text: numbers in decimal digits, dates as 2020-01-31.

    A value has the same text whatever its column's type.
    """
    if pa.types.is_date64(values.type):
        values = values.cast(pa.date32())
    return values.cast(pa.string()).cast(pa.large_string())


def covered_text(values: pa.Array, mask: MaskSettings) -> pa.Array:
    """Return text with characters replaced by the mask, or rewritten by the mask's pattern."""
    if mask.pattern is not None:
        return _replaced(values, mask.pattern, mask.replacement or "")
    keep, lengths = mask.keep or 0, pc.utf8_length(values)
    # Text no longer than what is kept would be published whole.
    readable = pc.if_else(pc.greater(lengths, keep), keep, 0)
    covered = pc.binary_repeat(pa.scalar(mask.character, pa.large_string()), pc.subtract(lengths, readable))
    if not keep:
        return covered
    at_end = mask.side == "end"
    kept = pc.utf8_slice_codeunits(values, start=-keep) if at_end else pc.utf8_slice_codeunits(values, start=0, stop=keep)
    kept = pc.if_else(pc.greater(lengths, keep), kept, pa.scalar("", pa.large_string()))
    joined = pc.binary_join_element_wise(*((covered, kept) if at_end else (kept, covered)), pa.scalar("", pa.large_string()))
    return joined.cast(pa.large_string())


def _replaced(values: pa.Array, pattern: str, replacement: str) -> pa.Array:
    if unmatched := pc.sum(pc.invert(pc.match_substring_regex(values, full_match_pattern(pattern)))).as_py():
        raise UnfitError(unmatched, "do not match mask.pattern; let it cover them too, say with |.* at its end, whose groups are empty")
    made = pc.replace_substring_regex(values, full_match_pattern(pattern), replacement, max_replacements=1)
    if same := pc.sum(pc.and_(pc.equal(made, values), pc.greater(pc.utf8_length(values), 0))).as_py():
        raise UnfitError(same, "would be published as they are by mask.replacement; let it keep less")
    return made


def encrypted(values: pa.Array, settings: EncryptSettings, key: bytes) -> pa.Array:
    """Encrypt numbers of a width, or texts of an alphabet, to values of the same form (FF1, NIST SP 800-38G).

    It is a permutation of all values of a form. Separators stay where they are. Values of another form end it in an UnfitError.
    """
    if settings.width is not None:
        return _numbers_encrypted(values, settings.width, key)
    if odd := _mismatches(values, f"[{_class(settings.letters + settings.separators)}]*"):
        raise UnfitError(odd, "hold characters that are neither among encrypt's characters nor its separators")
    if short := pc.sum(pc.less(pc.count_substring_regex(values, f"[{_class(settings.letters)}]"), settings.least)).as_py():
        raise UnfitError(short, f"have fewer than {settings.least} characters to encrypt and could be tried out; hash them, or give tokens")
    return _each(_cipher(key, alphabet=settings.letters).encrypt, values, settings.separators)


def decrypted(values: pa.Array, settings: EncryptSettings, key: bytes) -> pa.Array:
    """Decrypt pseudonyms; the inverse of ``encrypted`` for text that has the form of pseudonyms.

    Whole numbers are given and returned as text as well.
    """
    if settings.width is not None:
        back = _each(_cipher(key, radix=10).decrypt, pc.utf8_lpad(values, settings.width, "0"), "")
        return back.cast(pa.int64()).cast(pa.string()).cast(pa.large_string())
    return _each(_cipher(key, alphabet=settings.letters).decrypt, values, settings.separators)


def _numbers_encrypted(values: pa.Array, width: int, key: bytes) -> pa.Array:
    written = texts(values)
    if odd := _mismatches(written, f"[0-9]{{1,{width}}}"):
        raise UnfitError(odd, f"are negative or have more than encrypt.width = {width} digits")
    # FF1 keeps lengths: without the zeros a short number would stay short, and there are few of those to try.
    return _each(_cipher(key, radix=10).encrypt, pc.utf8_lpad(written, width, "0"), "").cast(pa.int64())


def _mismatches(values: pa.Array, pattern: str) -> int:
    return int(pc.sum(pc.invert(pc.match_substring_regex(values, full_match_pattern(pattern)))).as_py() or 0)


def _class(characters: str) -> str:
    return "".join(f"\\x{{{ord(character):x}}}" for character in characters)


def _each(crypt: Callable[[str], str], values: pa.Array, separators: str) -> pa.Array:
    """Apply a cipher to each value, leaving out its separators."""
    found = values.to_pylist()
    if not separators:
        return pa.array([crypt(value) for value in found], pa.large_string())
    without = str.maketrans("", "", separators)
    return pa.array([_around(value, crypt(value.translate(without)), separators) for value in found], pa.large_string())


def _around(value: str, made: str, separators: str) -> str:
    """Return the text ``made`` with the separators of ``value`` at their positions."""
    characters = iter(made)
    return "".join(character if character in separators else next(characters) for character in value)


def shifted(dates: pa.Array, days: NDArray[np.int32]) -> pa.Array:
    """Return dates or timestamps shifted by whole days (of 24 hours); nulls stay."""
    wide = pa.int32() if pa.types.is_date32(dates.type) else pa.int64()
    steps = 1 if pa.types.is_date32(dates.type) else PER_DAY[getattr(dates.type, "unit", "ms")]
    try:
        # Unchecked, a sum that overflows wraps to a date at the other end of time.
        moved = pc.add_checked(dates.cast(wide), pa.array(days.astype(np.int64) * steps).cast(wide))
    except pa.ArrowInvalid:
        raise UnfitError(len(dates), "hold a date that cannot be shifted any further") from None
    return moved.cast(dates.type)
