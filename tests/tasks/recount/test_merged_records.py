"""Equal records are merged before they are counted, where many are equal, and counted as if each was there."""

from __future__ import annotations

import duckdb
import pytest

from core.recount.together import RecordRelation
from tasks.recount.recount import count_classes
from tasks.recount.rows import COPIES, RowsInOneDatabase


@pytest.mark.parametrize(("equal", "merged"), [(40, True), (COPIES, True), (COPIES - 1, False), (1, False)])
@pytest.mark.parametrize("name", ["q", "Copies"])
def test_merged_records_are_counted_as_all_of_them(name: str, equal: int, merged: bool) -> None:
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE release AS SELECT n % 3 AS "{name}" FROM range(3 * {equal}) AS r(n)')
        rows = RowsInOneDatabase(connection, "release")
        rows.merge_equal_records(["release"])
        alike = rows.countable_records("release")
        assert bool(alike.copies) is merged
        found = connection.execute(f'SELECT "{name}", {alike.count_expression} FROM {alike.relation} GROUP BY 1 ORDER BY 1').fetchall()
    assert found == [(number, equal) for number in range(3)]


def test_classes_of_one_value_are_told_of_each_sensitive_column() -> None:
    """The first class has one value of s, both have one of t, and the other has one of u or none."""
    rows = "(1, 'a', 'x', 'v'), (1, 'a', 'x', 'w'), (1, NULL, 'x', 'v'), (2, 'a', 'y', 'w'), (2, 'b', 'y', NULL)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE release AS FROM (VALUES {rows}) AS r(q, s, t, u)")
        found = count_classes(connection, RecordRelation("release"), ["q"], 3, ["s", "t", "u"])
    assert (found.records, found.classes, found.failing, found.exposed) == (5, 2, 1, 2)
    assert found.one_value == {"s": (1, 3), "t": (2, 5), "u": (1, 2)}
