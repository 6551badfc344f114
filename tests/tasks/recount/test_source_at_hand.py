"""A source is at hand where its files lie here and can be read as the job says, and what is held against it is its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.groups import Groups
from core.recount.people import HELD
from schemas.errors.base import VerificationError
from schemas.job.job import Job, hierarchy_digests, load_job
from schemas.release.manifest import ClaimedLevels
from tasks.recount import recount as recounts
from tasks.recount.original import (
    NOT_AT_HAND,
    Original,
    SourceFigures,
    original_of,
    release_and_source,
    source_at_hand,
    source_figures,
    sources_at_hand,
    unproved_reason,
    with_source_types,
)
from tasks.recount.people_of_source import PeopleOfSource
from tasks.recount.published_labels import expect_labels, qid_labels
from tasks.recount.recount import claimed_k
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.spreads import source_values_relation
from tasks.store.keys import VARIABLE
from tasks.store.store import Store
from tests.core.recount.test_classes import manifest
from tests.house.steps import Steps
from tests.jobs import job_of, write_csv, write_job

TABLE = pa.table({"q": [1, 2, 3], "s": ["a", "b", "b"]})


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def job_with(**parts: Any) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "sensitive": ["s"]}
    return Job.model_validate(job_of(**({"columns": columns, "privacy": {"k": 2}} | parts)))


def files_at(folder: Path) -> dict[str, Path]:
    """The same records in a file of each format that is read from files, and one that is none."""
    paths = {name: folder / f"rows.{name}" for name in ("parquet", "csv", "duckdb")} | {"broken": folder / "broken.parquet"}
    pq.write_table(TABLE, paths["parquet"])
    write_csv(paths["csv"], TABLE)
    paths["broken"].write_text("no table")
    with duckdb.connect(paths["duckdb"]) as database:
        database.execute("CREATE TABLE rows AS SELECT unnest([1, 2, 3]) AS q, unnest(['a', 'b', 'b']) AS s")
    return paths


@pytest.mark.parametrize(
    ("name", "at_hand", "with_store"),
    [("parquet", True, True), ("csv", False, True), ("duckdb", False, False), ("broken", False, False), ("lost", False, False)],
)
def test_a_source_is_at_hand_as_files_of_which_those_that_are_converted_take_a_place_for_that(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, name: str, at_hand: bool, with_store: bool
) -> None:
    """That of a database is whatever it holds by now, so that nothing is held against it."""
    path = files_at(tmp_path).get(name, tmp_path / "lost.parquet")
    job = job_with(source={"path": str(path)} | ({"table": "rows"} if name == "duckdb" else {}))
    for store, expected in ((None, at_hand), (Store(tmp_path / "artifacts"), with_store)):
        found = original_of(job, store)
        assert (found is not None) is expected
        if found is not None:
            rows = connection.execute(f"SELECT q, s FROM {found.relation} ORDER BY q").fetchall()
            assert [(str(q), s) for q, s in rows] == [("1", "a"), ("2", "b"), ("3", "b")]
            assert (len(found.digests), found.is_complete, found.source_relation) == (1, True, "")


@pytest.mark.parametrize("names", [["parquet"], ["csv"], ["csv", "parquet"], ["parquet", "csv"], ["parquet", "duckdb"], ["lost", "csv"]])
def test_sources_of_all_formats_are_at_hand_and_what_is_converted_for_that_is_gone_afterwards(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, names: list[str]
) -> None:
    paths, work = files_at(tmp_path) | {"lost": tmp_path / "lost.parquet"}, tmp_path / "work"
    jobs = {name: job_with(source={"path": str(paths[name])} | ({"table": "rows"} if name == "duckdb" else {})) for name in names}
    jobs = {name: job.model_copy(update={"work": work}) for name, job in jobs.items()}
    with sources_at_hand(jobs) as found:
        assert [name for name in names if found[name] is not None] == [name for name in names if name in ("parquet", "csv")]
        for original in filter(None, found.values()):
            assert len(connection.execute(f"FROM {original.relation}").fetchall()) == 3
        # What need not be converted takes no place.
        assert work.exists() is any(name in ("csv", "duckdb") for name in names)
    assert not work.exists()
    with source_at_hand(jobs[names[0]]) as alone:
        assert (alone is None) is (found[names[0]] is None)


def test_a_source_of_which_one_file_lies_elsewhere_is_not_at_hand(tmp_path: Path) -> None:
    here = str(files_at(tmp_path)["parquet"])
    assert original_of(job_with(source={"path": [here]})) is not None
    assert original_of(job_with(source={"path": ["s3://bucket/rows.parquet"]})) is None


@pytest.mark.parametrize("most", [1, 2, None])
def test_of_a_source_at_hand_each_person_has_as_many_records_as_are_published(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, most: int | None
) -> None:
    """The other records are known to be withheld; those of nobody all stay."""
    held = {1: 3, 2: 1, 3: 5, None: 4}
    who = [person for person, records in held.items() for _ in range(records)]
    rows = list(zip(who, range(len(who)), strict=True))
    for name, some in (("one", rows[::2]), ("other", rows[1::2])):
        table = {"who": [person for person, _ in some], "q": [number for _, number in some], "s": ["a"] * len(some)}
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "sensitive": ["s"], "person": ["who"]}
    job = job_with(columns=columns | ({} if most is None else {"most_records": most}), source={"path": str(tmp_path / "*.parquet")})
    found = original_of(job)
    assert found is not None
    left = connection.execute(f"SELECT who, q FROM {found.relation}").fetchall()
    published = {person: records if person is None or most is None else min(records, most) for person, records in held.items()}
    assert Counter(person for person, _ in left) == published
    assert set(left) <= set(rows)
    figures = source_figures(job, found, tmp_path / "spill")
    withheld = {person: records - published[person] for person, records in held.items() if records > published[person]}
    assert figures == SourceFigures({1: len(left)}, 3, None if most is None else (sum(withheld.values()), len(withheld)))
    assert bool(found.source_relation) is (most is not None)


def test_moments_get_back_what_the_database_forgets_of_them_and_other_values_stay() -> None:
    moments = pa.array([1_577_836_800_000_000], pa.timestamp("us"))
    for kind in (pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Zurich"), pa.timestamp("us")):
        schema = pa.schema([("q", kind), ("coded", pa.dictionary(pa.int32(), kind)), ("text", pa.string())])
        original = Original("source", schema)
        for column in ("q", "coded"):
            assert with_source_types(moments, original, column).equals(moments.cast(kind))
        finer = pa.array([1], pa.timestamp("us"))
        kept = pa.timestamp("us", kind.tz) if kind.unit == "s" else kind
        assert with_source_types(finer, original, "q").equals(finer.cast(kept))
        for column in ("text", "q_low"):
            assert with_source_types(moments, original, column) is moments
        numbers = pa.array([1])
        assert with_source_types(numbers, original, "q") is numbers


def test_values_of_the_source_are_compared_in_the_type_in_which_they_are_published(connection: duckdb.DuckDBPyConnection) -> None:
    """What does not fit there is no value of the release; what has its type stays as it is."""
    connection.execute("CREATE TABLE source AS SELECT unnest(['7', 'x', NULL]) AS text, unnest([1, 2, 3]) AS number, 1 AS q")
    connection.execute("CREATE TABLE release AS SELECT 7 AS text, 1::BIGINT AS number, '1' AS q")
    original = Original("source", pa.schema([("text", pa.string()), ("number", pa.int32())]))
    sides = release_and_source(job_with(), RowsInOneDatabase(connection, "release", "source"), original)
    parts = ", ".join(part.source for part in sides.untreated_parts)
    read = connection.sql(f"SELECT {parts} FROM source AS s")
    assert [str(kind) for kind in read.types] == ["INTEGER", "BIGINT"]
    assert sorted(read.fetchall(), key=str) == [(7, 1), (None, 2), (None, 3)]
    alike = [part.source for part in replace(sides, published=sides.types).untreated_parts]
    assert alike == ['s."text"', 's."number"']


@pytest.mark.parametrize("wide_rows", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_what_one_thread_is_to_count_is_counted_by_one_and_others_have_theirs_back(wide_rows: bool, wide: bool, alone: bool) -> None:
    with duckdb.connect(config={"threads": 2}) as database:
        database.execute("CREATE TABLE release AS SELECT unnest([1, 1, 2]) AS q")
        rows = RowsInOneDatabase(database, "release", wide=wide_rows)
        threads = "current_setting('threads')"
        groups = Groups(
            "release", keys=(("q", "q"),), counts=((f"max({threads})", "threads"), ("count(*)", "records")), alone=alone, wide=wide
        )
        by_one = alone or (wide and wide_rows)
        made = [rows.grouped("release", groups) for _ in range(2)]
        for relation in made:
            assert sorted(database.execute(f"SELECT q, threads, records FROM {relation}").fetchall()) == [
                (1, 1 if by_one else 2, 2), (2, 1 if by_one else 2, 1)
            ]  # fmt: skip
        assert len(set(made)) == (2 if by_one else 1)
        assert database.execute(f"SELECT {threads}").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("source", "is_of_source"),
    [(Original("source", pa.schema([])), True), (Original("source", pa.schema([]), (), False), False), (None, False)],
)
def test_values_are_those_of_the_source_where_the_release_was_made_of_it_and_else_its_own(
    connection: duckdb.DuckDBPyConnection, source: Original | None, is_of_source: bool
) -> None:
    values = {"source": ["a", "a", "b", None], "release": ["a", "b", "b"]}
    for name, held in values.items():
        connection.execute(f"CREATE TABLE {name} AS SELECT unnest({[one or 'null' for one in held]}) AS s")
        connection.execute(f"UPDATE {name} SET s = NULL WHERE s = 'null'")
    asked = list[str]()

    class Rows(RowsInOneDatabase):
        def grouped(self, side: str, groups: Groups) -> str:
            asked.append(side)
            return super().grouped(side, groups)

    relation = source_values_relation(job_with(), Rows(connection, "release", "source"), "s", source, by_people=False)
    side = "source" if is_of_source else "release"
    assert dict(connection.execute(f"SELECT value, records FROM {relation}").fetchall()) == Counter(values[side])
    assert asked == [side]


@pytest.mark.parametrize("is_of_source", [True, False, None])
def test_persons_of_values_are_those_of_the_source_where_the_release_was_made_of_it_and_else_those_that_were_counted(
    connection: duckdb.DuckDBPyConnection, is_of_source: bool | None
) -> None:
    """Somebody has a value once, in however many records; a record of nobody has its value all the same."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2]}}], "sensitive": ["s"], "person": ["who"]}
    connection.execute("CREATE TABLE source AS SELECT unnest([1, 1, 2, 3, NULL]) AS who, unnest(['a', 'a', 'a', 'b', 'c']) AS s")
    connection.execute(f"CREATE TABLE {HELD} AS SELECT unnest([1, 1, 2, 0]) AS person, unnest(['a', 'b', 'b', 'c']) AS value_0")
    types = pa.schema([("who", pa.int64()), ("s", pa.string())])
    original = None if is_of_source is None else Original("elsewhere", types, (), is_of_source)
    job = job_with(columns=columns, privacy={"k": 2, "l": {"s": {"distinct": 2}}})
    relation = source_values_relation(job, RowsInOneDatabase(connection, "release", "source"), "s", original, by_people=True)
    found = sorted(connection.execute(f"SELECT value, records, persons FROM {relation}").fetchall())
    assert found == ([("a", 2, 3), ("b", 1, 3), ("c", 0, 3)] if is_of_source else [("a", 1, 2), ("b", 2, 2)])


@pytest.mark.parametrize(
    ("levels", "tops", "claimed"),
    [
        (None, {}, True), ({}, {}, True), ({"q": (1,)}, {}, True), ({"q": (0, 1)}, {"q": 2}, True), ({"q": ()}, {}, True),
        ({"q": (0,)}, {}, False), ({"q": (2,)}, {}, False), ({"q": (3,)}, {}, False), ({"q": (1,)}, {"q": 1}, False),
    ],
    ids=str,
)  # fmt: skip
def test_labels_are_claimed_unless_they_are_of_none_of_the_levels_that_the_release_says_they_are_of(
    connection: duckdb.DuckDBPyConnection, levels: dict[str, Sequence[int]] | None, tops: dict[str, int], claimed: bool
) -> None:
    """They are pairs of numbers, of the level above these."""
    connection.execute("CREATE TABLE source AS SELECT range AS q FROM range(6)")
    connection.execute("CREATE TABLE release AS SELECT printf('[%d - %d]', q // 2 * 2, q // 2 * 2 + 1) AS q FROM source")
    job, original = job_with(), Original("source", pa.schema([("q", pa.int64())]))
    sides = release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original)
    expect_labels(job, sides)
    claim = None if levels is None else ClaimedLevels.model_validate({"levels": levels, "tops": tops, "starred": False})
    found = qid_labels(job, sides, 0, claim)
    assert (found.claimed, found.released.tolist(), found.source.sum()) == (claimed, [2, 2, 2], 6)


@pytest.mark.parametrize(
    ("written", "intervals", "kept"),
    [
        ("q", "text", True), ("q::VARCHAR AS q", "text", False), ("q::INTEGER AS q", "text", False),
        ("q // 2 * 2 AS q_low, q // 2 * 2 + 1 AS q_high", "bounds", False), ("q AS q_low, q AS q_high", "bounds", False),
    ],
)  # fmt: skip
def test_values_are_kept_where_one_column_has_each_of_them_as_it_is(
    connection: duckdb.DuckDBPyConnection, written: str, intervals: str, kept: bool
) -> None:
    connection.execute("CREATE TABLE source AS SELECT range AS q FROM range(6) UNION ALL SELECT 4")
    connection.execute(f"CREATE TABLE release AS SELECT {written} FROM source WHERE q > 1")
    job, original = job_with(intervals=intervals), Original("source", pa.schema([("q", pa.int64())]))
    sides = release_and_source(job, RowsInOneDatabase(connection, "release", "source"), original)
    expect_labels(job, sides)
    found = qid_labels(job, sides, 0)
    assert (found.is_released, found.released.sum(), found.source.tolist()) == (kept, 5, [1, 1, 1, 1, 2, 1, 0])


@pytest.mark.parametrize("unproved", ["", "another source"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("faults", [[], ["a column too many"]])
@pytest.mark.parametrize("with_source", [True, False])
def test_persons_are_found_by_the_source_where_the_columns_of_files_that_say_them_are_right(
    monkeypatch: pytest.MonkeyPatch, unproved: str, suffix: str, faults: list[str], with_source: bool
) -> None:
    files, source = [Path(f"release/data/0{suffix}"), Path("release/data/1.other")], "source" if with_source else None
    steps = Steps(monkeypatch, recounts, {"column_faults_of": faults, "people_of_source": "found"})
    given: Any = ("job", "it", files, "layout", unproved, source, "claim", "spill")
    sought, looked_at = with_source and not unproved, suffix == ".parquet"
    if sought and looked_at and faults:
        with pytest.raises(VerificationError) as error:
            recounts._people_found_out(*given)
        assert list(error.value.faults) == faults
    else:
        assert recounts._people_found_out(*given) == ("found" if sought else PeopleOfSource(because=unproved))
        assert steps.given.get("people_of_source") == (("job", files, "layout", "source", "claim", "spill") if sought else None)
    assert steps.given.get("column_faults_of") == (("job", files) if sought and looked_at else None)


@pytest.mark.parametrize(("said", "k"), [({"k": 5}, 5), ({"k": 1, "l": {}}, 1), ({"k": "5"}, 0), ({"k": None}, 0), ({"l": {}}, 0)])
def test_a_release_claims_the_k_that_its_manifest_says_and_none_without_a_number(said: dict[str, Any], k: int) -> None:
    claimed = SimpleNamespace(privacy=said)
    assert claimed_k(claimed) == k  # type: ignore[arg-type]
    assert claimed_k(manifest(privacy={"k": 7})) == 7
    assert claimed_k(None) == 0


@pytest.mark.parametrize("listed", ["1;*\n2;*\n", "1;one\n2;*\n", None])
@pytest.mark.parametrize("digests", [("a", "b"), ("b", "a"), ("a",), ("a", "b", "b")])
@pytest.mark.parametrize("known", [True, False])
def test_a_release_is_held_against_the_source_and_the_hierarchies_that_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digests: tuple[str, ...], listed: str | None, known: bool
) -> None:
    """A file of groups that is not there is not the one that there was."""
    if not known:
        monkeypatch.delenv(VARIABLE)
    path, columns = tmp_path / "groups.csv", {"quasi_identifiers": [{"name": "q", "hierarchy": {"csv": "groups.csv"}}]}
    path.write_text("1;*\n2;*\n")
    job = load_job(write_job(tmp_path, job_of(columns=columns)))
    made = manifest(sources=[{"digest": one, "rows": 1} for one in "ab"], hierarchies=hierarchy_digests(job))
    path.unlink()
    if listed is not None:
        path.write_text(listed)
        job = load_job(tmp_path / "job.yaml")
    original = Original("source", pa.schema([]), digests)
    assert unproved_reason(job, None, original) == "it has no manifest, which would say what it was made of"
    assert unproved_reason(job, made, None) == NOT_AT_HAND
    told = unproved_reason(job, made, original)
    if sorted(digests) != ["a", "b"]:
        another = "the source is not what it was when the release was made"
        sure = known and listed != "1;one\n2;*\n"
        assert told == another + ("" if sure else ", or the secret of its digests is not at hand")
    else:
        assert told == ("" if listed == "1;*\n2;*\n" else "the job's hierarchies are not those of the release")
