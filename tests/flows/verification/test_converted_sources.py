"""Releases of CSV and Arrow sources are held against them all the same; without its source no release is accused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
import yaml

from flows.attacking import attacked_release
from flows.tables import tables
from flows.verification import verified_release, verified_tables
from schemas.errors.base import StorageError
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tasks.recount import original as of_source
from tasks.recount.original import original_of
from tasks.store.store import Store
from tests.conftest import Anonymise
from tests.flows.relational.hospital import JOB, hospital_tables
from tests.jobs import people_job, two_column_job, write_csv

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
    name: str, write: Any, anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "people" / name
    job = two_column_job(tmp_path, TABLE, {"prefix": [1]}, privacy=PRIVACY, suppression={"limit": 0.1}, source={"path": f"people/{name}"})
    write(source, TABLE)
    made = anonymise(job)
    assert made.manifest.suppressed == 4
    found = verified_release(load_job(job), str(made.folder), None)
    assert (found.recount.source, found.recount.unproved, found.unverified) == (44, (), ())
    assert found.recount.measured["t"]["s"] == pytest.approx(0.15)
    opened = list[object]()
    monkeypatch.setattr(of_source, "original_of", lambda *given: opened.append(given) or original_of(*given))
    assert attacked_release(load_job(job), str(made.folder)).basis.unplayed == ()
    assert len(opened) == 1, "to verify and to attack takes one reading of the source"
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
        assert "the source is not at hand as files of this machine that can be read" in one.recount.unproved[0]


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


@pytest.mark.ci
def test_many_at_once_verify_a_release_of_a_csv_source(anonymise: Anonymise, tmp_path: Path) -> None:
    """Each converts the source in a folder of its own, and takes away no other's."""
    job = two_column_job(tmp_path, TABLE, {"prefix": [1]}, privacy={"k": 5}, suppression={"limit": 0.1}, source={"path": "people/a.csv"})
    write_csv(tmp_path / "people" / "a.csv", TABLE)
    made = anonymise(job)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: verified_release(load_job(job), str(made.folder), None), range(8)))
    assert {(one.recount.source, one.recount.unproved) for one in found} == {(44, ())}
    assert not list((tmp_path / ".skald").glob("*/source-*"))


@pytest.mark.ci
def test_a_source_that_lost_its_identifiers_since_accuses_no_release(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_TESTS", sha256(b"of tests").hexdigest())
    treated = [{"name": "id", "treatment": {"hash": {"key": {"env": "KEY_OF_TESTS"}}}}]
    columns = {"identifiers": treated, "quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}]}
    job = people_job(tmp_path, TABLE, columns=columns | {"sensitive": ["s"]}, privacy={"k": 4}, source={"path": "people/a.csv"})
    write_csv(tmp_path / "people" / "a.csv", TABLE.append_column("id", pa.array([f"p{row}" for row in range(44)])))
    made = anonymise(job)
    assert verified_release(load_job(job), str(made.folder), None).recount.unproved == ()
    write_csv(tmp_path / "people" / "a.csv", TABLE)
    assert "the source is not what it was" in verified_release(load_job(job), str(made.folder), None).recount.unproved[0]


@pytest.mark.ci
def test_a_source_that_cannot_be_converted_for_want_of_room_is_not_taken_for_none(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = two_column_job(tmp_path, TABLE, {"prefix": [1]}, privacy={"k": 5}, suppression={"limit": 0.1}, source={"path": "people/a.csv"})
    write_csv(tmp_path / "people" / "a.csv", TABLE)
    made = anonymise(job)

    def full(*_: Any) -> None:
        raise StorageError.not_writable("work", "No space left on device")

    monkeypatch.setattr(Store, "make", full)
    with pytest.raises(StorageError, match="No space left"):
        verified_release(load_job(job), str(made.folder), None)
