"""Statements on what columns hold find what is counted here row by row, with nulls among it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from core.recount.linked import shared_sql
from core.recount.people import combinations_sql
from core.recount.spreads import holder_classes_sql, one_value_sql
from core.recount.together import together_sql
from core.recount.truth import DigestPart, join_source_values_sql
from tests.core.recount.test_statements import answer, table


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def test_pseudonyms_and_source_values_are_counted_once_however_often_they_occur(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "release", "p VARCHAR", [("1",), ("1",), ("2",), ("x",), (None,), ("x",)])
    table(connection, "source", "p BIGINT", [(1,), (1,), (2,), (3,), (None,)])
    assert answer(connection, shared_sql("release", "source", "p")) == (3, 2, 3)


def test_a_class_is_masked_only_where_each_label_is_a_star_and_none_is_missing(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [("*", "*"), ("*", "*"), ("*", None), (None, None), ("a", "*"), ("a", "*")]
    table(connection, "release", "q VARCHAR, r VARCHAR", rows)
    connection.execute(combinations_sql("release", ["q", "r"], "combinations"))
    found = connection.execute("SELECT label_0, label_1, records, masked FROM combinations").fetchall()
    assert set(found) == {("*", "*", 2, True), ("*", None, 1, False), (None, None, 1, False), ("a", "*", 2, False)}


def test_a_null_is_held_by_as_many_of_the_source_as_have_none(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "pairs", "combination BIGINT, person BIGINT, v VARCHAR", [(1, 1, "x"), (1, 2, None), (2, 2, None)])
    table(connection, "source", "value VARCHAR, records BIGINT, persons BIGINT", [("x", 4, 4), (None, 2, 4)])
    asked = "value IS NULL AND everywhere = 2"
    assert answer(connection, holder_classes_sql("pairs", "v", asked, "source", nulls=True)) == (2,)


def test_a_class_has_one_value_where_all_hold_it_though_some_hold_another_too(connection: duckdb.DuckDBPyConnection) -> None:
    held = [(1, 1, "x", 1), (1, 2, "x", 1), (1, 1, "y", 1), (2, 3, "x", 1), (2, 4, "y", 1)]
    table(connection, "held", "combination BIGINT, person BIGINT, v VARCHAR, records BIGINT", held)
    table(connection, "combinations", "combination BIGINT, records BIGINT", [(1, 3), (2, 2)])
    assert answer(connection, one_value_sql("combinations", "held", "v")) == (1, 3)


def test_records_of_a_combination_that_k_share_are_not_rare(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [(1, 1, 10, 10, 2), (1, 1, 11, 11, 1), (2, 2, 12, 12, 2), (3, 3, 13, 13, 1), (4, 4, 14, 14, 5)]
    table(connection, "counted", "alone BIGINT, further BIGINT, labelled BIGINT, further_labelled BIGINT, records BIGINT", rows)
    # Of three, of two, of one and of five records; with labels the three are two and one.
    assert answer(connection, together_sql("counted", 3))[:3] == (1, 2 + 1, 2 + 1 + 2 + 1)
    assert answer(connection, together_sql("counted", 2))[:3] == (1, 1, 1 + 1)


def test_records_of_the_source_without_a_value_get_the_digest_of_their_label(connection: duckdb.DuckDBPyConnection) -> None:
    table(connection, "source", "q VARCHAR, r BIGINT", [(None, 1), ("a", 2), ("b", 3)])
    table(connection, "of_q", "value VARCHAR, digest UBIGINT", [(None, 3), ("a", 4)])
    parts = [DigestPart("r.q", "of_q.digest", "of_q", "q")]
    connection.execute(join_source_values_sql("source", parts, ["s.r + 10"], ["r"], "joined"))
    assert set(connection.execute("SELECT digest_0, later_0 FROM joined").fetchall()) == {(11, 1), (12, 2)}, "no label covers the last one"
