"""Profiles of many columns within the memory of a draft, whichever columns are counted together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.planning import profiles
from tasks.planning.open_sources import SourceOptions, open_for_draft, profile_source
from tasks.planning.profiles import FIRST, planning_connection, profile_columns, strictest_kinds
from tests.jobs import write_csv


def test_memory_does_not_grow_with_the_columns() -> None:
    columns = ", ".join(f"(i * {n + 7} % 100003)::DOUBLE AS c{n}" for n in range(100))
    with planning_connection() as connection:
        # All columns at once need more than 120 MB, twenty at a time less than 40.
        connection.execute("SET threads = 2; SET memory_limit = '70MB'")
        connection.execute(f"CREATE VIEW source AS SELECT {columns} FROM range(50000) AS t(i)")
        found, records = profile_columns(connection, all_are_texts=False)
    assert [one.name for one in found] == [f"c{n}" for n in range(100)] and records == 50_000


def test_figures_do_not_depend_on_which_columns_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with planning_connection() as connection:
        connection.execute(
            "CREATE TABLE source AS SELECT i, i / 7 AS share, 'p' || i AS code, DATE '2000-01-01' + i::INT AS day FROM range(500) AS t(i)"
        )
        together = profile_columns(connection, all_are_texts=False)
        monkeypatch.setattr(profiles, "AT_A_TIME", 3)
        monkeypatch.setattr(profiles, "MOST_AGGREGATES", 2)
        assert profile_columns(connection, all_are_texts=False) == together


def test_a_reading_is_decided_by_all_records_and_not_by_the_first() -> None:
    rows = 2 * FIRST
    late = {
        "whole": "i",
        "later": f"CASE WHEN i < {rows - 1} THEN '1' ELSE '1.5' END",
        "text": f"CASE WHEN i < {rows - 1} THEN '1' ELSE 'a' END",
    }
    null = {"late": f"CASE WHEN i > {FIRST} THEN '2000-01-01' END", "empty": "NULL"}
    with planning_connection() as connection:
        columns = ", ".join(f"({value})::VARCHAR AS {quoted}" for quoted, value in {**late, **null}.items())
        connection.execute(f"CREATE TABLE source AS SELECT {columns} FROM range({rows}) AS t(i)")
        kinds = strictest_kinds(connection, [*late, *null])
    assert kinds == {"whole": "integer", "later": "double", "text": "text", "late": "date", "empty": "text"}


@pytest.mark.parametrize(("most", "cells", "looked"), [(10, 20, 10), (10, 14, 7), (40, 14, 40), (41, 14, 40)])
def test_records_beyond_the_first_are_left_out_and_all_others_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, cells: int, looked: int
) -> None:
    pq.write_table(pa.table({"age": range(40), "weight": range(40)}), tmp_path / "in.parquet")
    monkeypatch.setattr(profiles, "MOST_RECORDS", most)
    monkeypatch.setattr(profiles, "MOST_CELLS", cells)
    with open_for_draft(SourceOptions((str(tmp_path / "in.parquet"),)), tmp_path / "job.yaml") as front:
        assert (profile_source(front).records, front.has_more) == (looked, most < 40)
        [(sql,)] = front.connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'source'").fetchall()
    assert ("LIMIT" in sql) == (most < 40)
    write_csv(tmp_path / "in.csv", pa.table({"age": range(40), "weight": range(40)}))
    with open_for_draft(SourceOptions((str(tmp_path / "in.csv"),)), tmp_path / "job.yaml") as front:
        assert (profile_source(front).records, front.has_more) == (looked, most < 40)
        assert front.connection.execute("SELECT DISTINCT age FROM source ORDER BY age::INT").fetchall() == [
            (str(i),) for i in range(looked)
        ]
        assert front.connection.execute("SELECT count(*) FROM everything").fetchall() == [(40,)]
