"""Nothing is told of fewer than k, in the unit of k, and nothing from which it follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.release.figures import may_publish_count
from tasks.engine.lineage import without_counts
from tasks.publication.verify_and_publish import PublishedRelease
from tests.jobs import write_job

SEX: dict[str, Any] = {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}
JOB: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "source": {"path": "visits/*.parquet"},
    "columns": {"quasi_identifiers": [SEX], "sensitive": ["dx"], "identifiers": ["person"]},
    "privacy": {"k": 5},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "releases",
}
PERSONS = JOB | {"columns": {"quasi_identifiers": [SEX], "sensitive": ["dx"], "person": "person"}}


def write_file(folder: Path, name: str, persons: list[int], sex: str = "fm") -> None:
    """Write a file of the source, a record for each of some persons."""
    (folder / "visits").mkdir(exist_ok=True)
    random = np.random.default_rng(len(persons))
    several = {"sex": [sex[person % len(sex)] for person in persons], "dx": random.choice(["flu", "hiv"], len(persons))}
    pl.DataFrame({"person": persons} | several).write_parquet(folder / f"visits/{name}.parquet")


def publish(folder: Path, job: dict[str, Any], *settings: str) -> PublishedRelease:
    """Run a job in a folder."""
    path = write_job(folder, job)
    flow: Any = METHODS[load_job(path, settings).method.name].flow.load()
    made: PublishedRelease = getattr(flow, "fn", flow)(path, settings)
    return made


def test_of_a_file_of_one_person_nothing_is_told(tmp_path: Path) -> None:
    write_file(tmp_path, "a", list(range(60)))
    write_file(tmp_path, "b", [900] * 7)
    made = publish(tmp_path, PERSONS)
    assert [one.records for one in made.manifest.sources] == [None, None]
    persons = made.manifest.persons
    assert persons is not None
    # Five persons have a record; that one of them has seven is told of nobody.
    assert (persons.source, persons.released, persons.most_records) == (61, 61, 1)
    assert made.untold is not None
    assert made.untold.most_records == 7


def test_a_number_of_records_that_k_persons_have_is_told(tmp_path: Path) -> None:
    write_file(tmp_path, "a", [*range(60), *range(5), *range(5), 0])
    persons = publish(tmp_path, PERSONS).manifest.persons
    assert persons is not None
    assert persons.most_records == 3


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("came", "told"), [(3, None), (30, 60)])
def test_how_few_came_does_not_follow_from_what_was_counted_before(tmp_path: Path, came: int, told: int | None) -> None:
    write_file(tmp_path, "a", list(range(60)))
    publish(tmp_path, JOB)
    write_file(tmp_path, "b", list(range(100, 100 + came)))
    manifest = publish(tmp_path, JOB).manifest
    assert manifest.increment is not None
    assert (manifest.increment.domains_records, manifest.increment.histograms_records) == (told, told)
    assert [one.records for one in manifest.sources] == ([None, None] if told is None else [came, 60])
    said = json.loads((tmp_path / "releases" / manifest.release / "report.json").read_text())
    assert any("had been counted before" in sentence for sentence in said["increment"]) == (told is not None)


@pytest.mark.slow
def test_where_people_are_counted_no_part_of_the_source_is_told(tmp_path: Path) -> None:
    write_file(tmp_path, "a", list(range(60)))
    publish(tmp_path, PERSONS)
    write_file(tmp_path, "b", [900] * 30)
    manifest = publish(tmp_path, PERSONS).manifest
    assert manifest.increment is not None
    assert (manifest.increment.domains_reused, manifest.increment.domains_records) == (1, None)


@pytest.mark.few(1)
@pytest.mark.parametrize(("left", "told"), [(2, None), (0, 60), (7, 67)])
def test_how_few_persons_are_left_out_is_not_told(tmp_path: Path, left: int, told: int | None) -> None:
    write_file(tmp_path, "a", list(range(60)))
    if left:
        # Persons of a third kind, each in a class of her own kind that has too few.
        kinds = [str(number) for number in range(left)]
        frame = pl.DataFrame({"person": list(range(500, 500 + left)), "sex": kinds, "dx": ["flu"] * left})
        frame.write_parquet(tmp_path / "visits/b.parquet")
    sexes = {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m", *map(str, range(left))]}}}
    job = PERSONS | {"columns": {"quasi_identifiers": [sexes], "sensitive": ["dx"], "person": "person"}}
    persons = publish(tmp_path, job, "suppression.limit=0.2").manifest.persons
    assert persons is not None
    assert (persons.source, persons.released) == (told, 60)


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("before", [900, 901], ids=["changed", "came, and as many left"])
def test_how_many_records_of_one_person_changed_or_came_is_not_told(tmp_path: Path, before: int) -> None:
    found = set()
    for number in (6, 9):
        # All the others stay, so that both sources have as many records whatever the number is.
        others = [*range(60), *[902] * (20 - number)]
        for person, dx in ((before, "flu"), (900, "hiv")):
            folder = tmp_path / str(number) / "visits"
            folder.mkdir(parents=True, exist_ok=True)
            rows = {"person": [*others, *[person] * number], "sex": ["f", "m"] * 40, "dx": ["flu"] * len(others) + [dx] * number}
            pl.DataFrame(rows).write_parquet(folder / "a.parquet")
            made = publish(folder.parent, PERSONS)
        [overlap] = made.manifest.overlaps or ()
        found.add((overlap.shared, overlap.added, overlap.removed, overlap.changed, overlap.rounded, overlap.unit))
        limits = json.loads((made.folder / "report.json").read_text())["limits"]
        assert any("some records are in the sources of both" in limit["text"] for limit in limits)
    assert found == {(0, 80, 80, None, True, "person")}


@given(st.integers(0, 50), st.integers(0, 100), st.integers(1, 20))
def test_a_count_is_told_only_where_neither_it_nor_what_is_left_is_of_fewer_than_k(count: int, more: int, k: int) -> None:
    assert may_publish_count(count, k, count + more) == (count not in range(1, k) and more not in range(1, k))


def test_events_say_how_a_run_failed_without_numbers() -> None:
    told = without_counts("3 of 1,204 records of 'visit_2' fail k = 5 (0.25 %); at 'a/2020-01.parquet'.")
    assert told == "some of some records of 'visit_2' fail k = some (some %); at 'a/2020-01.parquet'."
