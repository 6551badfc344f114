"""What the recount of several tables refuses: files that are altered one row at a time, with nothing else changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.tables import tables
from schemas.errors.base import VerificationError
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.recount.original import original_of
from tasks.recount.tables import WrittenTables, recount_tables
from tests.flows.relational.hospital import QIDS, hospital_job, hospital_tables

pytestmark = pytest.mark.ci

Rows = dict[str, list[dict[str, object]]]


def with_many_visits(rows: Rows) -> None:
    """Nobody else has so many."""
    rows["visit"] += [rows["visit"][0] | {"visit_id": f"further {number}"} for number in range(9)]


def with_a_key_twice(rows: Rows) -> None:
    rows["visit"][1]["visit_id"] = rows["visit"][0]["visit_id"]


def with_a_key_left_out(rows: Rows) -> None:
    rows["person"][0]["person_id"] = None


def with_a_reference_to_nobody(rows: Rows) -> None:
    rows["visit"][0]["person_id"] = "nobody"


def with_a_row_of_two_persons(rows: Rows) -> None:
    row = next(row for row in rows["condition"] if row["visit_id"])
    row["person_id"] = next(one["person_id"] for one in rows["person"] if one["person_id"] != row["person_id"])


def with_a_reference_left_out(rows: Rows) -> None:
    """The source may leave it out beside a nearer one. A release that did would tell this row apart."""
    next(row for row in rows["condition"] if row["visit_id"])["person_id"] = None


def with_another_income(rows: Rows) -> None:
    rows["person"][0]["income"] = 12_345


def with_a_key_of_the_source(rows: Rows) -> None:
    old = rows["person"][0]["person_id"]
    for table in rows.values():
        for row in table:
            if row.get("person_id") == old:
                row["person_id"] = "7"


def with_a_label_of_no_level(rows: Rows) -> None:
    for row in rows["person"]:
        row["age"] = "somebody"


ALTERED: dict[Callable[[Rows], None], str] = {
    with_many_visits: "1 person has a history that fewer than 4 share",
    with_a_key_twice: "1 key of 'visit' names several rows",
    with_a_key_left_out: "1 row of 'person' has no whole key",
    with_a_reference_to_nobody: "1 row of 'visit' refers to rows of 'person' that are not there",
    with_a_row_of_two_persons: "1 row of 'condition' is of several persons",
    with_a_reference_left_out: "1 row of 'condition' lacks a reference beside a nearer one",
    with_another_income: "'person': ",
    with_a_key_of_the_source: "1 key of 'person' stands in the source",
    with_a_label_of_no_level: "'person': ",
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[TablesJob, Path, dict[str, dict[str, int]]]:
    path = hospital_job(tmp_path_factory.mktemp("hospital"), hospital_tables(120, 5))
    made = tables(path, ())
    return load_tables_job(path), made.folder, {name: table.levels for name, table in made.manifest.tables.items()}


@pytest.mark.parametrize("alter", [None, *ALTERED], ids=lambda alter: alter.__name__ if alter else "as it is")
def test_one_altered_row_is_refused(
    released: tuple[TablesJob, Path, dict[str, dict[str, int]]], tmp_path: Path, alter: Callable[[Rows], None] | None
) -> None:
    job, folder, levels = released
    read = {name: pq.read_table(folder / "data" / name) for name in QIDS}
    rows = {name: table.to_pylist() for name, table in read.items()}
    if alter:
        alter(rows)
    files = {}
    for name, table in rows.items():
        files[name] = [tmp_path / f"{name}.parquet"]
        retyped = {"age": pa.string()} if alter is with_a_label_of_no_level else {}
        schema = pa.schema([pa.field(one.name, retyped.get(one.name, one.type)) for one in read[name].schema])
        pq.write_table(pa.Table.from_pylist(table, schema), files[name][0])
    written = WrittenTables(job, files, {name: original_of(table_job(job, name)) for name in job.tables}, levels)
    if alter is None:
        assert recount_tables(written, tmp_path, "it").smallest >= job.privacy.k
        return
    with pytest.raises(VerificationError) as raised:
        recount_tables(written, tmp_path, "it")
    assert ALTERED[alter] in str(raised.value)
