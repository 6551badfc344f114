"""Where the finest node does not fit the memory, further roots find and certify the optimum that a larger memory finds at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from schemas.job.job import load_job
from tests.conftest import Anonymise
from tests.jobs import class_sizes, job_of, people, released, write_job, write_parquet

QIDS = ["sex", "age", "zip", "smoker"]


def job(folder: Path, **changes: object) -> Path:
    write_parquet(folder / "people", people(3000), files=3)
    columns = job_of()["columns"]
    kept = [qid for qid in columns["quasi_identifiers"] if qid["name"] in QIDS]
    columns |= {"identifiers": ["person", "born"], "quasi_identifiers": kept, "insensitive": "rest"}
    return write_job(folder, job_of(columns=columns, **changes))


@contextmanager
def room_for(cells: int, path: Path) -> Iterator[None]:
    """Make a cell so dear that the job's memory holds only so many."""
    dear = load_job(path).memory // cells
    with ExitStack() as stack:
        for module in ("core.lattice.lattice", "tasks.lattice.optimum"):
            stack.enter_context(patch(f"{module}.BYTES_PER_CELL", dear))
        yield


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("cells", "k"), [(90, 60), (160, 60), (800, 5)])
def test_several_small_roots_find_what_one_large_root_finds(anonymise: Anonymise, tmp_path: Path, cells: int, k: int) -> None:
    """A passing node has at most 3000 / k cells and those of the 30 records that may be suppressed."""
    path = job(tmp_path, method={"name": "skald", "objective": "dm_star", "roots": 100}, privacy={"k": k}, suppression={"limit": 0.01})
    one = anonymise(path, "work=whole", "target=whole-releases")
    whole = one.manifest
    assert one.untold.search["roots"] == [[0, 0, 0, 0]]
    with room_for(cells, path):
        made = anonymise(path, "work=parts", "target=parts-releases")
    manifest = made.manifest
    assert len(made.untold.search["roots"]) > 1
    assert manifest.optimal == "certified"
    assert (manifest.node, manifest.loss, manifest.suppressed) == (whole.node, whole.loss, whole.suppressed)
    assert [file.sha256 for file in manifest.files] == [file.sha256 for file in whole.files]


def test_one_root_says_how_many_nodes_it_did_not_examine(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, method={"name": "skald", "objective": "dm_star", "roots": 1})
    with room_for(40, path):
        made = anonymise(path)
    assert len(made.untold.search["roots"]) == 1
    assert "finer nodes could be better" in made.untold.optimal
    assert "finer ones could be better" in made.manifest.optimal
    assert min(class_sizes(released(made.folder), QIDS).values()) >= 5


@pytest.mark.ci
def test_further_roots_are_kept_for_the_next_k(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, method={"name": "skald", "objective": "dm_star", "roots": 100})
    with room_for(150, path):
        anonymise(path)
        kept = set((tmp_path / ".skald" / "people" / "artifacts" / "histogram").glob("*.parquet"))
        anonymise(path, "privacy.k=6")
        after = set((tmp_path / ".skald" / "people" / "artifacts" / "histogram").glob("*.parquet"))
        chunks = list((tmp_path / ".skald" / "people" / "artifacts" / "histograms").glob("*.parquet"))
    assert kept <= after
    assert len(kept) > 1
    assert len(chunks) == 1
