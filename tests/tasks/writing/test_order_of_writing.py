"""What writes a release gives each step what it is about, and no step more records than its memory holds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.signals import UnfitError
from schemas.errors.values import PseudonymError, ValuesError
from tasks.writing import pseudonyms, rewriting
from tasks.writing.people import WrittenPersons
from tasks.writing.pseudonyms import pseudonyms_of_key, read_list
from tasks.writing.rewriting import BYTES_OF_VALUE, FileGathering
from tests.house.steps import Steps


@pytest.mark.parametrize("payload", [[], ["a"], ["a", "b", "c"]])
@pytest.mark.parametrize("more", [0, 1])
def test_a_file_is_gathered_where_all_values_of_its_records_find_room(
    monkeypatch: pytest.MonkeyPatch, payload: list[str], more: int
) -> None:
    """A record has its class beside its payload."""
    source, parts = SimpleNamespace(payload=payload), SimpleNamespace(of=lambda number: (["run 1", "run 2"], number + 10))
    job = SimpleNamespace(memory=7 * (1 + len(payload)) * BYTES_OF_VALUE)
    given: Any = SimpleNamespace(
        shuffle_parts=parts, store=SimpleNamespace(path=lambda run: f"path of {run}"),
        rewriting=SimpleNamespace(source=source, job=job, labels="labels"),
    )  # fmt: skip
    steps, paths = (
        Steps(monkeypatch, rewriting, {"count_file_records": 7 + more, "write_output_file": 7}),
        ["path of run 1", "path of run 2"],
    )
    if more:
        with pytest.raises(ValuesError, match="8 records stand in one file"):
            FileGathering.write(given, 3, Path("out"))
        assert steps.given == {"count_file_records": (paths, 13)}
    else:
        assert FileGathering.write(given, 3, Path("out")) == 7
        assert steps.given["write_output_file"] == (Path("out"), "labels", source, paths, 13)


@pytest.mark.parametrize("person", [[], ["who"]])
def test_a_release_is_written_chunk_by_chunk_and_then_file_by_file(monkeypatch: pytest.MonkeyPatch, person: list[str]) -> None:
    run: Any = SimpleNamespace(job=SimpleNamespace(columns=SimpleNamespace(person=person)))
    source = SimpleNamespace(chunks=["chunk 0", "chunk 1"])
    given: Any = SimpleNamespace(file_count=3, recoding=SimpleNamespace(classes="classes"))
    replaced = SimpleNamespace(file_count=3, recoding=given.recoding, source=source)
    asked = list[tuple[str, tuple[Any, ...]]]()

    def noted(name: str, returned: Any) -> Any:
        return lambda *mine, **named: asked.append((name, (*mine, named) if named else mine)) or returned(*mine)

    monkeypatch.setattr(rewriting, "replace", noted("replace", lambda *_: replaced))
    monkeypatch.setattr(rewriting, "with_shared_values", noted("with_shared_values", lambda *_: source))
    monkeypatch.setattr(rewriting, "ChunkPosition", lambda chunk, number: SimpleNamespace(chunk=chunk, number=number))
    monkeypatch.setattr(rewriting, "KeptRecords", SimpleNamespace(of_chunk=lambda *mine: mine))
    monkeypatch.setattr(rewriting, "FileGathering", SimpleNamespace(of=noted("gathering", lambda *_: "gathering")))
    monkeypatch.setattr(rewriting, "run_for_items", noted("each", lambda _, step, *__: ["run 0", "run 1"] if step == "RUNS" else ["files"]))
    monkeypatch.setattr(rewriting, "results_of_each", noted("results", lambda _, step, *__: [f"{step} 0", f"{step} 1"]))
    for name in ("RUNS", "MEMBERS", "FILES", "PEOPLE"):
        monkeypatch.setattr(rewriting, name, name)
    files, persons = rewriting.rewrite(run, given)
    places = [SimpleNamespace(chunk=f"chunk {number}", number=number) for number in range(2)]
    expected: list[tuple[str, tuple[Any, ...]]] = [
        ("with_shared_values", (run, given)), ("replace", (given, {"source": source})), ("each", (run, "RUNS", replaced, places)),
        ("results", (run, "MEMBERS", replaced, places)), ("gathering", (run, replaced, ["run 0", "run 1"])),
        ("each", (run, "FILES", "gathering", range(3))),
    ]  # fmt: skip
    assert asked == expected + [("results", (run, "PEOPLE", replaced, places))] * len(person)
    assert run.members == [("chunk 0", "MEMBERS 0"), ("chunk 1", "MEMBERS 1")]
    assert files == ["files"]
    assert persons == (WrittenPersons(("PEOPLE 0", "PEOPLE 1"), ("classes",)) if person else rewriting.NO_PERSONS)


def test_pseudonyms_of_a_key_are_made_by_its_treatment_and_what_does_not_fit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one: Any = SimpleNamespace(name="ssn")
    steps = Steps(monkeypatch, pseudonyms, {"_plain": "plain", "_means": "means", "_made": "made"})
    assert pseudonyms_of_key("job", "source", one, pa.array(["a"])) == "made"
    assert steps.given == {"_plain": (pa.array(["a"]),), "_means": ("job", "source", one), "_made": (one, "plain", "means")}

    def unfit(*_: Any) -> Any:
        raise UnfitError(3, "too long")

    monkeypatch.setattr(pseudonyms, "_made", unfit)
    Steps(monkeypatch, pseudonyms, {"_plain": "plain", "_means": "means"})
    with pytest.raises(PseudonymError, match="'ssn'") as error:
        pseudonyms_of_key("job", "source", one, pa.array(["a"]))
    assert "too long" in str(error.value)


@pytest.mark.parametrize(
    ("lines", "with_subjects", "read"),
    [
        (["a\n", "\n", '"b, c"\n'], False, (["a", "b, c"], None)), (["s,a\n", "t,b\n"], True, (["a", "b"], ["s", "t"])),
        ([], False, ([], None)),
        (["s,a\n"], False, "entry 1 is not one pseudonym"), (["s,a\n", "\n", "b\n"], True, "entry 2 is not a subject and a date"),
        (["a\n", "b,c,d\n"], False, "entry 2 is not one pseudonym"), (['"a\n'], False, "it is not CSV in UTF-8"),
    ],
)  # fmt: skip
def test_a_list_has_a_pseudonym_on_each_line_after_its_subject_where_these_are_needed(
    lines: list[str], with_subjects: bool, read: Any
) -> None:
    if isinstance(read, str):
        with pytest.raises(PseudonymError, match=read):
            read_list(lines, with_subjects)
    else:
        assert read_list(lines, with_subjects) == read
