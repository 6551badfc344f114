"""Which way of searching a job gets, and whose persons a recoding counts, are decided by what the job and its histograms say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.lattice.lattice import BYTES_PER_CELL
from core.lattice.search import SearchResult
from core.local_suppression.recoding import RecodedPart
from core.privacy.promise import Promise
from schemas.job.job import Job
from tasks.lattice import node_recodings, optimum
from tests.house.replaced import OPTIMUM_BRANCHED, OPTIMUM_LARGEST
from tests.jobs import job_of
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed

ROWS = [(1, 4), (1, 4), (1, 5), (2, 4), (2, 5), (4, 5)]
DOMAINS = tuple(observed(f"q{place}", [row[place] for row in ROWS], pa.int64()) for place in range(2))
AXES = tuple(built({"widths": [2]}, domain) for domain in DOMAINS)
FIRST = Example(ROWS, DOMAINS, AXES).histogram((0, 0))


@pytest.mark.parametrize(("root", "chunks"), [("dense", 0), ("occupied", 1)])
def test_a_dense_root_is_searched_by_itself_and_an_occupied_one_with_further_roots(root: str, chunks: int) -> None:
    qids = [{"name": f"q{place}", "hierarchy": {"widths": [2]}} for place in range(2)]
    method = {"name": "skald", "root": root}
    job = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["s"]}, method=method, suppression={"limit": 0}))
    coding: Any = SimpleNamespace(hierarchies=AXES, axes=AXES, domains=DOMAINS, sensitive=(), records=6)
    sought: Any = SimpleNamespace(promise=Promise(2), records=6, k=2, people=None, persons_of_cells=lambda _root: None)
    made = list[Any]()

    class Examined:
        def __init__(self, *given: Any, **_named: Any) -> None:
            made.append(given)

        def run(self, first: Any, *_given: Any) -> SearchResult | None:
            assert first is FIRST
            return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "Examination", Examined)
        nothing: Any = SimpleNamespace(table=SimpleNamespace(store=None))
        found = optimum.find_best_node(job, coding, sought, FIRST, nothing)
    assert len(made) == chunks
    if not chunks:
        assert found is not None
        assert (found.loss.suppressed, found.nodes) == (0, 9)


def test_persons_of_classes_are_counted_where_persons_are_named() -> None:
    part: Any = SimpleNamespace(members=None)
    parts: list[RecodedPart] = [part]
    assert node_recodings._persons(parts, np.array([0, 1], np.int32), 2) is None


@pytest.mark.parametrize(("qids", "cells", "nodes"), [(2, 9, 2000), (2, 10**9, 1000), (32, 9, 1000), (64, 9, 500), (32_001, 9, 1)])
def test_fewer_nodes_are_allowed_the_more_quasi_identifiers_there_are(qids: int, cells: int, nodes: int) -> None:
    coding: Any = SimpleNamespace(hierarchies=range(qids))
    root: Any = SimpleNamespace(cells=cells)
    assert optimum._nodes_allowed(1000, coding, root) == nodes


@pytest.mark.parametrize("named", [False, True])
def test_a_search_with_further_roots_is_given_what_the_job_says_and_counts_them_in_its_memory(named: bool) -> None:
    qids = [{"name": f"q{place}", "hierarchy": {"widths": [2]}} for place in range(2)]
    columns = {"quasi_identifiers": qids, "sensitive": ["s"], "person": ["who"] if named else "none"}
    method = {"name": "skald", "objective": "precision", "roots": 5}
    job = Job.model_validate(job_of(columns=columns, method=method, suppression={"limit": 0.5}))
    coding: Any = SimpleNamespace(hierarchies=AXES, axes=AXES, domains=DOMAINS, sensitive=(), records=6)
    persons: Any = object()
    sought: Any = SimpleNamespace(promise=Promise(2), records=6, k=2, people=persons if named else None, persons_of_cells=str)
    given, asked, nodes = list[Any](), list[Any](), [(1, 0), (0, 1)]

    def roots(*of: Any) -> list[str]:
        asked.append(of)
        return ["first", "second"]

    chunks: Any = SimpleNamespace(
        table=SimpleNamespace(store="store"), roots=roots, nodes_with_too_many_cells=lambda *of: asked.append(of) or [False, True]
    )

    class Examined:
        def __init__(self, *of: Any) -> None:
            given.extend(of)

        def run(self, first: Any, count: Any, has_too_many_cells: Any) -> tuple[Any, ...]:
            return first, list(count(nodes)), has_too_many_cells(nodes, 7)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "Examination", Examined)
        patch.setattr(optimum, "load_histogram", lambda *of: of)
        found: Any = optimum.find_best_node(job, coding, sought, FIRST, chunks)
    memory = job.memory // 2 if named else job.memory
    cells = memory // BYTES_PER_CELL
    assert found == (FIRST, [("first", coding, (1, 0), "store"), ("second", coding, (0, 1), "store")], [False, True])
    assert asked == [(nodes, cells), (nodes, 7, memory // 4)]
    *before, prices, of_cells, withdrawn = given
    assert before == [AXES, sought.promise, 6, 2, 3, "precision", cells, 2 * cells if named else cells, 5, ()]
    assert (prices is not None, of_cells, withdrawn) == (True, str, optimum.raise_if_withdrawn)


@pytest.mark.parametrize(
    ("root", "branched", "largest", "branches"),
    [((0, 0), 8, 99, True), ((0, 0), 9, 99, False), ((1, 0), 8, 99, False), ((1, 0), 8, 8, True), ((1, 0), 8, 9, False)],
)
def test_large_lattices_are_branched_and_those_that_cannot_be_held_from_any_root(
    monkeypatch: pytest.MonkeyPatch, root: tuple[int, int], branched: int, largest: int, branches: bool
) -> None:
    monkeypatch.setattr(OPTIMUM_BRANCHED, branched)
    monkeypatch.setattr(OPTIMUM_LARGEST, largest)
    assert optimum._branches(AXES, root) is branches
