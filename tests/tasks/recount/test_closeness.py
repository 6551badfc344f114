"""The distance of each class from the whole is the earth mover's, nulls being a value of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.groups import value_groups
from core.recount.spreads import hierarchical_sql, ordered_sql
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import Job
from schemas.registry.sensitive import HierarchicalSpec, OrderedSpec
from tasks.recount.original import Original
from tasks.recount.spreads import count_spreads, make_source_distribution
from tests.jobs import job_of

TREE = {"lungs": {"short": ["flu", "cold"], "long": ["asthma"]}, "other": {"bones": ["gout"]}}
PARENTS = {"flu": "short", "cold": "short", "asthma": "long", "gout": "bones", None: None}
GRAND = {"short": "lungs", "long": "lungs", "bones": "other", None: None}
VALUES = st.sampled_from(["flu", "cold", "asthma", "gout", None])
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), VALUES), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        yield database


def net(extra: dict[Any, float], parents: dict[Any, Any]) -> tuple[float, dict[Any, float]]:
    """What is moved between the children of each parent, and what is left over for each."""
    moved, left = 0.0, dict[Any, float]()
    for parent in {parents[child] for child in extra}:
        mine = [over for child, over in extra.items() if parents[child] == parent]
        moved += min(sum(over for over in mine if over > 0), -sum(over for over in mine if over < 0))
        left[parent] = sum(mine)
    return moved, left


def distance(mine: Counter[Any], whole: Counter[Any]) -> float:
    """The hierarchical distance by its definition (Li et al. 2007): what passes a group costs the group's height."""
    extra = {value: mine[value] / mine.total() - whole[value] / whole.total() for value in whole}
    first, groups = net(extra, PARENTS)
    second, roots = net(groups, GRAND)
    third, _ = net(roots, dict.fromkeys(roots, "all"))
    return first / 3 + second * 2 / 3 + third


def measured(
    connection: duckdb.DuckDBPyConnection, records: list[tuple[str, Any]], source: list[Any], spec: HierarchicalSpec
) -> tuple[int, int, float]:
    job = Job.model_validate(job_of())
    connection.register("rows", pa.table({"q": [q for q, _ in records], "s": pa.array([s for _, s in records], pa.string())}))
    connection.register("source", pa.table({"s": pa.array(source, pa.string())}))
    levels = make_source_distribution(
        job,
        connection,
        "s",
        spec.hierarchy,
        Original("source", pa.schema([("s", pa.string())])),
        f"({value_groups('source', 's').sql})",
    )
    [found] = connection.execute(hierarchical_sql("rows", ['"q"'], '"s"', spec, levels)).fetchall()
    connection.unregister("rows")
    connection.unregister("source")
    return found


@given(RECORDS, st.lists(VALUES, max_size=8))
@example([("a", None), ("b", "flu")], [None, None, "gout"])
def test_hierarchical_distance(connection: duckdb.DuckDBPyConnection, records: list[tuple[str, Any]], more: list[Any]) -> None:
    spec = HierarchicalSpec.model_validate({"t": 0.3, "distance": "hierarchical", "hierarchy": {"tree": TREE}})
    source = [value for _, value in records] + more
    classes = {q: Counter(value for other, value in records if other == q) for q, _ in records}
    expected = [distance(mine, Counter(source)) for mine in classes.values()]
    failing, counted, worst = measured(connection, records, source, spec)
    assert (failing, counted) == (sum(one > 0.3 + 1e-9 for one in expected), len(classes))
    assert worst == pytest.approx(max(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("source", "mine", "expected"),
    [
        (["flu", None], ["flu"], 0.5),
        (["flu", None], [None], 0.5),
        (["flu", "cold"], ["flu"], 1 / 6),
        (["flu", "asthma"], ["flu"], 1 / 3),
        (["flu", "gout"], ["flu"], 0.5),
        (["flu", "flu", "flu", None], ["flu", None], 0.25),
    ],
)
def test_what_a_value_costs_by_its_group(
    connection: duckdb.DuckDBPyConnection, source: list[Any], mine: list[Any], expected: float
) -> None:
    spec = HierarchicalSpec.model_validate({"t": 1, "distance": "hierarchical", "hierarchy": {"tree": TREE}})
    assert measured(connection, [("a", value) for value in mine], source, spec)[2] == pytest.approx(expected)


def test_a_value_that_the_hierarchy_lacks_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    spec = HierarchicalSpec.model_validate({"t": 1, "distance": "hierarchical", "hierarchy": {"tree": TREE}})
    with pytest.raises(HierarchyError, match="1 of 2 values is not in its hierarchy"):
        measured(connection, [("a", "flu")], ["flu", "plague"], spec)


def test_a_null_is_the_last_in_the_order_of_values(connection: duckdb.DuckDBPyConnection) -> None:
    spec = OrderedSpec.model_validate({"t": 1, "distance": "ordered"})
    connection.register("rows", pa.table({"q": ["a", "b"], "s": pa.array([1, None])}))
    connection.register("source", pa.table({"s": pa.array([1, 2, None, None])}))
    make_source_distribution(
        Job.model_validate(job_of()),
        connection,
        "s",
        None,
        Original("source", pa.schema([("s", pa.int64())])),
        f"({value_groups('source', 's').sql})",
    )
    worst = [connection.execute(ordered_sql(f"(FROM rows WHERE q = '{q}')", ['"q"'], '"s"', spec)).fetchall()[0][2] for q in ("a", "b")]
    # Of 1: three quarters pass the first step, a half the second. Of null: a quarter and a half.
    assert worst == [pytest.approx(5 / 8), pytest.approx(3 / 8)]
    connection.unregister("rows")
    connection.unregister("source")


@pytest.mark.parametrize(("zone", "distance"), [("UTC", 3 / 8), ("America/New_York", 1 / 2)])
def test_moments_are_as_far_apart_as_the_calendar_of_their_zone_says(
    connection: duckdb.DuckDBPyConnection, zone: str, distance: float
) -> None:
    """The second of four moments is of the old year in New York; within a year a step costs a half, and beyond it one."""
    moments = [datetime(2019, 6, 1), datetime(2020, 1, 1, 2), datetime(2020, 6, 1), datetime(2020, 7, 1)]
    spec = {"s": {"t": 1, "distance": "hierarchical", "hierarchy": {"date": ["year"]}}}
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2, "t": spec}))
    kind = pa.timestamp("us", zone)
    connection.register("rows", pa.table({"q": ["a", "a", "b", "b"], "s": pa.array(moments, pa.timestamp("us", "UTC")).cast(kind)}))
    original = Original("rows", pa.schema([("q", pa.string()), ("s", kind)]))
    whole = f"({value_groups('rows', 's').sql})"
    (found,), unexpected = count_spreads(job, connection, "rows", ['"q"'], original, lambda _column: whole, by_people=False)
    connection.unregister("rows")
    assert (found.failing, found.worst, unexpected) == (0, pytest.approx(distance), {})
