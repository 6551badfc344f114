"""Pseudonyms of values: what NIST publishes, round trips, masks that hide what they promise, forms that the recount knows."""

from __future__ import annotations

import re
import string
from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ffx import FF1
from hypothesis import example, given
from hypothesis import strategies as st

from core.privacy.pseudonyms import (
    TreatmentInputs,
    covered_text,
    decrypted_values,
    derive_key,
    encrypted_values,
    originals_of_dates,
    originals_of_tokens,
    shift_dates,
    texts,
)
from schemas.errors.signals import UnfitError
from schemas.errors.values import PseudonymError
from schemas.registry.treatment_kinds import treatment_kind
from schemas.registry.treatments import (
    EncryptSettings,
    EncryptTreatment,
    HashTreatment,
    MaskSettings,
    MaskTreatment,
    ShiftTreatment,
    TokenTreatment,
    full_match_pattern,
)

KEY = bytes(range(32))
WHERE = {"env": "KEY"}
TWEAK, LONG_TWEAK = "39383736353433323130", "3737373770717273373737"
AES = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94"
SAMPLES = [
    (16, 10, "", "0123456789", "2433477484"),
    (16, 10, TWEAK, "0123456789", "6124200773"),
    (16, 36, LONG_TWEAK, "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
    (24, 10, "", "0123456789", "2830668132"),
    (24, 10, TWEAK, "0123456789", "2496655549"),
    (24, 36, LONG_TWEAK, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"),
    (32, 10, "", "0123456789", "6657667009"),
    (32, 10, TWEAK, "0123456789", "1001623463"),
    (32, 36, LONG_TWEAK, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
]
"""The nine samples for FF1 that NIST publishes with SP 800-38G."""


def encrypt(**settings: Any) -> EncryptSettings:
    return EncryptSettings.model_validate({"key": WHERE} | settings)


def mask(**settings: Any) -> MaskSettings:
    return MaskSettings.model_validate(settings)


def large(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


@pytest.mark.parametrize(("size", "radix", "tweak", "plain", "cipher"), SAMPLES)
def test_the_library_is_ff1_as_nist_publishes_it(size: int, radix: int, tweak: str, plain: str, cipher: str) -> None:
    ff1 = FF1(bytes.fromhex(AES)[:size], radix=radix)
    assert ff1.encrypt(plain, tweak=bytes.fromhex(tweak)) == cipher
    assert ff1.decrypt(cipher, tweak=bytes.fromhex(tweak)) == plain


def test_encryption_is_ff1_under_a_key_of_its_own() -> None:
    made = encrypted_values(large(["12-345-678"]), encrypt(alphabet="digits", separators="-"), KEY)
    assert made.to_pylist() == [re.sub(r"(\d{2})(\d{3})(\d{3})", r"\1-\2-\3", FF1(derive_key(KEY, "ff1"), radix=10).encrypt("12345678"))]


DIGITS = st.tuples(st.text("- ", max_size=1), st.sampled_from(string.digits)).map("".join)
NUMBERS = st.tuples(st.lists(DIGITS, min_size=6, max_size=14).map("".join), st.text("- ", max_size=2)).map("".join)
"""Six digits or more, between separators."""


@given(st.lists(NUMBERS))
def test_encryption_keeps_the_form_and_can_be_undone(values: list[str]) -> None:
    how = encrypt(alphabet="digits", separators="- ")
    made = encrypted_values(large(values), how, KEY)
    assert decrypted_values(made, how, KEY).to_pylist() == values
    shape = str.maketrans(string.digits, "0" * 10)
    assert [text.translate(shape) for text in made.to_pylist()] == [value.translate(shape) for value in values]
    assert len(set(made.to_pylist())) == len(set(values))


@given(st.lists(st.integers(0, 10**9 - 1), unique=True), st.sampled_from([pa.int64(), pa.uint32(), pa.int32()]))
def test_numbers_stay_numbers_and_come_back(values: list[int], dtype: pa.DataType) -> None:
    how = encrypt(alphabet="digits", width=9)
    made = encrypted_values(pa.array(values, dtype), how, KEY)
    assert made.type == pa.int64()
    assert len(set(made.to_pylist())) == len(values)
    assert all(0 <= number < 10**9 for number in made.to_pylist())
    assert decrypted_values(texts(made), how, KEY).to_pylist() == [str(value) for value in values]


@pytest.mark.parametrize(
    ("values", "settings", "count", "reason"),
    [
        (["123456", "12345", "1"], {}, 2, "fewer than 6 characters"),
        (["123456", "12345x6"], {}, 1, "neither among"),
        (["123456\n"], {}, 1, "neither among"),
        ([7, -7, 10**6], {"width": 6}, 2, "negative or have more"),
    ],
)
def test_what_cannot_be_encrypted_safely_is_refused_by_count(values: list[Any], settings: dict[str, Any], count: int, reason: str) -> None:
    column = pa.array(values, pa.large_string() if isinstance(values[0], str) else pa.int64())
    with pytest.raises(UnfitError, match=reason) as raised:
        encrypted_values(column, encrypt(alphabet="digits", **settings), KEY)
    assert raised.value.count == count


@given(st.lists(st.text(max_size=12)), st.integers(0, 6), st.sampled_from(["start", "end"]), st.sampled_from("*#€"))
def test_a_mask_keeps_what_it_may_and_covers_all_else(values: list[str], keep: int, side: str, character: str) -> None:
    def slow(value: str) -> str:
        kept = keep if len(value) > keep else 0
        covered = character * (len(value) - kept)
        return covered + value[len(value) - kept :] if side == "end" else value[:kept] + covered

    assert covered_text(large(values), mask(keep=keep, **{"from": side, "with": character})).to_pylist() == [
        slow(value) for value in values
    ]


def test_a_pattern_publishes_its_groups_and_nothing_around_them() -> None:
    how = mask(pattern=r"(\d{3})-\d{4}(?:x(\d))?|.*", replacement=r"\1-\\**\2")
    assert covered_text(large(["030-1234", "030-1234x5", "a 030-1234", "line\n030-1234"]), how).to_pylist() == [
        "030-\\**", "030-\\**5", "-\\**", "-\\**",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "replacement", "count", "reason"), [(r"(\d+)", r"\1*", 1, "do not match"), (r"(.*)", r"\1", 2, "as they are")]
)
def test_a_pattern_that_hides_nothing_or_fits_not_all_is_refused(pattern: str, replacement: str, count: int, reason: str) -> None:
    with pytest.raises(UnfitError, match=reason) as raised:
        covered_text(large(["12", "x", ""] if count == 2 else ["12", "x"]), mask(pattern=pattern, replacement=replacement))
    assert raised.value.count == count


FORMED = [
    (HashTreatment.model_validate({"hash": {"key": WHERE, "length": 20}}), ["a", "", "x\ny"]),
    (MaskTreatment.model_validate({"mask": {"keep": 2, "with": "."}}), ["abc", "", "x\nyz", "é"]),
    (MaskTreatment.model_validate({"mask": {"keep": 2, "from": "start", "with": "'"}}), ["abc", "ab", "\n\n\n"]),
    (MaskTreatment.model_validate({"mask": {"pattern": r"(.).*", "replacement": r"'\1\\1*"}}), ["abc", "\nb"]),
    (
        EncryptTreatment.model_validate({"encrypt": {"key": WHERE, "characters": "äöü'", "separators": "]-"}}),
        ["äöüäöüäöüäö", "]-äüäöüäöüöö'"],
    ),
    (EncryptTreatment.model_validate({"encrypt": {"key": WHERE, "alphabet": "digits", "width": 7}}), [1, 9_999_999]),
]


@pytest.mark.parametrize(("treatment", "values"), FORMED, ids=lambda one: getattr(one, "kind", None))
def test_the_form_that_the_recount_knows_is_that_of_pseudonyms_and_not_of_what_they_stand_for(treatment: Any, values: list[Any]) -> None:
    column = pa.array(values, pa.large_string() if isinstance(values[0], str) else pa.int64())
    made = treatment_kind(treatment).pseudonyms(treatment, column, TreatmentInputs(KEY))
    table = pa.table({"made": made})
    form = treatment_kind(treatment).form(treatment).replace("'", "''")
    [(fits,)] = duckdb.sql(f"SELECT count(*) FROM \"table\" WHERE regexp_full_match(made::VARCHAR, '{form}')").fetchall()
    assert len(table) == fits == len(values)
    if treatment.kind in {"hash", "mask"}:
        raw = texts(column).filter(pc.greater(pc.utf8_length(texts(column)), 0))
        assert not pc.any(pc.match_substring_regex(raw, full_match_pattern(treatment_kind(treatment).form(treatment)))).as_py()


ANYTHING = st.one_of(st.text(max_size=24), st.text("0189AB-ä \n", max_size=24), NUMBERS)
CIPHERS: list[dict[str, Any]] = [
    {"alphabet": "digits", "separators": "AB-"},
    {"alphabet": "digits", "width": 8},
    {"characters": "01", "separators": "89"},
    {"characters": "äAB0", "separators": "]-"},
]


@example(["12345", "A1-2B3", "-123456-", "123456", "", "-" * 9], CIPHERS[0])
@example(["1234567", "12345678", "123456789", "12-45678", "", "0"], CIPHERS[1])
@given(st.lists(ANYTHING, max_size=8), st.sampled_from(CIPHERS))
def test_a_text_that_is_no_pseudonym_has_no_original_and_ends_nothing(asked: list[str], settings: dict[str, Any]) -> None:
    how = EncryptTreatment.model_validate({"encrypt": {"key": WHERE} | settings})
    letters, least, separators, width = how.encrypt.letters, how.encrypt.least, how.encrypt.separators, how.encrypt.width
    originals = treatment_kind(how).originals
    assert originals is not None
    found = originals(how, large(asked), TreatmentInputs(KEY)).to_pylist()
    for text, original in zip(asked, found, strict=True):
        inside = sum(one in letters for one in text)
        fitting = (inside >= least, set(text) <= set(letters + separators))
        is_one = 1 <= len(text) <= width and inside == len(text) if width else all(fitting)
        assert (original is not None) == is_one
        if is_one:
            back = pa.array([int(original)]) if width else large([original])
            assert texts(encrypted_values(back, how.encrypt, KEY)).to_pylist() == [str(int(text)) if width else text]


@given(st.lists(ANYTHING, max_size=8))
def test_a_text_that_is_no_token_has_no_original(asked: list[str]) -> None:
    how = TokenTreatment.model_validate({"token": {"vault": {"file": "v.parquet"}}})
    nothing = TreatmentInputs(find_pseudonyms=lambda tokens: pa.nulls(len(tokens), pa.large_string()))
    assert originals_of_tokens(how, large(asked), nothing).to_pylist() == [None] * len(asked)


@given(st.lists(st.one_of(ANYTHING, st.dates().map(str), st.datetimes().map(str)), min_size=1, max_size=4))
def test_a_text_that_is_no_date_is_an_unreadable_list(asked: list[str]) -> None:
    how = ShiftTreatment.model_validate({"shift": {"key": WHERE, "subject": "who", "days": 30}})
    try:
        found = originals_of_dates(how, large(asked), TreatmentInputs(KEY, subjects=large(["one"] * len(asked))))
    except PseudonymError as error:
        assert "dates must be written as" in str(error)
    else:
        assert found.null_count == asked.count("")


@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1))), st.integers(-400, 400))
def test_a_shift_moves_dates_and_timestamps_by_whole_days_and_back(days: list[date], by: int) -> None:
    moves = np.full(len(days), by, np.int32)
    for dtype in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin")):
        column = pa.array(days, pa.date32()).cast(pa.timestamp("s")).cast(dtype)
        made = shift_dates(column, moves)
        assert made.type == dtype
        assert shift_dates(made, -moves).equals(column)
    assert shift_dates(pa.array(days, pa.date32()), moves).to_pylist() == [day + timedelta(by) for day in days]


def test_a_value_has_one_text_whatever_its_columns_type() -> None:
    for dtype in (pa.int8(), pa.uint64(), pa.int64()):
        assert texts(pa.array([7], dtype)).to_pylist() == ["7"]
    for dtype in (pa.date32(), pa.date64()):
        assert texts(pa.array([date(2020, 1, 31)], dtype)).to_pylist() == ["2020-01-31"]


@pytest.mark.parametrize("dtype", [pa.float64(), pa.bool_(), pa.decimal128(4, 1), pa.list_(pa.string()), pa.binary()], ids=str)
def test_types_without_one_text_are_not_treated(dtype: pa.DataType) -> None:
    assert not [treatment for treatment, _ in FORMED if treatment_kind(treatment).published(treatment, dtype) is not None]
