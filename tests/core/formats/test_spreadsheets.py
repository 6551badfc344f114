"""No text of a release begins a formula, whatever separates cells where it is opened, and what was set apart is read back as it was."""

from __future__ import annotations

import csv
import io

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formats.spreadsheets import CELL_SEPARATORS, csv_header, escape_csv_text, escaped_csv_sql, unescape_csv_text, unescaped_csv_sql

FORMULA = "=+-@＝＋－＠"
STARTS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\u2003=1", "＝1", "＋1", "－1", "＠1", "'", "'=1"]
PLAIN = ["", "a", "1", "a=1", "[32 - 35]", "*", "007", " a", "Zoë", '"', "2020-01-01", "a, b; c", "a,b=1", "a | b", "x\ny"]
WITHIN = {
    "x;=1": "x;'=1",
    "x,+1": "x,'+1",
    "x|-1": "x|'-1",
    "x\t@S": "x\t'@S",
    "x\n=1": "x\n'=1",
    "x; =1": "x;' =1",
    'x;"=1': "x;'\"=1",
    "x;'=1": "x;''=1",
    "x;\t=1": "x;\t'=1",
    ";=1,=2": ";'=1,'=2",
    "x;＝1": "x;'＝1",
    "=1;=2": "'=1;'=2",
}
TEXTS = st.text(st.sampled_from("=+-@'\t\r\n \u00a0\u2003＝a1\",;|"), max_size=8) | st.sampled_from(STARTS + PLAIN) | st.text(max_size=8)


@pytest.mark.parametrize("text", STARTS)
def test_what_a_spreadsheet_could_run_begins_with_an_apostrophe(text: str) -> None:
    assert escape_csv_text(text)[:2] == "'" + text[:1]


@pytest.mark.parametrize("text", WITHIN)
def test_what_a_spreadsheet_of_another_country_could_run_is_set_apart_within_the_text(text: str) -> None:
    assert escape_csv_text(text) == WITHIN[text]


@pytest.mark.parametrize("text", PLAIN)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert escape_csv_text(text) == text


@given(TEXTS)
def test_what_was_set_apart_is_read_back(text: str) -> None:
    assert unescape_csv_text(escape_csv_text(text)) == text
    assert escape_csv_text(text).lstrip()[:1] not in {"=", "+", "-", "@"}


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(CELL_SEPARATORS), st.sampled_from(CELL_SEPARATORS))
def test_no_cell_begins_a_formula_whatever_separates_cells_there(texts: list[str], written: str, read: str) -> None:
    """Quote are no help: in the middle of a cell one is a letter. Readers differ in what they make of it: both are tried."""
    line = csv_header(["n"], written) + "7" + "".join(written + '"' + escape_csv_text(text).replace('"', '""') + '"' for text in texts)
    cells = [cell for row in csv.reader(io.StringIO(line, newline=""), delimiter=read) for cell in row]
    torn = [cell for row in line.replace("\r", "\n").split("\n") for cell in row.split(read)]
    cells += [cell for cell in torn if not cell.startswith('"')] + [cell.lstrip('"') for cell in torn if read != written]
    assert not any(cell.strip("\ufeff").lstrip()[:1] in set(FORMULA) for cell in cells if cell)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from([*CELL_SEPARATORS, ":", "~"]))
def test_names_of_columns_are_read_back_and_stand_in_quotes_where_they_hold_any_mark(names: list[str], delimiter: str) -> None:
    line = csv_header(names, delimiter)
    [cells] = csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)
    assert [unescape_csv_text(cell) for cell in cells] == names
    bare = "".join(part for part in line.removesuffix("\n").split('"')[::2])
    assert bare.count(delimiter) == len(names) - 1
    assert not set(bare) & set(CELL_SEPARATORS) - {delimiter}


@given(st.lists(TEXTS.filter(lambda text: "\0" not in text), min_size=1, max_size=30))
def test_duckdb_follows_the_same_rule(texts: list[str]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest($texts::VARCHAR[]) AS x", {"texts": texts})
        found = connection.execute(f"SELECT {escaped_csv_sql('x')} FROM t").fetchall()
        assert [text for (text,) in found] == [escape_csv_text(text) for text in texts]
        back = connection.execute(f"SELECT {unescaped_csv_sql('y')} FROM (SELECT {escaped_csv_sql('x')} AS y FROM t)").fetchall()
        assert [text for (text,) in back] == texts
