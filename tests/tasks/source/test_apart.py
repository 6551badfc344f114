"""What a library does not survive ends a copy of the process, and the file is named; the process itself goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from schemas.errors.base import SourceError
from schemas.errors.tables import FileError
from tasks.source.apart import run_each_in_forked_process, run_in_forked_process


def size_of(path: Path) -> int:
    """Read a file as a library does that gives up at some."""
    content = path.read_bytes()
    if content == b"fatal":
        os.kill(os.getpid(), signal.SIGKILL)
    if content == b"damaged":
        raise SourceError.unreadable(path.name, "parquet")
    return len(content)


def written(folder: Path, *contents: str) -> list[tuple[str, tuple[Path]]]:
    paths = [folder / f"{number}.parquet" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    return [(path.name, (path,)) for path in paths]


def test_results_come_back_in_order(tmp_path: Path) -> None:
    calls = written(tmp_path, "a", "bcd", "")
    assert (
        run_each_in_forked_process(size_of, calls)
        == [run_in_forked_process(name, size_of, *arguments) for name, arguments in calls]
        == [1, 3, 0]
    )
    assert run_each_in_forked_process(size_of, []) == []


def test_the_file_that_ends_a_copy_is_named_among_others(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"'1\.parquet' cannot be read"):
        run_each_in_forked_process(size_of, written(tmp_path, "a", "fatal", "b"))
    with pytest.raises(FileError, match="'x' cannot be read"):
        run_in_forked_process("x", size_of, tmp_path / "1.parquet")


def test_errors_are_those_of_the_function(tmp_path: Path) -> None:
    calls = written(tmp_path, "a", "damaged", "fatal")
    with pytest.raises(SourceError, match=r"'1\.parquet' cannot be read as parquet"):
        run_each_in_forked_process(size_of, calls)
    with pytest.raises(OSError, match="No such file"):
        run_in_forked_process("x", size_of, tmp_path / "none")
