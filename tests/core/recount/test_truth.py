"""Records are told apart by more than the bucket of their digest."""

from __future__ import annotations

import duckdb
import pytest

from core.recount.truth import BUCKETS, DigestPart, excess_records_sql, part_number_sql, released_digests, source_digests


def compared(connection: duckdb.DuckDBPyConnection, release: list[int], source: list[int]) -> tuple[int, int]:
    here, there = (f"(SELECT unnest({numbers}) AS number)" for numbers in (release, source))
    parts = [DigestPart("r.number", "s.number")]
    digests = (released_digests(here, parts), source_digests(there, parts))
    [found] = connection.execute(excess_records_sql(*(f"({one.sql})" for one in digests))).fetchall()
    return int(found[0]), int(found[1])


def test_other_records_of_the_same_bucket_are_noticed_where_all_of_it_are_published() -> None:
    with duckdb.connect() as connection:
        [(first, second)] = connection.execute(
            f"SELECT min(n), max(n) FROM range({4 * BUCKETS}) AS t(n) GROUP BY hash(hash(n)) & {BUCKETS - 1} HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
        assert compared(connection, [first, second], [first, second]) == (0, 0)
        assert compared(connection, [first], [first, second]) == (0, 0)
        assert compared(connection, [first], [second]) == (0, 1)
        assert compared(connection, [first, first], [first, second]) == (0, 1)
        assert compared(connection, [first, first], [first]) == (1, 0)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_records_are_in_as_many_parts_as_are_asked_for_by_what_their_columns_hold(parts: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE r AS SELECT n % 40 AS a, n % 3 AS b FROM range(120) AS t(n)")
        for columns in (["a"], ["a", "b"]):
            one = f"SELECT DISTINCT {part_number_sql(columns, parts)} AS part, {', '.join(columns)} FROM r"
            assert connection.execute(f"SELECT count(DISTINCT part), min(part), max(part) FROM ({one})").fetchall() == [
                (parts, 0, parts - 1)
            ]
            assert connection.execute(f"SELECT count(*) FROM ({one})").fetchall() == [(40 if columns == ["a"] else 120,)]
        assert part_number_sql([], parts) == "0"
