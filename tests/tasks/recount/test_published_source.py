"""The source is read as it is published: shared values stay, and rare ones, nulls and what is no number become what stands for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.recount.groups import with_replaced_values_sql
from core.recount.labels.published_values import OTHER, ValueCount, publication_of
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from tasks.recount import published_values
from tasks.recount.original import Original, release_and_source
from tasks.recount.published_values import UnitRelation, few_people_faults, published_source
from tasks.recount.rows import JOINED_COLUMNS, RowsInOneDatabase, relation_with_values
from tasks.recount.truth import _wrong_types
from tests.jobs import job_of
from tests.oracles.persons import drawn_place


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def job_that_publishes(way: Any) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": [{"name": "v", "publish": way}]}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2}))


def as_published(
    connection: duckdb.DuckDBPyConnection, way: Any, kind: str, source: list[Any], released: list[Any], given: pa.DataType | None = None
) -> tuple[Counter[Any], float]:
    for name, values in (("source", source), ("release", released)):
        connection.execute(f"CREATE TABLE {name} (q VARCHAR, v {kind})")
        connection.executemany(f"INSERT INTO {name} VALUES ('a', ?)", [(value,) for value in values])
    rows, types = RowsInOneDatabase(connection, "release", "source"), pa.schema([("v", given)]) if given else pa.schema([])
    found = published_source(job_that_publishes(way), rows, Original("source", types))
    return Counter(value for (value,) in connection.execute(f"SELECT v FROM {rows.source}").fetchall()), found.figures["v"].changed


def test_words_of_few_people_are_one_word_and_nulls_of_many_stay(connection: duckdb.DuckDBPyConnection) -> None:
    source = ["a", "a", "a", "b", "c", None, None]
    made, changed = as_published(connection, "shared", "VARCHAR", source, ["a", "a", OTHER, None, None])
    assert made == {"a": 3, OTHER: 2, None: 2}
    assert changed == 1 / 5


def test_what_is_no_number_is_published_as_a_null_is(connection: duckdb.DuckDBPyConnection) -> None:
    source = [1.0, 1.0, 1.0, 2.0, 2.0, float("nan"), float("inf"), None]
    made, _ = as_published(connection, "shared", "DOUBLE", source, [1.0, 1.0, 1.0, 2.0, 2.0, None, None, None])
    assert made == {1.0: 3, 2.0: 2, None: 3}


def test_values_above_the_top_are_the_top(connection: duckdb.DuckDBPyConnection) -> None:
    made, changed = as_published(connection, {"top": 5}, "BIGINT", [1, 5, 6, 9, None], [1, 5, 5, 5, None])
    assert made == {1: 1, 5: 3, None: 1}
    assert changed > 0


def test_moments_of_files_that_differ_are_compared_in_the_finer_unit(connection: duckdb.DuckDBPyConnection) -> None:
    """The types say seconds, and one file has parts of them."""
    whole, rare = datetime(2020, 1, 1), [datetime(2020, 1, 2, 0, 0, 0, 500_000), datetime(2020, 1, 3, 0, 0, 0, 500_000)]
    made, _ = as_published(
        connection, "shared", "TIMESTAMP", [whole, whole, whole, *rare], [whole, whole, whole, None, None], pa.timestamp("s")
    )
    assert made == {whole: 3, None: 2}


def test_a_value_that_few_publish_is_a_fault(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE release AS SELECT unnest(['a', 'a', 'b', NULL, NULL]) AS v")
    job = job_that_publishes("shared")
    assert few_people_faults(connection, job, "release", None) == ["column 'v' publishes 1 value of fewer than 2 records"]
    assert few_people_faults(connection, job, "release WHERE v = 'a' OR v IS NULL", None) == []


def test_a_record_whose_value_nobody_holds_stays_without_one(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE source AS SELECT unnest(['a', 'a', 'c', NULL]) AS v")
    connection.execute("CREATE TABLE release AS SELECT unnest(['a', 'a', NULL, NULL]) AS v")
    rows = RowsInOneDatabase(connection, "release", "source")
    published_source(job_that_publishes("shared"), rows, Original("source", pa.schema([])), UnitRelation("(FROM source WHERE v = 'a')", {}))
    found = connection.execute(f"SELECT v FROM {rows.source}").fetchall()
    assert Counter(value for (value,) in found) == {"a": 2, None: 2}


def test_values_of_persons_are_those_that_the_files_hold(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_values, "person_values_known", lambda _job, _files: ["v"])
    monkeypatch.setattr(published_values, "read_people", lambda _files: ("classes", "kept"))
    connection.execute("CREATE TABLE release AS SELECT unnest(['a', 'a', 'b', NULL, NULL]) AS v")
    connection.execute("CREATE TABLE kept (person BIGINT, value_0 VARCHAR, records BIGINT)")
    held = [(1, "a", 1), (2, "a", 1), (1, None, 1), (3, None, 1), (0, "b", 1)]
    connection.executemany("INSERT INTO kept VALUES (?, ?, ?)", held)
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": [{"name": "v", "publish": "shared"}]}
    job, few = Job.model_validate(job_of(columns=columns | {"person": ["who"]}, privacy={"k": 2})), "column 'v' publishes 1 value of fewer"
    few, people = f"{few} than 2 persons", ([Path("people")], [Path("labels")])
    assert few_people_faults(connection, job, "release", people) == [few]
    assert few_people_faults(connection, job, "release", None) == []
    # Somebody who has the value in two classes is one person all the same.
    connection.execute("UPDATE kept SET person = 1 WHERE person = 3")
    assert few_people_faults(connection, job, "release", people) == [few.replace("1 value", "2 values")]
    connection.execute("DELETE FROM kept WHERE value_0 IS NULL")
    connection.execute("INSERT INTO kept VALUES (1, NULL, 1)")
    told = few_people_faults(connection, job, "release", people)
    assert told == [few.replace("1 value", "2 values"), "column 'v' does not hold the values of the persons that were counted"]


def test_means_of_whole_numbers_are_no_whole_numbers_and_other_values_stay_of_their_type(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE source AS SELECT unnest([1, 2, 11, 12]) AS v")
    connection.execute("CREATE TABLE release AS SELECT unnest([1.5, 1.5, 11.5, 11.5])::DOUBLE AS v")
    for way, published, kind in (({"microaggregate": 2}, [1.5, 1.5, 11.5, 11.5], "DOUBLE"), ({"top": 11}, [1, 2, 11, 11], "INTEGER")):
        rows = RowsInOneDatabase(connection, "release", "source")
        published_source(job_that_publishes(way), rows, Original("source", pa.schema([])))
        found = connection.execute(f"SELECT v, typeof(v) FROM {rows.source} ORDER BY v").fetchall()
        assert found == [(value, kind) for value in published]


@pytest.mark.parametrize("released", [[1, 1, 1, None, None, None], [1, 1, 1, 5, 5, None]])
def test_nulls_of_few_are_joined_by_the_number_that_fewest_have(connection: duckdb.DuckDBPyConnection, released: list[int | None]) -> None:
    """So it is expected too where a release published that number all the same."""
    made, _ = as_published(connection, "shared", "BIGINT", [1, 1, 1, 5, 5, None], released)
    assert made == {1: 3, None: 3}


@pytest.mark.parametrize(("who", "other"), [("who", "x"), ("records", "own"), ("people", "value"), ("value", "p0"), ("own", "first")])
def test_somebody_counts_for_a_mean_at_one_value_whatever_columns_are_called(
    connection: duckdb.DuckDBPyConnection, who: str, other: str
) -> None:
    """Two have a second value far above; did they count there as well, these would be a group of two persons.

    The source may have columns that are called as the recount calls its own.
    """
    many = [person for person in range(3, 40) if drawn_place((str(person),), 2) == 0][:2]
    source = [(1, 1), (2, 2), (many[0], 2), (many[0], 100), (many[1], 3), (many[1], 101)]
    connection.execute(f"CREATE TABLE source ({who} BIGINT, v BIGINT, {other} BIGINT)")
    connection.executemany("INSERT INTO source VALUES (?, ?, 1)", source)
    connection.execute("CREATE TABLE release AS SELECT avg(v) OVER () AS v FROM source")
    rows = RowsInOneDatabase(connection, "release", "source")
    holders = UnitRelation("source", {who: pa.int64()})
    published_source(job_that_publishes({"microaggregate": 2}), rows, Original("source", pa.schema([])), holders)
    found = [value for (value,) in connection.execute(f"SELECT v FROM {rows.source}").fetchall()]
    assert found == [pytest.approx(sum(value for _, value in source) / 6)] * 6


@pytest.mark.parametrize(("masked", "left"), [(0, 3), (1, 2), (2, 1), (3, 3)])
def test_masked_records_are_left_out_unless_all_look_like_them(connection: duckdb.DuckDBPyConnection, masked: int, left: int) -> None:
    job = job_that_publishes("shared")
    masking = job.model_copy(update={"suppression": job.suppression.model_copy(update={"treatment": "mask"})})
    connection.execute("CREATE TABLE source (q VARCHAR, v VARCHAR)")
    connection.execute("CREATE TABLE release (q VARCHAR, v VARCHAR)")
    connection.executemany("INSERT INTO release VALUES (?, 'x')", [("*" if place < masked else "a",) for place in range(3)])
    for one, expected in ((masking, left), (job, 3)):
        found = release_and_source(one, RowsInOneDatabase(connection, "release", "source"), Original("source", pa.schema([])))
        assert connection.execute(f"SELECT count(*) FROM {found.unmasked}").fetchall() == [(expected,)]
        # Where none is set apart a star is a label like others.
        assert (found.unmasked == found.rows.release) is (expected == 3)


def test_nulls_of_few_are_the_word_of_the_others(connection: duckdb.DuckDBPyConnection) -> None:
    made, changed = as_published(connection, "shared", "VARCHAR", ["a", "a", "a", "b", "c", None], ["a", "a", "a", OTHER, OTHER, OTHER])
    assert made == {"a": 3, OTHER: 3}
    assert changed == 3 / 6


@pytest.mark.parametrize(
    ("kind", "base", "released", "share"),
    [
        ("BIGINT", 2, [0, 2, 4, 4], 1 - 1 / 2),
        ("DOUBLE", 0.5, [1.0, 2.0, 3.0, 4.0], 1.0),
        ("DECIMAL(5, 2)", 0.5, [1, 2, 3, 4], 1 - 0.01 / 0.5),
    ],
)
def test_of_rounded_numbers_as_many_are_changed_as_evenly_lying_ones_are_no_multiples(
    connection: duckdb.DuckDBPyConnection, kind: str, base: float, released: list[float], share: float
) -> None:
    made, changed = as_published(connection, {"round": base}, kind, [1, 2, 3, 4], released)
    assert made == Counter(released)
    assert changed == pytest.approx(share)


@pytest.mark.parametrize("columns", [JOINED_COLUMNS, 2 * JOINED_COLUMNS, 2 * JOINED_COLUMNS + 3])
def test_values_of_many_columns_are_replaced_as_those_of_few_and_leave_one_table(columns: int) -> None:
    with duckdb.connect() as connection:
        names = [f"c{number}" for number in range(columns)]
        source = f"(SELECT {', '.join(f'(r * {place + 3}) % 5 AS {name}' for place, name in enumerate(names))}, r FROM range(50) AS t(r))"
        connection.execute(
            "CREATE TABLE other_values AS SELECT r AS value, CASE WHEN r < 3 THEN r + 10 END AS published FROM range(5) AS t(r)"
        )
        joins = [f"LEFT JOIN other_values AS v{place} ON s.{name} = v{place}.value" for place, name in enumerate(names)]
        replaced = [f"v{place}.published AS {name}" for place, name in enumerate(names)]
        made = relation_with_values(connection, source, replaced, joins)
        expected = with_replaced_values_sql(source, replaced, joins)
        [(differing,)] = connection.execute(f"SELECT count(*) FROM (FROM {made} EXCEPT ALL FROM {expected})").fetchall()
        [(tables,)] = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall()
        assert (differing, connection.execute(f"SELECT count(*), count(DISTINCT r) FROM {made}").fetchall()) == (0, [(50, 50)])
        assert tables == (columns > JOINED_COLUMNS)
        # The same values may be asked for again, as by the next recount of the same files.
        assert relation_with_values(connection, source, replaced, joins) == made


def test_values_of_a_hundred_columns_are_replaced_in_little_memory() -> None:
    with duckdb.connect(config={"memory_limit": "150MB", "threads": "2"}) as connection:
        connection.execute("CREATE TABLE other_values AS SELECT r AS value, r + 10 AS published FROM range(5) AS t(r)")
        names = [f"c{number}" for number in range(100)]
        connection.execute(f"CREATE TABLE source AS SELECT {', '.join(f'r % 5 AS {name}' for name in names)} FROM range(500) AS t(r)")
        joins = [f"LEFT JOIN other_values AS v{place} ON s.{name} = v{place}.value" for place, name in enumerate(names)]
        made = relation_with_values(connection, "source", [f"v{place}.published AS {name}" for place, name in enumerate(names)], joins)
        assert connection.execute(f"SELECT count(*) FROM {made} WHERE c99 = 14").fetchall() == [(100,)]


def figures_of(connection: duckdb.DuckDBPyConnection, way: Any, kind: str, source: list[Any], released: list[Any]) -> ColumnPublication:
    for name, values in (("source", source), ("release", released)):
        connection.execute(f"CREATE TABLE {name} (v {kind if name == 'source' else 'DOUBLE' if kind == 'BIGINT' else kind})")
        for value in values:
            connection.execute(f"INSERT INTO {name} VALUES (?)", [value])
    return published_source(
        job_that_publishes(way), RowsInOneDatabase(connection, "release", "source"), Original("source", pa.schema([]))
    ).figures["v"]


def test_the_error_of_means_is_that_of_each_published_value_as_often_as_it_is_published(connection: duckdb.DuckDBPyConnection) -> None:
    """A mean lies a quarter of the way to the means beside it from its values on average, which the published ones alone tell."""
    means, sizes = [0.5, 10.5, 50.5], [2, 2, 3]
    apart = [5.0, 12.5, 20.0]
    source = [0, 1, 10, 11, 50, 51, 50.5]
    released = [mean for mean, size in zip(means, sizes, strict=True) for _ in range(size)]
    found = figures_of(connection, {"microaggregate": 2}, "DOUBLE", [*source, None, None], [*released, None, None])
    error = sum(size * (one / 2) for size, one in zip(sizes, apart, strict=True)) / sum(sizes)
    assert (found.changed, found.error) == (pytest.approx(7 / 9, abs=1e-6), pytest.approx(error, abs=1e-6))


def test_of_values_above_the_top_no_error_is_told_and_of_shared_words_none(connection: duckdb.DuckDBPyConnection) -> None:
    assert figures_of(connection, {"top": 5}, "BIGINT", [1, 5, 6, 9], [1, 5, 5, 5]).error is None
    connection.execute("DROP TABLE source; DROP TABLE release")
    assert figures_of(connection, "shared", "VARCHAR", ["a", "a", "b"], ["a", "a", OTHER]).error is None
    connection.execute("DROP TABLE source; DROP TABLE release")
    nothing = figures_of(connection, "shared", "DOUBLE", [None, None], [None, None])
    assert (nothing.changed, nothing.error) == (0.0, 0.0)


def of_persons(
    connection: duckdb.DuckDBPyConnection, way: Any, kind: str, held: list[tuple[int | None, Any]], released: list[Any]
) -> Counter[Any]:
    """What the values of persons are published as."""
    connection.execute(f"CREATE TABLE source (who BIGINT, v {kind})")
    connection.executemany("INSERT INTO source VALUES (?, ?)", held)
    connection.execute(f"CREATE TABLE release (v {kind})")
    connection.executemany("INSERT INTO release VALUES (?)", [(value,) for value in released])
    rows = RowsInOneDatabase(connection, "release", "source")
    published_source(job_that_publishes(way), rows, Original("source", pa.schema([])), UnitRelation("source", {"who": pa.int64()}))
    return Counter(value for (value,) in connection.execute(f"SELECT v FROM {rows.source}").fetchall())


def test_a_value_counts_its_persons_and_not_their_records(connection: duckdb.DuckDBPyConnection) -> None:
    """Two words are those of one person each, who has them twice, and a release that shows them all the same is no reason to keep them."""
    held = [(1, "a"), (1, "a"), (4, "c"), (4, "c"), (2, "b"), (3, "b"), (None, "a"), (None, "c")]
    assert of_persons(connection, "shared", "VARCHAR", held, [word for _, word in held]) == {"b": 2, OTHER: 6}


def test_rare_numbers_are_together_as_many_persons_as_have_them(connection: duckdb.DuckDBPyConnection) -> None:
    """One person has all of the rare numbers, who would be two by values: nobody may be published alone, so that they are nulls."""
    held = [(1, 1), (1, 2), (2, 9), (3, 9), (4, 9), (5, 8), (6, 8)]
    assert of_persons(connection, "shared", "BIGINT", held, [value for _, value in held]) == {9: 3, None: 4}


def test_persons_of_values_that_many_have_are_a_group_of_a_mean_by_themselves(connection: duckdb.DuckDBPyConnection) -> None:
    held = [(1, 1.0), (2, 1.0), (3, 2.0), (4, 3.0)]
    assert of_persons(connection, {"microaggregate": 2}, "DOUBLE", held, [1.0, 1.0, 2.5, 2.5]) == {1.0: 2, 2.5: 2}


@pytest.mark.parametrize("records_of_nobody", [False, True])
def test_who_has_a_rare_number_is_one_of_its_persons_whatever_else_they_have(
    connection: duckdb.DuckDBPyConnection, records_of_nobody: bool
) -> None:
    """Each has a common number too, and nobody's records are nobody's."""
    rare = [10, 11, 12, 13, 14, 20, 21, 22]
    counts = [ValueCount(1, 8, 8, 8), *(ValueCount(one, 1, 1, 1 + records_of_nobody) for one in rare)]
    made = publication_of(counts, 0, 8, pa.int64(), "shared", 2)
    held = [(person, value) for person, one in enumerate(rare) for value in (1, one)]
    held += [(None, one) for one in rare if records_of_nobody]
    expected = Counter({1: 8})
    for value in made.published[1:-1]:
        expected[value] += 1 + records_of_nobody
    assert len(expected) > 2
    shown = [*made.published[:-1], *rare]
    assert of_persons(connection, "shared", "BIGINT", held, shown) == expected


def test_numbers_that_just_enough_have_are_not_among_the_rest(connection: duckdb.DuckDBPyConnection) -> None:
    """Were they, the only word of few would need nobody beside it."""
    source = ["a", "a", "b", "b", "b", "c"]
    made = publication_of([ValueCount("a", 2, 2, 2), ValueCount("b", 3, 3, 3), ValueCount("c", 1, 1, 1)], 0, 1, pa.string(), "shared", 2)
    assert made.published[:3] == [OTHER, "b", OTHER]
    assert set(as_published(connection, "shared", "VARCHAR", source, source)[0]) == {"b", OTHER}


def test_nulls_do_not_count_as_changed_where_rare_numbers_became_some(connection: duckdb.DuckDBPyConnection) -> None:
    made, changed = as_published(connection, "shared", "BIGINT", [1, 1, 1, 5, 9, None, None], [1, 1, 1, *[None] * 4])
    assert (made, changed) == ({1: 3, None: 4}, 0.0)


@pytest.mark.parametrize(("way", "released"), [("shared", []), ({"round": 0.5}, [1, 2])])
def test_where_nothing_is_published_or_all_numbers_are_multiples_nothing_is_changed(
    connection: duckdb.DuckDBPyConnection, way: Any, released: list[int]
) -> None:
    found = figures_of(connection, way, "BIGINT", [1, 2], released)
    assert (found.changed, found.error) == (0.0, 0.125 if released else 0.0)


@pytest.mark.parametrize("way", ["shared", {"round": 2}, {"top": 3}, {"microaggregate": 2}])
@pytest.mark.parametrize("nulls", [0, 1, 3, 6])
def test_nulls_are_counted_as_a_reader_of_the_files_would(connection: duckdb.DuckDBPyConnection, way: Any, nulls: int) -> None:
    released = [3.0] * (6 - nulls) + [None] * nulls
    found = figures_of(connection, way, "DOUBLE", [3.0, 3.0, 3.0, 3.0, None, None, float("nan")], released)
    assert found.null == pytest.approx(nulls / 6, abs=1e-6)


def test_how_many_nulls_were_null_in_the_source_follows_from_no_figure(connection: duckdb.DuckDBPyConnection) -> None:
    """Truth values of one person become null. Whoever has a null already is told apart from them by nothing."""
    made = []
    for source in ([True, True, True, False, None, None], [True, True, True, None, None, None]):
        made.append(figures_of(connection, "shared", "BOOLEAN", source, [True, True, True, None, None, None]))
        connection.execute("DROP TABLE source; DROP TABLE release")
    assert made[0] == made[1]
    assert made[0].null == 0.5
    assert figures_of(connection, "shared", "BOOLEAN", [True, False], []).null == 0.0


@pytest.mark.parametrize("drift", ["freeze", "evolve"])
def test_a_column_of_another_type_than_in_the_source_is_named_but_for_text_that_labels_are(drift: str) -> None:
    """Of columns that are published under other names, such as bounds, nothing is compared."""
    qids = [{"name": name, "hierarchy": {"prefix": [2]}} for name in ("kept", "label", "wrong")]
    columns = {"quasi_identifiers": [*qids, {"name": "ranged", "hierarchy": {"widths": [2]}}], "sensitive": ["s", "t"]}
    source = {"path": "x/*.parquet", "schema": drift}
    job = Job.model_validate(job_of(columns=columns, source=source, intervals="bounds"))
    types = {"kept": "BIGINT", "label": "BIGINT", "wrong": "BIGINT", "ranged": "BIGINT", "s": "DOUBLE", "t": "DATE"}
    others = {"label": "VARCHAR", "wrong": "INTEGER", "t": "VARCHAR", "ranged_low": "INTEGER", "ranged_high": "INTEGER"}
    sides: Any = SimpleNamespace(names=["s", "t"], types=types, published=types | others)
    assert _wrong_types(job, sides) == (["t", "wrong"] if drift == "freeze" else [])
