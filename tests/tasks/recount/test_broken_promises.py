"""What is promised of sensitive values is counted in each class as its definition says, and what is broken or not counted is told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.classes import Recount
from core.recount.linked import SAMPLE
from core.recount.shares import ShareClasses, ShareSpread
from core.recount.spreads import distinct_sql, entropy_sql, recursive_sql
from schemas.job.job import Job
from tasks.recount import verdict
from tasks.recount.original import Original
from tasks.recount.people import count_people
from tasks.recount.published_values import passed_columns
from tasks.recount.rows import RowsInOneDatabase, column_faults_of, read_column_faults
from tasks.recount.spreads import count_spreads, model_faults, uncounted_without_source
from tasks.recount.verdict import CrossClassCounts, RecountBasis, verdict_of
from tests.core.recount.test_classes import recount
from tests.house.steps import Steps
from tests.jobs import job_of
from tests.laws import tried

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", "z", None])), min_size=1, max_size=14)
SPECS: list[dict[str, Any]] = [{"distinct": 2}, {"distinct": 3}, {"entropy": 2}, {"entropy": 1.5}, {"recursive": {"c": 2, "l": 2}}]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        yield database


def diversity(counts: list[int], spec: dict[str, Any]) -> tuple[bool, float]:
    """Whether a class of values that occur so often keeps what is promised, and how diverse it is."""
    records, falling = sum(counts), sorted(counts, reverse=True)
    match spec:
        case {"distinct": least}:
            return len(counts) >= least, len(counts)
        case {"entropy": least}:
            found = exp(-sum(count / records * log(count / records) for count in counts)) if records else 0.0
            return bool(records) and found >= least - 1e-9, found
        case {"recursive": {"c": c, "l": least}}:
            tail = sum(falling[least - 1 :])
            return bool(falling) and falling[0] < c * tail, (falling[0] / tail if tail else inf) if falling else -inf
    raise LookupError(spec)


@pytest.mark.parametrize("nulls", ["none", "value"])
@pytest.mark.parametrize("said", SPECS, ids=str)
@given(ROWS)
@tried(12)
def test_classes_that_break_a_promise_of_diversity_are_those_of_its_definition(
    connection: duckdb.DuckDBPyConnection, said: dict[str, Any], nulls: str, rows: list[tuple[str, str | None]]
) -> None:
    job = job_with(said | {"nulls": nulls})
    [(_, _, spec)] = job.privacy.models
    classes = defaultdict[str, Counter[str | None]](Counter)
    for group, value in rows:
        classes[group].update([value] if value is not None or nulls == "value" else [])
    judged = [diversity(list(mine.values()), said) for mine in classes.values()]
    connection.register("rows", pa.table({"q": [q for q, _ in rows], "s": pa.array([s for _, s in rows], pa.string())}))
    sql: Any = {"distinct": distinct_sql, "entropy": entropy_sql, "recursive": recursive_sql}[next(iter(said))]
    [(failing, every, worst)] = connection.execute(sql("rows", ['"q"'], '"s"', spec)).fetchall()
    connection.unregister("rows")
    assert (failing, every) == (sum(not kept for kept, _ in judged), len(classes))
    figures = [figure for _, figure in judged if figure != -inf]
    expected = max(figures, default=None) if "recursive" in said else min(figures)
    assert (worst is None or worst == inf) if expected in (None, inf) else worst == pytest.approx(expected)


def job_with(diversity: dict[str, Any] | None = None, *, persons: bool = False, **privacy: Any) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s", "u"]}
    columns |= {"person": ["who"], "identifiers": ["who"]} if persons else {}
    promised = {"l": {"s": diversity}} if diversity else {}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2} | promised | privacy))


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("by_people", [False, True])
def test_of_each_promise_it_is_told_what_is_broken_or_why_it_is_not_known(persons: bool, by_people: bool) -> None:
    """Without the people of the classes nobody knows who holds a value, nor how often one of a person is to be counted."""
    job = job_with({"distinct": 2}, persons=persons, t={"u": {"t": 0.5, "distance": "equal"}})
    whole = by_people or not persons
    few, far = ShareSpread(1, 1_200, 1.0, broken_by_holders=3), ShareSpread(0, 1_200, inf)
    classes = ShareClasses(recount(), (few, far) if whole else (few,), {"u": 7, "s": 0})
    faults, measured, unread = model_faults(job, classes, by_people=by_people)
    assert unread == ([] if whole else ["s", "u"])
    assert measured == {"l": {"s": 1.0}} | ({"t": {"u": 0.0}} if whole else {})
    unexpected, broken, held = faults
    assert unexpected.startswith("in 7 of the classes the values of 'u' are not those of the people")
    assert broken.startswith("1 of 1,200 classes ")
    assert held == "in 3 of 1,200 classes too many persons hold the same value of 's' to keep the l that the job promises"
    for nothing in (None, inf):
        kept = ShareClasses(recount(), tuple(ShareSpread(0, 9, nothing) for _ in classes.spreads))
        assert model_faults(job, kept, by_people=by_people)[:2] == ([], {kind: dict.fromkeys(of, 0.0) for kind, of in measured.items()})


@pytest.mark.parametrize("persons", [False, True])
def test_without_the_source_what_is_measured_from_it_is_no_fault_and_is_said_to_be_uncounted(persons: bool) -> None:
    job = job_with({"entropy": 1.5}, persons=persons, t={"u": {"t": 0.5, "distance": "equal"}})
    few = ShareSpread(1, 1_200, 1.0)
    classes = ShareClasses(recount(), (few,), {})
    faults, measured, unread = model_faults(job, classes, by_people=True, with_source=False)
    assert (len(faults), measured, unread) == (1, {"l": {"s": 1.0}}, [])
    of_holders = "Whether too many persons hold one value of 's' was not counted: that is measured from the source."
    of_shares = "t-closeness of 'u' was not counted: it is measured from the source."
    assert uncounted_without_source(job, by_people=persons) == ([of_holders] * persons + [of_shares])
    # What is not counted for want of people is not told twice.
    assert uncounted_without_source(job_with(persons=True, t={"u": {"t": 0.5}}), by_people=False) == []


@pytest.mark.parametrize("by_people", [False, True])
@pytest.mark.parametrize(
    ("has_held", "of_presence", "known"), [(True, True, False), (True, False, False), (False, True, True), (False, False, False)]
)
def test_a_promise_is_read_of_records_where_neither_how_often_nor_who_holds_a_value_matters(
    by_people: bool, has_held: bool, of_presence: bool, known: bool
) -> None:
    """The job names persons, and kinds of promises may be added that say nothing of who holds a value."""
    [(kind, column, spec)] = job_with({"distinct": 2}, persons=True).privacy.models
    kind = replace(kind, held=kind.held if has_held else None, of_presence=of_presence)
    job: Any = SimpleNamespace(columns=SimpleNamespace(person=["who"]), privacy=SimpleNamespace(models=[(kind, column, spec)]))
    spreads = (ShareSpread(0, 9, 2.0),) if by_people or of_presence else ()
    unread = model_faults(job, ShareClasses(recount(), spreads), by_people=by_people)[2]
    assert unread == ([] if by_people or known else ["s"])


def test_the_source_is_read_only_for_promises_that_compare_classes_with_it(connection: duckdb.DuckDBPyConnection) -> None:
    """Two classes, each of one value of u, of which the whole has as many; of s the second has two."""
    job, asked = job_with({"distinct": 2}, t={"u": {"t": 0.4, "distance": "equal"}}), list[str]()
    rows = "(VALUES ('a', 'x', 1), ('a', 'x', 1), ('b', 'x', 2), ('b', 'y', 2)) AS release (q, s, u)"

    def whole_of(column: str) -> str:
        asked.append(column)
        return f"(SELECT {column} AS value, count(*) AS records FROM {rows} GROUP BY 1)"

    spreads, unexpected = count_spreads(job, connection, f"(FROM {rows})", ['"q"'], Original("", pa.schema([])), whole_of, by_people=False)
    assert asked == ["u"]
    assert spreads == (ShareSpread(1, 2, 1.0), ShareSpread(2, 2, 0.5))
    assert unexpected == {}


ORDERS = {"as is": ["q", "s", "note"], "other order": ["q", "note", "s"], "QID last": ["s", "note", "q"]}


@pytest.mark.parametrize("parquet", [True, False])
@pytest.mark.parametrize("rest", [True, False])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("masked", ["", "text", "no text", "numbers"])
def test_columns_are_in_the_order_of_the_job_or_of_the_source_where_that_says_the_rest(
    tmp_path: Any, parquet: bool, rest: bool, order: str, masked: str
) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    columns["insensitive"] = "rest" if rest else ["note"]
    suppression = {"limit": 0.5} | ({"treatment": "mask"} if "text" in masked else {})
    job = Job.model_validate(job_of(columns=columns, suppression=suppression))
    kinds = {"q": pa.int64() if masked in ("no text", "numbers") else pa.string(), "s": pa.string(), "note": pa.int64()}
    table = pa.table({name: pa.array([None, None], kinds[name]) for name in ORDERS[order]})
    if parquet:
        for number in range(2):
            pq.write_table(table, tmp_path / f"{number}.parquet")
        found = column_faults_of(job, [tmp_path / f"{number}.parquet" for number in range(2)])
    else:
        with duckdb.connect() as database:
            database.register("rows", table)
            found = read_column_faults(job, database, "rows")
    right = order == "as is" or (rest and order == "other order")
    assert len(found) == (not right or masked == "no text")


@pytest.mark.parametrize(
    ("untreated", "with_source", "released", "of_source", "republished", "counted"),
    [
        (True, True, 4, 5, False, True), (True, True, 5, 5, False, False), (True, True, 4, None, False, False),
        (False, True, 4, 5, False, False), (True, False, 4, 5, False, False),
        (True, True, 5, 5, True, True), (False, True, 5, 5, True, False),
    ],
)  # fmt: skip
def test_untreated_columns_are_counted_in_the_files_where_the_source_has_records_that_these_have_not(
    monkeypatch: pytest.MonkeyPatch,
    untreated: bool,
    with_source: bool,
    released: int,
    of_source: int | None,
    republished: bool,
    counted: bool,
) -> None:
    """Nor where a column is published in another form than the source has it."""
    columns = SimpleNamespace(person=(), ways={"s": "shared"} if republished else {})
    of: Any = SimpleNamespace(privacy=SimpleNamespace(k=2, models=()), columns=columns)
    counts = recount(records=released)
    classes: Any = SimpleNamespace(counts=counts)
    linked: Any = ("linked",)
    fitting: Any = (9, "fitting")
    additional = CrossClassCounts(linked, fitting)
    steps = Steps(monkeypatch, verdict, {
        "model_faults": (["of values"], {"l": {"s": 2.0}}, []), "_expect": None, "hidden_label_faults": ["hidden"],
        "endpoint_faults": ["of ends"], "_pseudonym_faults": ["of pseudonyms"], "columns_of_job": "columns",
        "published_qids": "qids", "count_combinations": "of records",
        "combined_pairs": ({"insensitive": "pairs"}, ["together"]), "_truth": (of_source, verdict.Truth(["untrue"])),
        "passed_columns": {"note": (1, 2, 3)}, "column_losses": {"q": "loss"}, "class_size_faults": ["of sizes"],
        "mismatched_pseudonym_faults": ["of links"],
    })  # fmt: skip
    source: Any = Original("source", pa.schema([])) if with_source else None
    rows: Any = "rows"
    claim: Any = "claim"
    found, faults = verdict_of(of, rows, classes, additional, source, RecountBasis(untreated=untreated, claim=claim, shared_by=3))
    assert faults == ["of sizes", "of links", "together", "of values", "hidden", "of ends", "of pseudonyms", "untrue"]
    assert isinstance(found, Recount)
    assert (found.passed, "passed_columns" in steps.given) == ({"note": (1, 2, 3)} if counted else {}, counted)
    assert (found.losses, found.source, found.linked) == ({"q": "loss"} if with_source else {}, of_source, ("linked",))
    assert (found.measured, found.population, found.together) == ({"l": {"s": 2.0}}, (9, "fitting"), {"insensitive": "pairs"})
    assert steps.given["endpoint_faults"] == (of, "rows", source, 3)
    assert steps.given["_truth"] == (of, "rows", source, released, "claim")
    assert steps.given["count_combinations"] == ("rows", "columns", "qids", 2)
    assert steps.given["combined_pairs"] == ("of records", {}, {"by_people": False})
    assert steps.given["model_faults"] == (of, classes, {"by_people": False, "with_source": with_source})
    assert steps.given.get("column_losses") == ((of, "rows", source) if with_source else None)


def test_of_each_untreated_column_values_are_counted_that_one_record_has_and_that_any_has(connection: duckdb.DuckDBPyConnection) -> None:
    rows = "(VALUES ('a', 'x', 1, 'p'), ('a', 'x', 1, 'p'), ('b', 'y', NULL, 'r')) AS release (q, s, u, id)"
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s", "u"]}
    columns["identifiers"] = [{"name": "id", "treatment": {"hash": {"key": {"env": "KEY"}}}}]
    job = Job.model_validate(job_of(columns=columns))
    assert passed_columns(job, RowsInOneDatabase(connection, f"(FROM {rows})", "source")) == {"s": (2, 1, 3), "u": (1, 0, 2)}


@pytest.mark.parametrize("more", [0, 5])
def test_numbers_that_were_to_be_encrypted_are_held_against_those_of_the_source(connection: duckdb.DuckDBPyConnection, more: int) -> None:
    """All of the source's may happen to be there; that all that are published are some of the source's may not."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    columns["identifiers"] = [{"name": "id", "treatment": {"encrypt": {"key": {"env": "KEY"}, "alphabet": "digits", "width": 9}}}]
    job = Job.model_validate(job_of(columns=columns))
    few, many = (f"(SELECT (100000000 + range)::VARCHAR AS id, 'a' AS q FROM range({count}))" for count in (SAMPLE, SAMPLE + more + 1))
    original = Original(many, pa.schema([("q", pa.string()), ("id", pa.string())]))
    assert len(verdict._pseudonym_faults(job, RowsInOneDatabase(connection, few, many), original)) == 1
    assert verdict._pseudonym_faults(job, RowsInOneDatabase(connection, many, few), original) == []
    assert verdict._pseudonym_faults(job, RowsInOneDatabase(connection, few, many), None) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()], ids=str)
def test_masked_columns_that_name_folders_are_text_by_that_and_others_by_their_type(tmp_path: Path, kind: pa.DataType) -> None:
    qids = [{"name": name, "hierarchy": {"prefix": [1]}} for name in ("q", "r")]
    parts = {"suppression": {"limit": 0.5, "treatment": "mask"}, "output": {"partition_by": ["q"]}}
    job = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["s"]}, **parts))
    path = tmp_path / "data" / "q=a" / "0.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"r": pa.array([None], kind), "s": ["x"]}), path)
    assert bool(column_faults_of(job, [path])) is (kind == pa.int64())


@pytest.mark.parametrize(("nulls", "held"), [("value", 1), ("none", 0)])
def test_too_many_may_hold_a_null_only_where_it_is_no_value(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, nulls: str, held: int
) -> None:
    """All three persons of a class hold a null beside a value of their own."""
    job = job_with({"distinct": 2, "nulls": nulls}, persons=True)
    pairs = [(person, value) for person, own in enumerate("xyz", start=1) for value in (own, None)]
    pq.write_table(pa.table({"class": [0], "label_0": ["a"]}), tmp_path / "classes.parquet")
    people = {"class": [0] * 6, "person": [person for person, _ in pairs], "records": [1] * 6}
    values = pa.array([value for _, value in pairs], pa.string())
    pq.write_table(pa.table(people | {"value_0": values, "value_1": ["u"] * 6}), tmp_path / "people.parquet")
    rows = "(SELECT 'a' AS q, unnest(['x', 'y', 'z', NULL, NULL, NULL]) AS s, 'u' AS u)"
    whole = f"(SELECT s AS value, count(*) AS records, 3 AS persons FROM {rows} GROUP BY s)"
    files = [tmp_path / "people.parquet"], [tmp_path / "classes.parquet"]
    assert count_people(connection, job, rows, ['"q"'], files).smallest == 3
    original = Original("", pa.schema([]))
    spreads, unexpected = count_spreads(job, connection, rows, ['"q"'], original, lambda _column: whole, by_people=True)
    assert [one.broken_by_holders for one in spreads] == [held]
    assert unexpected == {"s": 0}
