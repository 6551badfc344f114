"""Which way of searching a job gets, and whose persons a recoding counts, are decided by what the job and its histograms say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.lattice.search import SearchResult
from core.local_suppression.recoding import RecodedPart
from core.privacy.promise import Promise
from schemas.job.job import Job
from tasks.lattice import node_recodings, optimum
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
