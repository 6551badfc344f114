"""Who is in which class is set apart by what classes publish, and nobody gets lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.job import Job
from tasks.publication.recount_calls import divide_members
from tasks.recount.recount import count_additional
from tasks.store.store import Artifact
from tests.jobs import job_of

SHARES = 3
CLASSES = [("f", "2"), ("m", "2"), ("f", "3"), ("*", "*"), ("m", "4")]
PERSONS = [(number % 6, number, 1 + number % 2) for number in range(30)] + [(0, 1, 5)]
"""Class, person, records; nothing is known of class 5."""


@pytest.fixture
def job() -> Job:
    qids = [{"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}, {"name": "zip", "hierarchy": {"prefix": [1]}}]
    return Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["disease"], "person": ["who"]}))


@pytest.fixture
def people(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    kept, labels = tmp_path / "kept.parquet", tmp_path / "labels.parquet"
    classes, persons, records = map(list, zip(*PERSONS, strict=True))
    held = {"class": pa.array(classes, pa.int32()), "person": pa.array(persons, pa.uint64()), "value_0": [one % 3 for one in persons]}
    pq.write_table(pa.table(held | {"records": pa.array(records, pa.int64())}), kept)
    pq.write_table(pa.table({"label_0": [sex for sex, _ in CLASSES], "label_1": [place for _, place in CLASSES]}), labels)
    return [kept], [labels]


def keeping(folder: Path) -> Callable[[str], Callable[[int, Callable[[Path], int]], Artifact]]:
    def of_kind(kind: str) -> Callable[[int, Callable[[Path], int]], Artifact]:
        def keep(number: int, write: Callable[[Path], int]) -> Artifact:
            name = f"{kind}-{number}.parquet"
            return Artifact(step=kind, key="0" * 16, file=name, rows=write(folder / name), size=0, sha256="")

        return keep

    return of_kind


def rows_of(folder: Path, made: tuple[Artifact, ...]) -> list[list[tuple[object, ...]]]:
    found = [[tuple(row.values()) for row in pq.read_table(folder / one.file).to_pylist()] for one in made]
    assert [len(rows) for rows in found] == [one.rows for one in made]
    return found


@pytest.mark.parametrize("first", [True, False])
def test_everybody_is_set_apart_once_with_his_class_and_once_by_himself(
    tmp_path: Path, job: Job, people: tuple[list[Path], list[Path]], first: bool
) -> None:
    with duckdb.connect() as database:
        made = divide_members(database, job, people, SHARES, keeping(tmp_path), first=first)
    apart = rows_of(tmp_path, made.people)
    assert sorted(row for rows in apart for row in rows) == sorted((c, p, p % 3, r) for c, p, r in PERSONS)
    assert all(row in apart[0] for row in ((5, p, p % 3, r) for c, p, r in PERSONS if c == 5)), "what no class is known of is unexpected"
    shares = [{row[0] for row in rows} for rows in apart]
    assert sum(map(len, shares)) == len(CLASSES) + 1, "a class is in one share"
    assert sum(bool(rows) for rows in apart) > 1
    alone = rows_of(tmp_path, made.persons)
    totals = {p: sum(r for _, other, r in PERSONS if other == p) for _, p, _ in PERSONS}
    assert sorted(row for rows in alone for row in rows) == sorted(totals.items())
    assert all(int(str(row[0])) % SHARES == number for number, rows in enumerate(alone) for row in rows)
    classes = rows_of(tmp_path, made.classes)
    assert bool(classes) == first
    if first:
        assert sorted(row for rows in classes for row in rows) == [(number, *labels) for number, labels in enumerate(CLASSES)]
        for mine, rows in zip(shares, classes, strict=True):
            assert {row[0] for row in rows} | {5} >= mine


def test_what_needs_all_classes_is_counted_for_the_job(tmp_path: Path, job: Job) -> None:
    rows = [labels for number, labels in enumerate(CLASSES) for c, _, r in PERSONS if c == number for _ in range(r)]
    records = tmp_path / "records.parquet"
    pq.write_table(pa.table({"sex": [sex for sex, _ in rows], "zip": [place for _, place in rows], "disease": ["x"] * len(rows)}), records)
    with duckdb.connect() as database:
        found = count_additional(job, database, f"read_parquet('{records}')", None)
    assert (found.linked, found.population) == ((), None)
