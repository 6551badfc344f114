"""Hierarchies of codes and of the calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.hierarchies import built, calendar_label, domain_of, masked, published

UNITS = ["day", "month", "quarter", "year", "decade"]
TEXTS = st.lists(st.one_of(st.text("01a*é日🙂", max_size=6), st.text(max_size=5)), min_size=1, max_size=25, unique=True).map(sorted)
ZONES = ["Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "UTC"]
DATES = st.lists(st.dates(), min_size=1, max_size=25, unique=True).map(sorted)


def moments_before(year: int) -> st.SearchStrategy[list[datetime]]:
    return st.lists(st.datetimes(datetime(1800, 1, 1), datetime(year, 1, 1)), min_size=1, max_size=25, unique=True).map(sorted)


@given(TEXTS, st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True), st.sampled_from("*X·"), st.booleans())
def test_so_many_characters_are_kept_and_each_other_one_is_masked(texts: list[str], kept: list[int], mask: str, large: bool) -> None:
    prefix = sorted(kept, reverse=True)
    hierarchy = built({"prefix": prefix, "mask": mask}, domain_of(texts, pa.large_string() if large else pa.string()))
    own = prefix[prefix[0] >= max(map(len, texts)) :]
    assert hierarchy.levels == len(own) + 2
    for level, length in enumerate(own, 1):
        assert published(hierarchy, level) == [masked(text, length, mask) for text in texts]
        assert hierarchy.labels[level].type == pa.string()
        identities = {(text[:length], len(text)) for text in texts}
        assert hierarchy.axes[level] == len(hierarchy.labels[level]) == len(identities)


def test_a_postcode_of_full_length_is_level_zero() -> None:
    hierarchy = built({"prefix": [5, 4, 3, 2]}, domain_of(["56003", "56012", "57001"]))
    assert hierarchy.levels == 5
    assert [published(hierarchy, level)[0] for level in range(5)] == ["56003", "5600*", "560**", "56***", "*"]


def test_codes_of_different_length_stay_apart() -> None:
    assert built({"prefix": [1]}, domain_of(["1", "10", "100", "11"])).labels[1].to_pylist() == ["1", "1*", "1**"]


def test_integers_are_masked_by_their_digits() -> None:
    hierarchy = built({"prefix": [5, 3]}, domain_of([501, 56003, 56012], pa.int32()))
    assert hierarchy.labels[0].to_pylist() == [501, 56003, 56012]
    assert hierarchy.labels[1].to_pylist() == ["501", "560**"]


@given(DATES)
def test_dates_are_published_by_calendar_unit(dates: list[date]) -> None:
    hierarchy = built({"date": UNITS}, domain_of(dates, pa.date32()))
    assert hierarchy.levels == 6
    assert published(hierarchy, 0) == dates
    for level, unit in enumerate(UNITS[1:], 1):
        assert published(hierarchy, level) == [calendar_label(day, unit) for day in dates]


@given(DATES, st.sampled_from([1936, "1936-05-01"]), st.sampled_from([2020, "2020-03-01"]))
def test_days_up_to_the_bottom_and_from_the_top_are_one_group_at_every_level(dates: list[date], bottom: int | str, top: int | str) -> None:
    hierarchy = built({"date": UNITS, "bottom": bottom, "top": top}, domain_of(dates, pa.date32()))
    last = date(1936, 12, 31) if bottom == 1936 else date(1936, 5, 1)
    first = date(2020, 1, 1) if top == 2020 else date(2020, 3, 1)
    assert hierarchy.levels == 7
    for level, unit in enumerate(UNITS, 1):
        labels = [f"<= {bottom}" if day <= last else f">= {top}" if day >= first else calendar_label(day, unit) for day in dates]
        assert published(hierarchy, level) == labels


@given(moments_before(2200), st.sampled_from(["s", "ms", "us"]))
def test_moments_of_a_day_are_merged_before_days_are(moments: list[datetime], unit: str) -> None:
    domain = domain_of(pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False).unique())
    hierarchy = built({"date": UNITS}, domain)
    values = domain.values.to_pylist()
    midnights = all(moment.time() == datetime.min.time() for moment in values)
    assert hierarchy.levels == (6 if midnights else 7)
    for level, name in enumerate(UNITS[midnights:], 1):
        assert published(hierarchy, level) == [calendar_label(moment, name) for moment in values]


@given(moments_before(2037), st.sampled_from(ZONES))
def test_moments_with_a_zone_count_by_its_calendar(moments: list[datetime], zone: str) -> None:
    domain = domain_of([moment.replace(tzinfo=UTC) for moment in moments], pa.timestamp("us", tz=zone))
    hierarchy = built({"date": ["day", "year"]}, domain)
    local = [moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for moment in moments]
    assert published(hierarchy, hierarchy.top - 1) == [calendar_label(moment, "year") for moment in local]
    if hierarchy.levels == 4:
        assert published(hierarchy, 1) == [calendar_label(moment, "day") for moment in local]


def test_a_clock_set_back_over_midnight_keeps_groups_in_order_of_appearance() -> None:
    start = datetime(2018, 2, 18, 1, 30, tzinfo=UTC)  # 23:30, 00:30 → 23:30 again, 00:30 in São Paulo
    moments = [start + timedelta(hours=hour) for hour in range(4)]
    hierarchy = built({"date": ["day"]}, domain_of(moments, pa.timestamp("s", tz="America/Sao_Paulo")))
    assert hierarchy.groups[1].tolist() == [0, 0, 1, 1]
    assert hierarchy.labels[1].to_pylist() == ["2018-02-17", "2018-02-18"]


def test_years_before_our_era_and_beyond_four_digits_fall_into_their_decade() -> None:
    days = np.array(["-0044-03-15", "0000-12-31", "0009-01-01", "1969-12-31", "12024-02-29"], "datetime64[D]").astype(np.int32)
    hierarchy = built({"date": UNITS}, domain_of(pa.array(days, pa.int32()).cast(pa.date32())))
    assert hierarchy.labels[1].to_pylist() == ["-0044-03", "0000-12", "0009-01", "1969-12", "12024-02"]
    assert hierarchy.labels[4].to_pylist() == ["-0050s", "0000s", "1960s", "12020s"]


def test_milliseconds_since_1970_count_as_dates() -> None:
    assert built({"date": ["day", "month"]}, domain_of([date(2024, 3, 17)], pa.date64())).labels[1].to_pylist() == ["2024-03"]
