"""The risk in a population is that of counting its rows one by one, for every method, and a manifest that says otherwise is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.recount.classes import manifest_faults
from schemas.errors.refusals import PopulationError
from schemas.job.job import load_job
from schemas.release.manifest import Manifest
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import released, write_job, write_parquet

PLACES = {"north": ["a", "b"], "south": ["c", "d"]}
QIDS: list[dict[str, Any]] = [
    {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}},
    {"name": "place", "hierarchy": {"tree": {"*": PLACES}}},
]


def everybody(rows: int, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    ages = [None if random.random() < 0.03 else int(age) for age in random.integers(20, 60, rows)]
    return pa.table({"age": pa.array(ages, pa.int64()), "place": random.choice(list("abcd"), rows), "sick": random.integers(0, 3, rows)})


def job_file(folder: Path, method: dict[str, Any], register: pa.Table, **parts: Any) -> Path:
    write_parquet(folder / "people", everybody(2_000).slice(0, 300))
    write_parquet(folder / "register", register, files=2)
    columns = {"quasi_identifiers": QIDS, "sensitive": ["sick"], "insensitive": []}
    job = {"version": 1, "name": "people", "source": {"path": "people/*.parquet"}, "columns": columns, "privacy": {"k": 4}}
    job |= {"method": method, "memory": "256MB", "target": "releases", "population": {"path": "register/*.parquet"}}
    return write_job(folder, job | parts)


def covers(label: Any, value: Any) -> bool:
    """Whether a published label can stand for a value."""
    if label == "*" or str(label) == str(value):
        return True
    if isinstance(label, str) and label.endswith(", null}"):
        beside = label[1 : -len(", null}")]
        return value is None or covers(beside, value) or covers(f"{{{beside}}}", value)
    if label is None or value is None:
        return False
    if isinstance(value, str):
        return value in PLACES.get(label, str(label)[1:-1].split(", "))
    ends = [int(end) for end in re.findall(r"[0-9]+", str(label))]
    label = str(label)
    low, high = 0 if label.startswith("<=") else ends[0], 99 if label.startswith(">=") else ends[-1]
    return "{" not in label and len(label) > 2 and low <= value <= high


METHODS: list[dict[str, Any]] = [
    {"name": "skald"}, {"name": "mondrian"}, {"name": "mondrian", "generalisation": {"place": "set"}}, {"name": "rayden"},
    {"name": "clustering"},
]  # fmt: skip


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("whole", [True, False])
def test_rows_are_counted_as_one_by_one(anonymise: Anonymise, tmp_path: Path, method: dict[str, Any], whole: bool) -> None:
    population = everybody(2_000) if whole else everybody(500, seed=9)
    made = anonymise(job_file(tmp_path, method, population, suppression={"limit": 0.2}))
    classes = released(made.folder).group_by(["age", "place"]).len().rows()
    rows = list(zip(population["age"].to_pylist(), population["place"].to_pylist(), strict=True))
    sizes = [(records, sum(covers(age, row[0]) and covers(place, row[1]) for row in rows)) for age, place, records in classes]
    found = made.manifest.population
    assert found is not None
    assert (found.records, found.lacking) == (len(rows), sum(fitting < records for records, fitting in sizes))
    assert (found.lacking == 0) or not whole
    fixed = [(records, max(records, fitting)) for records, fitting in sizes]
    assert found.k_map == min(fitting for _, fitting in fixed)
    released_records = sum(records for records, _ in fixed)
    matched = sum(records / fitting for records, fitting in fixed) / released_records
    assert found.marketer == pytest.approx(matched)
    assert found.journalist_mean == pytest.approx(max(matched, len(fixed) / sum(fitting for _, fitting in fixed)))
    assert found.journalist_share_above == pytest.approx(sum(records for records, fitting in fixed if fitting < 12) / released_records)
    assert "k-map" in (made.folder / "report.html").read_text()


@pytest.mark.ci
def test_masked_records_are_averaged_into_no_risk(anonymise: Anonymise, tmp_path: Path) -> None:
    """Of the same classes the risk is the same, whether the other records are left out or masked."""
    found = []
    for treatment in ("drop", "mask"):
        suppression = {"limit": 1, "treatment": treatment}
        job = job_file(tmp_path / treatment, {"name": "skald", "node": [0, 1]}, everybody(500, seed=9), suppression=suppression)
        found.append(anonymise(job).manifest)
    dropped, masked = found
    assert dropped.suppressed == masked.masked > 4
    assert dropped.population == masked.population


@pytest.mark.ci
def test_a_person_of_several_records_is_one_of_the_population(anonymise: Anonymise, tmp_path: Path) -> None:
    """The columns have the names by which the recount calls what it counts."""
    people = everybody(300).rename_columns(["weight", "records", "sick"]).append_column("label_0", pa.array(range(300)))
    qids = [{**qid, "name": name} for qid, name in zip(QIDS, ("weight", "records"), strict=True)]
    columns = {"person": "label_0", "quasi_identifiers": qids, "sensitive": ["sick"]}
    found = []
    for folder, visits in ((tmp_path / "one", 1), (tmp_path / "several", 5)):
        job = job_file(folder, {"name": "skald"}, people, columns=columns)
        write_parquet(folder / "people", people.take(np.repeat(np.arange(300), visits)))
        found.append(anonymise(job).manifest)
    assert found[0].population == found[1].population
    assert found[0].population is not None
    assert (found[0].population.k_map, found[0].population.lacking) == (found[0].min_class, 0)


@pytest.mark.ci
def test_a_manifest_that_tells_less_risk_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    job_path = job_file(tmp_path, {"name": "mondrian"}, everybody(2_000))
    made = anonymise(job_path)
    job = load_job(job_path)
    counted, manifest = verify_release(job, made.folder)
    assert manifest is not None
    assert manifest.population is not None
    assert not manifest_faults(job, manifest, counted)
    for other in (None, manifest.population.model_copy(update={"k_map": 1_000})):
        changed = Manifest.model_validate(manifest.model_dump() | {"population": other})
        assert "population" in manifest_faults(job, changed, counted)[0]


@pytest.mark.ci
def test_a_population_that_does_not_fit_is_refused_by_name(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(PopulationError, match="'place'"):
        anonymise(job_file(tmp_path / "one", {"name": "mondrian"}, everybody(50).drop_columns(["place"])))
    with pytest.raises(PopulationError, match="matches no file"):
        anonymise(job_file(tmp_path / "two", {"name": "mondrian"}, everybody(50), population={"path": "nowhere/*.parquet"}))
    text = everybody(50).set_column(0, "age", pa.array(["x"] * 50))
    with pytest.raises(PopulationError, match="'age'"):
        anonymise(job_file(tmp_path / "three", {"name": "mondrian"}, text))
