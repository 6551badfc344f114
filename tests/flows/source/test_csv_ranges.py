"""A large CSV object that several tasks convert becomes what one task makes of it, to the byte, and what is wrong with it is told alike."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.base import SourceError
from tasks.source import object_inspection
from tests.conftest import Anonymise
from tests.jobs import CSV_TYPES, digests, people, people_job, write_csv
from tests.servers import objects, s3_bucket

NOTES = ['a "word"', "two\nlines", ',"\n"', "", "é", None]


@pytest.fixture(scope="module")
def bucket() -> Iterator[None]:
    with s3_bucket():
        yield


def job_in(folder: Path, name: str, **parts: Any) -> Path:
    return people_job(folder, people(1), source={"path": f"s3://bucket/{name}", "types": CSV_TYPES} | parts)


def put(folder: Path, name: str, rows: int = 600) -> Path:
    table, path = people(rows), folder / name
    notes = pa.array([NOTES[row % len(NOTES)] for row in range(rows)], pa.string())
    write_csv(path, table.set_column(table.column_names.index("note"), "note", notes))
    objects().put_file(str(path), f"bucket/{name}")
    return path


def in_ranges(monkeypatch: pytest.MonkeyPatch, least: int = 5_000) -> list[int]:
    """Let small objects be cut, as if there were workers; return how many parts each became, as they are made."""
    made, convert = list[int](), object_inspection.convert_ranges

    def noted(*arguments: Any) -> Any:
        parts = convert(*arguments)
        made.extend(map(len, parts.values()))
        return parts

    monkeypatch.setattr("tasks.source.object_inspection.convert_ranges", noted)
    monkeypatch.setattr(object_inspection, "LEAST", least)
    monkeypatch.setattr(object_inspection, "count_remote_workers", lambda: 2)
    return made


def converted(folder: Path) -> list[str]:
    return [sha256(path.read_bytes()).hexdigest() for path in sorted((folder / ".skald/people/artifacts/converted").glob("*.parquet"))]


@pytest.mark.ci
def test_ranges_become_the_bytes_of_the_whole(bucket: None, anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(tmp_path, "notes.csv")
    whole = anonymise(job_in(tmp_path / "whole", "notes.csv"))
    made = in_ranges(monkeypatch)
    parts = anonymise(job_in(tmp_path / "parts", "notes.csv"))
    assert made[0] > 5
    assert converted(tmp_path / "parts") == converted(tmp_path / "whole") != []
    assert parts.manifest.release == whole.manifest.release
    assert digests(parts.folder) == digests(whole.folder)
    assert not list((tmp_path / "parts/.skald/people/artifacts/ranges").glob("*"))


@pytest.mark.slow
def test_objects_are_cut_side_by_side_and_a_small_one_not_at_all(
    bucket: None, anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, rows in enumerate((600, 200, 300, 20)):
        put(tmp_path, f"{number}.csv", rows)
        objects().copy(f"bucket/{number}.csv", f"bucket/several/{number}.csv")
    whole = anonymise(job_in(tmp_path / "whole", "several/*.csv"))
    made, asked, step = in_ranges(monkeypatch), list[tuple[str, int]](), object_inspection.map_step

    def mapped(run: Any, phase: str, function: Any, calls: Any) -> Any:
        asked.append((function.__name__, len(calls)))
        return step(run, phase, function, calls)

    monkeypatch.setattr(object_inspection, "map_step", mapped)
    parts = anonymise(job_in(tmp_path / "parts", "several/*.csv"))
    assert [name for name, _ in asked] == ["_scan", "_convert"]
    assert (len(made), sum(made)) == (3, asked[1][1])
    assert sorted(converted(tmp_path / "parts")) == sorted(converted(tmp_path / "whole")) != []
    assert digests(parts.folder) == digests(whole.folder)


@pytest.mark.slow
def test_rows_that_do_not_fit_are_told_as_of_the_whole(
    bucket: None, anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = put(tmp_path, "wrong.csv")
    for wrong in (b"1,2\n", b'1,"2\n', b'x"y"\n'):
        objects().pipe_file("bucket/wrong.csv", path.read_bytes() + wrong)
        told = []
        for name in ("whole", "parts"):
            with monkeypatch.context() as patch, pytest.raises(SourceError) as refused:
                if name == "parts":
                    in_ranges(patch)
                anonymise(job_in(tmp_path / name, "wrong.csv"))
            told.append(str(refused.value))
        assert told[0] == told[1]


@pytest.mark.slow
def test_more_rows_than_a_row_group_become_the_same_row_groups(
    bucket: None, anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("q,s\n" + "".join(f"{row % 7},{'ab'[row % 2]}\n" for row in range(300_000)))
    objects().put_file(str(path), "bucket/long.csv")
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    for name in ("whole", "parts"):
        with monkeypatch.context() as patch:
            if name == "parts":
                in_ranges(patch, 100_000)
            anonymise(people_job(tmp_path / name, people(1), source={"path": "s3://bucket/long.csv"}, columns=columns))
    assert converted(tmp_path / "parts") == converted(tmp_path / "whole") != []
