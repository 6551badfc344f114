"""A folder that is not ours is never changed, emptied or removed, whatever a job calls it; no link leads a run out of its own."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.job.job import load_job
from tasks.store.work_folder import staging_prefix
from tests.conftest import Anonymise, CommandLine
from tests.jobs import people, people_job

TABLE = people(120)
K = ("--set", "privacy.k=2", "--set", "suppression.limit=0.5")


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of all that is in a folder, itself included."""
    found = [folder, *(path for path in folder.rglob("*") if "home" not in path.relative_to(folder).parts)]
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in found
        if path.name != "__pycache__"
    }


@pytest.fixture
def untouched(direct: CommandLine, tmp_path: Path) -> Callable[[Path, str], None]:
    """Check that a job is refused in one sentence by run, plan and clean, and that its folder stays as it is to the byte."""

    def check(job: Path, sentence: str) -> None:
        direct.home.mkdir(exist_ok=True)
        before = everything(tmp_path)
        for command in ("run", "plan", "clean"):
            done = direct(command, job)
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert sentence in done.stderr
            assert len(done.stderr.splitlines()) == 1
        assert everything(tmp_path) == before

    return check


@pytest.mark.ci
@pytest.mark.parametrize(
    ("work", "target", "sentence"),
    [
        (".", "releases", "holds the folder of the job file"),
        ("..", "../elsewhere", "holds the folder of the job file"),
        ("people", "releases", "holds the source"),
        ("people/../people", "releases", "holds the source"),
        ("to_people", "releases", "holds the source"),
        ("hierarchies", "releases", "holds the hierarchy of 'smoker'"),
        ("kept", "kept/releases", "holds the target"),
        ("kept", "kept", "holds the target"),
        ("releases/kept", "releases", "lies in the target"),
        (".skald/people", ".", "lies in the target"),
        ("documents", "releases", "holds files that are not SKALD's"),
        ("empty_but_for_results", "releases", "holds files that are not SKALD's"),
    ],
)
def test_a_work_folder_that_holds_what_is_not_ours_is_refused_and_stays_as_it_is(
    untouched: Callable[[Path, str], None], tmp_path: Path, work: str, target: str, sentence: str
) -> None:
    folder = tmp_path / "project"
    job = people_job(folder, TABLE, work=work, target=target)
    for name in ("documents/letter.txt", "empty_but_for_results/results/figures.csv", "hierarchies/smoker.csv"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("true;*\nfalse;*\n")
    (folder / "to_people").symlink_to("people")
    job.write_text(job.read_text().replace("csv: smoker.csv", "csv: hierarchies/smoker.csv"))
    (folder / "people").chmod(0o755)
    untouched(job, sentence)


@pytest.mark.ci
def test_clean_removes_what_a_run_made_and_leaves_and_tells_what_it_did_not(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, work="kept")
    assert direct("run", job, *K).returncode == 0
    kept, outside = tmp_path / "kept", tmp_path / "outside"
    assert stat.S_IMODE((kept / ".skald-work").stat().st_mode) == 0o600
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (kept / "notes.txt").write_text("mine")
    (kept / "artifacts" / "link").symlink_to(outside)
    (kept / "spill").symlink_to(outside)
    # A run that was killed had written this much of a release.
    staged = tmp_path / "releases" / f"{staging_prefix(load_job(job))}people-1"
    (staged / "data").mkdir(parents=True)
    done = direct("clean", job)
    assert done.returncode == 0, done.stderr
    assert not staged.exists()
    assert f"1 entry stays in '{kept}', as SKALD did not make it." in done.stdout
    assert sorted(path.name for path in kept.iterdir()) == [".skald-work", "notes.txt"]
    assert [path.read_text() for path in outside.iterdir()] == ["mine"]
    # It is still known as ours.
    assert direct("run", job, *K).returncode == 0
    (kept / "notes.txt").unlink()
    assert direct("clean", job).returncode == 0
    assert not kept.exists()
    assert direct("clean", job).stdout == "There are no artefacts.\n"
    assert (tmp_path / "releases" / "CURRENT").is_file()


@pytest.mark.ci
def test_a_work_folder_of_an_earlier_version_is_recognised_by_what_is_in_it(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    assert direct("run", job, *K).returncode == 0
    work = tmp_path / ".skald" / "people"
    (work / ".skald-work").unlink()
    assert direct("run", job, *K, "--set", "privacy.k=3").returncode == 0
    assert (work / ".skald-work").is_file()
    (work / ".skald-work").unlink()
    assert direct("clean", job).returncode == 0
    assert not work.exists()


@pytest.mark.ci
def test_an_empty_folder_of_the_users_is_taken_and_made_private(direct: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    assert direct("run", people_job(tmp_path, TABLE, work="empty"), *K).returncode == 0
    assert stat.S_IMODE((tmp_path / "empty").stat().st_mode) == 0o700


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("link", [lambda path, victim: path.symlink_to(victim), lambda path, victim: path.hardlink_to(victim)])
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    direct: CommandLine, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    job, victim = people_job(tmp_path, TABLE), tmp_path / "victim"
    assert direct("run", job, *K).returncode == 0
    victim.write_text("of somebody else")
    victim.chmod(0o644)
    lock = tmp_path / ".skald" / "people" / "run.lock"
    lock.unlink()
    link(lock, victim)
    for command in ("run", "clean"):
        done = direct(command, job)
        assert done.returncode == 2
        assert "run.lock' is a link or no plain file, and is not opened" in done.stderr
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("of somebody else", 0o644)


def test_a_mark_or_a_lock_that_is_a_link_makes_no_folder_ours(untouched: Callable[[Path, str], None], tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, work="kept")
    (tmp_path / "kept").mkdir(mode=0o755)
    (tmp_path / "kept" / ".skald-work").symlink_to("nowhere")
    untouched(job, "holds files that are not SKALD's")
    (tmp_path / "kept" / ".skald-work").unlink()
    (tmp_path / "kept" / "run.lock").symlink_to("nowhere")
    untouched(job, "holds files that are not SKALD's")


@pytest.mark.ci
def test_a_link_in_the_place_of_staging_leads_no_record_out_of_the_target(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path
) -> None:
    job = people_job(tmp_path, TABLE)
    made = anonymise(job, *K[1::2])
    release, outside = made.manifest.release, tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    shutil.rmtree(made.folder)
    from schemas.job.job import load_job
    from tasks.store.work_folder import staging_prefix

    staging = made.folder.with_name(f"{staging_prefix(load_job(job))}{release}")
    staging.symlink_to(outside)
    assert direct("run", job, *K).returncode == 0
    assert [path.name for path in outside.iterdir()] == ["mine"]
    assert made.folder.is_dir()
    assert not made.folder.is_symlink()
    assert not staging.is_symlink()


@pytest.mark.ci
def test_verify_leaves_a_work_folder_of_somebody_else_as_it_is(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    assert direct("run", job, *K).returncode == 0
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "letter.txt").write_text("mine")
    release = next((tmp_path / "releases").glob("people-*"))
    done = direct("verify", release, "--job", job, *K, "--set", "work=documents")
    assert done.returncode == 2
    assert "holds files that are not SKALD's" in done.stderr
    assert [path.name for path in (tmp_path / "documents").iterdir()] == ["letter.txt"]


@pytest.mark.ci
def test_what_killed_runs_were_writing_is_cleared_by_the_next_run(anonymise: Anonymise, tmp_path: Path) -> None:
    """In the work folder, among its artefacts and in the registry of the folder of jobs; what is no file of theirs stays."""
    job = people_job(tmp_path, TABLE)
    work = tmp_path / ".skald"
    anonymise(job, "privacy.k=2", "suppression.limit=0.5")
    left = [
        folder / ".people-0123456789abcdef.record.7-00ff.part"
        for folder in (work / ".releases", work / "people", work / "people/artifacts")
    ]
    kept = work / ".releases" / "notes.part"
    for path in (*left, kept):
        path.write_bytes(b"half")
    anonymise(job, "privacy.k=3", "suppression.limit=0.5")
    assert [path for path in left if path.exists()] == []
    assert kept.exists()
