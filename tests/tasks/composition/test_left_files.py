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


@pytest.mark.parametrize("gone", ["", "their counts are gone"])
def test_what_was_shared_came_and_went_is_counted_with_the_recodings_that_saw_it(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    """The earlier release had the files a and b; of these a is here, with c."""
    now, then = by_files.ReleaseView("coding here", "recoding"), by_files.ReleaseView("coding there", "recoding")  # type: ignore[arg-type]
    chunks = [(SimpleNamespace(digests={file}), f"of {file}") for file in "ac"]
    ours: Any = SimpleNamespace(intervals="text", memory=7), ("domain", "kept"), SimpleNamespace(columns="columns")
    entry: Any = SimpleNamespace(recoded="recoded", files=[("", "a", 1), ("", "b", 1)])
    store, overlap, asked = SimpleNamespace(), SimpleNamespace(k=3, removed=4), list[tuple[Any, ...]]()
    expected = {
        "load_coding": ((ours[0], "domain", store), now.coding), "read_recoding_of": ((now.coding, "kept", "text", store), "recoding"),
        "_seen": ((ours[0], entry, "recoded", store), then), "ChunkReading": ((ours[0], "columns", store), "reading"),
        "_parts": (("reading", ours[2]), chunks), "_left": (("reading", entry, chunks), (["of b", "of ab"], ["of a"])),
    }  # fmt: skip

    def answer(name: str) -> Any:
        def answered(*given: Any) -> Any:
            assert given == expected[name][0]
            if name == "_left" and gone:
                raise UnmeasuredError(gone)
            return expected[name][1]

        return answered

    for name in expected:
        monkeypatch.setattr(by_files, name, answer(name))
    monkeypatch.setattr(by_files, "bundled_cells", lambda coding, parts, kept: (coding, parts, kept))
    monkeypatch.setattr(by_files, "_at_risk", lambda *given: asked.append(given) or len(asked))
    figures, reason = by_files.compare_by_files(ours, entry, overlap, store)  # type: ignore[arg-type]
    shared = ("coding here", [now, then], ("coding here", ["of a"], store), 1, 7, 3)
    added = ("coding here", [now], ("coding here", ["of c"], store), 1, 7, 3)
    removed = ("coding there", [then], ("coding there", ["of b", "of ab", "of a"], store), 2, 7, 3)
    assert asked == ([shared, added] if gone else [shared, added, removed])
    assert figures == {"shared_at_risk": 1, "added_at_risk": 2} | ({"unmeasured": gone} if gone else {"removed_at_risk": 3})
    assert not reason
