"""A chunk's released records go to the files of their classes, and beside them are kept its classes and their persons."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recoding.recoding import SUPPRESSED
from core.recoding.release_order import first_files
from schemas.errors.base import SourceError
from schemas.job.job import Job
from tasks.writing import cells
from tasks.writing.cells import ROUND_SHARE, CellRewriting, rewrite_cells
from tasks.writing.runs import read_file_records
from tests.jobs import job_of

BATCHES = [([1, -1, 0, 1], [0.5, 2.5, 3.5]), ([], []), ([-1, 2, 0], [4.5, 5.5])]
"""The classes of records that come one batch after another, and what the released ones publish."""


class Kept:
    """A step that keeps what it is given to write."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, Any, Any]] = []

    def save_artifact(self, given: Any, place: Any, write: Any) -> None:
        self.given.append((given, place, write))


@pytest.mark.parametrize("person", [[], ["who"]])
@pytest.mark.parametrize("most", [1, 1 << 20])
def test_the_records_of_a_chunk_are_written_by_file_and_its_classes_and_persons_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, person: list[str], most: int
) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "insensitive": ["v"], "person": person}
    job, members, people, written = (
        Job.model_validate(job_of(columns=columns, suppression={"limit": 0.5, "treatment": "mask"})),
        Kept(),
        Kept(),
        list[Any](),
    )
    source: Any = SimpleNamespace(own_texts=(), payload=["v"], treatments={"v": "hash"})
    # Two records of a file: the first class has one, and the others share one. Those of the last are masked, so that nothing links them.
    files, labels = first_files(np.array([2, 1, 1]), 2), pa.table({"q": ["a", "b", "*"]})
    given: Any = SimpleNamespace(files=files, file_count=2, most=most, source=source, job=job, labels=labels)
    place: Any = SimpleNamespace(chunk="the chunk")

    def assigned(mine: Any, chunk: Any) -> Any:
        assert (mine, chunk) == (given, "the chunk")
        for classes, values in BATCHES:
            yield np.array(classes, np.int32), pa.RecordBatch.from_arrays([pa.array(values, pa.float64())], names=["v"])

    monkeypatch.setattr(cells, "_assigned", assigned)
    monkeypatch.setattr(cells, "MEMBERS", members)
    monkeypatch.setattr(cells, "PEOPLE", people)
    monkeypatch.setattr(cells, "write_people_of", lambda *given: written.append(given))
    path = tmp_path / "run.arrow"
    assert CellRewriting.write_run(given, place, path) == 5
    found = [(one.tolist(), values.to_pylist()) for number in range(2) for one, [values] in [read_file_records([path], number, 1)]]
    assert found == [([0, 0], [2.5, 5.5]), ([1, 1, 2], [0.5, 3.5, None])]
    [(mine, at, write)] = members.given
    assert (mine, at, write(tmp_path / "members")) == (given, place, 7)
    assert pq.read_table(tmp_path / "members")["class"].to_pylist() == [1, -1, 0, 1, -1, 2, 0]
    for mine, at, write in people.given:
        assert (mine, at) == (given, place)
        write(tmp_path / "people")
    for of_job, chunk, (classes, beside), to in written:
        assert (of_job, chunk, to) == (job, "the chunk", tmp_path / "people")
        assert classes.tolist() == [1, -1, 0, 1, -1, 2, 0]
        assert {name: len(column) for name, column in beside.items()} == {"pseudonyms": 5}
    assert len(people.given) == len(written) == len(person)


@pytest.mark.parametrize(("workers", "at_once"), [(1, 2), (2, 2), (5, 5)])
def test_the_records_that_are_held_at_a_time_take_their_part_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, workers: int, at_once: int
) -> None:
    given = list[Any]()
    monkeypatch.setattr(cells, "rewrite", lambda *mine: given.append(mine) or "files")
    run: Any = SimpleNamespace(job=SimpleNamespace(task_memory=600_000_000), workers=workers, store="store", spill="spill")
    parts: list[Any] = [object(), object(), object()]
    source, domain, recoding = parts
    assert rewrite_cells(run, source, domain, recoding) == "files"
    [(mine, rewriting)] = given
    assert (mine, run.recoded) == (run, (domain, recoding))
    assert rewriting == CellRewriting(run.job, domain, run.store, run.spill, source, recoding, rewriting.most)
    assert rewriting.most == 600_000_000 // ROUND_SHARE // at_once


@pytest.mark.parametrize("payload", [[], ["v", "w"]])
@pytest.mark.parametrize("withheld", [None, [], [(11, 0), (11, 2), (13, 0), (14, 1)]])
def test_a_record_has_the_class_of_its_cell_unless_what_its_person_has_there_is_withheld(
    monkeypatch: pytest.MonkeyPatch, payload: list[str], withheld: list[tuple[int, int]] | None
) -> None:
    columns = {
        "quasi_identifiers": [{"name": name, "hierarchy": {"prefix": [1]}} for name in "pq"],
        "person": ["who"],
        "insensitive": "rest",
    }
    job: Any = Job.model_validate(job_of(columns=columns))
    source: Any = SimpleNamespace(payload=payload, own_texts=("w",))
    stages = [SimpleNamespace(node=(level, 0), assigner=f"assigner {level}") for level in range(2)]
    given: Any = SimpleNamespace(
        job=job, source=source, recoding="recoding", store="store", coding="coding", published=SimpleNamespace(stages=stages)
    )
    digests, coded = [11, 12, 13, 14, 11, 11, 13, 12], [[0, 0, 2], [], [0, 1, 2, -1], [0]]
    starts = np.cumsum([0, *map(len, coded)])
    pairs = None if withheld is None else np.array(withheld, [("person", np.uint64), ("class", np.int32)])

    def read(*asked: Any) -> Any:
        assert asked == (job, source, "the chunk", ["p", "q", *payload], ("w",))
        for first, after in pairwise(starts):
            yield pa.RecordBatch.from_arrays([pa.array(range(first, after), pa.int64())] * (2 + len(payload)), names=["p", "q", *payload])

    def assigned(of: Any, mine: Any) -> Any:
        assert of == [(("coding", (0, 0)), "assigner 0"), (("coding", (1, 0)), "assigner 1")]
        assert len(mine) == 2
        return np.array([code for part in coded for code in part], np.int32)[mine[0].to_numpy()]

    monkeypatch.setattr(cells, "load_withheld", lambda *asked: pairs if asked == ("recoding", "store") else 1 / 0)
    monkeypatch.setattr(cells, "digests_in", lambda *asked: np.array(digests, np.uint64) if asked == (job, "the chunk") else 1 / 0)
    monkeypatch.setattr(cells, "CellCoder", SimpleNamespace(at=lambda *asked: asked))
    monkeypatch.setattr(cells, "read_published", read)
    monkeypatch.setattr(cells, "assign_classes", assigned)
    found: Any = list(cells._assigned(given, "the chunk"))
    whole = [code for part in coded for code in part]
    expected = [SUPPRESSED if pair in (withheld or []) else pair[1] for pair in zip(digests, whole, strict=True)]
    assert [classes.tolist() for classes, _ in found] == [expected[first:after] for first, after in pairwise(starts)]
    assert [batch.schema.names for _, batch in found] == [payload] * 4
    released = [row for row, code in enumerate(expected) if code >= 0]
    assert all([value for _, batch in found for value in batch[name].to_pylist()] == released for name in payload)


def test_a_value_that_came_since_the_source_was_counted_is_told_by_the_name_of_its_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    given: Any = SimpleNamespace(
        job=Job.model_validate(job_of()), source=SimpleNamespace(payload=[], own_texts=()), recoding=None, store=None, coding=None,
        published=SimpleNamespace(stages=[]),
    )  # fmt: skip

    def read(*_: Any) -> Any:
        raise LookupError
        yield

    monkeypatch.setattr(cells, "load_withheld", lambda *_: None)
    monkeypatch.setattr(cells, "read_published", read)
    with pytest.raises(SourceError, match="chunk 7"):
        list(cells._assigned(given, SimpleNamespace(name="chunk 7")))
