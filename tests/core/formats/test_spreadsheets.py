"""No text of a release begins a formula, and what was set apart is read back as it was."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formats.spreadsheets import read_back, read_back_sql, set_apart, set_apart_sql

STARTS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "＝1", "＋1", "－1", "＠1", "'", "'=1", "''"]
PLAIN = ["", "a", "1", "a=1", "[32 - 35]", "*", "007", " a", "Zoë", '"', "2020-01-01"]
TEXTS = st.text(st.sampled_from(list("=+-@'\t\r\n \u00a0＝a1\"")), max_size=5) | st.sampled_from(STARTS + PLAIN) | st.text(max_size=8)


@pytest.mark.parametrize("text", STARTS)
def test_what_a_spreadsheet_could_run_begins_with_an_apostrophe(text: str) -> None:
    assert set_apart(text) == "'" + text


@pytest.mark.parametrize("text", PLAIN)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert set_apart(text) == text


@given(TEXTS)
def test_what_was_set_apart_is_read_back(text: str) -> None:
    assert read_back(set_apart(text)) == text
    assert set_apart(text).lstrip()[:1] not in {"=", "+", "-", "@"}


@given(st.lists(TEXTS.filter(lambda text: "\0" not in text), min_size=1, max_size=30))
def test_duckdb_follows_the_same_rule(texts: list[str]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest($texts::VARCHAR[]) AS x", {"texts": texts})
        found = connection.execute(f"SELECT {set_apart_sql('x')} FROM t").fetchall()
        assert [text for (text,) in found] == [set_apart(text) for text in texts]
        back = connection.execute(f"SELECT {read_back_sql('y')} FROM (SELECT {set_apart_sql('x')} AS y FROM t)").fetchall()
        assert [text for (text,) in back] == texts
