"""Values that too few have become the rest, and so many more that the rest is of enough: as a look at each person finds them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from core.formats.published import PublishedValues
from tasks.source.published_columns import make_value_table
from tasks.writing import shared_values
from tasks.writing.shared_values import released_values, with_shared_values
from tests.oracles.persons import values_of_few_by_force


@pytest.mark.parametrize("rest", [None, "other"])
@pytest.mark.parametrize("persons", [True, False])
def test_values_of_few_are_those_that_a_look_at_each_person_finds(rest: str | None, persons: bool) -> None:
    drawn, seen = np.random.default_rng(5), set[int]()
    values = ["a", "b", "c", "d", "other", None]
    text = pa.string()
    known = PublishedValues(*[pa.array([], text)] * 4, pa.array([rest], text), pa.array([None], text))
    with duckdb.connect() as database:
        for _ in range(60):
            rows = int(drawn.integers(1, 14))
            held: list[tuple[str | None, int]] = [(values[drawn.integers(len(values))], int(drawn.integers(1, 6))) for _ in range(rows)]
            column = pa.array([value for value, _ in held], text)
            make_value_table(database, [([column], np.array([owner for _, owner in held], np.uint64) if persons else None)], 1)
            k = int(drawn.integers(1, 5))
            staying, gone = released_values(database, 0, known, k, count_persons=persons)
            found = gone.to_pylist()
            assert {*staying.to_pylist()} == {value for value, _ in held} - {*found}
            assert len(found) == len(set(found))
            assert set(found) == values_of_few_by_force(held, k, rest, persons=persons)
            seen.add(len(found))
    assert {0, 1, 2} <= seen


def test_published_values_are_replaced_where_what_is_released_leaves_too_few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of one file and one column of which the value b is left to one record, with a and c left to two."""
    text = pa.string()
    known = PublishedValues(*[pa.array([], text)] * 4, pa.array(["other"], text), pa.array([None], text))
    read: list[Path] = []
    monkeypatch.setattr(shared_values, "shared_columns", lambda _job: ["s"])
    monkeypatch.setattr(shared_values, "connect", lambda *_: duckdb.connect())
    # Of seven records in two chunks five are released; what is read of each are the shared columns, and then who holds it.
    held = {"chunk 0": ["a", "a", "a", "b"], "chunk 1": ["c", "c", "b"]}
    batch = {chunk: pa.RecordBatch.from_arrays([pa.array(values, text)], names=["s"]) for chunk, values in held.items()}
    monkeypatch.setattr(shared_values, "read_chunk", lambda chunk, columns: [batch[chunk].select(columns)])
    classes = {(0, "chunk 0"): np.array([0, -1, 3, 0], np.int32), (1, "chunk 1"): np.array([0, 1, -1], np.int32)}
    monkeypatch.setattr(shared_values, "read_published_values", lambda path: read.append(path) or known)
    made = SimpleNamespace(sha256="new")
    store = SimpleNamespace(make=lambda *_: made, path=lambda _made: "made.arrow")
    job = SimpleNamespace(privacy=SimpleNamespace(k=2, columns=()), columns=SimpleNamespace(person=()))
    run: Any = SimpleNamespace(job=job, spill=tmp_path, store=store)
    file = SimpleNamespace(publish={"s": ("kept.arrow", "old")}, model_copy=lambda update: update["publish"])
    # It has no domains: no model looks at the column, so that nothing is counted by class.
    given: Any = SimpleNamespace(
        source=SimpleNamespace(files=[file], chunks=[*held], model_copy=lambda update: update), classes_of=lambda *place: classes[place]
    )
    monkeypatch.setattr(shared_values, "_published", lambda chunk, publish: (chunk, publish["s"]))
    found: Any = with_shared_values(run, given)
    assert read == [Path("kept.arrow")]
    new = ("made.arrow", "new")
    assert found == {"files": ({"s": new},), "chunks": tuple((chunk, new) for chunk in held)}
    assert file.publish == {"s": ("kept.arrow", "old")}
