"""What `skald clean` keeps: what the newest releases need, or what runs have used of late."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from schemas.errors.folders import WorkError
from schemas.job.job import load_job
from tasks.composition.registry import NS_OF_A_DAY, remove_unneeded
from tasks.composition.release_history import MOST_RELEASES, forget_older, oldest_release_kept
from tasks.store.store import Store
from tests.conftest import Anonymise, CommandLine
from tests.flows.composition.several_jobs import LATER, TABLE, job_in
from tests.jobs import write_parquet


def names_in(work: Path) -> set[str]:
    return {str(path.relative_to(work)) for path in work.rglob("*.record")}


def age(work: Path, days: float) -> None:
    """Make all that the run folder holds older by some days."""
    for path in work.rglob("*.record"):
        made, older = path.stat(), int(days * NS_OF_A_DAY)
        os.utime(path, ns=(made.st_atime_ns - older, made.st_mtime_ns - older))


@pytest.mark.ci
def test_what_the_newest_releases_need_stays(anonymise: Anonymise, direct: CommandLine, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    work = load_job(job).work_path
    anonymise(job)
    age(work, 2)
    first = names_in(work)
    (tmp_path / "people").rename(tmp_path / "before")
    write_parquet(tmp_path / "people", pa.concat_tables([LATER, TABLE]))
    then = anonymise(job)
    both = names_in(work)
    assert direct("clean", "job.yaml", "--keep-last", "2").stdout.startswith("No artefact is older")
    assert names_in(work) == both
    done = direct("clean", "job.yaml", "--keep-last", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Removed ")
    refused = direct("clean", "job.yaml", "--keep-last", "11")
    assert (refused.returncode, refused.stderr) == (2, "Invalid value for '--keep-last': Input should be less than or equal to 10\n")
    left = names_in(work)
    assert left < both
    assert not any("releases" in name and then.manifest.release not in name for name in left)
    # What is left is what the newest release was made of: a run finds it published and all of its counts whole.
    assert not anonymise(job).new
    assert left & first == names_in(work) & first
    assert direct("plan", "job.yaml").stdout.count("nothing: all was counted before") == 1


@pytest.mark.ci
def test_what_was_used_within_some_days_stays(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    work = load_job(job).work_path
    anonymise(job)
    whole = names_in(work)
    assert remove_unneeded(load_job(job), None, 1) == 0
    age(work, 2)
    # All is old, and of the newest release all the same.
    assert remove_unneeded(load_job(job), None, 1) == 0
    assert names_in(work) == whole


def test_without_a_run_folder_nothing_is_removed(tmp_path: Path) -> None:
    assert remove_unneeded(load_job(job_in(tmp_path)), 3, None) == 0


def test_a_bucket_has_rules_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="lifecycle rule"):
        remove_unneeded(load_job(job_in(tmp_path), ("work=s3://bucket/work",)), 1, None)


def test_a_store_remembers_as_many_releases_as_are_kept(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    folder = store.folder / "releases"
    folder.mkdir()
    for number in range(MOST_RELEASES):
        path = folder / f"{number}.record"
        path.write_text("")
        os.utime(path, ns=(number, number))

    assert oldest_release_kept(store, 3) == MOST_RELEASES - 3
    forget_older(store, 3)
    assert sorted(path.stem for path in folder.iterdir()) == [str(number) for number in range(MOST_RELEASES - 3, MOST_RELEASES)]
    assert oldest_release_kept(store, 4) is None
