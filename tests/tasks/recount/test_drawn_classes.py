"""Classes are drawn by a number that is another each time, and those that were drawn are held against the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.recount import coverage
from core.recount.coverage import MOST, sample_faults
from schemas.job.job import Job
from tasks.recount import truth
from tasks.recount.original import Original, release_and_source
from tasks.recount.published_labels import expect_labels, qid_labels
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.truth import drawn_number, faults_of_sample
from tests.jobs import job_of


def test_a_drawn_number_has_64_bits_at_most_and_each_is_another() -> None:
    drawn = [drawn_number() for _ in range(64)]
    assert len(set(drawn)) == len(drawn)
    assert max(drawn) < 2**64


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def found(connection: duckdb.DuckDBPyConnection, classes: int, *changed: str) -> tuple[list[str], int]:
    """What is found of classes of two numbers, each with a word of its own, after changes of the release."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "insensitive": ["word"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}))
    connection.execute(f"CREATE TABLE source AS SELECT range AS q, 'word ' || range AS word FROM range({2 * classes})")
    connection.execute("CREATE TABLE release AS SELECT printf('[%d - %d]', q // 2 * 2, q // 2 * 2 + 1) AS q, word FROM source")
    for statement in changed:
        connection.execute(statement)
    original = Original("source", pa.schema([("q", pa.int64()), ("word", pa.string())]))
    sides = release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original)
    expect_labels(job, sides)
    return faults_of_sample(sides, [qid_labels(job, sides, 0, None)])


@pytest.mark.parametrize("classes", [1, 3, MOST, MOST + 6])
def test_of_a_true_release_as_many_classes_are_drawn_as_are_looked_at(connection: duckdb.DuckDBPyConnection, classes: int) -> None:
    assert found(connection, classes) == ([], min(classes, MOST))


def test_no_more_classes_are_looked_at_where_several_have_one_digest(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_of_them(*given: Any) -> Any:
        *others, _most, drawn = given
        return coverage.sample_groups(*others, 2**64 - 1, drawn)

    monkeypatch.setattr(truth, "sample_groups", all_of_them)
    assert found(connection, MOST + 6) == ([], MOST)


def test_records_whose_words_are_those_of_other_classes_are_counted_and_so_are_their_classes(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Three of one class have words of others, and one of another has."""
    exchanged = [f"UPDATE release SET word = 'word {other}' WHERE word = 'word {mine}'" for mine, other in ((0, 13), (1, 14), (4, 17))]
    assert found(connection, 9, *exchanged, "INSERT INTO release VALUES ('[0 - 1]', 'word 8')") == (sample_faults(4, 2, 9), 9)
    assert sample_faults(4, 2, 9)


def test_a_class_with_more_records_than_its_label_covers_has_those_that_are_not_there(connection: duckdb.DuckDBPyConnection) -> None:
    twice = "INSERT INTO release SELECT * FROM release WHERE word = 'word 5'"
    assert found(connection, 4, twice, "DELETE FROM release WHERE word = 'word 0'") == (sample_faults(1, 1, 4), 4)
