"""Equal records are merged before they are counted, where many are equal, and counted as if each was there."""

from __future__ import annotations

import duckdb
import pytest

from tasks.recount.rows import COPIES, RowsHere


@pytest.mark.parametrize(("equal", "merged"), [(40, True), (COPIES, True), (COPIES - 1, False), (1, False)])
@pytest.mark.parametrize("name", ["q", "Copies"])
def test_merged_records_are_counted_as_all_of_them(name: str, equal: int, merged: bool) -> None:
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE release AS SELECT n % 3 AS "{name}" FROM range(3 * {equal}) AS r(n)')
        rows = RowsHere(connection, "release")
        rows.merge_equal_records(["release"])
        alike = rows.countable_records("release")
        assert bool(alike.copies) is merged
        found = connection.execute(f'SELECT "{name}", {alike.counted} FROM {alike.relation} GROUP BY 1 ORDER BY 1').fetchall()
    assert found == [(number, equal) for number in range(3)]
