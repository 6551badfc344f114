"""The sample of a source: bounded, of people, and what is shown of it decided by people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from schemas.errors.base import SourceError
from schemas.job.job import load_job
from schemas.reading.regular_files import given_job
from tasks.planning import profiles
from tasks.studio import sample as sampling
from tasks.studio.column_table import column_rows, risk_before
from tasks.studio.sample import PeopleSample, people_sample_of

ROWS = 400


def job_data(**columns: object) -> dict[str, object]:
    qids = [{"name": "town", "hierarchy": {"prefix": [9]}}, {"name": "age", "hierarchy": {"widths": [1, 10]}}]
    return {
        "version": 1,
        "name": "visits",
        "source": {"path": "visits.csv", "types": {"age": "integer"}, "null_values": ["", "NA"]},
        "columns": {"quasi_identifiers": qids, "sensitive": ["ill"], "identifiers": ["who"], **columns},
        "privacy": {"k": 5},
        "suppression": {"limit": 0},
        "method": {"name": "skald"},
        "memory": "1GB",
        "target": "releases",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    who = np.sort(random.integers(0, 100, ROWS))
    table = pl.DataFrame(
        {
            "who": [f"p{one}" for one in who],
            # One person has a town of their own, in many records.
            "town": ["Lone" if one == who[0] else ["Alder", "Birch"][one % 2] for one in who],
            "age": ["NA" if one % 10 == 0 else str(20 + one % 7) for one in who],
            "ill": random.choice(["flu", "gout"], ROWS),
        }
    )
    # No table's column, although DuckDB takes it for one.
    (folder := tmp_path / "town=North").mkdir()
    table.write_csv(folder / "visits.csv")
    return folder


def drawn(folder: Path, **columns: object) -> tuple[PeopleSample, dict[str, object]]:
    data = job_data(**columns)
    return people_sample_of(load_job(given_job(data, folder)), data["source"]), data  # type: ignore[arg-type]


def test_k_people_share_a_value_and_not_k_records(folder: Path) -> None:
    records, _ = drawn(folder)
    people, _ = drawn(folder, person="who")
    source = pl.read_csv(folder / "visits.csv")
    assert records.people == ROWS and people.people == source["who"].n_unique()
    lone = source.filter(pl.col("town") == "Lone")
    assert len(lone) > 1 and lone["who"].n_unique() == 1
    assert "Lone" in dict(records.shared_values("town", 2)) and "Lone" not in dict(people.shared_values("town", 2))
    assert people.unit == "person"


def test_types_and_nulls_are_those_of_the_job(folder: Path) -> None:
    found, _ = drawn(folder)
    domain, source = found.domain("age"), pl.read_csv(folder / "visits.csv", null_values="NA")
    assert domain.values.to_pylist() == sorted(source["age"].drop_nulls().unique())
    assert domain.nulls == source["age"].null_count() and domain.records == ROWS


def test_the_table_says_what_stands_alone(folder: Path) -> None:
    found, data = drawn(folder, person="who")
    job = load_job(given_job(data, folder))
    rows = {one.name: one for one in column_rows(job, "version: 1\n", found, 5)}
    assert [one.role for one in rows.values()] == ["identifier", "quasi_identifier", "quasi_identifier", "sensitive"]
    assert rows["who"].alone == 1 and not rows["who"].examples and rows["who"].person
    assert rows["town"].alone == pytest.approx(1 / found.people) and rows["town"].rarer == 1
    table = pl.from_arrow(found.table)
    alone = table.group_by("town", "age").len().filter(pl.col("len") == 1).height  # type: ignore[union-attr]
    assert risk_before(job, found).standing.alone == alone
    assert rows["town"].together == pytest.approx(alone / found.people)


def test_a_sample_is_bounded_and_the_same_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_PEOPLE", 50)
    monkeypatch.setattr(profiles, "MOST_CELLS", 1200)
    monkeypatch.setattr(profiles, "AT_A_TIME", 3)
    first, _ = drawn(folder)
    again, _ = drawn(folder)
    assert first.people == 50 and first.records == 300 and not first.is_complete
    assert first.table.equals(again.table) and len(first.profiles) == 4


def test_a_source_that_cannot_be_read_says_so_without_a_value(folder: Path) -> None:
    (folder / "visits.csv").write_text("")
    with pytest.raises(SourceError):
        drawn(folder)
    (folder / "visits.csv").unlink()
    with pytest.raises(SourceError, match="No file matches"):
        drawn(folder)
