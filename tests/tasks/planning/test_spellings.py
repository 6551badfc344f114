"""A draft reads numbers and dates of a CSV file as they are spelled, or leaves them text; it never reads another number or day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading.typed_texts import ISO, Spelling, typed_sql
from tasks.planning.draft import draft_job
from tasks.planning.draft_text import type_of_texts
from tasks.planning.open_sources import SourceOptions, open_for_draft, profile_source
from tasks.planning.pilot_runs import typed_column_sql
from tasks.planning.samples import MOST_LOOKED_AT, detect_spelling, respelled

COMMA = {"decimal": ","}


def detected(columns: dict[str, list[str]]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the keys that a draft would say, and the columns as it reads them."""
    texts = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    with duckdb.connect() as connection:
        connection.register("texts", texts)
        spelling, columns_sql = detect_spelling(connection, "texts")
        read = connection.execute(f"SELECT * FROM {respelled('texts', columns_sql)}").fetchall()
    keys = {key: value for key, value in spelling._asdict().items() if value != getattr(Spelling(), key)}
    return keys, {name: [row[place] for row in read] for place, name in enumerate(columns)}


@pytest.mark.parametrize(
    ("texts", "keys", "read"),
    [
        (["1,5", "2,25"], COMMA, ["1.5", "2.25"]),
        (["1.234,5", "2,0"], COMMA | {"thousands": "."}, ["1234.5", "2.0"]),
        (["1\u202f234,5", "2,0"], COMMA | {"thousands": " "}, ["1234.5", "2.0"]),
        (["1,234.5", "2"], {"thousands": ","}, ["1234.5", "2"]),
        (["1'234.5", "2"], {"thousands": "'"}, ["1234.5", "2"]),
        (["1,234", "2,345"], {}, None),
        (["1,5", "x"], {}, None),
        (["1,5", "01,5"], {}, None),
        (["1.234", "2.345"], {}, None),
        (["31.01.2024", "1.2.2024"], {"dates": "dd.mm.yyyy"}, ["2024-01-31", "2024-02-01"]),
        (["31/01/2024", "01/02/2024"], {"dates": "dd/mm/yyyy"}, ["2024-01-31", "2024-02-01"]),
        (["01/31/2024", "01/02/2024"], {"dates": "mm/dd/yyyy"}, ["2024-01-31", "2024-01-02"]),
        (["01/02/2024", "02/03/2024"], {}, None),
        (["31.01.2024 12:30", "01.02.2024"], {"dates": "dd.mm.yyyy"}, ["2024-01-31 12:30:00", "2024-02-01 00:00:00"]),
        (["31.01.2024", "31.02.2024"], {}, None),
        (["31.01.2024", "2024-02-01", "2024/2/1"], {"dates": "dd.mm.yyyy"}, ["2024-01-31", "2024-02-01", "2024-02-01"]),
        (["2024-01-31", "01/02/2024"], {}, None),
        (["2024-1-5", " 2024/01/31"], {}, ["2024-01-05", "2024-01-31"]),
        (["2024-1-5 7:30", "2024-01-31"], {}, ["2024-01-05 07:30:00", "2024-01-31 00:00:00"]),
        (["2024-1-32", "2024-1-5"], {}, None),
        (["10.0.0.1", "10.0.0.2"], {}, None),
    ],
)
def test_a_spelling_is_proposed_where_values_leave_no_other(texts: list[str], keys: dict[str, str], read: list[str] | None) -> None:
    assert detected({"a": texts}) == (keys, {"a": read or texts})


def test_columns_decide_for_each_other() -> None:
    columns = {
        "sure": ["1,5", "2,5"],
        "open": ["1,234", "2,345"],
        "parted": ["1.234", "2.345"],
        "day": ["31/01/2024"] * 2,
        "open_day": ["01/02/2024"] * 2,
    }
    keys, read = detected(columns)
    assert keys == COMMA | {"thousands": ".", "dates": "dd/mm/yyyy"}
    assert read == columns | {
        "sure": ["1.5", "2.5"],
        "open": ["1.234", "2.345"],
        "parted": ["1234", "2345"],
        "day": ["2024-01-31"] * 2,
        "open_day": ["2024-02-01"] * 2,
    }


@pytest.mark.parametrize("point", ["9.12345", "9.5"])
def test_columns_with_a_decimal_point_and_with_a_comma_have_no_one_spelling(point: str) -> None:
    columns = {"comma": ["1,5", "2,5"], "point": [point, "3"], "whole": ["1", "2"], "day": ["2024-01-31"] * 2, "other": ["31.01.2024"] * 2}
    assert detected(columns) == ({"dates": "dd.mm.yyyy"}, columns | {"other": ["2024-01-31"] * 2})


def test_a_column_that_is_spelled_otherwise_further_on_stays_as_it_is() -> None:
    texts = ["1,5"] * MOST_LOOKED_AT + ["x"]
    assert detected({"a": texts}) == ({}, {"a": texts})


def test_nothing_is_said_of_a_spelling_that_no_column_keeps() -> None:
    columns = {
        "number": ["1,5"] * MOST_LOOKED_AT + ["x"],
        "day": ["31.01.2024"] * MOST_LOOKED_AT + ["x"],
        "iso": ["2024-1-5"] * (MOST_LOOKED_AT + 1),
    }
    assert detected(columns) == ({}, columns | {"iso": ["2024-01-05"] * (MOST_LOOKED_AT + 1)})


SPELLINGS = [Spelling(",", "."), Spelling(",", " "), Spelling(",", ""), Spelling(".", ","), Spelling(".", "'"), Spelling(".", "")]


@given(st.sampled_from(SPELLINGS), st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=8), st.integers(0, 3))
def test_no_number_is_read_as_another(spelling: Spelling, numbers: list[int], places: int) -> None:
    values = [Decimal(one).scaleb(-places) for one in numbers]
    grouping = "," if spelling.thousands else ""
    texts = [f"{one:{grouping}.{places}f}".translate({ord(","): spelling.thousands, ord("."): spelling.decimal}) for one in values]
    keys, read = detected({"a": texts})
    assert read["a"] == texts if not keys else [Decimal(one) for one in read["a"]] == values


@given(
    st.sampled_from(["{d:02}.{m:02}.{y}", "{d}/{m}/{y}", "{m}/{d}/{y}", "{m:02}-{d:02}-{y}"]),
    st.lists(st.dates(date(1900, 1, 1), date(2099, 1, 1)), min_size=1, max_size=6),
)
def test_no_day_is_read_as_another(form: str, days: list[date]) -> None:
    texts = [form.format(d=day.day, m=day.month, y=day.year) for day in days]
    keys, read = detected({"a": texts})
    assert read["a"] == texts if not keys else read["a"] == [str(day) for day in days]


def rows(number: int) -> str:
    return (
        f"{20 + number % 60};{number % 28 + 1:02}.{number % 12 + 1:02}.19{40 + number % 50};{1000 + number:,}".replace(",", ".")
        + f",{number % 100:02};{'Köln' if number % 2 else 'Zürich'}"
    )


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-8", {}), ("windows-1252", {"encoding": "windows-1252"}), ("utf-16", {"encoding": "utf-16"})]
)
def test_a_drafted_job_says_how_its_file_is_written(tmp_path: Path, encoding: str, said: dict[str, Any]) -> None:
    text = "\n".join(["Alter;Geburtsdatum;Einkommen;Ort", *map(rows, range(300))])
    (tmp_path / "people.csv").write_bytes(text.encode(encoding))
    draft_job(SourceOptions((str(tmp_path / "people.csv"),)), tmp_path / "job.yaml")
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    types = {"Alter": "integer", "Geburtsdatum": "date", "Einkommen": "double"}
    written = {"path": "people.csv", "format": "csv", "delimiter": ";", **said, "decimal": ",", "thousands": ".", "dates": "dd.mm.yyyy"}
    assert job["source"] == written | {"types": types}


DAYS = [date(1900 + number % 90, number % 12 + 1, number % 28 + 1) for number in range(400)]


@pytest.mark.parametrize(
    ("form", "few", "dates"),
    [
        ("{d:02}.{m:02}.{y}", "", "dd.mm.yyyy"), ("{d:02}.{m:02}.{y}", "{y}-{m:02}-{d:02}", "dd.mm.yyyy"),
        ("{y}-{m}-{d}", "", None), ("{y}-{m:02}-{d:02}", "", None), ("{y}-{m}-{d}", "{y}/{m:02}/{d:02}", None),
    ],
)  # fmt: skip
def test_columns_of_dates_are_dates_to_the_draft_and_to_a_run(tmp_path: Path, form: str, few: str, dates: str | None) -> None:
    """Blank cells, other spellings of some and missing zeros leave them dates, and the run reads the same days."""
    texts = [(few if number % 10 == 0 else form).format(d=day.day, m=day.month, y=day.year) for number, day in enumerate(DAYS)]
    (tmp_path / "people.csv").write_text("\n".join(["dob,note", *(f"{text}," for text in texts)]))
    with open_for_draft(SourceOptions((str(tmp_path / "people.csv"),)), tmp_path / "job.yaml") as front:
        [dob, note], *_ = profile_source(front)
        assert (dob.kind, note.kind, front.source.get("dates")) == ("date", "text", dates)
        days = front.connection.execute("SELECT dob FROM everything").fetchall()
        read = typed_sql("dob", "date", Spelling(dates=front.source.get("dates", ISO)))
        run = front.connection.execute(f"SELECT {read} FROM read_csv('{tmp_path / 'people.csv'}', all_varchar = true)").fetchall()
    expected = [day if text else None for text, day in zip(texts, DAYS, strict=True)]
    assert ([one for (one,) in run], [one and date.fromisoformat(one) for (one,) in days]) == (expected, expected)


@pytest.mark.parametrize(
    ("texts", "kind", "zoned"),
    [
        (["2024-01-31T10:00:00Z", "2024-01-31 10:00+01", ""], "timestamp", True),
        (["2024-01-31T10:00:00.5Z", "2024-01-31 10:00"], "text", False),
        (["2024-01-31 10:00:00.123456", "2024-01-31T10:00", ""], "timestamp", False),
        (["2024-01-31 10:00:00.1234567", "2024-01-31 10:00"], "text", False),
    ],
)
def test_moments_are_of_a_type_that_a_run_reads(tmp_path: Path, texts: list[str], kind: str, zoned: bool) -> None:
    (tmp_path / "people.csv").write_text("\n".join(["seen,note", *(f"{text},x" for text in texts)]))
    with open_for_draft(SourceOptions((str(tmp_path / "people.csv"),)), tmp_path / "job.yaml") as front:
        [seen, _], *_ = profile_source(front)
        assert (seen.kind, seen.zoned) == (kind, zoned)
        front.connection.execute("SET TimeZone = 'UTC'")
        run = f"SELECT {typed_sql('seen', type_of_texts(seen))} FROM read_csv('{tmp_path / 'people.csv'}', all_varchar = true)"
        read = front.connection.execute(f"SELECT ({typed_column_sql('seen', kind)})::VARCHAR FROM everything").fetchall()
        as_run = front.connection.execute(f"SELECT replace(column0::VARCHAR, '+00', '') FROM ({run}) AS run (column0)").fetchall()
    assert read == as_run
    assert [one is None for (one,) in read] == [not text for text in texts]


def test_a_time_further_on_is_not_cut_off() -> None:
    keys, read = detected({"a": ["31.01.2024"] * MOST_LOOKED_AT + ["31.01.2024 12:30"]})
    assert keys == {"dates": "dd.mm.yyyy"}
    assert read["a"][-1] == "2024-01-31 12:30:00"


def test_copies_of_a_file_in_another_encoding_are_gone_with_the_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "machine").mkdir()
    monkeypatch.setattr("tasks.store.files.gettempdir", lambda: str(tmp_path / "machine"))
    left = tmp_path / "machine" / f"skald-csv-{16 * '0'}"
    left.mkdir()
    (tmp_path / "people.csv").write_bytes("\n".join(["Alter;Ort", *(f"{20 + one % 60};Köln" for one in range(99))]).encode("windows-1252"))
    draft_job(SourceOptions((str(tmp_path / "people.csv"),)), tmp_path / "job.yaml")
    assert not list((tmp_path / "machine").iterdir())
