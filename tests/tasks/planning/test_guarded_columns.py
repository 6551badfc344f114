"""What a draft asks of sensitive columns holds of the values that it publishes, of which rare ones are one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.recount.labels.published_values import ValueCount, publication_of
from schemas.job.job import load_job
from tasks.planning.draft import count_values_kept, draft_job, published_holders, published_numbers
from tasks.planning.open_sources import SourceOptions
from tests.laws import tried

ROWS = 240
RARE = [f"code {number}" for number in range(ROWS)]


def drafted(folder: Path, icd10: list[Any]) -> dict[str, Any]:
    """Return the l of a draft for records with some diagnoses."""
    table = pa.table({"age": [20 + number % 50 for number in range(ROWS)], "icd10": pa.array(icd10, pa.string())})
    pq.write_table(table, folder / "people.parquet")
    draft_job(SourceOptions((str(folder / "people.parquet"),)), folder / "job.yaml")
    load_job(folder / "job.yaml")
    job = yaml.safe_load((folder / "job.yaml").read_text())
    assert [one["name"] for one in job["columns"]["sensitive"]] == ["icd10"]
    return dict(job["privacy"].get("l", {}))


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        pytest.param(RARE, None, id="no value is shared: all become other"),
        pytest.param(["flu"] * 120 + RARE[120:], 2, id="one value is shared, the others are other"),
        pytest.param(["flu"] * 80 + ["cold"] * 80 + RARE[160:], 3, id="other is a value too"),
        pytest.param(["flu", " Flu", "FLU", "flu "] * 60, None, id="spellings of one value"),
        pytest.param(["yes"] * 100 + ["no"] * 80 + ["n/a"] * 60, 2, id="words for nothing are no value"),
        pytest.param(["flu"] * 200 + ["cold"] * 40, None, id="too few records have another value"),
    ],
)
def test_a_class_is_asked_for_no_more_values_than_are_published(tmp_path: Path, values: list[Any], asked: int | None) -> None:
    assert drafted(tmp_path, values) == ({"icd10": {"distinct": asked}} if asked else {})


def test_somebody_with_several_values_is_looked_at_with_all_of_them(tmp_path: Path) -> None:
    """Nearly everybody has the flu at some time, so that no class can be asked for people without it."""
    rows = [(person, value) for person in range(60) for value in ("flu", "cold" if person % 2 else "gout")]
    rows += [(person, "cold") for person in range(60, 65)]
    table = pa.table(
        {"patient_id": [f"P{one}" for one, _ in rows], "age": [20 + one % 40 for one, _ in rows], "icd10": [v for _, v in rows]}
    )
    pq.write_table(table, tmp_path / "people.parquet")
    draft_job(SourceOptions((str(tmp_path / "people.parquet"),)), tmp_path / "job.yaml")
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert job["columns"]["person"] == "patient_id"
    assert "l" not in job["privacy"]


OWNERS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), unique=True, max_size=40)


@given(pairs=OWNERS)
def test_values_are_kept_as_long_as_a_quarter_of_the_people_have_none_of_the_more_frequent(pairs: list[tuple[int, int]]) -> None:
    owners, values = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    kept = count_values_kept(owners, values, 10)
    frequent = sorted(set(values.tolist()), key=lambda value: (-values.tolist().count(value), value))
    others = [{one for one, _ in pairs} - {one for one, value in pairs if value in frequent[:more]} for more in range(3)]
    able = [distinct for distinct in (2, 3) if distinct <= len(frequent) + 1 and all(len(others[n]) >= 2.5 for n in range(1, distinct))]
    assert kept == max(able, default=1)


WORDS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd") | st.none()), min_size=1, max_size=14)


def sizes_as_published(rows: list[tuple[int, Any]], k: int) -> list[int]:
    """Return how many persons have each published value, as the recount publishes words."""
    holders: dict[Any, set[int]] = {}
    for person, value in rows:
        holders.setdefault(value, set()).add(person)
    nulls = len(holders.pop(None, set()))
    counts = [ValueCount(value, len(whose), 0, 0) for value, whose in sorted(holders.items())]
    rare = {person for whose in holders.values() if len(whose) < k for person in whose}
    published = publication_of(counts, nulls, len(rare), pa.string(), "shared", k).published
    shown = dict(zip([*(one.value for one in counts), None], published, strict=True))
    pairs = {(person, shown[value]) for person, value in rows if shown[value] is not None}
    return sorted(Counter(value for _, value in pairs).values())


@pytest.fixture(scope="module")
def front() -> Iterator[Any]:
    with duckdb.connect() as connection:
        yield SimpleNamespace(connection=connection, texts=False)


def column(kind: str) -> Any:
    return SimpleNamespace(profile=SimpleNamespace(name="v", kind=kind))


@given(rows=WORDS, k=st.integers(2, 4))
@tried(30)
def test_every_person_of_a_sample_has_the_values_that_the_recount_would_publish(front: Any, rows: list[tuple[int, Any]], k: int) -> None:
    front.connection.register("rows", pa.table({"who": [who for who, _ in rows], "v": pa.array([v for _, v in rows], pa.string())}))
    front.connection.execute("CREATE OR REPLACE TABLE source AS FROM rows")
    front.connection.execute("CREATE OR REPLACE TABLE sample AS SELECT who, min(v) AS v FROM source GROUP BY who ORDER BY who")
    _, values, persons = published_holders(front, column("text"), "who", k)
    assert persons == len({person for person, _ in rows})
    assert sorted(Counter(values.tolist()).values()) == sizes_as_published(rows, k)


@pytest.mark.parametrize("values", [[7, 7, 7, 1, 9, 4], [1, 9, 4, 7, 7, 7]])
def test_the_first_record_is_one_of_those_that_share_a_value(front: Any, values: list[int]) -> None:
    """Each record is a person of its own; those of rare numbers are together just enough."""
    front.connection.execute(f"CREATE OR REPLACE TABLE sample AS SELECT unnest({values}) AS v")
    assert sorted(Counter(published_numbers(front, column("integer"), 3).to_pylist()).values()) == [3, 3]
