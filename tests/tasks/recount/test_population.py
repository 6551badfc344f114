"""Rows of a population that the labels of classes fit are those that a look at each of them finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.classes import population_risk_of_files
from schemas.errors.refusals import PopulationError
from schemas.job.job import Job, load_job
from tasks.recount.people_of_source import count_in_population, population_of
from tasks.recount.recount import count_additional
from tests.jobs import write_job, write_parquet

QIDS: list[dict[str, Any]] = [
    {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}},
    {"name": "place", "hierarchy": {"tree": {"*": {"north": ["a", "b"], "south": ["c", "d"]}}}},
]
CLASSES = [("[20 - 25)", "north", 4), ("[20 - 25)", "north", 2), ("[25 - 30)", "*", 5), ("30", "south", 3), ("*", "c", 4), (None, "a", 1)]
ROWS = [
    (20, "a"),
    (24, "b"),
    (24, "c"),
    (25, "a"),
    (25, "d"),
    (29, "b"),
    (30, "c"),
    (30, "d"),
    (30, "a"),
    (None, "a"),
    (None, "c"),
    (24, "b"),
]


def of_population(folder: Path, rows: pa.Table, files: int = 2) -> Job:
    write_parquet(folder / "register", rows, files=files)
    columns = {"quasi_identifiers": QIDS, "sensitive": ["sick"], "insensitive": []}
    return load_job(
        write_job(
            folder,
            {
                "version": 1, "name": "people", "source": {"path": "people/*.parquet"}, "columns": columns, "privacy": {"k": 4},
                "method": {"name": "skald"}, "memory": "256MB", "target": "releases", "population": {"path": "register/*.parquet"},
            },
        )
    )  # fmt: skip


def counted(job: Job, classes: list[tuple[Any, Any, int]], people: Any = None) -> tuple[int, Counter[tuple[int, int]]]:
    held = pa.table({"age": pa.array([age for age, *_ in classes for _ in range(_[-1])], pa.string()),
                     "place": [place for _, place, records in classes for _ in range(records)]})  # fmt: skip
    with duckdb.connect() as database:
        database.register("release", held)
        found = count_in_population(job, database, "release", people)
    assert found is not None
    rows, fitting = found
    return rows, Counter({(records, fits): number for records, fits, number in fitting})


def is_within(label: str | None, age: int | None) -> bool:
    if label == "*" or label is None:
        return label == "*" or age is None
    ends = [int(end) for end in label.strip("[)").split(" - ")]
    return age is not None and ends[0] <= age and (age < ends[-1] or (len(ends) == 1 and age == ends[0]))


def test_rows_that_labels_fit_are_counted_as_one_by_one(tmp_path: Path) -> None:
    job = of_population(tmp_path, pa.table({"age": pa.array([age for age, _ in ROWS], pa.int64()), "place": [place for _, place in ROWS]}))
    places = {"north": "ab", "south": "cd", "*": "abcd"}
    expected = Counter[tuple[int, int]]()
    together = Counter[tuple[Any, Any]]()
    for age, place, records in CLASSES:
        together[age, place] += records
    for (age, place), records in together.items():
        expected[records, sum(is_within(age, row[0]) and row[1] in places.get(place, place) for row in ROWS)] += 1
    assert counted(job, CLASSES) == (len(ROWS), expected)


def test_a_population_is_read_in_any_spelling_as_its_source_is(tmp_path: Path) -> None:
    rows = pa.table({"age": pa.array([20, 24, 30], pa.int64()), "place": ["A", " a", "c"]})
    job = of_population(tmp_path, rows)
    assert counted(job, [("20", "a", 1), ("*", "north", 1)]) == (3, Counter({(1, 0): 2}))
    age, place = job.columns.quasi_identifiers
    qids = [age, place.model_copy(update={"normalise": ["case", "space"]})]
    either = job.model_copy(update={"columns": job.columns.model_copy(update={"quasi_identifiers": qids})})
    assert counted(either, [("20", "a", 1), ("*", "north", 1)]) == (3, Counter({(1, 1): 1, (1, 2): 1}))


def test_a_person_of_several_records_counts_once(tmp_path: Path) -> None:
    """Two classes publish the same labels; of nobody's records nobody is counted, and without persons nothing is."""
    job = of_population(tmp_path, pa.table({"age": pa.array([20, 24, 30], pa.int64()), "place": ["a", "b", "c"]}))
    named = job.model_copy(update={"columns": job.columns.model_copy(update={"person": ["who"]})})
    kept = tmp_path / "persons.parquet", tmp_path / "classes.parquet"
    pq.write_table(pa.table({"class": [0, 0, 0, 1, 1, 1, 2], "person": [7, 7, 8, 8, 9, 0, 5], "records": [1] * 7}), kept[0])
    pq.write_table(pa.table({"label_0": ["[20 - 25)", "[20 - 25)", "30"], "label_1": ["north", "north", "c"]}), kept[1])
    classes = [("[20 - 25)", "north", 6), ("30", "c", 1)]
    assert counted(job, classes) == (3, Counter({(6, 2): 1, (1, 1): 1}))
    assert counted(named, classes, ([kept[0]], [kept[1]])) == (3, Counter({(3, 2): 1, (1, 1): 1}))
    with duckdb.connect() as database:
        database.register("release", pa.table({"age": ["30"], "place": ["c"]}))
        assert count_additional(named, database, "release", None).population is None
        assert count_additional(job, database, "release", None).population == (3, ((1, 1, 1),))


def test_ranges_mean_nothing_among_texts_and_labels_of_one_value_do(tmp_path: Path) -> None:
    texts = pa.table({"age": ["x"] * 3, "place": ["a", "b", "a"]})
    with pytest.raises(PopulationError, match="'age'"):
        counted(of_population(tmp_path / "one", texts), [("[20 - 25)", "a", 4)])
    numbers = pa.table({"age": pa.array([90, 91, 92]), "place": ["a", "b", "a"]})
    assert counted(of_population(tmp_path / "two", numbers), [("[20 - 25)", "a", 4)]) == (3, Counter({(4, 0): 1}))
    assert counted(of_population(tmp_path / "three", texts), [("*", "a", 4)]) == (3, Counter({(4, 2): 1}))


def test_the_risk_in_a_population_is_that_of_a_worked_example() -> None:
    """Classes of 1, 2 and 5 records that fit 4, 5 and 3 rows: whoever is in the data is in the population, so that the last is 5."""
    found = population_risk_of_files(40, [(1, 4, 1), (2, 5, 1), (5, 3, 2)])
    assert found == {
        "records": 40,
        "k_map": 4,
        "journalist_max": 1 / 4,
        "journalist_mean": pytest.approx(4 / 19),
        "journalist_share_above": 1.0,
        "marketer": pytest.approx((1 / 4 + 2 / 5 + 2) / 13),
        "lacking": 2,
    }
    assert population_risk_of_files(40, [(1, 20, 1), (2, 10, 1)])["journalist_share_above"] == pytest.approx(2 / 3)
    assert population_risk_of_files(40, [(1, 3, 1), (9, 10, 1)])["journalist_mean"] == pytest.approx(2 / 13)
    assert population_risk_of_files(40, [(9, 3, 1), (1, 100, 9)])["journalist_mean"] == pytest.approx((1 + 9 / 100) / 18)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"age": [1], "place": ["a"], "more": [1]}, None), ({"age": [1]}, "'place'"), ({"place": ["a"]}, "'age'"),
        ({"x": [1]}, "'age' and 'place'"),
    ],
)  # fmt: skip
def test_a_population_has_the_columns_of_all_quasi_identifiers_and_those_that_it_lacks_are_named(
    tmp_path: Path, columns: dict[str, list[Any]], named: str | None
) -> None:
    job = of_population(tmp_path, pa.table(columns))
    if named is None:
        population = population_of(job)
        assert population is not None
        assert population.columns.names == list(columns)
        assert population_of(job.model_copy(update={"population": None})) is None
    else:
        with pytest.raises(PopulationError, match=f"The population has no {named} of the type"):
            population_of(job)


def test_a_population_that_is_not_there_or_cannot_be_read_is_told(tmp_path: Path) -> None:
    job = of_population(tmp_path / "[1]", pa.table({"age": [1, 2], "place": ["a", "b"]}))
    first, last = sorted((job.folder / "register").iterdir())
    last.write_bytes(b"no Parquet")
    with pytest.raises(PopulationError, match="cannot be read as Parquet"):
        counted(job, [("1", "a", 1)])
    first.write_bytes(b"no Parquet")
    with pytest.raises(PopulationError, match="cannot be read as Parquet"):
        population_of(job)
    first.unlink()
    last.unlink()
    with pytest.raises(PopulationError, match="matches no file"):
        population_of(job)


@pytest.mark.parametrize("files", [1, 2])
def test_a_population_of_a_file_or_several_has_the_columns_of_the_first(tmp_path: Path, files: int) -> None:
    rows = pa.table({"age": pa.array([1, 2, 3, 4]), "place": list("abca")})
    found = population_of(of_population(tmp_path, rows, files))
    assert found is not None
    assert found.columns.names == ["age", "place"]
    with duckdb.connect() as database:
        assert database.execute(f"SELECT count(*), max(age) FROM {found.relation}").fetchall() == [(4, 4)]


@pytest.mark.parametrize("pattern", ["register/**/*.parquet", "**/*.parquet", "register/[nm]*/*.parquet"])
def test_a_population_may_lie_in_folders_at_any_depth_and_each_file_counts_once(tmp_path: Path, pattern: str) -> None:
    rows = pa.table({"age": pa.array([1, 2, 3, 4]), "place": list("abca")})
    job = of_population(tmp_path / "[1]", rows, 1)
    for folder in ("near", "more/far"):
        write_parquet(job.folder / "register" / folder, rows)
    depths = {"register/**/*.parquet": 3, "**/*.parquet": 3, "register/[nm]*/*.parquet": 1}
    assert job.population is not None
    paths = [pattern, "register/near/*.parquet"]
    found = population_of(job.model_copy(update={"population": job.population.model_copy(update={"path": paths})}))
    assert found is not None
    with duckdb.connect() as database:
        assert database.execute(f"SELECT count(*) FROM {found.relation}").fetchall() == [(4 * depths[pattern],)]


@pytest.mark.parametrize(
    ("bounds", "fitting"),
    [
        ([(0, 4, "*"), (5, 9, "*"), (10, 14, "*"), (None, None, "*"), (0, 39, "north")], [2, 2, 1, 1, 3]),
        ([(None, None, "*"), (None, None, "north")], [8, 4]),
    ],
)
def test_rows_of_a_population_fit_pairs_of_bounds_as_they_do_ranges(
    tmp_path: Path, bounds: list[tuple[int | None, int | None, str]], fitting: list[int]
) -> None:
    """A pair of open bounds is a null beside others, and else anything."""
    ages = [1, 4, 5, 9, 10, None, 39, 40]
    job = of_population(tmp_path, pa.table({"age": pa.array(ages, pa.int64()), "place": list("abcdabcd")}))
    low, high, place = zip(*bounds, strict=True)
    release = pa.table({"age_low": pa.array(low, pa.int64()), "age_high": pa.array(high, pa.int64()), "place": place})
    with duckdb.connect() as database:
        database.register("release", release)
        found = count_in_population(job.model_copy(update={"intervals": "bounds"}), database, "release")
    assert found == (8, tuple((1, fits, number) for fits, number in sorted(Counter(fitting).items())))


@pytest.mark.parametrize(("label", "fits"), [("y", 0), (None, 0), ("x", 1), ("[20 - 25)", 1)])
def test_a_text_fits_the_label_that_is_it_whatever_it_looks_like_and_none_fits_another(
    tmp_path: Path, label: str | None, fits: int
) -> None:
    job = of_population(tmp_path, pa.table({"age": ["x", "[20 - 25)"], "place": ["a", "a"]}))
    assert counted(job, [(label, "a", 4)]) == (2, Counter({(4, fits): 1}))


def test_without_a_population_nothing_is_counted_and_one_of_nothing_but_nulls_says_nothing(tmp_path: Path) -> None:
    job = of_population(tmp_path, pa.table({"age": pa.nulls(2), "place": ["a", "b"]}))
    with duckdb.connect() as database:
        assert count_in_population(job.model_copy(update={"population": None}), database, "release") is None
    with pytest.raises(PopulationError, match="'age'"):
        counted(job, [("1", "a", 1)])
