"""Classes of one sensitive value are counted for each sensitive column, nulls left out."""

from __future__ import annotations

import duckdb

from tasks.recount.recount import count_classes


def test_classes_of_one_value_are_told_of_each_sensitive_column() -> None:
    """The first class has one value of s, both have one of t, and the other has one of u or none."""
    rows = "(1, 'a', 'x', 'v'), (1, 'a', 'x', 'w'), (1, NULL, 'x', 'v'), (2, 'a', 'y', 'w'), (2, 'b', 'y', NULL)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE release AS FROM (VALUES {rows}) AS r(q, s, t, u)")
        found = count_classes(connection, "release", ["q"], 3, ["s", "t", "u"])
    assert (found.records, found.classes, found.failing, found.exposed) == (5, 2, 1, 2)
    assert found.one_value == {"s": (1, 3), "t": (2, 5), "u": (1, 2)}
