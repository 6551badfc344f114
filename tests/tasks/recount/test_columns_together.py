"""Which columns are counted together, and what is said of each model, follows from the job and from what is published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.groups import TogetherCount
from core.recount.people import COMBINATIONS, combinations_sql
from core.recount.shares import ShareSpread
from schemas.job.job import Job
from schemas.release.figures import KINDS, Kind
from schemas.release.manifest import ClaimedLevels
from tasks.recount.people import columns_of_job, combined_pairs, count_combinations, count_person_combinations
from tasks.recount.people_of_source import MANY, OVERLAPPING, _unknown
from tasks.recount.rows import JOINED_COLUMNS, RowsInOneDatabase
from tasks.recount.spreads import model_faults
from tests.jobs import job_of

SSN: dict[str, Any] = {"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}}}}


def job(**columns: Any) -> Job:
    qids = [{"name": "age", "hierarchy": {"widths": [10]}}]
    said = {"quasi_identifiers": qids, "identifiers": [SSN], "sensitive": ["disease"], "insensitive": ["note", "score"]}
    return Job.model_validate(job_of(columns=said | columns))


def test_what_is_published_is_told_apart_by_what_the_job_says_of_it() -> None:
    published = ["age", "disease", "note", "score", "ssn"]
    rows: Any = SimpleNamespace(types=lambda _side: dict.fromkeys(published, "VARCHAR"))
    assert columns_of_job(job(), rows) == {"insensitive": ["note", "score"], "sensitive": ["disease"], "pseudonyms": ["ssn"]}
    published.remove("ssn")
    assert columns_of_job(job(), rows) == {"insensitive": ["note", "score"], "sensitive": ["disease"]}


def test_persons_are_counted_together_only_where_they_are_named() -> None:
    nothing: Any = None
    files: Any = object()
    assert count_person_combinations(job(), nothing, files) == {}


def counted_together(connection: duckdb.DuckDBPyConnection, folder: Path, named: Job, *kinds: Kind) -> dict[Kind, TogetherCount]:
    """The counts of two classes: of the first 1 and 2 share a content, which 4 of the other has too, 3 has one alone, and 1 one more."""
    held = [(0, 1, "x"), (0, 2, "x"), (0, 3, "y"), (0, 1, "z"), (0, 1, "z"), (1, 4, "w"), (1, 5, "w"), (1, 0, "y"), (1, 4, "x")]
    people, classes = folder / "people.parquet", folder / "classes.parquet"
    columns: dict[str, Any] = {"class": [one[0] for one in held], "person": [one[1] for one in held], "records": [1] * len(held)}
    pq.write_table(pa.table(columns | {kind: [one[2] for one in held] for kind in kinds}), people)
    pq.write_table(pa.table({"label_0": ["young", "old"]}), classes)
    connection.execute("CREATE TABLE release AS SELECT CASE WHEN range < 5 THEN 'young' ELSE 'old' END AS age FROM range(9)")
    connection.execute(combinations_sql("release", ['"age"']))
    return dict(count_person_combinations(named, connection, ([people], [classes])))


@pytest.mark.parametrize(("k", "counts"), [(2, (2, 2, 3)), (3, (2, 4, 5)), (4, (2, 5, 5))])
def test_persons_who_are_alone_with_what_they_publish_are_counted_by_kind_of_column(
    tmp_path: Path, k: int, counts: tuple[int, int, int]
) -> None:
    named = job(person=["who"])
    named = named.model_copy(update={"privacy": named.privacy.model_copy(update={"k": k})})
    with duckdb.connect() as connection:
        found = counted_together(connection, tmp_path, named, "insensitive", "pseudonyms")
        assert {kind: (one.unique, one.below_k, one.with_classes) for kind, one in found.items()} == {
            "insensitive": counts,
            "pseudonyms": counts,
        }
        assert [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()] == [
            COMBINATIONS,
            "release",
        ]
        assert count_person_combinations(named, connection, None) == {}
        assert count_person_combinations(job(), connection, ([tmp_path / "people.parquet"], [])) == {}


@pytest.mark.parametrize(
    ("qids", "claim", "known"),
    [
        (1, {}, ""), (JOINED_COLUMNS, {}, ""), (JOINED_COLUMNS + 1, {}, MANY), (1, None, OVERLAPPING), (1, {"starred": True}, OVERLAPPING),
        (2, {"levels": {"q0": (1,), "q1": (0, 1)}}, OVERLAPPING), (2, {"levels": {"q0": (1,), "q1": ()}}, OVERLAPPING),
    ],
)  # fmt: skip
def test_the_class_of_a_record_of_the_source_is_known_where_labels_are_of_one_level_each(
    qids: int, claim: dict[str, Any] | None, known: str
) -> None:
    names = [f"q{number}" for number in range(qids)]
    of_many = job(quasi_identifiers=[{"name": name, "hierarchy": {"widths": [10]}} for name in names], identifiers=[], insensitive=[])
    said: dict[str, Any] = {"levels": {name: (1,) for name in names}, "tops": {}, "starred": False}
    assert _unknown(of_many, None if claim is None else ClaimedLevels(**said | claim)) == known


def test_each_model_is_said_to_be_broken_by_its_own_classes() -> None:
    privacy = {"k": 2, "l": {"disease": {"distinct": 2}}, "t": {"disease": {"t": 0.5}}}
    qids = [{"name": "age", "hierarchy": {"widths": [10]}}]
    promised = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["disease"]}, privacy=privacy))

    def faults(*spreads: ShareSpread, unexpected: int = 0) -> tuple[list[str], Any, list[str]]:
        classes: Any = SimpleNamespace(unexpected={"disease": unexpected}, spreads=spreads)
        return model_faults(promised, classes, by_people=False)

    good, near = ShareSpread(0, 9, 3.0), ShareSpread(0, 9, 0.25)
    assert faults(good, near) == ([], {"l": {"disease": 3.0}, "t": {"disease": 0.25}}, [])
    [broken] = faults(ShareSpread(4, 9, 1.0), ShareSpread(0, 9, None))[0]
    assert broken.startswith("4 of 9 classes ")
    assert faults(good, ShareSpread(0, 9, float("inf")))[1]["t"] == {"disease": 0.0}
    [held, values] = faults(good, ShareSpread(0, 9, 0.25, broken_by_holders=2), unexpected=3)[0][::-1]
    assert held == "in 2 of 9 classes too many persons hold the same value of 'disease' to keep the t that the job promises"
    assert values.startswith("in 3 of the classes the values of 'disease' are not those")


@pytest.mark.parametrize("k", [2, 3])
def test_records_that_few_others_are_like_are_counted_by_kind_of_column_without_labels_and_with_them(k: int) -> None:
    rows = [("young", 1, "x"), ("young", 1, "x"), ("old", 1, "x"), ("old", 2, "y"), ("old", 2, "z"), ("young", 3, "y"), ("old", 3, "z")]
    columns: dict[Kind, list[str]] = {"insensitive": ["score"], "sensitive": ["score", "disease"]}

    def few(keys: list[Any]) -> int:
        return sum(many for many in Counter(keys).values() if many < k)

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE release (age VARCHAR, score INTEGER, disease VARCHAR)")
        connection.executemany("INSERT INTO release VALUES (?, ?, ?)", rows)
        found = count_combinations(RowsInOneDatabase(connection, "release"), columns, ["age"], k)
    for kind, first in (("insensitive", 2), ("sensitive", 3)):
        without, labelled = [row[1:first] for row in rows], [row[:first] for row in rows]
        alone = sum(many == 1 for many in Counter(without).values())
        assert (found[kind].unique, found[kind].below_k, found[kind].with_classes) == (alone, few(without), few(labelled))


def test_what_persons_publish_has_the_shape_of_what_their_records_do() -> None:
    kinds: list[Kind] = ["insensitive", "sensitive", "pseudonyms"]
    records = {kind: TogetherCount(1, 2, 3, shape) for kind, shape in zip(kinds[:2], "xy", strict=True)}
    people = {kind: TogetherCount(4, 5, 6, shape) for kind, shape in zip(kinds, "xzz", strict=True)}
    assert combined_pairs(records, people, by_people=False) == (records, [])
    assert combined_pairs(records, {kinds[0]: people[kinds[0]]}, by_people=True) == ({kinds[0]: people[kinds[0]]}, [])
    found, faults = combined_pairs(records, people, by_people=True)
    assert (found, len(faults)) == (people, 2)
    assert all(KINDS[kind] in fault for kind, fault in zip(kinds[1:], faults, strict=True))
