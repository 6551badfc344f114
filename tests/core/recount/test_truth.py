"""Records are told apart by more than the bucket of their digest."""

from __future__ import annotations

import duckdb

from core.recount.groups import RecordRelation
from core.recount.truth import BUCKETS, DigestPart, excess_records_sql, released_digests, source_digests


def compared(connection: duckdb.DuckDBPyConnection, release: list[int], source: list[int]) -> tuple[int, int]:
    here, there = (f"(SELECT unnest({numbers}) AS number)" for numbers in (release, source))
    parts = [DigestPart("r.number", "s.number")]
    digests = (released_digests(RecordRelation(here), parts), source_digests(there, parts))
    [found] = connection.execute(excess_records_sql(*(f"({one.sql})" for one in digests))).fetchall()
    return int(found[0]), int(found[1])


def test_other_records_of_the_same_bucket_are_noticed_where_all_of_it_are_published() -> None:
    with duckdb.connect() as connection:
        [(first, second)] = connection.execute(
            f"SELECT min(n), max(n) FROM range({4 * BUCKETS}) AS t(n) GROUP BY hash(n) & {BUCKETS - 1} HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
        assert compared(connection, [first, second], [first, second]) == (0, 0)
        assert compared(connection, [first], [first, second]) == (0, 0)
        assert compared(connection, [first], [second]) == (0, 1)
        assert compared(connection, [first, first], [first, second]) == (0, 1)
        assert compared(connection, [first, first], [first]) == (1, 0)
