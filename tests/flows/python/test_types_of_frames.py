"""Frames come back in the types that they had, and with the values that they had, to the last digit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skald

JOB: dict[str, Any] = {
    "columns": {"person": "none", "quasi_identifiers": [{"name": "h", "hierarchy": {"tree": {"*": ["a", "b"]}}}], "accept_untreated": True},
    "privacy": {"k": 2},
    "suppression": {"limit": 0},
    "method": {"name": "skald"},
}
TIMES = 4
BIG = 9007199254740993
MOMENT = datetime(2024, 2, 29, 12, 30, 1, 5)
PANDAS: dict[str, Any] = {
    "Int64": pd.array([BIG, None, 1], "Int64"),
    "Int8": pd.array([-128, None, 1], "Int8"),
    "UInt64": pd.array([2**64 - 1, None, 1], "UInt64"),
    "Float64": pd.array([0.1, None, 1.5], "Float64"),
    "boolean": pd.array([True, None, False], "boolean"),
    "string": pd.array(["x", None, ""], "string"),
    "pyarrow string": pd.array(["x", None, ""], "string[pyarrow]"),
    "category": pd.Categorical(["x", None, "y"]),
    "ordered": pd.Categorical(["low", None, "high"], ["low", "high"], ordered=True),
    "whole categories": pd.Categorical([3, None, 1]),
    "whole": [BIG, 2, 1],
    "uint8": pd.array([255, 2, 1], "uint8"),
    "float32": pd.array([0.5, float("nan"), 1], "float32"),
    "bool": [True, False, True],
    "objects of text": pd.Series(["x", None, ""], dtype=object),
    "objects of numbers": pd.Series([BIG, None, 1], dtype=object),
    "objects of days": pd.Series([date(2024, 2, 29), None, date(1, 1, 1)], dtype=object),
    "objects of decimals": pd.Series([Decimal("0.10"), None, Decimal("99999999999999999.99")], dtype=object),
    "objects of truths": pd.Series([True, None, False], dtype=object),
    "nanoseconds": pd.array(["2024-02-29T12:30:01.000000005", None, "1700-01-01"], "datetime64[ns]"),
    "seconds": pd.array(["2024-02-29T12:30:01", None, "9999-12-31"], "datetime64[s]"),
    "zone": pd.array([MOMENT, None, MOMENT], pd.DatetimeTZDtype("us", "Europe/Berlin")),
    "arrow integers": pd.array([BIG, None, 1], pd.ArrowDtype(pa.int64())),
    "arrow decimals": pd.array([Decimal("0.10"), None, Decimal("1.00")], pd.ArrowDtype(pa.decimal128(20, 2))),
    7: [1, 2, 3],
}
POLARS: dict[str, pl.Series] = {
    "Int64": pl.Series([BIG, None, 1]),
    "Int8": pl.Series([-128, None, 1], dtype=pl.Int8),
    "UInt64": pl.Series([2**64 - 1, None, 1], dtype=pl.UInt64),
    "Float32": pl.Series([0.5, None, 1.5], dtype=pl.Float32),
    "Float64": pl.Series([0.1, None, 1.5]),
    "Boolean": pl.Series([True, None, False]),
    "String": pl.Series(["x", None, ""]),
    "Categorical": pl.Series(["x", None, "y"], dtype=pl.Categorical),
    "Enum": pl.Series(["low", None, "high"], dtype=pl.Enum(["low", "high"])),
    "Decimal": pl.Series([Decimal("0.10"), None, Decimal("1.00")], dtype=pl.Decimal(20, 2)),
    "Date": pl.Series([date(1, 1, 1), None, date(9999, 12, 31)]),
    "milliseconds": pl.Series([MOMENT.replace(microsecond=0), None, datetime(9999, 12, 31)], dtype=pl.Datetime("ms")),
    "microseconds": pl.Series([MOMENT, None, datetime(9999, 12, 31)], dtype=pl.Datetime("us")),
    "zone": pl.Series([MOMENT.replace(tzinfo=UTC), None, MOMENT.replace(tzinfo=UTC)], dtype=pl.Datetime("us", "UTC")),
    "Time": pl.Series([time(12, 30), None, time(0)]),
    "Binary": pl.Series([b"\0x", None, b""]),
}
ARROW: dict[str, pa.Array] = {
    "int8": pa.array([-128, None, 1], pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 1], pa.uint64()),
    "float": pa.array([0.5, None, 1.5], pa.float32()),
    "string": pa.array(["x", None, ""]),
    "large string": pa.array(["x", None, ""], pa.large_string()),
    "view": pa.array(["x", None, ""], pa.string_view()),
    "dictionary": pa.array(["x", None, "y"]).dictionary_encode(),
    "binary": pa.array([b"x", None, b"\0"]),
    "decimal": pa.array([Decimal("0.10"), None, Decimal("1.00")], pa.decimal128(20, 2)),
    "small decimal": pa.array([Decimal("0.10"), None, Decimal("1.00")], pa.decimal64(10, 2)),
    "date": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "second": pa.array([MOMENT.replace(microsecond=0), None, datetime(9999, 12, 31)], pa.timestamp("s")),
    "nanosecond": pa.array([1, None, 2], pa.timestamp("ns")),
    "zone": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([time(12, 30), None, time(0)], pa.time32("s")),
    "boolean": pa.array([True, None, False]),
}


def job_for(names: Iterable[Any]) -> dict[str, Any]:
    """Return a job that publishes columns as they are."""
    return {**JOB, "columns": {**JOB["columns"], "insensitive": [str(name) for name in names]}}


def values(column: Any) -> Counter[str]:
    """Return how often each value occurs, nulls of all kinds as one."""
    return Counter(
        "null" if value is None or value is pd.NA or value is pd.NaT or repr(value) == "nan" else repr(value) for value in column
    )


def test_columns_of_pandas_keep_type_and_values() -> None:
    frame = pd.DataFrame({"h": ["a", "b", "a"], **PANDAS})
    whole = pd.concat([frame] * TIMES, ignore_index=True)
    for name in ("category", "ordered", "whole categories"):
        whole[name] = whole[name].astype(frame[name].dtype)
    table, _ = skald.anonymise(whole, job_for(PANDAS))
    assert {name: str(table[name].dtype) for name in PANDAS} == {name: str(whole[name].dtype) for name in PANDAS}
    assert {name: values(table[name]) for name in PANDAS} == {name: values(whole[name]) for name in PANDAS}
    assert list(table["ordered"].cat.categories) == ["low", "high"]


def test_columns_of_polars_keep_type_and_values() -> None:
    frame = pl.concat([pl.DataFrame({"h": ["a", "b", "a"], **POLARS})] * TIMES)
    table, _ = skald.anonymise(frame, job_for(POLARS))
    assert {name: table.schema[name] for name in POLARS} == {name: frame.schema[name] for name in POLARS}
    assert {name: values(table[name]) for name in POLARS} == {name: values(frame[name]) for name in POLARS}


def test_columns_of_arrow_keep_type_and_values() -> None:
    frame = pa.concat_tables([pa.table({"h": ["a", "b", "a"], **ARROW})] * TIMES)
    table, _ = skald.anonymise(frame, job_for(ARROW))
    assert {name: table.schema.field(name).type for name in ARROW} == {name: frame.schema.field(name).type for name in ARROW}
    assert {name: values(table[name].to_pylist()) for name in ARROW} == {name: values(frame[name].to_pylist()) for name in ARROW}


def test_categories_without_a_record_do_not_come_back() -> None:
    """Those of a frame may name values of records that are left out."""
    frame = pd.DataFrame({"h": ["a", "b"] * 4, "v": pd.Categorical(["x", "y"] * 4, ["x", "y", "rare"])})
    assert list(skald.anonymise(frame, job_for("v"))[0]["v"].cat.categories) == ["x", "y"]
    enum = pl.DataFrame({"h": ["a", "b"] * 4, "v": pl.Series(["x", "y"] * 4, dtype=pl.Enum(["x", "y", "rare"]))})
    assert skald.anonymise(enum, job_for("v"))[0].schema["v"] == pl.Enum(["x", "y"])


REFUSED = {
    "a Series of pandas": (pd.Series(["a"], name="h"), "no table"),
    "a Series of Polars": (pl.Series("h", ["a"]), "no table"),
    "an array of Arrow": (pa.array(["a"]), "no table"),
    "a dict": ({"h": ["a"]}, "no table"),
    "numbers of 128 bits": (pl.DataFrame({"h": ["a"], "v": pl.Series([1], dtype=pl.Int128)}), "'v' is of type Int128"),
    "objects of Polars": (pl.DataFrame({"h": ["a"], "v": pl.Series([object()], dtype=pl.Object)}), "'v' is of type Object"),
    "a plan that fails": (pl.LazyFrame({"h": ["a"]}).with_columns(v=pl.col("nothing")), "cannot be computed (ColumnNotFoundError)"),
    "periods": (pd.DataFrame({"h": ["a"], "v": pd.array(["2024"], "period[Y]")}), "'v' is of type period"),
    "complex numbers": (pd.DataFrame({"h": ["a"], "v": [1j]}), "'v' is of type complex128"),
    "texts and numbers": (pd.DataFrame({"h": ["a", "a"], "v": pd.Series(["x", 1], dtype=object)}), "'v' holds values of several types"),
    "intervals of Arrow": (pa.table({"h": ["a"], "v": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "'v' is of type month_day"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_or_of_no_type_that_is_read_is_refused_by_name(name: str) -> None:
    frame, said = REFUSED[name]
    with pytest.raises(skald.SkaldError) as refused:
        skald.anonymise(frame, job_for("v"))
    assert said in str(refused.value)
    assert "table.parquet" not in str(refused.value)
