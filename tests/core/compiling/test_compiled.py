"""Kernels that call each other across files are compiled anew when any of these files changes."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config

from core.compiling import compiled


def doubled(number: Any) -> Any:
    return number * 2


def first_column(rows: Any) -> Any:
    total = 0
    for row in range(rows.shape[0]):
        total += rows[row, 0]
    return total


def kept(folder: Path) -> set[str]:
    return {path.name for path in (folder / "__pycache__").glob("*") if any(path.rglob("*.nbi"))}


def test_a_change_in_any_file_leaves_what_was_compiled_before_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    found: list[set[str]] = []
    before = config.CACHE_DIR
    for text in ("one", "one", "other"):
        (tmp_path / "called.py").write_text(text)
        assert compiled.compiler("called")(doubled)(21) == 42
        found.append(kept(tmp_path))
    assert [len(names) for names in found] == [1, 1, 2]
    assert before == config.CACHE_DIR


def test_a_kernel_is_reported_before_it_is_compiled_and_not_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "called.py").write_text("one")
    said: list[tuple[str, int]] = []
    with compiled.notified_of_compiling(lambda module: said.append((module, len(list(tmp_path.rglob("*.nbc")))))):
        for given in (21, 21, 2.5):
            assert compiled.compiler("called")(doubled)(given) == given * 2
    compiled.compiler("called")(doubled)(1j)
    assert said == [(__name__, 0), (__name__, 1)]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda whole: b"x", lambda whole: b"", lambda whole: whole[: len(whole) // 2]])
def test_damaged_kernels_are_compiled_again_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "called.py").write_text("one")
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    said: list[str] = []
    with compiled.notified_of_compiling(said.append):
        for expected in (1, 2, 2):
            assert compiled.compiler("called")(doubled)(21) == 42
            assert len(said) == expected
            if len(said) == 1:
                [kept_file] = tmp_path.rglob(f"*.{ending}")
                kept_file.write_bytes(damage(kept_file.read_bytes()))


def test_code_of_other_types_is_not_taken_for_that_of_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "called.py").write_text("one")
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    rows = np.arange(6).reshape(3, 2)
    given = (rows, np.asfortranarray(rows))
    said: list[str] = []
    with compiled.notified_of_compiling(said.append):
        for expected in (2, 4, 4):
            assert [compiled.compiler("called")(first_column)(one) for one in given] == [6, 6]
            assert len(said) == expected
            if len(said) == 2:
                first, second = sorted(tmp_path.rglob("*.nbc"))
                content = first.read_bytes()
                first.write_bytes(second.read_bytes())
                second.write_bytes(content)


@pytest.mark.parametrize("limit", [0, 1000])
def test_kernels_work_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    (tmp_path / "called.py").write_text("one")
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernel: Any = compiled.compiler("called")(doubled)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        assert kernel(21) == 42
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.rglob("*.nbc"))
    assert compiled.compiler("called")(doubled)(21) == 42
    assert list(tmp_path.rglob("*.nbc"))


def test_kernels_are_kept_in_the_users_cache_where_the_installation_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "called.py").write_text("one")
    (tmp_path / "__pycache__").write_text("a file, so that no folder can be made")
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert compiled.compiler("called")(doubled)(21) == 42
    assert list((tmp_path / "cache" / "skald" / "numba").rglob("*.nbi"))


def test_kernels_work_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "called.py").write_text("one")
    nowhere = tmp_path / "called.py"
    monkeypatch.setattr(compiled, "CORE", tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere / "cache"))
    assert compiled.compiler("called")(doubled)(21) == 42
    assert [path.name for path in tmp_path.iterdir()] == ["called.py"]
