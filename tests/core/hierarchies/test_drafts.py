"""A first hierarchy from the data: whatever the values, it is one; and where they are of a kind, its groups are of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.drafts import band_of, draft_hierarchy, merged_label
from core.hierarchies.levels import checked_table, table_levels
from schemas.errors.hierarchies import HierarchyError

VALUES = st.one_of(
    st.lists(st.text(max_size=8), unique=True),
    st.lists(st.from_regex(r"[A-C][0-9]{2}(\.[0-9])?", fullmatch=True), unique=True),
    st.lists(st.from_regex(r"[\[(]?[0-9]{1,2} ?- ?[0-9]{1,2}[\])]?", fullmatch=True), unique=True),
    st.lists(st.sampled_from(["lung disease", "heart disease", "heart attack", "broken arm", "broken leg", "other"]), unique=True),
    st.lists(st.integers(-100, 100), unique=True).map(sorted),
    st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), unique=True).map(sorted),
    st.lists(st.decimals(-100, 100, places=2), unique=True).map(sorted),
)


def domain_of(values: Sequence[Any], counts: Sequence[int] | None = None) -> Domain:
    return Domain("q", pa.array(values, None if values else pa.string()), np.array(counts or [1] * len(values), np.int64), 0)


def labels(values: Sequence[Any], counts: Sequence[int] | None = None) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in draft_hierarchy(domain_of(values, counts)).rows}


@given(VALUES, st.data())
def test_every_draft_is_a_hierarchy_of_all_values_with_fewer_groups_at_every_level(values: list[Any], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 1000), min_size=len(values), max_size=len(values)))
    domain = domain_of(values, counts)
    draft = draft_hierarchy(domain)
    assert len(draft.rows) == len(values)
    if not values:
        return
    table = checked_table("q", "the draft", draft.rows)
    table_levels("q", domain, table)
    assert set(table.columns[-1].to_pylist()) == {"*"}
    assert all(fine > coarse for fine, coarse in zip(draft.groups[:-1], draft.groups[1:-1], strict=False))


def test_ranges_of_numbers_hold_about_equally_many_records_and_tell_no_extreme() -> None:
    drafted = labels([*range(64), 100_000])
    assert drafted["100000"][0].startswith(">= ")
    assert not any("100000" in label for row in drafted.values() for label in row)
    finest = [row[0] for row in drafted.values()]
    sizes = [finest.count(label) for label in dict.fromkeys(finest)]
    assert max(sizes) <= 2 * min(sizes)


def test_codes_are_grouped_by_what_they_begin_with() -> None:
    assert labels(["A00.1", "A00.2", "A01.0", "B20.1", "B20.2"])["A00.2"] == ("A00.*", "A0*", "*")


def test_ranges_in_the_data_are_joined_with_their_neighbours() -> None:
    drafted = labels(["50+", "[0-10)", "[10-20)", "[20-30)", "[30-50)", "unknown"])
    assert drafted["[10-20)"][:2] == ("[0 - 20)", "[0 - 50)")
    assert drafted["50+"][0] == ">= 50"
    assert drafted["unknown"][:2] == ("other", "other")


def test_texts_are_grouped_by_a_word_that_most_of_them_share() -> None:
    drafted = labels(["Diabetes type 1", "Diabetes type 2", "Fracture of arm", "Fracture of leg", "Migraine"])
    assert drafted["Diabetes type 2"][0] == "diabetes …"
    assert drafted["Migraine"][0] == "other"


def test_where_nothing_is_plain_rare_texts_are_joined() -> None:
    drafted = labels(["Clerk", "Cook", "Judge", "Nurse", "Pilot"], [600, 4, 3, 300, 2])
    assert {value for value, row in drafted.items() if row[0] == "other"} == {"Cook", "Judge", "Pilot"}
    assert drafted["Clerk"][0] == "Clerk"


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=12))
def test_only_rare_texts_are_joined(counts: list[int]) -> None:
    """Whatever is joined is rarer than what stays, and than an even share, and much rarer on average."""
    values = ["abcdefghijkl"[place] for place in range(len(counts))]
    drafted = labels(values, counts)
    count_of = dict(zip(values, counts, strict=True))
    for level in range(len(drafted["a"]) - 1):
        joined, kept = ([count_of[value] for value in values if (drafted[value][level] == "other") is rare] for rare in (True, False))
        assert max(joined) < min(kept)
        assert max(joined) * len(counts) < sum(counts)
        assert 2 * sum(joined) * len(kept) <= sum(kept) * len(joined)


def test_no_text_is_rare_among_others_as_frequent() -> None:
    assert labels(["f", "m", "o", "u", "w", "x"], [490, 510, 480, 620, 505, 495])["f"] == ("*",)


def test_dates_are_grouped_by_the_calendar() -> None:
    days = [date(year, month, day) for year in (2019, 2020) for month in (1, 2, 5, 6) for day in (1, 2)]
    assert labels(days)["2020-05-02"] == ("2020-05", "2020-Q2", "2020", "*")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[0-10)", "[0 - 10)"),
        ("20 to 29", "20 - 29"),
        ("-5..5", "-5 - 5"),
        ("< 18", "< 18"),
        ("≤ 18", "<= 18"),
        ("80+", ">= 80"),
        ("over 9", "> 9"),
    ],
)
def test_ranges_are_read_as_people_write_them(text: str, said: str) -> None:
    band = band_of(text)
    assert band is not None
    assert merged_label([band]) == said


@pytest.mark.parametrize("text", ["", "unknown", "10", "9-1", "2020-01-02", "a-b"])
def test_what_is_no_range_is_none(text: str) -> None:
    assert band_of(text) is None


def test_what_cannot_be_listed_is_told() -> None:
    with pytest.raises(HierarchyError, match="convert it to text"):
        draft_hierarchy(Domain("q", pa.array([b"x"]), np.array([1], np.int64), 0))


def test_decimals_keep_their_spelling() -> None:
    values = [Decimal(number) / 10 for number in range(40)]
    assert list(labels(values))[:2] == ["0.0", "0.1"]
