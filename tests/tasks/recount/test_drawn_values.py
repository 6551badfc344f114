"""A person of many records counts at one of them, the same one for who makes a release and for the recount, and steps are of k persons."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.recoding.ends import shared_ends
from core.recoding.publishing import published_values
from core.recount.labels.published_values import drawn_number_sql
from core.units.digests import digests_of
from schemas.job.job import Job
from tasks.counting import source_domains
from tasks.counting.source_domains import PersonsReading
from tasks.recount import verdict
from tasks.recount.original import Original
from tasks.recount.published_values import UnitRelation, published_source
from tasks.recount.rows import RowsInOneDatabase
from tasks.source.chunks import ChunkedSource, SourceFile
from tasks.source.published_columns import count_values, make_number_table, make_value_table
from tasks.store.store import Store
from tests.jobs import job_of
from tests.oracles.persons import counted_at, drawn_values

Held = list[tuple[int | None, int | None]]
HELD = st.lists(st.tuples(st.none() | st.integers(0, 12), st.none() | st.integers(-20, 90)), min_size=1, max_size=60)
ZONED = pa.timestamp("ms", "Asia/Tokyo")
START = datetime(2024, 1, 1, tzinfo=UTC)


def some_records(seed: int) -> Held:
    """Records of thirteen persons, of nobody, and without a value."""
    chance = random.Random(seed)
    return [
        (chance.choice([None, *range(13)]), None if chance.random() < 0.1 else chance.choice([3, chance.randint(-20, 90)]))
        for _ in range(80)
    ]


def moment(person: int) -> datetime:
    return START + timedelta(milliseconds=person)


def microseconds(person: int) -> str:
    return str((moment(person) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


PERSONS: dict[str, tuple[pa.DataType, Any, Any]] = {
    "numbers": (pa.int16(), lambda person: person, str),
    "texts": (pa.string(), lambda person: f"é{person}", lambda person: f"é{person}"),
    "fractions": (pa.float32(), lambda person: -0.0 if not person else person / 4, lambda person: str(person / 4)),
    "decimals": (pa.decimal128(8, 2), lambda person: Decimal(person) / 4, lambda person: f"{Decimal(person) / 4:.2f}"),
    "moments": (ZONED, moment, microseconds),
}
VALUES: dict[pa.DataType, Any] = {
    pa.int32(): lambda value: value,
    pa.float64(): lambda value: value / 10,
    pa.decimal128(9, 1): lambda value: Decimal(value) / 10,
    pa.date32(): lambda value: (START + timedelta(days=value)).date(),
    pa.timestamp("ns"): lambda value: (START + timedelta(hours=value)).replace(tzinfo=None),
    ZONED: lambda value: START + timedelta(hours=value),
}


def written(folder: Path, columns: dict[str, tuple[pa.DataType, Sequence[Any]]], parts: int = 1) -> tuple[ChunkedSource, Original]:
    """Write a source, and return it as both sides read it."""
    table = pa.table({name: pa.array(values, dtype) for name, (dtype, values) in columns.items()})
    files = []
    for part in range(parts):
        path = folder / f"{part}.parquet"
        pq.write_table(table.take(pa.array(range(part, len(table), parts), pa.int64())), path)
        files.append(SourceFile(name=str(path), path=path, digest="", stat=None, groups=()))
    source = ChunkedSource(files=tuple(files), chunks=(), payload=(), columns=table.schema, published=())
    return source, Original(source.relation, table.schema)


def job_about(person: Sequence[str] = ("who",), k: int = 2) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [10]}}], "sensitive": [], "person": list(person)}
    return Job.model_validate(job_of(columns=columns, privacy={"k": k}))


def counted_by_writer(job: Job, source: ChunkedSource, folder: Path) -> tuple[pa.Array, list[int]]:
    read = pa.concat_tables([pq.read_table(file.path, columns=["q"]) for file in source.files])["q"].combine_chunks()
    values = read.drop_null().unique()
    values = values.take(pa.compute.sort_indices(values))
    return values, source_domains._persons_at(PersonsReading(job, source, Store(folder), folder), "q", values).tolist()


def counted_by_recount(job: Job, original: Original) -> tuple[pa.Array, list[int]]:
    with duckdb.connect() as connection:
        # The machine that counts again may be in another zone.
        connection.execute("SET TimeZone = 'America/New_York'")
        values, people = verdict._values(job, RowsInOneDatabase(connection, "", original.relation), original, "q")
    return values, people.tolist()


@pytest.mark.parametrize(("called", "kind"), [*zip(PERSONS, VALUES, strict=False), ("texts", ZONED)], ids=str)
def test_writer_and_recount_count_persons_where_the_rule_says(tmp_path: Path, called: str, kind: pa.DataType) -> None:
    folder, held, (dtype, name, text) = tmp_path, some_records(1), PERSONS[called]
    who = [None if person is None else name(person) for person, _ in held]
    value = [None if one is None else VALUES[kind](one) for _, one in held]
    source, original = written(folder, {"who": (dtype, who), "q": (kind, value)})
    expected = counted_at(((text(person),), one) for person, one in held if person is not None and one is not None)
    numbers = sorted({one for _, one in held if one is not None})
    for values, people in (counted_by_writer(job_about(), source, folder), counted_by_recount(job_about(), original)):
        assert (values.to_pylist(), people) == (pa.array(map(VALUES[kind], numbers), kind).to_pylist(), [expected[one] for one in numbers])


def test_where_persons_count_hangs_on_no_order_or_file_and_no_name_of_a_column(tmp_path: Path) -> None:
    """Of two columns each names a part; what no number is names nobody."""
    held, found = some_records(2), []
    for rows, some in ((held, 1), (held[::-1], 3)):
        folder = tmp_path / str(some)
        folder.mkdir()
        columns = {
            "value": (pa.float64(), [float("nan") if person == 12 else None if person is None else person / 4 for person, _ in rows]),
            "records": (pa.string(), ["" if person is None else str(person // 4) for person, _ in rows]),
            "q": (pa.int64(), [one for _, one in rows]),
        }
        source, original = written(folder, columns, some)
        for values, people in (
            counted_by_writer(job_about(("value", "records")), source, folder),
            counted_by_recount(job_about(("value", "records")), original),
        ):
            found.append(dict(zip(values.to_pylist(), people, strict=True)))
    there = [(person, one) for person, one in held if person not in {None, 12} and one is not None]
    expected = counted_at(((str(person / 4), str(person // 4)), one) for person, one in there if person is not None)
    assert found == [{one: expected[one] for _, one in held if one is not None}] * 4


def test_zero_of_either_sign_is_one_value_at_which_persons_count(tmp_path: Path) -> None:
    held = [(person, value) for person in range(8) for value in (-0.0, (0.0, 1.0)[person % 2])]
    expected = counted_at(((str(person),), one + 0) for person, one in held)
    for number, rows in enumerate((held, held[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        columns = {"who": (pa.int64(), [person for person, _ in rows]), "q": (pa.float64(), [one for _, one in rows])}
        source, original = written(folder, columns)
        reading = PersonsReading(job_about(), source, Store(folder), folder)
        assert source_domains._persons_at(reading, "q", pa.array([0.0, 1.0])).tolist() == [expected[0.0], expected[1.0]]
        assert counted_by_recount(job_about(), original)[1] == [expected[0.0], expected[1.0]]


@given(held=HELD, above=st.integers(0, 60), more=st.lists(st.integers(0, 10**6), min_size=60, max_size=60))
def test_how_high_the_highest_are_changes_nobody_who_counts_below(held: Held, above: int, more: list[int]) -> None:
    """Whatever values above a line become above it, even where several become one."""
    rows = [((str(person),), one) for person, one in held if person is not None and one is not None]
    higher = [(person, one if one < above else above + further) for (person, one), further in zip(rows, more, strict=False)]
    below = [{person: one for person, one in drawn_values(some).items() if one < above} for some in (rows, higher)]
    assert below[0] == below[1]


@given(held=HELD, k=st.integers(2, 4))
def test_every_step_has_a_value_of_k_different_persons(held: Held, k: int) -> None:
    rows = [(person, one) for person, one in held if person is not None and one is not None]
    counts = counted_at(((str(person),), one) for person, one in rows)
    values = sorted({one for _, one in held if one is not None})
    if not values:
        return
    people = np.array([counts[one] for one in values], np.int64)
    found = shared_ends(
        Domain("q", pa.array(values), np.ones(len(values), np.int64), 0, people), job_about().columns.quasi_identifiers[0].hierarchy, k
    )
    steps = dict(zip(values, found.steps.tolist(), strict=True))
    if (last := max(steps.values())) > 0:
        assert min(len({person for person, one in rows if steps[one] == step}) for step in range(last + 1)) >= k
    whose = {one: {person for person, other in rows if other == one} for one in values}
    for step, (low, high) in enumerate(zip(found.low.to_pylist(), found.high.to_pylist(), strict=True)):
        outermost = ([low] if step == 0 else []) + ([high] if step == last else [])
        assert all(end is None or len(whose[int(end)]) >= k for end in outermost), "beyond the outermost lines only shared values are ends"


def test_persons_of_many_records_leave_as_many_steps_as_they_are_enough_for(tmp_path: Path) -> None:
    """At the least of ten values each, nearly all would be in one step."""
    chance = np.random.default_rng(3)
    held = [(person, int(value)) for person in range(120) for value in chance.choice(10_000, 10, replace=False)]
    source, _ = written(tmp_path, {"who": (pa.int64(), [person for person, _ in held]), "q": (pa.int64(), [one for _, one in held])})
    job = job_about(k=5)
    values, people = counted_by_writer(job, source, tmp_path)
    domain = Domain("q", values, np.ones(len(values), np.int64), 0, np.array(people))
    steps = shared_ends(domain, job.columns.quasi_identifiers[0].hierarchy, 5).steps
    assert int(steps.max()) + 1 >= 10
    assert max(Counter(steps.tolist()).values()) < len(values) / 5


@pytest.mark.parametrize("way", ["shared", {"microaggregate": 3}], ids=["shared", "means"])
@pytest.mark.parametrize("called", PERSONS)
def test_values_are_published_as_the_recount_expects_them(called: str, way: Any) -> None:
    held, (dtype, name, _) = some_records(len(called)), PERSONS[called]
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": [{"name": "v", "publish": way}]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}))
    who, values = pa.array([None if one is None else name(one) for one, _ in held], dtype), pa.array([one for _, one in held], pa.int64())
    made = job.columns.ways["v"]
    with duckdb.connect() as connection:
        persons = digests_of([pa.compute.add(who, pa.scalar(0, dtype)) if pa.types.is_floating(dtype) else who], len(who))
        make_value_table(connection, [([values], persons)], 1)
        # In two batches, of which both have some persons.
        halves = [slice(0, len(who) // 2 + 1), slice(len(who) // 2, None)]
        make_number_table(connection, [(persons[half], [who[half]]) for half in halves], [dtype])
        counted = count_values(connection, 0, values.type, 2, made, count_persons=True)
        published = published_values(counted, made, 2).apply(values)
        connection.register("source", pa.table({"who": who, "v": values}))
        connection.register("release", pa.table({"v": published}))
        rows = RowsInOneDatabase(connection, "release", "source")
        published_source(job, rows, Original("source", pa.schema([])), UnitRelation("source", {'"who"': dtype}))
        again = Counter(one for (one,) in connection.execute(f"SELECT v FROM {rows.source}").fetchall())
    assert again == Counter(published.to_pylist())


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.string(), ZONED, pa.timestamp("ns")], ids=str)
def test_a_person_is_named_alike_whether_or_not_by_a_dictionary(kind: pa.DataType) -> None:
    encoded = pa.dictionary(pa.int32(), kind)
    assert drawn_number_sql(["a", "b"], [encoded, pa.int64()]) == drawn_number_sql(["a", "b"], [kind, pa.int64()])
