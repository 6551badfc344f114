"""Pseudonym treatments and their published types.

They are keyed hashes, masks, format-preserving encryption, date shifts and originals.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.errors.signals import UnfitError
from schemas.errors.values import PseudonymError
from schemas.registry.treatment_kinds import escaped_characters, treatment_kind
from schemas.registry.treatments import (
    EncryptSettings,
    EncryptTreatment,
    HashTreatment,
    MaskSettings,
    MaskTreatment,
    ShiftTreatment,
    TokenTreatment,
    TreatmentSpec,
    full_match_pattern,
)

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
    """Return ``length`` hexadecimal digits of the HMAC-SHA-256 of each text, none null, as large text."""
    return fixed_width(digests(values, key).hex(), 64, length)


def day_shifts(subjects: pa.Array, key: bytes, days: int) -> NDArray[np.int32]:
    """Return each subject's shift of dates in days, pseudorandom by the key, within ±``days``, never 0.

    They are even from -days to days, and never 0.
    """
    # The order of bytes is fixed, so that all machines shift alike; of 64 bits the remainder is as good as even.
    drawn = np.frombuffer(digests(subjects, derive_key(key, "shift")), ">u8").reshape(-1, 4)[:, 0] % np.uint64(2 * days)
    shift = drawn.astype(np.int32) - days
    return np.where(shift < 0, shift, shift + 1).astype(np.int32)


def fixed_width(text: str, width: int, kept_characters: int) -> pa.Array:
    """Cut ASCII text into pieces of ``width``; return the first ``kept_characters`` of each, large text.

    Of each piece the first ``kept_characters`` characters stay.
    """
    # The buffer of an Arrow array is made at once: no Python text per value.
    characters = np.ascontiguousarray(np.frombuffer(text.encode(), np.uint8).reshape(-1, width)[:, :kept_characters])
    ends = np.arange(len(characters) + 1, dtype=np.int64) * kept_characters
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
    """Return text with all but ``mask.keep`` characters masked, or rewritten by the mask's pattern."""
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


def encrypted_values(values: pa.Array, settings: EncryptSettings, key: bytes) -> pa.Array:
    """Encrypt numbers of a width, or texts of an alphabet, in their form; raise UnfitError for others.

    It is a permutation of all values of a form. Separators stay where they are.
    """
    if settings.width is not None:
        return _numbers_encrypted(values, settings.width, key)
    if odd := _mismatches(values, f"[{escaped_characters(settings.letters + settings.separators)}]*"):
        raise UnfitError(odd, "hold characters that are neither among encrypt's characters nor its separators")
    if short := pc.sum(pc.less(_letter_counts(values, settings), settings.least)).as_py():
        raise UnfitError(short, f"have fewer than {settings.least} characters to encrypt and could be tried out; hash them, or give tokens")
    return _each(_cipher(key, alphabet=settings.letters).encrypt, values, settings.separators)


def decrypted_values(values: pa.Array, settings: EncryptSettings, key: bytes) -> pa.Array:
    """Decrypt pseudonyms; the inverse of ``encrypted_values`` for text that has the form of pseudonyms.

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


def _letter_counts(values: pa.Array, settings: EncryptSettings) -> pa.Array:
    """Return how many characters of each text are encrypted, which separators are not."""
    return pc.count_substring_regex(values, f"[{escaped_characters(settings.letters)}]")


def _mismatches(values: pa.Array, pattern: str) -> int:
    return int(pc.sum(pc.invert(pc.match_substring_regex(values, full_match_pattern(pattern)))).as_py() or 0)


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


def shift_dates(dates: pa.Array, days: NDArray[np.int32]) -> pa.Array:
    """Return dates or timestamps shifted by whole days, nulls kept; raise UnfitError if out of range."""
    wide = pa.int32() if pa.types.is_date32(dates.type) else pa.int64()
    steps = 1 if pa.types.is_date32(dates.type) else PER_DAY[getattr(dates.type, "unit", "ms")]
    try:
        # Unchecked, a sum that overflows wraps to a date at the other end of time.
        moved = pc.add_checked(dates.cast(wide), pa.array(days.astype(np.int64) * steps).cast(wide))
    except pa.ArrowInvalid:
        raise UnfitError(len(dates), "hold a date that cannot be shifted any further") from None
    return moved.cast(dates.type)


DATE_LENGTH = 10


def type_of_text(_spec: TreatmentSpec, dtype: pa.DataType) -> pa.DataType | None:
    """Return the type text, in which values of one text each are published; None for other types."""
    return pa.string() if has_text(dtype) else None


def type_of_ciphers(spec: EncryptTreatment, dtype: pa.DataType) -> pa.DataType | None:
    """Return the type of encrypted values: int64 for integers with a width, text for text, else None."""
    numeric = spec.encrypt.width is not None
    text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return pa.int64() if numeric and pa.types.is_integer(dtype) else pa.string() if text and not numeric else None


def type_of_dates(_spec: ShiftTreatment, dtype: pa.DataType) -> pa.DataType | None:
    """Return the published type of shifted dates and timestamps, their own; None for other types."""
    return dtype if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype) else None


def hashes(spec: HashTreatment, values: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return the keyed hash of each value, as large text."""
    return keyed_hash(texts(values), inputs.key, spec.hash.length)


def masks(spec: MaskTreatment, values: pa.Array, _inputs: TreatmentInputs) -> pa.Array:
    """Return the masked text of each value, as large text."""
    return covered_text(texts(values), spec.mask)


def tokens(_spec: TokenTreatment, values: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return the vault's token of each value, as large text."""
    assert inputs.find_pseudonyms is not None
    return inputs.find_pseudonyms(texts(values))


def originals_of_tokens(_spec: TokenTreatment, pseudonyms: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return the original value of each token, as large text; null for unknown tokens."""
    assert inputs.find_pseudonyms is not None
    coded = pseudonyms.dictionary_encode()
    return inputs.find_pseudonyms(coded.dictionary).take(coded.indices)


def ciphers(spec: EncryptTreatment, values: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return each value encrypted in its form, as large text or whole numbers; raise UnfitError if unfit."""
    return encrypted_values(values, spec.encrypt, inputs.key)


def originals_of_ciphers(spec: EncryptTreatment, pseudonyms: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return the decrypted value of each pseudonym, as large text; null for values of another form."""
    fits = pc.match_substring_regex(pseudonyms, full_match_pattern(treatment_kind(spec).form(spec)))
    if spec.encrypt.width is None:
        # The form counts separators too, and FF1 takes no text that is shorter without them.
        fits = pc.and_(fits, pc.greater_equal(_letter_counts(pseudonyms, spec.encrypt), spec.encrypt.least))
    back = decrypted_values(pseudonyms.filter(fits), spec.encrypt, inputs.key)
    return pc.replace_with_mask(pa.nulls(len(pseudonyms), pa.large_string()), fits, back)


def shifted_dates(spec: ShiftTreatment, values: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return each date or timestamp shifted by the days of its subject; nulls stay."""
    return shift_dates(values, _days(spec, inputs))


def originals_of_dates(spec: ShiftTreatment, pseudonyms: pa.Array, inputs: TreatmentInputs) -> pa.Array:
    """Return dates, given as text or empty, shifted back by days of subjects; raise if unlike."""
    lengths = pc.utf8_length(pseudonyms)
    dtype = pa.date32() if not len(pseudonyms) or pc.max(lengths).as_py() <= DATE_LENGTH else pa.timestamp("us")
    try:
        given = pc.if_else(pc.equal(lengths, 0), None, pseudonyms)
        return shift_dates(given.cast(pa.string()).cast(dtype), -_days(spec, inputs)).cast(pa.string()).cast(pa.large_string())
    except (UnfitError, pa.ArrowInvalid):
        raise PseudonymError.unreadable_list("dates must be written as 2020-01-31 or as 2020-01-31 12:00:00, all alike") from None


def _days(spec: ShiftTreatment, means: TreatmentInputs) -> NDArray[np.int32]:
    """Return the days by which each record's date is shifted, shape (n,); 0 for a record of no person."""
    assert means.subjects is not None
    # A digest for each person and not for each record.
    coded = means.subjects.dictionary_encode()
    days = np.append(day_shifts(texts(coded.dictionary), means.key, spec.shift.days), np.int32(0))
    found: NDArray[np.int32] = days[coded.indices.fill_null(len(days) - 1).to_numpy(zero_copy_only=False)]
    return found
