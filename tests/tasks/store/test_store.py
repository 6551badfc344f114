"""The artefact store: what is there is whole, private and believed only after a look."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.errors.base import StorageError
from schemas.errors.folders import WorkError
from tasks.store.files import private_folder, write_atomically
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store
from tests.places import ROOT

STEP = StepCode("step", "tasks.store.tables")
KEY = STEP.key("a", 1)


def write(text: str = "whole") -> object:
    return lambda path: path.write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work"


def fresh(folder: Path) -> Store:
    """A store that has not looked at anything yet, as the next process has it."""
    return Store.at(folder)


def never(path: Path) -> int:
    raise AssertionError("made again")


def test_what_was_made_is_found_by_the_next_process_and_not_made_again(folder: Path) -> None:
    made = fresh(folder).make("step", KEY, ".txt", write())
    assert (made.step, made.key, made.rows, made.size) == ("step", KEY, 5, 5)
    store = fresh(folder)
    assert store.find("step", KEY) == made == store.make("step", KEY, ".txt", never)
    assert store.path(made).read_text() == "whole"
    assert store.find("other", KEY) is store.find("step", STEP.key("b")) is None


def flip(path: Path, record: Path) -> None:
    stat = path.stat()
    path.write_bytes(b"whoLe")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def shorten(path: Path, record: Path) -> None:
    path.write_bytes(b"whol")


def delete(path: Path, record: Path) -> None:
    path.unlink()


def delete_record(path: Path, record: Path) -> None:
    record.unlink()


def spoil_record(path: Path, record: Path) -> None:
    record.write_bytes(b"\xff{garbage")


def empty_record(path: Path, record: Path) -> None:
    record.write_bytes(b"")


def change_a_digit(path: Path, record: Path) -> None:
    record.write_text(record.read_text().replace('"rows": 5', '"rows": 6'))


def cut_record(path: Path, record: Path) -> None:
    record.write_bytes(record.read_bytes()[:-20])


@pytest.mark.parametrize("damage", [flip, shorten, delete, delete_record, spoil_record, empty_record, cut_record, change_a_digit])
def test_damage_is_noticed_and_mended(folder: Path, damage) -> None:
    made = fresh(folder).make("step", KEY, ".txt", write())
    path = folder / "artifacts" / made.file
    damage(path, path.with_suffix(".record"))
    assert fresh(folder).find("step", KEY) is None
    assert fresh(folder).make("step", KEY, ".txt", write()) == made
    assert path.read_text() == "whole"
    assert fresh(folder).find("step", KEY) == made


@pytest.mark.parametrize("damage", [shorten, delete])
def test_damage_is_noticed_by_the_process_that_made_it_too(folder: Path, damage) -> None:
    store = fresh(folder)
    made = store.make("step", KEY, ".txt", write())
    assert store.is_complete(made)
    damage(store.path(made), store.path(made).with_suffix(".record"))
    assert not store.is_complete(made)


@pytest.mark.parametrize("damage", [shorten, delete])
def test_what_is_no_longer_what_was_written_is_not_read(folder: Path, damage) -> None:
    store = fresh(folder)
    made = store.make("step", KEY, ".txt", write())
    damage(store.path(made), store.path(made).with_suffix(".record"))
    with pytest.raises(WorkError, match="is gone, or is not what was written"):
        store.path(made)


@pytest.mark.parametrize("damage", [shorten, delete])
def test_what_fails_because_another_is_damaged_meanwhile_says_so(folder: Path, damage) -> None:
    store = fresh(folder)
    path = store.path(store.make("step", KEY, ".txt", write()))

    def fail(part: Path) -> int:
        raise ValueError("what a library says of it")

    def damaged(part: Path) -> int:
        damage(path, path.with_suffix(".record"))
        return fail(part)

    with pytest.raises(ValueError, match="what a library"):
        store.make("step", STEP.key("b"), ".txt", fail)
    with pytest.raises(WorkError, match=re.escape(f"'{path}' is gone, or is not what was written")):
        store.make("step", STEP.key("b"), ".txt", damaged)


@pytest.mark.parametrize("suffix", [".txt", ".record"])
def test_a_folder_in_the_place_of_a_file_gives_way(folder: Path, suffix: str) -> None:
    path = fresh(folder).path(fresh(folder).make("step", KEY, ".txt", write()))
    path.with_suffix(suffix).unlink()
    (path.with_suffix(suffix) / "below").mkdir(parents=True)
    store = fresh(folder)
    assert store.path(store.make("step", KEY, ".txt", write())).read_text() == "whole"


def test_files_and_folders_are_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        made = fresh(folder).make("step", KEY, ".txt", write())
    finally:
        os.umask(before)
    path = folder / "artifacts" / made.file
    assert [part.stat().st_mode & 0o777 for part in (path.parent, path.parent.parent)] == [0o700, 0o700]
    assert {part.stat().st_mode & 0o777 for part in path.parent.iterdir()} == {0o600}


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    assert private_folder(tmp_path / "open").stat().st_mode & 0o777 == 0o700


def test_a_failed_write_leaves_neither_the_file_nor_a_temporary_name(folder: Path) -> None:
    def fail(path: Path) -> int:
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        fresh(folder).make("step", KEY, ".txt", fail)
    assert list((folder / "artifacts" / "step").iterdir()) == []


def test_a_failed_rewrite_leaves_what_was_there(tmp_path: Path) -> None:
    def fail(path: Path) -> int:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    write_atomically(path, write("old"))
    with pytest.raises(StorageError, match="No space left on device"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_was_killed_is_not_believed(folder: Path) -> None:
    script = f"""
        import os, signal
        from pathlib import Path
        from tasks.store.store import Store
        def die(path):
            path.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        Store.at(Path({str(folder)!r})).make("step", {KEY!r}, ".txt", die)
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    assert [path.read_text() for path in (folder / "artifacts" / "step").iterdir()] == ["half"]
    assert fresh(folder).find("step", KEY) is None
    assert fresh(folder).path(fresh(folder).make("step", KEY, ".txt", write())).read_text() == "whole"


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        private_folder(tmp_path / "file" / "work")


def test_removing_a_step_leaves_the_others(folder: Path) -> None:
    store = fresh(folder)
    kept: Artifact = store.make("kept", KEY, ".txt", write())
    store.make("gone", KEY, ".txt", write())
    store.remove("gone", "never was")
    assert [path.name for path in (folder / "artifacts").iterdir()] == ["kept"]
    assert store.find("kept", KEY) == kept


def test_a_record_speaks_of_its_own_key_only(folder: Path) -> None:
    keys = [STEP.key(name) for name in "ab"]
    one, other = [fresh(folder).make("step", key, ".txt", write(f"text {key}")) for key in keys]
    records = [folder / "artifacts" / "step" / f"{key}.record" for key in keys]
    texts = [record.read_bytes() for record in records]
    for record, text in zip(records, reversed(texts), strict=True):
        record.write_bytes(text)
    assert [fresh(folder).find("step", key) for key in keys] == [None, None]
    assert not fresh(folder).is_complete(one)
    # With its file, too: what was copied to another name is not what was made under it.
    (folder / "artifacts" / other.file).write_bytes((folder / "artifacts" / one.file).read_bytes())
    records[0].write_bytes(texts[0])
    records[1].write_bytes(texts[0])
    assert [fresh(folder).find("step", key) for key in keys] == [one, None]
    assert fresh(folder).make("step", keys[1], ".txt", write(f"text {keys[1]}")) == other
    (folder / "artifacts" / "moved").mkdir()
    for path in (folder / "artifacts" / "step").iterdir():
        path.rename(folder / "artifacts" / "moved" / path.name)
    assert fresh(folder).find("moved", keys[0]) is None


def test_an_artefact_of_two_suffixes_is_found_again(folder: Path) -> None:
    made = fresh(folder).make("step", KEY, ".csv.gz", write())
    assert fresh(folder).make("step", KEY, ".csv.gz", never) == made


def test_what_a_run_had_no_use_for_is_pruned_by_step_and_the_rest_stays(folder: Path) -> None:
    keys = [STEP.key(number) for number in range(3)]
    for key in keys:
        fresh(folder).make("whole", key, ".txt", write())
        fresh(folder).make("chunk", key, ".txt", write())
    store = fresh(folder)
    assert store.find("whole", keys[0])
    store.prune(["whole", "never was"], {("whole", keys[1])})
    assert [store.find("whole", key) is not None for key in keys] == [True, True, False]
    assert all(store.find("chunk", key) for key in keys)
    assert len(list((folder / "artifacts" / "whole").iterdir())) == 4


def test_what_ends_a_watch_with_an_error_is_not_kept(folder: Path) -> None:
    @contextmanager
    def changed() -> Iterator[None]:
        yield
        raise LookupError

    with pytest.raises(LookupError):
        fresh(folder).watching(changed).make("step", KEY, ".txt", write())
    assert list((folder / "artifacts" / "step").iterdir()) == []


def test_what_no_run_had_a_use_for_since_a_moment_goes_but_for_what_is_kept(tmp_path: Path) -> None:
    keys = {name: STEP.key(name) for name in ("old", "kept", "used", "new")}

    def made(store: Store, name: str) -> Artifact:
        return store.make("step", keys[name], ".txt", lambda part: part.write_text(name))

    first = Store.at(tmp_path)
    old = {name: made(first, name) for name in ("old", "kept", "used")}
    for record in first.folder.glob("*/*.record"):
        os.utime(record, ns=(1_000, 1_000))
    later = Store.at(tmp_path)
    new, used = made(later, "new"), made(later, "used")
    later.mark_used()
    later.prune_unused(2_000, {("step", keys["kept"])})
    again = Store.at(tmp_path)
    assert not (again.folder / old["old"].file).exists()
    assert [again.is_complete(one) for one in (old["old"], old["kept"], used, new)] == [False, True, True, True]
