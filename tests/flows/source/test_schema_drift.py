"""Files whose columns differ: refused, or read as if all had been written alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError
from schemas.job.job import job_digest, load_job
from schemas.job.method import METHODS
from tests.conftest import Anonymise, CommandLine
from tests.jobs import CSV_TYPES, digests, people, people_job, write_csv

TABLE = people(400)
MORE = people(100, seed=4)
EVOLVE = "source.schema=evolve"


def retyped(table: pa.Table, **types: pa.DataType) -> pa.Table:
    for name, dtype in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(dtype))
    return table


def drifting(folder: Path, table: pa.Table, **parts: Any) -> Path:
    """Write ``people`` in two files of which the second is written differently, its columns in another order."""
    job = people_job(folder, TABLE, **parts)
    pq.write_table(table.select(sorted(table.column_names)), folder / "people" / "zzz.parquet")
    return job


NARROW = {"age": pa.int8(), "height": pa.decimal128(6, 2), "visits": pa.float32(), "born": pa.timestamp("ms"), "sex": pa.large_string()}
WIDE = {"height": pa.decimal128(6, 2), "visits": pa.float64(), "born": pa.timestamp("ms"), "sex": pa.large_string()}
LACKING = ["zip", "note", "score"]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden"])
def test_files_that_differ_give_the_release_of_files_that_were_written_alike(tmp_path: Path, method: str) -> None:
    flow = METHODS[method].flow.load()
    run: Any = getattr(flow, "fn", flow)
    parts: dict[str, Any] = {"method": {"name": method}}
    made = run(drifting(tmp_path / "drift", retyped(MORE, **NARROW).drop_columns(LACKING), **parts), (EVOLVE, "chunk_rows=150"))
    more = MORE
    for name in LACKING:
        more = more.set_column(more.column_names.index(name), name, pa.nulls(len(more), more[name].type))
    alike = pa.concat_tables([retyped(TABLE, **WIDE), retyped(more, **WIDE)])
    fresh = run(people_job(tmp_path / "alike", alike, **parts), ())
    assert digests(made.folder) == digests(fresh.folder)
    assert made.manifest.evolved["visits"] == "float and int64 read as double"
    assert made.manifest.evolved["zip"] == "null in 1 of 2 files, which lack it"
    assert set(made.manifest.evolved) == {*NARROW, *LACKING}
    assert not fresh.manifest.evolved


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("privacy", ["privacy.t={disease: {t: 0.4}}", "privacy.l={disease: {distinct: 2}}"])
def test_promises_on_sensitive_values_are_kept_and_verified_over_files_that_lack_them(
    anonymise: Anonymise, tmp_path: Path, privacy: str
) -> None:
    made = anonymise(drifting(tmp_path, MORE.drop_columns(["disease"])), EVOLVE, privacy, "suppression.limit=0.5")
    assert made.manifest.evolved == {"disease": "null in 1 of 2 files, which lack it"}


def lacking(table: pa.Table) -> pa.Table:
    return table.drop_columns(["zip"])


def narrower(table: pa.Table) -> pa.Table:
    return retyped(table, age=pa.int8())


@pytest.mark.parametrize("change", [lacking, narrower])
def test_files_that_differ_are_refused_unless_the_job_says_evolve(
    anonymise: Anonymise, tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    job = drifting(tmp_path, change(MORE))
    for settings in ([], ["source.schema=freeze"]):
        with pytest.raises(SourceError, match=r"zzz\.parquet' and .*000\.parquet' differ in .*source\.schema: evolve"):
            anonymise(job, *settings)


def unexpected(table: pa.Table) -> pa.Table:
    return table.append_column("weight", pa.array([1] * len(table)))


def text(table: pa.Table) -> pa.Table:
    return retyped(table, age=pa.string())


def inexact(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("score"), "score", pa.array([2**53 + 1] * len(table), pa.int64()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (unexpected, "No role is given to 'weight'"),
        (text, r"Column 'age' is int64 in '.*000\.parquet' and string in '.*zzz\.parquet', and no type holds both"),
        (inexact, r"Column 'score' of '.*zzz\.parquet' holds values that double cannot hold exactly"),
    ],
)
def test_what_cannot_be_read_alike_is_refused(
    anonymise: Anonymise, tmp_path: Path, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    with pytest.raises(SourceError, match=said) as refused:
        anonymise(drifting(tmp_path, change(MORE)), EVOLVE)
    assert str(2**53 + 1) not in str(refused.value)
    assert not list((tmp_path / "releases").glob("people-*"))


@pytest.mark.ci
def test_new_columns_take_a_role_and_old_files_are_null_there(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(drifting(tmp_path, unexpected(MORE)), EVOLVE, "columns.insensitive=[note, score, visits, weight]")
    weights = pa.concat_tables([pq.read_table(path) for path in sorted((made.folder / "data").glob("*.parquet"))])["weight"]
    assert weights.type == pa.int64()
    assert 0 < len(weights) - weights.null_count <= 100


@pytest.mark.ci
def test_csv_files_may_differ_in_their_columns(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, source={"path": "lists/*.csv", "types": CSV_TYPES, "schema": "evolve"})
    write_csv(tmp_path / "lists" / "a.csv", TABLE)
    write_csv(tmp_path / "lists" / "b.csv", MORE.drop_columns(["note"]))
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "Column 'note': null in 1 of 2 files, which lack it." in done.stdout


@pytest.mark.slow
def test_another_day_another_type_only_files_that_are_read_otherwise_are_counted_again(anonymise: Anonymise, tmp_path: Path) -> None:
    job = drifting(tmp_path, retyped(MORE, age=pa.int8()))
    anonymise(job, EVOLVE)
    pq.write_table(retyped(people(50, seed=8), age=pa.decimal128(21, 1)), tmp_path / "people" / "zzzz.parquet")
    told = anonymise(job, EVOLVE).manifest.increment
    assert told is not None
    assert (told.new, told.chunks, told.domains_reused) == (1, 3, 0)
    pq.write_table(people(60, seed=9), tmp_path / "people" / "zzzzz.parquet")
    told = anonymise(job, EVOLVE).manifest.increment
    assert told is not None
    assert (told.new, told.chunks, told.domains_reused, told.histograms_reused) == (1, 4, 3, 3)


def test_a_job_that_says_nothing_of_drift_has_the_digest_it_always_had(tmp_path: Path) -> None:
    job = people_job(tmp_path)
    plain, frozen, evolving = (load_job(job, settings) for settings in ([], ["source.schema=freeze"], [EVOLVE]))
    assert plain.source.canonical().keys() == {"format", "delimiter", "null_values", "types"}
    assert job_digest(plain) == job_digest(frozen) != job_digest(evolving)
