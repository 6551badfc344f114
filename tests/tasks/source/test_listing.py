"""Which names below a pattern are data, and what is said of places that are not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from schemas.errors.base import JobError, SourceError
from schemas.errors.tables import FileError
from schemas.job.job import load_job
from tasks.engine.progress import hearing
from tasks.source.listing import is_hidden, matching_objects
from tasks.source.locations import find_names
from tests.jobs import job_of, write_job


@pytest.mark.parametrize(
    ("name", "pattern", "hidden"),
    [
        ("/d/_temporary/0/x.parquet", "/d/**/*.parquet", True),
        ("/d/.hive-staging/x.parquet", "/d/**/*.parquet", True),
        ("/d/_SUCCESS", "/d/*", True),
        ("/d/x.parquet._COPYING_", "/d/*", True),
        ("/d/_region=North/x.parquet", "/d/**/*.parquet", False),
        ("/d/_staging/x.parquet", "/d/_staging/*.parquet", False),
        ("/d/_x.parquet", "/d/_*.parquet", False),
        ("/d/.x.parquet", "/d/.x.parquet", False),
        ("/.cache/_d/x.parquet", "/.cache/_d/*.parquet", False),
        ("/.cache/a[1]/x.parquet", "/.cache/a[[]1]/*.parquet", False),
        ("s3://b/_d/x.parquet", "s3://b/*/x.parquet", True),
    ],
)
def test_names_of_what_is_no_data(name: str, pattern: str, hidden: bool) -> None:
    assert is_hidden(name, pattern) == hidden


def test_a_file_that_is_not_read_is_reported_with_the_reason(tmp_path: Path) -> None:
    for name in ("a.data", "_b.data"):
        (tmp_path / name).touch()
    job = load_job(write_job(tmp_path, job_of(source={"path": "*.data", "format": "csv"})))
    heard: list[str] = []
    with hearing(heard.append):
        assert find_names(job) == [str(tmp_path / "a.data")]
    reason = "a name or folder there begins with _ or a dot"
    assert heard == [f"1 file of the source is not read, because {reason}: such as '{tmp_path / '_b.data'}'."]


@pytest.fixture
def bucket() -> Iterator[fsspec.AbstractFileSystem]:
    """A bucket in memory, with a file and a table of Delta Lake."""
    system = fsspec.filesystem("memory")
    for name in ("/bkt/a/x.parquet", "/bkt/t/x.parquet", "/bkt/t/_delta_log/0.json"):
        system.pipe_file(name, b"x")
    yield system
    system.rm("/bkt", recursive=True)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("memory://nothing/a/*.parquet", "There is no bucket 'nothing'"),
        ("memory://nothing/x.parquet", "There is no bucket 'nothing'"),
        ("memory://bkt/b/*.parquet", "No object matches"),
        ("memory://bkt/a", "is a folder"),
        ("memory://bkt/t/*.parquet", "is a table of Delta Lake"),
    ],
)
def test_what_is_not_there_in_a_bucket_is_named(address: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        matching_objects(address)


@pytest.mark.usefixtures("bucket")
def test_what_is_there_is_found() -> None:
    assert [name.removeprefix("memory://").lstrip("/") for name in matching_objects("memory://bkt/a/*.parquet")] == ["bkt/a/x.parquet"]


@pytest.mark.parametrize("pattern", ["d/*/*.data", "d/**/*.data", "d/**", "d/*/e/*.data"])
def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    for name in ("d/a", "d/a/e", "d/c", "d/lost+found", "d/_aside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.data").touch()
    job = load_job(write_job(tmp_path, job_of(source={"path": pattern, "format": "csv"})))
    closed, scandir = {"lost+found", "_aside"}, os.scandir

    def scan(folder: str = ".") -> os._ScandirIterator[str]:
        if Path(folder).name in closed:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", scan)
    assert str(tmp_path / "d/a/x.data") in find_names(job) or pattern == "d/*/e/*.data"
    closed.add("c")
    with pytest.raises(FileError, match=r"d/c' cannot be listed \(Transport endpoint is not connected\)"):
        find_names(job)


@pytest.mark.parametrize(
    ("pattern", "leads_to"), [("d/*.data", "nowhere"), ("d/*.data", "gone.data"), ("d/**", "nowhere"), ("d/gone.data", "nowhere")]
)
def test_a_link_that_leads_to_no_file_is_not_passed_over(tmp_path: Path, pattern: str, leads_to: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.data").touch()
    (tmp_path / "d/.#lock.data").symlink_to("nobody@nowhere")
    (tmp_path / "d/whole.data").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    job = load_job(write_job(tmp_path, job_of(source={"path": pattern, "format": "csv"})))
    if pattern != "d/gone.data":
        assert {Path(name).name for name in find_names(job)} == {"a.data", "whole.data"}
    (tmp_path / "d/gone.data").symlink_to(leads_to)
    with pytest.raises(FileError, match=r"matches 1 link that leads to no file, such as '.*d/gone\.data'"):
        find_names(job)


def test_a_link_in_the_place_of_a_folder_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "region=N").mkdir()
    (tmp_path / "region=N/a.data").touch()
    (tmp_path / ".region=S").symlink_to("nowhere")
    job = load_job(write_job(tmp_path, job_of(source={"path": "region=*/*.data", "format": "csv"})))
    assert [Path(name).name for name in find_names(job)] == ["a.data"]
    (tmp_path / "region=S").symlink_to("nowhere")
    with pytest.raises(FileError, match=r"matches 1 link that leads to no file, such as '.*region=…'"):
        find_names(job)


def test_an_address_of_a_file_here_is_said_to_be_written_as_a_path(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"source\.path: .*write its path alone, without file://"):
        load_job(write_job(tmp_path, job_of(source={"path": f"file://{tmp_path}/*.parquet"})))
