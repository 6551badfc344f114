"""Stars and rounds where the job names persons: each class of the written files has k people, counted one by one from the source."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.job.job import load_job
from tasks.composition.release_history import people_of_release
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import Anonymise
from tests.covering import each_value
from tests.flows.lattice.test_local_suppression import GCP, settings
from tests.flows.lattice.test_persons import visits
from tests.house.replaced import PERSON_CELLS_PART, ROOTS_BYTES_PER_CELL
from tests.jobs import QIDS, digests, job_of, people, people_job, released
from tests.oracles.persons import safe_for_people

pytestmark = pytest.mark.slow

K = 5
TREATMENTS = [("cell", 0), ("cell", 2), ("drop", 2), ("mask", 1)]
Row = tuple[Any, ...]


def table_of(records: int, seed: int) -> pa.Table:
    """Visits whose note tells them apart, so that each is found again in the release."""
    table = visits(records, seed)
    notes = pa.array([f"note {number}" for number in range(records)])
    return table.set_column(table.column_names.index("note"), "note", notes)


def job(folder: Path, table: pa.Table, **parts: Any) -> Path:
    return people_job(folder, table, **({"columns": job_of()["columns"] | {"person": "person"}} | parts))


def classes_of(folder: Path, table: pa.Table) -> dict[Row, list[tuple[Any, Any]]]:
    """Whose the records of each published combination are, and the illness of each."""
    whose = dict(zip(table["note"].to_pylist(), zip(table["person"].to_pylist(), table["disease"].to_pylist(), strict=True), strict=True))
    found: dict[Row, list[tuple[Any, Any]]] = defaultdict(list)
    for *row, note in released(folder).select([*QIDS, "note"]).rows():
        found[tuple(row)].append(whose[note])
    return found


def people_in(members: list[tuple[Any, Any]]) -> int:
    return len({person for person, _ in members} - {None})


def verified(path: Path, asked: tuple[str, ...], folder: Path) -> None:
    """Recount a release as the command does, with what the run folder keeps."""
    store = Store(path.parent / ".skald" / "people" / "artifacts")
    kept = people_of_release(folder.name, store)
    assert kept is not None
    verify_release(load_job(path, asked), folder, kept)


@pytest.mark.promise
@pytest.mark.parametrize("limit", [0.1, 0.5])
@pytest.mark.parametrize(("way", "seed"), each_value(TREATMENTS, [0, 1, 2]))
def test_every_published_class_has_k_people(anonymise: Anonymise, tmp_path: Path, way: tuple[str, int], seed: int, limit: float) -> None:
    table = table_of(300, seed)
    path, asked = job(tmp_path, table, files=2), settings(*way, limit)
    made = anonymise(path, *asked)
    classes = classes_of(made.folder, table)
    sizes = {row: people_in(members) for row, members in classes.items()}
    assert min(sizes.values()) == made.manifest.min_class >= K
    manifest, remainder = made.manifest, made.manifest.remainder
    assert remainder is not None
    assert manifest.released == sum(map(len, classes.values())) == 300 - manifest.suppressed + manifest.masked
    mask = ("*",) * len(QIDS)
    kept = [size for row, size in sizes.items() if row != mask]
    assert manifest.loss["c_avg"] == float(Fraction(sum(kept), len(kept) * K))
    assert manifest.persons is not None
    assert manifest.persons.released == len({person for members in classes.values() for person, _ in members} - {None})
    verified(path, asked, made.folder)


MODELS: dict[str, dict[str, Any]] = {
    "distinct": {"l": {"disease": {"distinct": 2}}},
    "entropy": {"l": {"disease": {"entropy": 2}}},
    "recursive": {"l": {"disease": {"recursive": {"c": 5, "l": 2}}}},
    "equal": {"t": {"disease": {"t": 0.4}}},
}


@pytest.mark.parametrize(("model", "treatment"), [*each_value(list(MODELS), ["cell", "mask"]), ("distinct", "mask"), ("equal", "cell")])
def test_every_class_keeps_what_is_asked_of_values_by_people(anonymise: Anonymise, tmp_path: Path, model: str, treatment: str) -> None:
    table = table_of(300, 4)
    path, asked = job(tmp_path, table, privacy={"k": 3} | MODELS[model]), settings(treatment, 2, 0.5)
    made = anonymise(path, *asked)
    everyone = list(zip(table["person"].to_pylist(), table["disease"].to_pylist(), strict=True))
    for members in classes_of(made.folder, table).values():
        assert people_in(members) >= 3
        assert safe_for_people(members, everyone, MODELS[model])
    verified(path, asked, made.folder)


@pytest.mark.parametrize(("chunk_rows", "threads"), [(7, 2), (400, 1)])
def test_bytes_do_not_depend_on_how_the_work_is_cut(anonymise: Anonymise, tmp_path: Path, chunk_rows: int, threads: int) -> None:
    table, order = table_of(300, 0), np.random.default_rng(chunk_rows).permutation(300)
    plain = anonymise(job(tmp_path / "plain", table), *settings("cell", 2))
    cut = job(tmp_path / "cut", table.take(pa.array(order)), files=5)
    made = anonymise(cut, *settings("cell", 2), f"chunk_rows={chunk_rows}", f"threads={threads}")
    assert digests(made.folder) == digests(plain.folder)
    assert (made.manifest.remainder, made.manifest.persons) == (plain.manifest.remainder, plain.manifest.persons)


def test_a_coarse_root_leaves_rounds_the_finest_levels(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(400, 2)
    free = anonymise(job(tmp_path / "free", table), *settings("cell", 2))
    monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    short = anonymise(job(tmp_path / "short", table, files=3), *settings("cell", 2), "memory=64MB", "method.roots=24")
    assert short.untold.search["root"] != free.untold.search["root"]
    assert short.manifest.node == free.manifest.node
    assert digests(short.folder) == digests(free.folder)
    monkeypatch.setattr(PERSON_CELLS_PART, 1_000_000)
    shared = anonymise(job(tmp_path / "shared", table, files=3), *settings("cell", 2), "memory=64MB", "method.roots=24")
    assert digests(shared.folder) == digests(free.folder)


def test_where_everybody_has_one_record_the_files_are_as_without_persons(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(400, seed=2)
    counted = anonymise(job(tmp_path / "persons", table), *settings("cell", 2))
    plain = anonymise(people_job(tmp_path / "records", table), *settings("cell", 2))
    assert digests(counted.folder) == digests(plain.folder)
    assert counted.manifest.remainder == plain.manifest.remainder
    assert counted.manifest.loss == plain.manifest.loss


def test_less_is_lost_than_with_drop(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, table_of(300, 1))
    dropped = anonymise(path, "suppression.limit=0.3", GCP).manifest
    for treatment, rounds in TREATMENTS:
        manifest = anonymise(path, *settings(treatment, rounds, 0.3)).manifest
        assert manifest.node == dropped.node
        assert manifest.released >= dropped.released
        assert manifest.loss["gcp"] <= dropped.loss["gcp"]
