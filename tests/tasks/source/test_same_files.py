"""A file of the source counts once, whatever names lead to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.errors.base import SourceError
from schemas.job.job import load_job
from tasks.source.locations import distinct_files, find_files
from tests.conftest import CommandLine
from tests.jobs import people, people_job

TABLE = people(120)
K = ("--set", "privacy.k=2", "--set", "suppression.limit=0.5")

Link = Callable[[Path, Path], None]


def symbolic(path: Path, file: Path) -> None:
    path.symlink_to(file)


def hard(path: Path, file: Path) -> None:
    path.hardlink_to(file)


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(
    "paths",
    [
        ["people/*.parquet", "people/000.parquet", "**/*.parquet"],
        ["people/*.parquet", "people/../people/*.parquet"],
        ["other/../people/000.parquet", "./people/001.parquet", "people//000.parquet"],
    ],
)
def test_overlapping_patterns_and_other_spellings_of_a_path_reach_a_file_once(
    direct: CommandLine, tmp_path: Path, paths: list[str]
) -> None:
    job = people_job(tmp_path, TABLE, files=2, source={"path": paths})
    (tmp_path / "other").mkdir()
    assert [path.name for path in find_files(load_job(job))] == ["000.parquet", "001.parquet"]
    done = direct("run", job, *K, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == len(TABLE)
    assert "of the source" not in done.stderr


@pytest.mark.parametrize("link", [symbolic, hard])
@pytest.mark.parametrize(
    ("place", "paths"), [("people/copy.parquet", ["people/*.parquet"]), ("other/000.parquet", ["people/*.parquet", "other/*"])]
)
def test_two_names_of_one_file_are_refused_in_a_sentence_with_the_patterns(
    direct: CommandLine, tmp_path: Path, link: Link, place: str, paths: list[str]
) -> None:
    job = people_job(tmp_path, TABLE, files=2, source={"path": paths, "format": "parquet"})
    (tmp_path / "other").mkdir()
    link(tmp_path / place, tmp_path / "people" / "000.parquet")
    for command in ("run", "plan"):
        done = direct(command, job, *K)
        assert (done.returncode, done.stdout) == (2, "")
        assert "matches 1 file under several names" in done.stderr
        assert all(f"'{path}'" in done.stderr for path in paths)
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "releases").exists()


def test_a_folder_that_is_a_link_to_another_is_refused(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=3, source={"path": "*/*.parquet"})
    (tmp_path / "again").symlink_to("people")
    with pytest.raises(SourceError, match="matches 3 files under several names"):
        find_files(load_job(job))


@pytest.mark.parametrize("link", [symbolic, hard])
def test_a_single_name_may_be_a_link(tmp_path: Path, link: Link) -> None:
    job = people_job(tmp_path, TABLE, source={"path": "linked/*.parquet"})
    (tmp_path / "linked").mkdir()
    link(tmp_path / "linked" / "one.parquet", tmp_path / "people" / "000.parquet")
    assert [path.name for path in find_files(load_job(job))] == ["one.parquet"]


@pytest.mark.ci
def test_a_link_to_an_artefact_or_a_release_is_no_source(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    assert direct("run", job, *K).returncode == 0
    written = [next(tmp_path.glob(pattern)) for pattern in ("releases/people-*/data/*.parquet", ".skald/people/artifacts/*/*.parquet")]
    for file in written:
        (tmp_path / "people" / "link.parquet").symlink_to(file)
        with pytest.raises(SourceError, match="1 file of releases in the target or of the work folder"):
            find_files(load_job(job))
        (tmp_path / "people" / "link.parquet").unlink()


@pytest.mark.ci
def test_two_files_of_equal_content_both_count_and_are_warned_of(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    shutil.copyfile(tmp_path / "people" / "000.parquet", tmp_path / "people" / "001.parquet")
    done = direct("run", job, *K, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == 2 * len(TABLE)
    assert "Warning: 1 file of the source" in done.stderr
    assert "1 file of the source" in direct("run", job, *K).stdout


def test_two_schemes_of_one_store_reach_an_object_once() -> None:
    patterns = {"s3://bucket/a": {"one"}, "s3a://bucket/a": {"two"}, "s3://bucket/b": {"one"}, "gs://bucket/a": {"three"}}
    assert distinct_files(patterns) == ["gs://bucket/a", "s3://bucket/a", "s3://bucket/b"]
