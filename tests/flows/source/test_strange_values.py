"""Values and names that some reader of a release would not take are refused by count, whatever their role; what all take is published."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from schemas.errors.base import SkaldError
from tests.conftest import Anonymise, CommandLine
from tests.covering import each_pair, each_value
from tests.jobs import job_of, released, two_column_job, write_job

pytestmark = pytest.mark.slow
QIDS = pa.array([number // 5 for number in range(20)])
WIDTHS = {"widths": [1, 10]}
SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""0001-01-01T00:00:00 and 9999-12-31T23:59:59, in seconds since 1970."""


def repeated(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([values[number % len(values)] for number in range(20)], kind)


def refused(anonymise: Anonymise, job: Path, *settings: str) -> str:
    with pytest.raises(SkaldError) as told:
        anonymise(job, *settings)
    assert told.value.exit_code == 2, told.value
    assert not list(job.parent.glob("releases/*"))
    return str(told.value)


@pytest.mark.parametrize(
    ("output", "unit", "zone"), each_pair(["parquet", "csv", "duckdb"], list(SECONDS), [None, "UTC", "Europe/Amsterdam", "+05:30"])
)
def test_moments_of_the_years_1_to_9999_are_published_by_every_format(
    anonymise: Anonymise, tmp_path: Path, unit: str, zone: str | None, output: str
) -> None:
    ends = [FIRST, 0, LAST] if unit != "ns" else [-9_223_372_036, 0, 9_223_372_036]
    moments = repeated([end * SECONDS[unit] for end in ends], pa.int64()).cast(pa.timestamp(unit, zone))
    job = two_column_job(tmp_path, pa.table({"q": QIDS, "s": moments}), WIDTHS)
    if output == "duckdb" and unit == "ns" and zone:
        assert "cannot be kept exactly by DuckDB" in refused(anonymise, job, "output.format=duckdb")
    else:
        assert anonymise(job, f"output.format={output}").manifest.released == 20


BEYOND = [("s", 2**53), ("ms", 2**63 - 1), ("ms", (LAST + 1) * 1000), ("us", -(2**62)), ("ns", 2**63 - 1)]


@pytest.mark.parametrize(("moment", "zone"), [*each_value(BEYOND, [None, "UTC", "America/New_York"]), (BEYOND[3], None)])
def test_moments_beyond_are_refused_where_they_are_only_published(
    anonymise: Anonymise, tmp_path: Path, moment: tuple[str, int], zone: str | None
) -> None:
    unit, beyond = moment
    moments = repeated([0, 0, 0, 0, beyond], pa.int64()).cast(pa.timestamp(unit, zone))
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": WIDTHS}], "insensitive": ["i"]}
    job = write_job(tmp_path, job_of(source={"path": "source.arrow"}, columns=columns))
    with ipc.new_file(tmp_path / "source.arrow", pa.schema({"q": pa.int64(), "i": moments.type})) as writer:
        writer.write_table(pa.table({"q": QIDS, "i": moments}))
    said = refused(anonymise, job)
    assert "does not fit" in said or "Column 'i' holds 4 values before" in said, said


@pytest.mark.parametrize(("kind", "ends"), [("s", 86_400), ("ms", 86_400_000), ("us", 86_400_000_000), ("ns", 86_400_000_000_000)])
def test_times_that_no_day_has_are_refused(anonymise: Anonymise, tmp_path: Path, kind: str, ends: int) -> None:
    storage = pa.int32() if kind in {"s", "ms"} else pa.int64()
    dtype = pa.time32(kind) if kind in {"s", "ms"} else pa.time64(kind)
    held = repeated([0, ends - 1], storage).view(dtype)
    assert len(released(anonymise(two_column_job(tmp_path / "held", pa.table({"q": QIDS, "s": held}), WIDTHS)).folder)) == 20
    for beyond in (-1, ends):
        times = repeated([0, 0, 0, 0, beyond], storage).view(dtype)
        said = refused(anonymise, two_column_job(tmp_path / f"{beyond}", pa.table({"q": QIDS, "s": times}), WIDTHS))
        assert "Column 's' holds 4 values before 00:00 or after 23:59" in said


def with_column(folder: Path, name: str) -> Path:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": WIDTHS}], "insensitive": "rest"}
    job = write_job(folder, job_of(source={"path": "source.parquet"}, columns=columns))
    pq.write_table(pa.table({"q": QIDS, name: repeated(["a", "b"], pa.string())}), folder / "source.parquet")
    return job


def columns_of(release: Path, told: Mapping[str, str]) -> list[str]:
    [file] = (release / "data").iterdir()
    if file.suffix == ".parquet":
        return list(pq.read_schema(file).names)
    if file.suffix == ".csv":
        return list(told)
    with duckdb.connect(str(file), read_only=True) as connection:
        return [name for name, *_ in connection.execute("DESCRIBE release").fetchall()]


STRANGE = [" ", "\t", "'", '"', "a;b,c", "[red]", "{{7}}", "<b>", "\u202eabc", "x" * 300, "count", "*", "é"]


@pytest.mark.parametrize("output", ["parquet", "csv", "duckdb"])
def test_columns_of_strange_names_are_published_under_them(anonymise: Anonymise, tmp_path: Path, output: str) -> None:
    for number, name in enumerate(STRANGE):
        made = anonymise(with_column(tmp_path / str(number), name), f"output.format={output}")
        assert name in columns_of(made.folder, made.manifest.columns)


@pytest.mark.parametrize(
    ("name", "words"), [("a\nb", "has a line break in the name"), ("", "without a name"), ("x" * 1001, "of more than 1,000 characters")]
)
def test_names_that_csv_does_not_hold_are_refused(anonymise: Anonymise, tmp_path: Path, name: str, words: str) -> None:
    said = refused(anonymise, with_column(tmp_path, name), "output.format=csv")
    assert words in said
    assert not name or name not in said


@pytest.mark.parametrize("method", ["skald", "mondrian", "clustering"])
def test_numbers_whose_range_is_none_are_refused(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    job = two_column_job(tmp_path, pa.table({"q": repeated([1.7e308, -1.7e308, 1.0, 5e-324], pa.float64()), "s": QIDS}), WIDTHS)
    assert "Column 'q' holds 10 values beyond 1e+100" in refused(anonymise, job, f"method={{name: {method}}}")


@pytest.mark.parametrize("place", ["target", "work"])
def test_links_in_a_circle_are_told_of_in_a_sentence(anonymise: Anonymise, tmp_path: Path, place: str) -> None:
    job = two_column_job(tmp_path, pa.table({"q": QIDS, "s": QIDS}), WIDTHS)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert "cannot be written (" in refused(anonymise, job, f"{place}=circle")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_whose_name_is_no_text_is_refused(direct: CommandLine, tmp_path: Path, kind: str) -> None:
    """By the command line, which has to say it."""
    two_column_job(tmp_path, pa.table({"q": QIDS, "s": QIDS}), WIDTHS, source={"path": f"files/*.{kind}"})
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / os.fsdecode(b"a\xff\xfe." + kind.encode())).write_bytes((tmp_path / "people" / "000.parquet").read_bytes())
    done = direct.process("run", "job.yaml")
    assert (done.returncode, "1 file of the source has a path that is not UTF-8 text" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(("method", "same"), [("skald", False), ("skald", True), ("mondrian", True), ("rayden", False)])
def test_three_hundred_quasi_identifiers_come_to_an_end(anonymise: Anonymise, tmp_path: Path, method: str, same: bool) -> None:
    """One by one of other values, and all of one: the first is coarsened to nothing, of the second every column is looked up."""
    random = np.random.default_rng(0)
    one = random.integers(0, 20, 400)
    columns = [one * 7 % 23 + number if same else random.integers(0, 20, 400) for number in range(300)]
    table = pa.table({f"q{number}": column for number, column in enumerate(columns)})
    qids = [{"name": column, "hierarchy": {"widths": [1, 5, 10]}} for column in table.column_names]
    job = write_job(tmp_path, job_of(source={"path": "a.parquet"}, columns={"quasi_identifiers": qids}, memory="1GB"))
    pq.write_table(table, tmp_path / "a.parquet")
    assert anonymise(job, f"method={{name: {method}}}").manifest.released > 0


@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_a_million_distinct_texts_come_to_an_end(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    texts = pa.array([f"{number * 7_919 % 1_000_003:07d}" for number in range(1_000_000)])
    table = pa.table({"q": texts, "s": pa.array(np.arange(1_000_000) % 7)})
    made = anonymise(two_column_job(tmp_path, table, {"prefix": [6, 4, 2]}, memory="1GB"), f"method={{name: {method}}}", "privacy.k=5")
    assert made.manifest.released == 1_000_000
