"""Ranges end where k people do, and what was withheld everywhere is no label of a level."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from schemas.job.job import Job
from schemas.release.manifest import ClaimedLevels, published_columns
from tasks.recount import verdict
from tasks.recount.original import Original
from tasks.recount.published_labels import label_texts, labels_of_levels
from tasks.recount.published_values import column_losses
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.verdict import endpoint_faults
from tests.jobs import job_of
from tests.oracles.persons import counted_at

AGES: Any = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2, 4]}}], "sensitive": []}
TREE: Any = {"quasi_identifiers": [{"name": "q", "hierarchy": {"tree": {"A": ["a", "b"], "C": ["c"]}}}], "sensitive": []}


@pytest.mark.parametrize(("ends", "faults"), [("shared", 1), ("observed", 0)])
def test_ends_of_few_people_are_a_fault_unless_they_may_be_observed(ends: str, faults: int) -> None:
    job = Job.model_validate(job_of(columns=AGES, privacy={"k": 2}, method={"name": "mondrian"}, suppression=None, endpoints=ends))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE source AS SELECT unnest([10, 11, 13, 29, 37, 53]) AS age")
        connection.execute("CREATE TABLE release AS SELECT unnest(['[10 - 11]', '[10 - 11]', '[13 - 53]']) AS age")
        original = Original("source", pa.schema([("age", pa.int32())]))
        assert len(endpoint_faults(job, RowsInOneDatabase(connection, "release", "source"), original)) == faults


@pytest.mark.parametrize(
    ("ends", "manifest", "unchecked"),
    [
        ("shared", {"age": "shared"}, "'age'"), ("shared", {}, ""), ("shared", None, "'age' and 'q'"),
        ("observed", {"age": "observed"}, ""),
    ],
)  # fmt: skip
def test_only_columns_with_ranges_have_ends_that_were_not_checked(ends: str, manifest: Any, unchecked: str) -> None:
    """The manifest names them: a text that has a hierarchy has no ranges, whatever the method makes of numbers."""
    columns = {"quasi_identifiers": AGES["quasi_identifiers"] + TREE["quasi_identifiers"], "sensitive": []}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, method={"name": "mondrian"}, suppression=None, endpoints=ends))
    assert verdict._unchecked(job, None, manifest) == [f"Where the ranges of {unchecked} end was not checked."] * bool(unchecked)


@pytest.mark.parametrize(
    ("bounds", "faults"),
    [
        ([(None, 11), (12, None)], 0), ([(10, 11), (12, None)], 1), ([(10, 11), (13, 53)], 2), ([(None, 11), (13, 28), (29, None)], 2),
        ([(None, None)], 0), ([(None, 12), (13, 13), (13, None)], 2),
    ],
)  # fmt: skip
def test_bounds_in_two_columns_are_ends_as_those_of_ranges_are(bounds: list[tuple[int | None, int | None]], faults: int) -> None:
    """Of six people three are on either side of the line at 12, and no other line has so many."""
    given: Any = {"columns": AGES, "privacy": {"k": 3}, "method": {"name": "mondrian"}, "suppression": None}
    told = []
    for intervals in ("bounds", "text"):
        job = Job.model_validate(job_of(**given, intervals=intervals))
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE source AS SELECT unnest([7, 10, 11, 13, 37, 53]) AS age")
            if intervals == "bounds":
                connection.execute("CREATE TABLE release (age_low INTEGER, age_high INTEGER)")
                connection.executemany("INSERT INTO release VALUES (?, ?)", bounds)
            else:
                connection.execute("CREATE TABLE release (age VARCHAR)")
                connection.executemany("INSERT INTO release VALUES (?)", [[as_range(*one)] for one in bounds])
            original = Original("source", pa.schema([("age", pa.int32())]))
            told.append(endpoint_faults(job, RowsInOneDatabase(connection, "release", "source"), original))
    assert told[0] == told[1]
    said = f"{faults} range{'s' * (faults > 1)} of 'age' end{'s' * (faults == 1)} where fewer than 3 people do"
    assert told[0] == [said] * bool(faults)


def as_range(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return "*" if low is high else f"<= {high}" if low is None else f">= {low}"
    return str(low) if low == high else f"[{low} - {high}]"


@pytest.mark.parametrize(("unmasked", "read"), [("release", True), ("(FROM release WHERE q <> '*')", False)])
def test_a_star_covers_all_where_no_record_was_set_apart_as_masked(unmasked: str, read: bool) -> None:
    job = Job.model_validate(job_of(columns=TREE, privacy={"k": 2}, suppression={"limit": 0.5, "treatment": "mask"}))
    sides: Any = SimpleNamespace(rows=SimpleNamespace(release="release"), unmasked=unmasked)
    claim = ClaimedLevels(levels={"q": (1,)}, tops={}, starred=False)
    qid = job.columns.quasi_identifiers[0]
    found = labels_of_levels(job, sides, qid, pa.array(["a", "b", "c"]), [pa.array(["A", "*"])], claim)
    assert (found is not None) is read
    assert found is None or np.array_equal(found[1].covered(1), [0, 1, 2])


def test_two_bounds_cost_what_the_range_of_them_does() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE text AS SELECT unnest(['[0 - 3]', '[0 - 3]', '[4 - 7]', '12']) AS age")
        original, losses = Original("source", pa.schema([("age", pa.int32())])), []
        for intervals in ("text", "bounds"):
            job = Job.model_validate(
                job_of(columns=AGES, privacy={"k": 2}, method={"name": "mondrian"}, suppression=None, intervals=intervals)
            )
            names = published_columns(job, job.columns.quasi_identifiers[0])
            if intervals == "bounds":
                connection.execute(f"CREATE TABLE bounds ({', '.join(f'{name} INTEGER' for name in names)})")
                connection.execute("INSERT INTO bounds VALUES (0, 3), (0, 3), (4, 7), (12, 12)")
            losses.append(column_losses(job, RowsInOneDatabase(connection, intervals, "source"), original)["age"].penalty)
    assert losses == pytest.approx([3 * 3 / 12] * 2)


PREFIXES = ["12****", "12****", "13****", "14****", "133456", "00", "00"]


@pytest.mark.parametrize(
    ("spec", "given", "labels", "penalty"),
    [
        ({"prefix": [2], "sparse": ["03"]}, None, PREFIXES, 6 / 4), ({"prefix": [2]}, None, PREFIXES, 4 / 4),
        ({"prefix": [2], "mask": "#", "sparse": ["03"]}, None, [label.replace("*", "#") for label in PREFIXES], 6 / 4),
        ({"prefix": [2], "sparse": ["036"]}, None, PREFIXES, 4 / 4), ({"prefix": [2]}, {"q": "prefix"}, PREFIXES, 4 / 4),
        ({"prefix": [2], "sparse": ["03"]}, {}, PREFIXES, 6 / 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_a_beginning_costs_its_share_of_labels_and_that_of_sparse_ones_too(
    kind: pa.DataType, spec: dict[str, Any], given: dict[str, str] | None, labels: list[str], penalty: float
) -> None:
    """Of the labels 133456, 12, 14 and 00 none is a beginning of another one, and 13 is one of the first."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": spec}], "sensitive": []}
    parts = {} if given is None else {"method": {"name": "mondrian", "generalisation": given or None}, "suppression": None}
    job, original = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, **parts)), Original("source", pa.schema([("q", kind)]))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE release AS SELECT unnest(?) AS q", [labels])
        assert column_losses(job, RowsInOneDatabase(connection, "release", "source"), original)["q"].penalty == pytest.approx(penalty)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()], ids=str)
@pytest.mark.parametrize("hierarchy", [{"prefix": [1]}, {"widths": [10]}], ids=["beginnings", "ranges"])
def test_a_set_costs_its_share_of_the_values_that_labels_name_whatever_the_hierarchy(hierarchy: dict[str, Any], kind: pa.DataType) -> None:
    """Two values of four cost a half, and all but one with the null beside all."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": hierarchy}], "sensitive": []}
    method = {"name": "mondrian", "generalisation": "set"}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, method=method, suppression=None))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE release AS SELECT unnest(?) AS q", [["{12, 13}", "{12, 13}", "14", "{12, 14, 15, null}"]])
        found = column_losses(job, RowsInOneDatabase(connection, "release", "source"), Original("source", pa.schema([("q", kind)])))
    assert found["q"].penalty == pytest.approx(2 * 2 / 4 + 1)


@pytest.mark.parametrize("intervals", ["text", "bounds"])
@pytest.mark.parametrize(("bounds", "told"), [([(80, 89), (90, None)], 0), ([(80, 89), (90, 94)], 1), ([(88, 95), (90, 94)], 2)])
def test_labels_that_tell_what_a_column_hides_are_a_fault_and_others_are_none(
    intervals: str, bounds: list[tuple[int, int | None]], told: int
) -> None:
    """Of a column that hides nothing no label is looked at."""
    hiding, plain = ({"name": name, "hierarchy": {"widths": [10]} | top} for name, top in (("age", {"top": 90}), ("height", {})))
    columns = {"quasi_identifiers": [hiding, plain], "sensitive": []}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, intervals=intervals))
    ages = [(low, high) if intervals == "bounds" else (f"[{low} - {high}]" if high else f">= {low}",) for low, high in bounds]
    names = [name for qid in job.columns.quasi_identifiers for name in published_columns(job, qid)]
    kind, height = ("INTEGER", (98, 99)) if intervals == "bounds" else ("VARCHAR", ("98",))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE release ({', '.join(f'{name} {kind}' for name in names)})")
        connection.executemany(f"INSERT INTO release VALUES ({', '.join('?' * len(names))})", [[*age, *height] for age in ages])
        faults = verdict.hidden_label_faults(job, RowsInOneDatabase(connection, "release", ""))
    said = f"{told} label{'s' * (told > 1)} of 'age' tell{'s' * (told == 1)} values that the job hides"
    assert faults == ([said] if told else [])


def test_a_person_counts_once_at_the_value_of_a_drawn_record_and_every_value_is_one() -> None:
    rows = [(1, 30), (1, 10), (2, 10), (3, 10), (4, 20), (4, 20), (5, 20), (None, 50), (2, 30), (6, None)]
    job = Job.model_validate(job_of(columns=AGES | {"person": ["who"]}, privacy={"k": 2}))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE source (who BIGINT, age INTEGER)")
        connection.executemany("INSERT INTO source VALUES (?, ?)", rows)
        original = Original("source", pa.schema([("who", pa.int64()), ("age", pa.int32())]))
        values, people = verdict._values(job, RowsInOneDatabase(connection, "", "source"), original, "age")
    held = counted_at(((str(person),), age) for person, age in rows if person is not None and age is not None)
    assert (values.to_pylist(), people.tolist()) == ([10, 20, 30, 50], [held[age] for age in (10, 20, 30, 50)])
    assert sum(held.values()) == 5


@pytest.mark.parametrize(
    ("levels", "labels", "top", "read"),
    [
        ((), ["A", "c"], None, True), ((), ["a", "*"], None, True),
        ((1,), ["A", "c"], None, False), ((1,), ["A", "C"], None, True), ((0,), ["a", "b", "c"], None, True),
        ((0,), ["A", "c"], None, False), ((0, 1), ["A", "c"], None, True), ((2,), ["*"], None, True), ((0, 2), ["*"], 2, True),
        ((3,), ["*"], None, False), ((-1,), ["A", "C"], None, False), ((1,), ["A", "C"], 3, False), ((1,), ["A", "C"], 1, False),
    ],
)  # fmt: skip
def test_labels_are_read_by_the_levels_that_are_said_and_by_any_where_none_is(
    levels: tuple[int, ...], labels: list[str], top: int | None, read: bool
) -> None:
    job = Job.model_validate(job_of(columns=TREE, privacy={"k": 2}))
    sides: Any = SimpleNamespace(rows=SimpleNamespace(release="release"), unmasked="release")
    claim = ClaimedLevels(levels={"q": levels}, tops={} if top is None else {"q": top}, starred=False)
    found = labels_of_levels(job, sides, job.columns.quasi_identifiers[0], pa.array(["a", "b", "c"]), [pa.array(labels)], claim)
    assert (found is not None) is read
    if found is not None:
        values = {"A": [0, 1], "C": [2], "*": [0, 1, 2], "a": [0], "b": [1], "c": [2]}
        assert [np.flatnonzero(np.isin(found[0], found[1].covered(place))).tolist() for place in range(len(labels))] == list(
            map(values.__getitem__, labels)
        )


@pytest.mark.parametrize(
    ("hierarchy", "kind", "method", "label"),
    [
        ({"widths": [2, 4]}, pa.int64(), "skald", "[4 - 6]"), ({"widths": [2, 4]}, pa.float64(), "skald", "[4 - 6)"),
        ({"widths": [2, 4], "encode": True}, pa.float64(), "skald", "[4 - 6]"), ({"widths": [2, 4]}, pa.float64(), "mondrian", "[4 - 6]"),
        ({"date": ["year"]}, pa.float64(), "skald", "[4 - 6]"), ({"date": ["year"]}, pa.float64(), "mondrian", "[4 - 6]"),
    ],
)  # fmt: skip
def test_the_high_bound_of_a_label_belongs_to_it_but_for_bins_of_fractions(
    hierarchy: dict[str, Any], kind: pa.DataType, method: str, label: str
) -> None:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": hierarchy}], "sensitive": []}
    given = {"method": {"name": method}} | ({} if method == "skald" else {"suppression": None})
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2}, **given))
    qid, open_label = job.columns.quasi_identifiers[0], None if method == "skald" else "*"
    bounds = [pa.array([4, None]), pa.array([6, None])]
    assert label_texts(job, qid, kind, bounds) == [label, open_label]
    assert label_texts(job, qid, kind, [pa.array(["a", None])]) == ["a", None]
