"""The code of the pseudonym treatments: published types, pseudonyms, and their originals.

The treatments are named by `schemas.pseudonyms.kinds`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.pseudonyms.keyed_hash import TreatmentInputs, day_shifts, keyed_hash
from core.pseudonyms.treatments import covered_text, decrypted, encrypted, has_text, shifted, texts
from schemas.errors.pseudonyms import PseudonymError
from schemas.errors.signals import UnfitError
from schemas.pseudonyms.kinds import treatment_kind
from schemas.pseudonyms.treatments import (
    EncryptTreatment,
    HashTreatment,
    MaskTreatment,
    ShiftTreatment,
    TokenTreatment,
    TreatmentSpec,
    full_match_pattern,
)

DATE_LENGTH = 10


def type_of_text(_spec: TreatmentSpec, dtype: pa.DataType) -> pa.DataType | None:
    """Return text as the published type of values that have one text each; None for other types."""
    return pa.string() if has_text(dtype) else None


def type_of_ciphers(spec: EncryptTreatment, dtype: pa.DataType) -> pa.DataType | None:
    """Return the published type of encrypted values, or None: text, or int64 for integers with a width."""
    numeric = spec.encrypt.width is not None
    text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return pa.int64() if numeric and pa.types.is_integer(dtype) else pa.string() if text and not numeric else None


def type_of_dates(_spec: ShiftTreatment, dtype: pa.DataType) -> pa.DataType | None:
    """Return the published type of shifted dates and timestamps, their own; None for other types."""
    return dtype if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype) else None


def hashes(spec: HashTreatment, values: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return the keyed hash of each value, as large text."""
    return keyed_hash(texts(values), means.key, spec.hash.length)


def masks(spec: MaskTreatment, values: pa.Array, _means: TreatmentInputs) -> pa.Array:
    """Return the masked text of each value, as large text."""
    return covered_text(texts(values), spec.mask)


def tokens(_spec: TokenTreatment, values: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return the vault's token of each value, as large text."""
    assert means.find_pseudonyms is not None
    return means.find_pseudonyms(texts(values))


def originals_of_tokens(_spec: TokenTreatment, pseudonyms: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return the original value of each token, as large text; null for unknown tokens."""
    assert means.find_pseudonyms is not None
    coded = pseudonyms.dictionary_encode()
    return means.find_pseudonyms(coded.dictionary).take(coded.indices)


def ciphers(spec: EncryptTreatment, values: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return each value encrypted to a value of the same form, as large text or whole numbers."""
    return encrypted(values, spec.encrypt, means.key)


def originals_of_ciphers(spec: EncryptTreatment, pseudonyms: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return the decrypted value of each pseudonym, as large text; null for values of another form."""
    fits = pc.match_substring_regex(pseudonyms, full_match_pattern(treatment_kind(spec).form(spec)))
    back = decrypted(pseudonyms.filter(fits), spec.encrypt, means.key)
    return pc.replace_with_mask(pa.nulls(len(pseudonyms), pa.large_string()), fits, back)


def shifted_dates(spec: ShiftTreatment, values: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return each date or timestamp shifted by the days of its subject; nulls stay."""
    return shifted(values, _days(spec, means))


def originals_of_dates(spec: ShiftTreatment, pseudonyms: pa.Array, means: TreatmentInputs) -> pa.Array:
    """Return each date, written as text, shifted back by the days of its subject."""
    lengths = pc.utf8_length(pseudonyms)
    dtype = pa.date32() if not len(pseudonyms) or pc.max(lengths).as_py() <= DATE_LENGTH else pa.timestamp("us")
    try:
        return shifted(pseudonyms.cast(pa.string()).cast(dtype), -_days(spec, means)).cast(pa.string()).cast(pa.large_string())
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
