"""Kernels that call each other across files are compiled anew when any of these files changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import compiled


def doubled(number: int) -> int:
    return number * 2


def kept(folder: Path) -> set[str]:
    return {path.name for path in (folder / "__pycache__").glob("*") if any(path.rglob("*.nbi"))}


def test_a_change_in_any_file_leaves_what_was_compiled_before_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "HERE", tmp_path)
    monkeypatch.setattr(compiled.SETTINGS, "CACHE_DIR", "")
    found: list[set[str]] = []
    for text in ("one", "one", "other"):
        (tmp_path / "called.py").write_text(text)
        assert compiled.compiler("called")(doubled)(21) == 42
        found.append(kept(tmp_path))
    assert [len(names) for names in found] == [1, 1, 2]
    assert compiled.SETTINGS.CACHE_DIR == ""
