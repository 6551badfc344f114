"""Which classes are looked at is known to nobody beforehand, and the same for all parts of a recount."""

from __future__ import annotations

import duckdb

from core.recount.coverage import MOST, least_digests, sample_groups

CLASSES = "(SELECT n // 3 AS a, n % 3 AS b FROM range(150) AS t(n))"
COLUMNS = [["a"], ["b"]]


def sampled(connection: duckdb.DuckDBPyConnection, drawn: int) -> frozenset[tuple[int, int]]:
    [(most,)] = connection.execute(f"SELECT max(digest) FROM ({least_digests(CLASSES, COLUMNS, drawn).sql})").fetchall()
    return frozenset((a, b) for a, b, *_ in connection.execute(sample_groups(CLASSES, COLUMNS, 4, [], most, drawn).sql).fetchall())


def test_every_class_may_be_among_those_that_are_looked_at() -> None:
    with duckdb.connect() as connection:
        found = [sampled(connection, drawn) for drawn in (*range(30), 2**64 - 1)]
        assert {len(one) for one in found} == {MOST}
        assert len(set(found)) == len(found)
        assert len(frozenset.union(*found)) == 150
        assert sampled(connection, 7) == found[7]
