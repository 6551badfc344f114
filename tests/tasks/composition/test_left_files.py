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


@pytest.mark.parametrize(("chunks", "measured"), [(["ab", "x"], True), (["a", "b", "xy"], True), (["ax", "b"], False), (["abx"], False)])
def test_records_of_files_that_were_counted_together_with_others_are_not_told_apart(
    monkeypatch: pytest.MonkeyPatch, chunks: list[str], measured: bool
) -> None:
    """The earlier release had the files a and b."""
    monkeypatch.setattr(by_files, "load_coding", lambda *_: None)
    monkeypatch.setattr(by_files, "read_recoding_of", lambda *_: None)
    monkeypatch.setattr(by_files, "ChunkReading", lambda *_: None)
    monkeypatch.setattr(by_files, "_seen", lambda *_: by_files.ReleaseView(coding, recoding))
    monkeypatch.setattr(by_files, "_parts", lambda *_: [(SimpleNamespace(digests=set(files)), files) for files in chunks])
    monkeypatch.setattr(by_files, "bundled_cells", lambda _coding, parts, _store: parts)
    monkeypatch.setattr(by_files, "_at_risk", lambda _coding, _releases, cells, *_: len(cells))
    coding = recoding = store = overlap = SimpleNamespace(k=2, removed=0)
    ours: Any = SimpleNamespace(intervals="text", memory=1), (None, None), SimpleNamespace(columns=None)
    entry: Any = SimpleNamespace(recoded=object(), files=[("", "a", 1), ("", "b", 1)])
    figures, reason = by_files.compare_by_files(ours, entry, overlap, store)
    common = sum(set(files) <= set("ab") for files in chunks)
    expected = {"shared_at_risk": common, "added_at_risk": len(chunks) - common, "removed_at_risk": 0}
    assert figures == (expected if measured else None)
    assert bool(reason) is not measured
