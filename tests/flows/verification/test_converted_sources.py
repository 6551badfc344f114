"""Releases of CSV and Arrow sources are held against them all the same; without its source no release is accused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
import yaml

from flows.attacking import attacked_release
from flows.tables import tables
from flows.verification import verified_release, verified_tables
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tests.conftest import Anonymise
from tests.flows.relational.hospital import JOB, hospital_tables
from tests.jobs import two_column_job, write_csv

# The four of "c" are suppressed. From what is left, 33 of 40 "flu", the ten of "b" are farther than from the source, 33 of 44.
TABLE = pa.table({
    "q": ["a"] * 30 + ["b"] * 10 + ["c"] * 4,
    "s": ["flu"] * 27 + ["gout"] * 3 + ["flu"] * 6 + ["gout"] * 4 + ["gout"] * 4,
})  # fmt: skip
PRIVACY = {"k": 5, "t": {"s": {"t": 0.2, "distance": "equal"}}}
UNCOUNTED = ("t-closeness of 's' was not counted: it is measured from the source.",)


def write_arrow(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(exist_ok=True)
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


@pytest.mark.ci
@pytest.mark.parametrize(("name", "write"), [("people.csv", write_csv), ("people.arrow", write_arrow)])
def test_a_release_is_held_against_its_source_and_without_it_t_is_not_counted(
    name: str, write: Any, anonymise: Anonymise, tmp_path: Path
) -> None:
    source = tmp_path / "people" / name
    job = two_column_job(tmp_path, TABLE, {"prefix": [1]}, privacy=PRIVACY, suppression={"limit": 0.1}, source={"path": f"people/{name}"})
    write(source, TABLE)
    made = anonymise(job)
    assert made.manifest.suppressed == 4
    found = verified_release(load_job(job), str(made.folder), None)
    assert (found.recount.source, found.recount.unproved, found.unverified) == (44, (), ())
    assert found.recount.measured["t"]["s"] == pytest.approx(0.15)
    assert attacked_release(load_job(job), str(made.folder)).basis.unplayed == ()
    assert not list((tmp_path / ".skald").glob("*/source-*"))

    write(source, TABLE.slice(1))
    changed = verified_release(load_job(job), str(made.folder), None)
    assert "the source is not what it was" in changed.recount.unproved[0]
    assert changed.unverified == UNCOUNTED
    source.write_bytes(b"\xff\xfe")
    broken = verified_release(load_job(job), str(made.folder), None)
    source.unlink()
    gone = verified_release(load_job(job), str(made.folder), None)
    for one in (broken, gone):
        assert (one.recount.source, one.unverified) == (None, UNCOUNTED)
        assert "the source is not at hand as files of this machine" in one.recount.unproved[0]


@pytest.mark.ci
def test_several_tables_of_csv_files_are_held_against_their_sources(tmp_path: Path) -> None:
    said: dict[str, Any] = JOB | {"tables": {name: {**table, "source": {"path": f"{name}.csv"}} for name, table in JOB["tables"].items()}}
    said["tables"]["person"]["source"]["types"] = {"age": "integer"}
    said["privacy"] = {"k": 4, "t": {"person": {"income": {"t": 0.9, "distance": "equal"}}}}
    job = tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump(said))
    for name, table in hospital_tables(120, 3).items():
        write_csv(tmp_path / f"{name}.csv", table)
    folder = Path(tables(job, ()).folder)
    found = verified_tables(load_tables_job(job), folder)
    assert (found.unverified, found.notes) == ((), ())
    (tmp_path / "person.csv").unlink()
    found = verified_tables(load_tables_job(job), folder)
    assert found.unverified == ("t-closeness of 'income' of 'person' was not counted: it is measured from the source.",)
    assert found.notes[0].startswith("The sources of 1 table are not at hand")
