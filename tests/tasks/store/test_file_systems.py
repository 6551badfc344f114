"""File systems that keep no modes or no locks, or go on naming what is open: nothing private is written where others can read it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from core.compiling import compiled
from flows.server import local_api
from schemas.errors.base import StorageError
from schemas.errors.folders import BusyError, FolderError
from schemas.errors.storage import OutputError, ServerError
from schemas.job.job import load_job
from tasks.store.files import apply_user_umask, locked_file, open_folder, private_folder, random_temporary_folder, write_atomically
from tasks.store.keys import StepCode
from tasks.store.work import clean_work, hold_work
from tasks.store.work_folder import check_own_work_folder, staging_prefix
from tasks.writing.pseudonyms import write_originals
from tests.conftest import Anonymise
from tests.jobs import people, people_job

REASON = "its file system keeps no modes"


def passed_over(path: Path | int, mode: int) -> None:
    """Change no mode and say nothing, as exFAT and NTFS do."""


def refused(path: Path | int, mode: int) -> None:
    """Change no mode, as FAT and SMB do."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.fixture(params=[passed_over, refused])
def without_modes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give every new file and folder the mode that a mount's umask says."""

    def mounted(umask: int) -> None:
        made, opened = os.mkdir, os.open
        monkeypatch.setattr(os, "chmod", request.param)
        monkeypatch.setattr(os, "mkdir", lambda path, mode=0o777, **given: made(path, 0o777, **given))
        monkeypatch.setattr(os, "open", lambda path, flags, mode=0o777, **given: opened(path, flags, 0o777, **given))
        os.umask(umask)

    before = os.umask(0o077)
    yield mounted
    os.umask(before)


def test_nothing_private_is_written_where_others_can_read_it(without_modes: Callable[[int], None], tmp_path: Path) -> None:
    job = load_job(people_job(tmp_path, people(20)))
    without_modes(0)
    with pytest.raises(FolderError, match=REASON):
        private_folder(tmp_path / "new")
    with pytest.raises(FolderError, match=REASON), hold_work(job):
        pass
    with pytest.raises(FolderError, match=REASON):
        write_originals(job, tmp_path / "originals.csv", ["p"], ["o"], None)
    assert not [path for name in ("new", "originals.csv", ".skald/people") if (path := tmp_path / name).exists()]


def test_no_temporary_folder_is_one_that_others_can_read(
    without_modes: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.store.files.gettempdir", lambda: str(tmp_path))
    without_modes(0o022)
    with pytest.raises(FolderError, match="TMPDIR"), random_temporary_folder("kind"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_modes_that_is_mounted_for_the_owner_alone_will_do(
    without_modes: Callable[[int], None], tmp_path: Path
) -> None:
    job = load_job(people_job(tmp_path, people(20)))
    without_modes(0o077)
    with hold_work(job) as work:
        assert write_atomically(work.folder / "file", lambda part: part.write_text("whole")) == 5
        apply_user_umask(work.folder / "file")
    assert (job.work_path / "file").read_text() == "whole"


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [(errno.EAGAIN, BusyError, "Another run is at work"), (errno.ENOLCK, FolderError, "No file can be locked")],
)
def test_a_file_system_without_locks_is_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception], words: str
) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(error, match=words), locked_file(tmp_path / "lock", fcntl.LOCK_EX):
        pass


def test_clean_removes_the_work_folder_where_an_open_file_keeps_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_job(people_job(tmp_path, people(20)))
    with hold_work(job):
        pass
    removed, closed, hidden = Path.unlink, os.close, job.work_path / ".fuse_hidden0001"

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == "run.lock":
            path.rename(hidden)
        else:
            removed(path, missing_ok)

    def close(descriptor: int) -> None:
        mine = hidden.exists() and os.path.samestat(os.fstat(descriptor), hidden.stat())
        closed(descriptor)
        if mine:
            removed(hidden)

    monkeypatch.setattr(Path, "unlink", unlink)
    monkeypatch.setattr(os, "close", close)
    assert clean_work(job).files_left == 0
    assert not job.work_path.exists()


def test_a_user_without_a_home_is_told_what_prefect_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(ServerError, match=r"cannot be made \(there is no home folder\).*--direct"):
        local_api.prepare_prefect()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ServerError, match=r"cannot be made \(Not a directory\)"):
        local_api.prepare_prefect()


def test_a_home_that_may_not_be_looked_into_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, inside = os.stat, str(tmp_path / "numba")

    def looked(path: os.PathLike[str] | str | int, **given: bool) -> os.stat_result:
        if str(path).startswith(inside):
            raise PermissionError(errno.EACCES, "Permission denied")
        return seen(path, **given)

    monkeypatch.setattr(os, "stat", looked)
    monkeypatch.setenv("NUMBA_CACHE_DIR", inside)
    assert compiled.compiled_folder() == Path(inside)


def test_what_is_published_in_a_folder_of_a_group_is_of_that_group(tmp_path: Path) -> None:
    group = next((one for one in (*os.getgroups(), 12345) if one != os.getegid()), os.getegid())
    shared, private = tmp_path / "shared", private_folder(tmp_path / "private") / "file"
    shared.mkdir()
    try:
        os.chown(shared, -1, group)
    except PermissionError:
        group = shared.stat().st_gid
    shared.chmod(0o2775)
    private.touch()
    made = open_folder(shared / "made")
    (made / "file").hardlink_to(private)
    apply_user_umask(made / "file")
    assert {(path.stat().st_gid, path.stat().st_mode & stat.S_ISGID) for path in (shared, made)} == {(group, stat.S_ISGID)}
    assert (made / "file").stat().st_gid == group


def test_a_folder_of_another_user_is_named_as_one() -> None:
    assert "run as that user, or take a folder of your own." in str(StorageError.not_writable("f", os.strerror(errno.EACCES)))
    assert "another user" not in str(StorageError.not_writable("f", os.strerror(errno.ENOSPC)))


def test_what_is_in_the_place_of_a_file_is_named_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file" / "below").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"/file' cannot be written \(Is a directory\)\. Another .* is in its place: move it away\.$"):
        write_atomically(tmp_path / "file", lambda part: part.write_text("x"))
    assert [path.name for path in tmp_path.rglob("*")] == ["file", "below"]


@pytest.mark.parametrize("theirs", [False, True])
def test_work_that_is_removed_meanwhile_is_ours_again_unless_somebody_else_wrote_there(tmp_path: Path, theirs: bool) -> None:
    job = load_job(people_job(tmp_path))
    with hold_work(job) as work:
        shutil.rmtree(work.folder)
        work.store.make("step", StepCode("step", "tasks.store.tables").key(), ".txt", lambda part: part.write_text("x"))
        if theirs:
            (work.folder / "letter.txt").touch()
    with pytest.raises(FolderError, match="not SKALD's") if theirs else hold_work(job):
        check_own_work_folder(job.work_path)


def test_what_killed_runs_staged_is_cleaned_without_work_too(tmp_path: Path) -> None:
    job = load_job(people_job(tmp_path))
    (job.target_path / f"{staging_prefix(job)}people-0123456789abcdef" / "data").mkdir(parents=True)
    (job.target_path / ".staging-00000000-people-0123456789abcdef").mkdir()
    clean_work(job)
    assert [path.name for path in job.target_path.iterdir()] == [".staging-00000000-people-0123456789abcdef"]


def test_folders_that_a_file_system_takes_for_one_are_not_published(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def mkdir(path: Path, *given: int, **named: bool) -> None:
        # Two names of one folder, as where case is not told apart.
        if path.name == "q=north" and not path.is_symlink():
            path.symlink_to("q=North")
        made(path, *given, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    table = pa.table({"q": ["North", "north"] * 20, "r": ["a"] * 40, "s": ["x", "y"] * 20})
    qids = [{"name": name, "hierarchy": {"tree": {"*": values}}} for name, values in (("q", ["North", "north"]), ("r", ["a"]))]
    columns = {"person": "none", "quasi_identifiers": qids, "sensitive": ["s"]}
    job = people_job(tmp_path, table, columns=columns, output={"partition_by": ["q"]}, suppression={"limit": 0})
    with pytest.raises(OutputError, match="1 folder would be one with another"):
        anonymise(job)
    assert not list((tmp_path / "releases").glob("people-*"))
