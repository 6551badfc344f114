"""Records are told apart by parts of their digests: as many as fit, and few looked up in one statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.recount.truth import DigestPart
from schemas.job.job import Job
from schemas.release.claimed_levels import ClaimedLevels
from tasks.recount.original import Original, release_and_source
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.truth import JOINS, MOST_COUNTS, PARTS, _looked_up, _parts_of, compare_with_source
from tests.jobs import job_of


@pytest.mark.parametrize(("values", "parts"), [(1, PARTS), (MOST_COUNTS // PARTS, PARTS), (MOST_COUNTS // 32, 32), (MOST_COUNTS // 8, 8)])
def test_parts_are_a_power_of_two_as_they_are_bits_of_a_digest(values: int, parts: int) -> None:
    one: Any = SimpleNamespace(source=range(values - 1), released=range(1), spans=SimpleNamespace(positions_in_sets=0))
    assert _parts_of(one) == parts


def test_of_many_columns_a_record_has_the_same_digest_in_the_release_and_in_the_source() -> None:
    columns = [f"c{number}" for number in range(JOINS + 2)]
    parts = [DigestPart("r.p", "s.p"), *(DigestPart(f"r.{name}", f"of_{name}.digest", f"of_{name}", name) for name in columns)]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE source AS SELECT 7 AS p, {', '.join(f'{place} AS {name}' for place, name in enumerate(columns))}")
        labels = ", ".join(f"{100 + place} AS {name}" for place, name in enumerate(columns))
        connection.execute(f"CREATE TABLE release AS SELECT 7 AS p, {labels}")
        for place, name in enumerate(columns):
            connection.execute(f"CREATE TABLE of_{name} AS SELECT {place} AS value, {100 + place} AS digest")
        source, made, before = _looked_up("source", parts)
        for statement in before:
            connection.execute(statement)
        [here] = connection.execute(f"SELECT {', '.join(part.released for part in made)} FROM release AS r").fetchall()
        [there] = connection.execute(f"SELECT {', '.join(part.source for part in made)} FROM {source} AS s").fetchall()
        for name in (columns[0], columns[-1]):
            connection.execute(f"UPDATE release SET {name} = {name} + 1")
            [other] = connection.execute(f"SELECT {', '.join(part.released for part in made)} FROM release AS r").fetchall()
            assert other != there, "each column has its part in it"
            connection.execute(f"UPDATE release SET {name} = {name} - 1")
    assert here == there
    assert len(here) == 3


COLUMNS: Any = {"quasi_identifiers": [{"name": "q", "hierarchy": {"tree": {"A": ["a", "b"], "C": ["c"]}}}], "sensitive": ["s"]}
SOURCE = [("a", "flu"), ("b", "flu"), ("c", "gout")]


def faults_of(rows: list[tuple[str, str]], claim: ClaimedLevels | None = None, **parts: Any) -> list[str]:
    """What is wrong with records that are said to be made of ``SOURCE``."""
    job = Job.model_validate(job_of(columns=COLUMNS, privacy={"k": 2}, **parts))
    with duckdb.connect() as connection:
        for name, held in (("source", SOURCE), ("release", rows)):
            connection.execute(f"CREATE TABLE {name} (q VARCHAR, s VARCHAR)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", held)
        original = Original("source", pa.schema([("q", pa.string()), ("s", pa.string())]))
        return list(compare_with_source(job, RowsInOneDatabase(connection, "release", "source"), original, claim).faults)


MASKS = {"suppression": {"limit": 0.9, "treatment": "mask"}}


@pytest.mark.parametrize(
    ("rows", "parts", "right"),
    [
        ([("A", "flu"), ("C", "gout")], {}, True), ([("A", "gout"), ("C", "flu")], {}, False), ([("A", "flu"), ("A", "gout")], {}, False),
        ([("A", "flu"), ("*", "gout")], MASKS, True), ([("A", "flu"), ("A", "flu"), ("*", "flu")], MASKS, False),
        ([("A", "gout"), ("*", "flu")], MASKS, False), ([("*", "flu"), ("*", "gout")], MASKS, True), ([("*", "cold")], MASKS, False),
    ],
)  # fmt: skip
def test_records_of_two_labels_are_those_of_the_source_and_masked_ones_keep_their_other_columns(
    rows: list[tuple[str, str]], parts: dict[str, Any], right: bool
) -> None:
    assert bool(faults_of(rows, **parts)) is not right


@pytest.mark.parametrize(
    ("levels", "labels", "right"),
    [
        (None, ["A", "C"], True), ({}, ["A", "C"], True), ({"q": (1,)}, ["A", "C"], True), ({"q": ()}, ["A", "c"], True),
        ({"q": (0,)}, ["A", "C"], False), ({"q": (1,)}, ["A", "c"], False), ({"other": (0,)}, ["A", "c"], True),
    ],
)  # fmt: skip
def test_labels_are_those_of_the_levels_that_the_release_says_of_their_column(
    levels: dict[str, tuple[int, ...]] | None, labels: list[str], right: bool
) -> None:
    first, second = labels
    claim = None if levels is None else ClaimedLevels(levels=levels, tops={}, starred=False)
    said = [] if right else ["the labels of 'q' are not those of the levels that the release says"]
    assert faults_of([(first, "flu"), (first, "flu"), (second, "gout")], claim) == said


@pytest.mark.parametrize(("labels", "sampled"), [(["A", "C"], None), (["{a, b}", "{b, c}"], 2)])
def test_records_are_sampled_only_where_labels_overlap(labels: list[str], sampled: int | None) -> None:
    job = Job.model_validate(job_of(columns=COLUMNS, privacy={"k": 2}))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE source AS SELECT unnest(['a', 'b', 'c']) AS q, 'flu' AS s")
        connection.execute("CREATE TABLE release AS SELECT unnest(?::VARCHAR[]) AS q, 'flu' AS s", [labels])
        original = Original("source", pa.schema([("q", pa.string()), ("s", pa.string())]))
        assert compare_with_source(job, RowsInOneDatabase(connection, "release", "source"), original) == ([], sampled)


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NS"])
def test_moments_that_the_source_holds_in_a_finer_unit_are_the_same(kind: str) -> None:
    """Its files differ, and DuckDB reads all of them in the finest of their units."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"date": ["month"]}}], "sensitive": ["s"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, source={"path": "*.parquet", "schema": "evolve"}))
    days = "unnest(['2020-01-01', '2020-02-01', '2020-03-01'])"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE source AS SELECT {days}::{kind} AS q, unnest(['flu', 'flu', 'gout']) AS s")
        connection.execute(f"CREATE TABLE release AS SELECT {days}::TIMESTAMP AS q, unnest(['flu', 'flu', 'gout']) AS s")
        original = Original("source", pa.schema([("q", pa.timestamp("us")), ("s", pa.string())]))
        assert compare_with_source(job, RowsInOneDatabase(connection, "release", "source"), original).faults == []


def test_records_with_a_null_beside_a_star_are_no_masked_ones() -> None:
    columns = {"quasi_identifiers": [{"name": name, "hierarchy": {"prefix": [1]}} for name in ("q", "r")], "sensitive": ["s"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, **MASKS))
    rows = [("*", "*", "flu"), ("*", "*", "gout"), (None, "*", "flu"), ("*", None, "cold"), (None, None, "flu"), ("a", "*", "cough")]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE release (q VARCHAR, r VARCHAR, s VARCHAR)")
        connection.executemany("INSERT INTO release VALUES (?, ?, ?)", rows)
        connection.execute("CREATE TABLE source AS FROM release")
        original = Original("source", pa.schema([(name, pa.string()) for name in ("q", "r", "s")]))
        sides = release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original)
        assert set(connection.execute(f"FROM {sides.unmasked}").fetchall()) == set(rows[2:])
        connection.execute("DELETE FROM release WHERE q <> '*' OR r <> '*' OR q IS NULL OR r IS NULL")
        assert release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original).unmasked == "release"
