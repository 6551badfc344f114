"""Input at the edge of what types and systems hold is worked on or refused in one sentence, never an internal fault."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import SkaldError, StorageError
from schemas.errors.storage import ThreadsError
from schemas.job.method import METHODS
from tasks.engine.guard import guarded
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.store.database import THREADS_PER_CORE, database
from tests.jobs import people, people_job, released, two_column_job

Anonymise = Callable[..., PublishedRelease]
LETTERS = ["a", "b"] * 10
EPOCH_UNITS = {"s": 1, "ms": 10**3, "us": 10**6}
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""0001-01-01T00:00:00 and 9999-12-31T23:59:59, in seconds since 1970."""


@pytest.fixture(scope="module")
def run() -> Anonymise:
    """Run a job by the flow of the method ``named``, in this process."""

    def anonymise(job: Path, named: str = "skald") -> PublishedRelease:
        flow: Any = METHODS[named].flow.load()
        return getattr(flow, "fn", flow)(job, ())

    return anonymise


def table(values: pa.Array, secret: Any = LETTERS) -> pa.Table:
    return pa.table({"q": values, "s": secret if isinstance(secret, pa.Array) else pa.array(secret)})


def refused(run: Anonymise, job: Path, code: int, method: str = "skald") -> str:
    with pytest.raises(SkaldError) as told:
        run(job, method)
    assert told.value.exit_code == code, told.value
    assert not list(job.parent.glob("releases/*"))
    return str(told.value)


def no_text(kind: pa.DataType) -> pa.Array:
    """Twenty values of two bytes, of which the last five are not UTF-8."""
    offsets = pa.py_buffer(np.arange(21, dtype=np.int64 if pa.types.is_large_string(kind) else np.int32) * 2)
    return pa.Array.from_buffers(kind, 20, [None, offsets, pa.py_buffer(b"ab" * 15 + b"\xff\xfe" * 5)])


@pytest.mark.ci
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("column", ["q", "s"])
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
def test_text_that_is_not_utf8_is_refused_with_column_and_count(
    run: Anonymise, tmp_path: Path, kind: Any, column: str, method: str
) -> None:
    bad, good = no_text(kind), pa.array(["ab"] * 10 + ["cd"] * 10)
    job = two_column_job(tmp_path, table(bad, good) if column == "q" else table(good, bad), {"prefix": [1]}, method={"name": method})
    said = refused(run, job, 2, method)
    assert f"Column '{column}' of '" in said
    assert "holds 5 values that are not UTF-8 text" in said


@pytest.mark.ci
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
@pytest.mark.parametrize("prefix", [[3], [1 << 63], [1 << 64, 1 << 63, 2]])
def test_prefixes_of_the_largest_integers_and_of_any_length(run: Anonymise, tmp_path: Path, prefix: list[int], method: str) -> None:
    largest = pa.array([2**63 + number // 4 for number in range(16)] + [2**64 - 1] * 4, pa.uint64())
    made = run(two_column_job(tmp_path, table(largest), {"prefix": prefix}, method={"name": method}, privacy={"k": 5}), method)
    assert len(released(made.folder)) == 20


@pytest.mark.parametrize("way", ["interval", "set", "prefix"])
@pytest.mark.parametrize("hidden", [{"top": 15}, {"bottom": 3}])
def test_a_way_that_would_tell_what_top_and_bottom_hide_is_a_fault_of_the_job(
    run: Anonymise, tmp_path: Path, way: str, hidden: dict[str, int]
) -> None:
    for asked in (way, {"q": way}):
        method = {"name": "mondrian", "generalisation": asked}
        job = two_column_job(tmp_path, table(pa.array(range(20))), {"widths": [2, 10], **hidden}, method=method)
        assert "must be hierarchy" in refused(run, job, 2, "mondrian")


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_years_1_to_9999_are_published_and_what_lies_beyond_is_refused(run: Anonymise, tmp_path: Path, unit: str, method: str) -> None:
    seconds = [FIRST] * 4 + [FIRST + 1] * 6 + [LAST - 1] * 6 + [LAST] * 4
    scaled = [second * EPOCH_UNITS[unit] for second in seconds]
    kind, hierarchy = pa.timestamp(unit), {"date": ["day", "year"]}
    made = run(two_column_job(tmp_path / "held", table(pa.array(scaled, kind)), hierarchy, method={"name": method}), method)
    assert {str(label).lstrip("[<>= ")[:4] for label in released(made.folder)["q"].cast(str).to_list()} <= {"0001", "9999"}
    for number, beyond in enumerate((FIRST * EPOCH_UNITS[unit] - 1, (LAST + 1) * EPOCH_UNITS[unit], 2**53 * EPOCH_UNITS[unit] // 1000)):
        job = two_column_job(
            tmp_path / str(number), table(pa.array([*scaled[:-2], beyond, beyond], kind)), hierarchy, method={"name": method}
        )
        assert "Column 'q' holds 2 values before 0001-01-01 or after 9999-12-31" in refused(run, job, 2, method)


@pytest.mark.parametrize("days", [-719_163, 2_932_897, 2**31 - 1, -(2**31)])
def test_dates_beyond_the_years_1_to_9999_are_refused(run: Anonymise, tmp_path: Path, days: int) -> None:
    dates = pa.array([0] * 19 + [days], pa.int32()).cast(pa.date32())
    assert "Column 'q' holds 1 value before" in refused(run, two_column_job(tmp_path, table(dates), {"date": ["year"]}), 2)


@pytest.mark.parametrize("end", [2**63 - 1, -(2**63) + 1])
def test_nanoseconds_that_other_programs_take_for_infinity_are_refused(run: Anonymise, tmp_path: Path, end: int) -> None:
    moments = pa.array([0] * 19 + [end], pa.timestamp("ns"))
    assert "Column 'q' holds 1 value before" in refused(run, two_column_job(tmp_path, table(moments), {"date": ["year"]}), 2)


MODELS = [
    ({"l": {"s": {"distinct": 2}}}, ["a"] * 20),
    ({"l": {"s": {"entropy": 1.9}}}, ["a"] * 15 + ["b"] * 5),
]


@pytest.mark.ci
@pytest.mark.parametrize(("model", "secret"), MODELS)
@pytest.mark.parametrize("options", [{}, {"fragments": {"count": 2}}])
@pytest.mark.parametrize("method", ["rayden", "canon", "mondrian_cof", "clustering", "mondrian", "skald"])
def test_a_table_that_breaks_l_as_one_class_is_told_so_by_every_method(
    run: Anonymise, tmp_path: Path, method: str, options: dict[str, Any], model: dict[str, Any], secret: list[str]
) -> None:
    if options and method == "skald":
        return
    whole = {"name": method, **options}
    job = two_column_job(tmp_path, table(pa.array(range(20)), secret), {"widths": [2, 10]}, method=whole, privacy={"k": 2, **model})
    said = refused(run, job, 3, method)
    assert said == "All records in one class would not keep 'privacy.l.s'. Ask for less, or add data; nothing was published."


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden", "kmember"])
def test_so_is_one_that_breaks_l_by_persons_alone(run: Anonymise, tmp_path: Path, method: str) -> None:
    data = table(pa.array(range(20)), MODELS[1][1]).append_column("person", pa.array(range(20)))
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2, 10]}}], "sensitive": ["s"], "person": "person"}
    parts: dict[str, Any] = {"columns": columns, "privacy": {"k": 2, **MODELS[1][0]}, "suppression": {"limit": 0}}
    said = refused(run, people_job(tmp_path, data, method={"name": method}, **parts), 3, method)
    assert said == "All records in one class would not keep 'privacy.l.s'. Ask for less, or add data; nothing was published."


@pytest.mark.ci
@pytest.mark.parametrize("treatment", ["drop", "mask"])
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden", "clustering"])
def test_a_moment_has_one_text_whatever_the_method(run: Anonymise, tmp_path: Path, method: str, treatment: str) -> None:
    moments = pa.array([datetime(2020, 1, 1)] * 10 + [datetime(2021, 1, 1)] * 10, pa.timestamp("us"))
    parts = {"method": {"name": method}, "suppression": {"limit": 0.1, "treatment": treatment}}
    if method == "mondrian":
        del parts["suppression"]
    labels = released(run(two_column_job(tmp_path, table(moments), {"date": ["month", "year"]}, **parts), method).folder)["q"]
    if labels.dtype == pl.String:
        assert set(labels) == {"2020-01-01 00:00:00", "2021-01-01 00:00:00"}
    else:
        assert {moment.isoformat(" ") for moment in labels} == {"2020-01-01 00:00:00", "2021-01-01 00:00:00"}


def test_no_more_threads_are_started_than_four_a_core(tmp_path: Path) -> None:
    with database(256_000_000, tmp_path, 100_000) as connection:
        [threads] = connection.execute("SELECT current_setting('threads')").fetchone() or ()
    assert threads == THREADS_PER_CORE * len(os.sched_getaffinity(0))


NO_THREADS = [
    RuntimeError("can't start new thread"),
    BlockingIOError(11, "Resource temporarily unavailable"),
    pa.ArrowException("Resource temporarily unavailable"),
]


@pytest.mark.parametrize("error", NO_THREADS)
def test_a_system_that_allows_no_further_thread_is_told_of_in_a_sentence(error: Exception) -> None:
    def start() -> None:
        raise error

    with pytest.raises(ThreadsError, match="allows no further thread or process") as told:
        guarded(start)()
    assert told.value.exit_code == 2
    with pytest.raises(StorageError):
        guarded(lambda: Path("/nowhere/at/all").read_bytes())()


def hierarchy_of(path: str) -> dict[str, Any]:
    return {
        "quasi_identifiers": [{"name": "sex", "hierarchy": {"csv": path}}],
        "identifiers": ["person"],
        "insensitive": "rest",
    }


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_a_hierarchy_without_an_end_is_not_read(run: Anonymise, tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = refused(run, people_job(tmp_path, people(60), columns=hierarchy_of(path)), 2)
    assert "regular file" in said


def test_a_hierarchy_that_is_too_large_is_not_read(run: Anonymise, tmp_path: Path) -> None:
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(1_000_000_001)  # takes no room on the disk
    assert "at most 1,000 MB" in refused(run, people_job(tmp_path, people(60), columns=hierarchy_of("large.csv")), 2)


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_a_job_without_an_end_is_not_read(run: Anonymise, tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SkaldError, match="only regular files are read") as told:
        run(tmp_path / path)
    assert told.value.exit_code == 2
