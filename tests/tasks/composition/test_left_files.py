"""Of files that an earlier release had and this one has not, the counts are found, or it is said why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from schemas.errors.signals import UnmeasuredError
from tasks.composition import by_files

COUNTS = {("a", "b"): "of a and b", ("c",): "of c", ("d",): None}


def left(
    monkeypatch: pytest.MonkeyPatch, chunks: list[tuple[str, ...]], *here: str, names: tuple[str, ...] = ("q",)
) -> tuple[list[Any], list[Any]]:
    """Return what is found of chunks of files, whose names have a letter each, where some chunks of files are here still."""
    known = SimpleNamespace(find_by=lambda _reading, chunk: COUNTS[tuple(piece[0] for piece in chunk)])
    monkeypatch.setattr(by_files, "HISTOGRAMS", known)
    monkeypatch.setattr(by_files, "axis_names", lambda _job: ["q"])
    reading: Any = SimpleNamespace(job=None)
    entry: Any = SimpleNamespace(names=names, chunks=[[(digest, 0, 9) for digest in chunk] for chunk in chunks])
    now: Any = [(SimpleNamespace(key=files, digests=set(files)), f"here {files}") for files in here]
    return by_files._left(reading, entry, now)


def test_counts_of_files_that_are_gone_are_found_with_those_of_files_that_stayed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, [("a", "b"), ("c",)], "a", "x") == (["of a and b", "of c"], ["here a"])
    assert left(monkeypatch, [("a", "b"), ("c",)], "a", "b") == (["of c"], [])
    assert left(monkeypatch, [("c",)]) == (["of c"], [])


@pytest.mark.parametrize(
    ("chunks", "here", "names", "why"),
    [
        ([("a", "b")], ["ax"], ("q",), "counted together with others"), ([("c",), ("d",)], [], ("q",), "counts are gone"),
        ([("c",)], [], ("q", "s"), "other sensitive columns"),
    ],
)  # fmt: skip
def test_counts_that_cannot_be_told_apart_or_are_gone_are_not_made_up(
    monkeypatch: pytest.MonkeyPatch, chunks: list[tuple[str, ...]], here: list[str], names: tuple[str, ...], why: str
) -> None:
    with pytest.raises(UnmeasuredError, match=why):
        left(monkeypatch, chunks, *here, names=names)
