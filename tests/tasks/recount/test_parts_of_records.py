"""Records are told apart by parts of their digests: as many as fit, and few looked up in one statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.recount.groups import Groups
from core.recount.truth import BUCKETS, DigestPart
from schemas.job.job import Job
from schemas.release.manifest import ClaimedLevels
from tasks.recount.original import Original, ReleaseAndSource, release_and_source
from tasks.recount.rows import JOINED_COLUMNS, RowsInOneDatabase, Side
from tasks.recount.truth import MOST_COUNTS, PARTS, _joint_faults, _looked_up, _parts_of, _wrong_types, compare_with_source
from tests.jobs import job_of


@pytest.mark.parametrize(("values", "parts"), [(1, PARTS), (MOST_COUNTS // PARTS, PARTS), (MOST_COUNTS // 32, 32), (MOST_COUNTS // 8, 8)])
def test_parts_are_a_power_of_two_as_they_are_bits_of_a_digest(values: int, parts: int) -> None:
    one: Any = SimpleNamespace(source=range(values - 1), released=range(1), spans=SimpleNamespace(sets={}))
    assert _parts_of(one) == parts


def test_of_many_columns_a_record_has_the_same_digest_in_the_release_and_in_the_source() -> None:
    columns = [f"c{number}" for number in range(JOINED_COLUMNS + 2)]
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


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([("A", "cold"), ("C", "gout")], "1 record in 's' with a value that the source does not have, or not as often"),
        ([("A", "gout"), ("C", "gout")], "1 record in 's' with a value that the source does not have, or not as often"),
        ([("A", "gout"), ("A", "flu")], "at least 1 record of the data files put 's' and 'q' together as no record of the source does"),
        ([("A", "gout"), ("C", "flu")], "at least 2 records of the data files put 's' and 'q' together as no record of the source does"),
    ],
)
def test_records_that_the_source_has_not_are_told_by_the_column_that_is_wrong_or_by_all(rows: list[tuple[str, str]], fault: str) -> None:
    assert faults_of(rows) == [fault]


def test_another_value_of_the_same_bucket_is_told_by_its_column() -> None:
    """There are as many records of the bucket in both, so that none is more than the source has."""
    job = Job.model_validate(job_of(columns=COLUMNS, privacy={"k": 2}))
    with duckdb.connect() as connection:
        same = f"SELECT min(n) AS first, max(n) AS other FROM range({4 * BUCKETS}) AS t(n) GROUP BY hash(n) & {BUCKETS - 1}"
        connection.execute(f"CREATE TABLE alike AS FROM ({same}) WHERE first < other LIMIT 1")
        connection.execute("CREATE TABLE source AS SELECT 'a' AS q, other AS s FROM alike")
        connection.execute("CREATE TABLE release AS SELECT 'A' AS q, first AS s FROM alike")
        original = Original("source", pa.schema([("q", pa.string()), ("s", pa.int64())]))
        sides = release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original)
        faults = _joint_faults(sides, "release", sides.untreated_parts, ["s"])
    assert faults == ["1 record in 's' with a value that the source does not have, or not as often"]


LACKS = "that cover too few values of the source"
OTHERS = "that do not cover its values in the records with the same 's'"


@pytest.mark.parametrize(
    ("rows", "levels", "fault"),
    [
        ([("A", "flu"), ("D", "cold"), ("D", "cold")], None, "1 label of 'q' covers no value of the source"),
        ([("A", "cold")] * 3, (0,), f"at least 1 record with labels of 'q' {LACKS}"),
        ([("{a, b}", "gout"), ("{b, c}", "flu")], None, f"at least 1 record with labels of 'q' {OTHERS}"),
        (
            [("{a, b}", "flu"), ("{a, b}", "gout"), ("{a, b}", "flu"), ("{b, c}", "flu")],
            None,
            f"at least 1 record with labels of 'q' {LACKS}",
        ),
    ],
)
def test_what_is_wrong_with_labels_is_told_before_what_is_wrong_with_records(
    rows: list[tuple[str, str]], levels: tuple[int] | None, fault: str
) -> None:
    """All that is wrong after it follows from it, or is looked for by what may be wrong."""
    assert faults_of(rows, ClaimedLevels(levels={"q": levels}, tops={}, starred=False) if levels else None) == [fault]


@pytest.mark.parametrize(
    ("source", "release", "fault"),
    [
        ("'a' AS q", "'A' AS q, 'flu' AS s", "the source has no 's'"), ("'flu' AS s", "'A' AS q, 'flu' AS s", "the source has no 'q'"),
        ("'a' AS q, 7 AS s", "'A' AS q, '7' AS s", "'s' is of another type than in the source"), ("'a' AS q", "'A' AS q", ""),
        ("'a' AS q", "'*' AS q", ""), ("'d' AS q", "'A' AS q", "1 label of 'q' covers no value of the source"),
    ],
)  # fmt: skip
def test_columns_are_those_of_the_source_before_their_values_are_looked_at(source: str, release: str, fault: str) -> None:
    job = Job.model_validate(job_of(columns=COLUMNS, privacy={"k": 2}))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE source AS SELECT {source}")
        connection.execute(f"CREATE TABLE release AS SELECT {release}")
        original = Original("source", pa.schema([("q", pa.string()), ("s", pa.string())]))
        found = compare_with_source(job, RowsInOneDatabase(connection, "release", "source"), original)
    assert found == ([fault] if fault else [], None)


@pytest.mark.parametrize(
    ("types", "published", "wrong"),
    [
        ({}, {}, ""), ({}, {"s": "BIGINT"}, "s"), ({}, {"q": "VARCHAR"}, ""), ({}, {"q": "BIGINT"}, "q"), ({"q": "BIGINT"}, {}, "q"),
        ({}, {"q": "DATE", "s": "DATE"}, "sq"), ({}, {"age_low": "DOUBLE", "age_high": "VARCHAR"}, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("drift", ["freeze", "evolve"])
def test_what_is_no_text_has_the_type_of_the_source_where_all_of_its_files_have_it(
    types: dict[str, str], published: dict[str, str], wrong: str, drift: str
) -> None:
    """Ages are published as two bounds each."""
    qids = [{"name": "q", "hierarchy": {"prefix": [1]}}, {"name": "age", "hierarchy": {"widths": [2]}}]
    parts = {"intervals": "bounds", "source": {"path": "*.parquet", "schema": drift}}
    job = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["s"]}, privacy={"k": 2}, **parts))
    theirs = {"q": "INTEGER", "age": "INTEGER", "s": "VARCHAR"} | types
    ours = {"q": "INTEGER", "age_low": "INTEGER", "age_high": "INTEGER", "s": "VARCHAR"} | published
    nothing: Any = None
    assert _wrong_types(job, ReleaseAndSource(nothing, "release", nothing, theirs, ours, ["s"])) == (
        list(wrong) if drift == "freeze" else []
    )


class NotedRows(RowsInOneDatabase):
    """Rows that note by which tables records are looked up, and whether these are there."""

    noted: tuple[str, ...] = ()

    def grouped(self, side: Side, groups: Groups) -> str:
        for table in groups.tables:
            self.connection.execute(f"FROM {table}")
        self.noted += groups.tables
        return super().grouped(side, groups)


def test_records_are_looked_up_by_the_tables_that_are_named() -> None:
    job = Job.model_validate(job_of(columns=COLUMNS, privacy={"k": 2}))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE source AS SELECT unnest(['a', 'b', 'c']) AS q, 7 AS s")
        connection.execute("CREATE TABLE release AS SELECT unnest(['A', 'A', 'C']) AS q, 7 AS s")
        original = Original("source", pa.schema([("q", pa.string()), ("s", pa.int32())]))
        rows = NotedRows(connection, "release", "source")
        assert compare_with_source(job, rows, original) == ([], None)
    assert rows.noted == ("digests_0",)
