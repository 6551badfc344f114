"""What a search of the lattice found is kept, and local recoding begins with it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.columns.domains import Node
from schemas.job.job import Job
from tasks.counting.histograms import ChunkSums
from tasks.lattice import optimum, recodings
from tasks.lattice.optimum import BYTES_PER_CELL, SearchRequirements, memory_for_cells, root_below
from tasks.lattice.recodings import SearchedCells
from tests.conftest import Anonymise
from tests.house.steps import Steps
from tests.jobs import job_of, people, people_job


@pytest.mark.ci
def test_a_kept_search_is_not_made_again(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(tmp_path, people(60))
    treatment = "suppression={limit: 0.5, treatment: cell}"
    first = anonymise(job, treatment)
    assert first.manifest.remainder is not None
    monkeypatch.setattr(recodings, "find_best_node", None)
    again = anonymise(job, treatment, "output.format=csv")
    assert again.folder != first.folder
    assert again.manifest.node == first.manifest.node


@pytest.mark.parametrize(("node", "root"), [((2, 0), (2, 0)), ((0, 1), (0, 1)), ((2, 2), (2, 0)), ((1, 1), (0, 1))])
def test_a_root_is_taken_that_is_nowhere_coarser_than_the_node_and_counted_but_for_the_first(
    monkeypatch: pytest.MonkeyPatch, node: Node, root: Node
) -> None:
    job, asked = Job.model_validate(job_of()), list[Any]()
    monkeypatch.setattr(optimum, "load_histogram", lambda *given: given)
    found: Any = SimpleNamespace(roots=((2, 0), (0, 1)), node=node)
    first, coding = SimpleNamespace(node=(2, 0)), object()
    chunks = SimpleNamespace(roots=lambda *given: asked.append(given) or ["the counts"], table=SimpleNamespace(store="the store"))
    given: Any = (job, coding, found, first, chunks)
    if root == first.node:
        assert root_below(*given) is first
        assert asked == []
    else:
        assert root_below(*given) == ("the counts", coding, root, "the store")
        assert asked == [([root], memory_for_cells(job) // BYTES_PER_CELL)]


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("given_node", [True, False])
@pytest.mark.parametrize("linked", ["none", "as it was", "another"])
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("counted", ["elsewhere", "here"])
def test_each_step_of_a_search_is_given_what_those_before_it_found(
    monkeypatch: pytest.MonkeyPatch, persons: bool, given_node: bool, linked: str, local: bool, counted: str
) -> None:
    class Written(SimpleNamespace):
        def model_copy(self, update: dict[str, Any]) -> Any:
            return Written(**vars(self) | update)

    job: Any = SimpleNamespace(
        memory="memory", columns=SimpleNamespace(person=["who"] if persons else []), privacy=SimpleNamespace(k=3),
        suppression=SimpleNamespace(is_local=local),
    )  # fmt: skip
    coding, made = SimpleNamespace(records=20, sensitive="sensitive"), SimpleNamespace(local=False, recoding="recoding")
    found = SimpleNamespace(loss=SimpleNamespace(suppressed=4), statuses="statuses")
    other = SimpleNamespace(loss=SimpleNamespace(suppressed=9), statuses="other statuses")
    taken = other if linked == "another" else found
    best = SimpleNamespace(with_linked_loss=lambda before: taken if before is found else None, evaluated=8)
    store: Any = SimpleNamespace(make=lambda name, key, end, write: (name, key, end, write.func.__name__, write.args))
    steps = Steps(monkeypatch, recodings, {
        "_kept": None, "load_histogram": "counted", "PersonsOfSource": "people", "count_enough_persons": (7, 2),
        "persons_of": "their cells", "promise_of": "promise",
        "promise_of_people": "promise of people", "has_given_node": given_node, "apply_given_node": found,
        "find_best_node": found, "root_below": "counted below", "release_memory": None, "keeps_linked": linked != "none",
        "best_linked_node": best, "recode_locally": made, "recode_node": made, "_outcome": Written(node=(1, 2)), "write_map": None,
        "write_recoding_of_cells": Written(recoding="kept"),
    })  # fmt: skip
    monkeypatch.setattr(recodings, "SEARCH", SimpleNamespace(key=lambda *given: given))
    monkeypatch.setattr(SearchRequirements, "selected_persons", lambda self, *given: ("members", self, *given))
    given: Any = SimpleNamespace(job=job, store=store, coding=coding)
    cells = SearchedCells((0, 0), *(SimpleNamespace(of=name) for name in ("histogram", "parts", "pairs", "chunks")))
    cells = cells if counted == "elsewhere" else cells._replace(chunks=None)
    chunks = cells.chunks or ChunkSums(given, cells.parts)
    artifacts: Any = recodings._search(given, cells)

    key, people = (given, cells), "people" if persons else None
    promise = "promise of people" if persons else "promise"
    sought: Any = SearchRequirements(promise, people)
    members = None if linked != "none" else ("members", sought, "counted below", "sensitive")
    expected: dict[str, tuple[Any, ...]] = {
        "_kept": (job, store, key), "load_histogram": (cells.histogram, coding, (0, 0), store),
        "count_enough_persons": (job, people, "counted"), "has_given_node": (job,),
        "root_below": (job, coding, found, "counted", chunks), "release_memory": (), "keeps_linked": (job,),
        "_outcome": (coding, "counted below", taken, made), "write_map": (job, taken.statuses, (1, 2), store, key),
        "write_recoding_of_cells": (store, key, "recoding", Written(node=(1, 2), people=(7, 2), linked=8 * (linked == "another"))),
    }  # fmt: skip
    if persons:
        expected["PersonsOfSource"] = (coding, cells.parts, cells.pairs, store, "memory")
        expected |= {"persons_of": ("people", "counted"), "promise_of_people": (job, coding, "counted", "their cells")}
    else:
        expected["promise_of"] = (job, coding)
    if given_node:
        expected["apply_given_node"] = (job, coding, sought, "counted")
    else:
        expected["find_best_node"] = (job, coding, sought, "counted", chunks)
    if linked != "none":
        expected["best_linked_node"] = (job, coding, sought, found, "counted below")
    if local:
        expected["recode_locally"] = (job, coding, sought, taken, "counted below", cells.parts, store)
    else:
        expected["recode_node"] = (job, coding, promise, taken, "counted below", members, best if linked != "none" else None)
    assert steps.given == expected
    withheld = None if linked == "none" else ("withheld", key, ".npy", "write_withheld", (best,))
    assert artifacts == Written(recoding="kept", later=None, withheld=withheld)


@pytest.mark.parametrize("pairs", [[], ["pairs"]])
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("replay", [None, Path("people-1")])
@pytest.mark.parametrize("remote", [True, False])
def test_a_worker_searches_where_it_takes_all_chunks_and_records_are_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch, pairs: list[Any], local: bool, replay: Path | None, remote: bool
) -> None:
    job = SimpleNamespace(suppression=SimpleNamespace(is_local=local), replay=replay)
    run: Any = SimpleNamespace(job=job)
    steps = Steps(monkeypatch, recodings, {"remote_takes_all_chunks": remote, "sums_of_chunks": "sums", "run_for_item": "artifacts"})
    monkeypatch.setattr(recodings, "DomainTable", SimpleNamespace(of=lambda *given: given))
    histogram: Any = "histogram"
    parts: list[Any] = ["part 0", "part 1"]
    domain: Any = "domain"
    assert recodings.search_lattice(run, domain, (0, 1), histogram, parts, pairs) == "artifacts"
    elsewhere = bool(pairs or local) and replay is None and remote
    cells = SearchedCells((0, 1), histogram, parts, pairs, None if elsewhere else "sums")
    assert steps.given["run_for_item"] == (run, recodings.SEARCH, (run, domain), cells, "search", {"elsewhere": elsewhere})
    assert steps.given.get("sums_of_chunks") == (None if elsewhere else (run, domain, parts))
