"""Objects of a store are read where they are, in ranges, by whoever works on a chunk; one that changes meanwhile ends the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flows.skald
from schemas.errors.base import SourceError
from schemas.job.job import load_job
from tasks.source import pinned as reading
from tasks.source.listing import matching_objects, parse_scan_address, scan_address
from tasks.source.pinned import open_as_listed
from tests.conftest import Anonymise
from tests.jobs import CSV_TYPES, digests, job_of, people, people_job, write_csv, write_job
from tests.servers import objects, s3_bucket

TABLE, OTHER = people(400), people(400, seed=3)
SETTINGS = ("privacy.k=4", "rows_per_file=150", "chunk_rows=130")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bucket on an S3 server, with the environment that leads there; yields what the server is asked."""
    log = tmp_path_factory.mktemp("s3") / "log"
    with s3_bucket("source", log):
        yield log


def put(name: str, path: Path) -> None:
    objects().pipe_file(f"source/{name}", path.read_bytes())


def parquet(folder: Path, table: Any = TABLE) -> Path:
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    return folder / "a.parquet"


def gets(log: Path, name: str) -> list[str]:
    """The conditions of all requests for the content of an object so far."""
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    return [condition for _, method, path, condition, _ in lines if (method, path) == ("GET", f"/source/{name}")]


@pytest.mark.ci
def test_every_read_of_an_object_is_of_the_one_that_was_listed(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SMALL", 0)
    put("pinned/a.parquet", parquet(tmp_path))
    [(address, stat)] = matching_objects("s3://source/pinned/*.parquet").items()
    assert parse_scan_address(scan_address(address, stat)) == (address, stat)
    with open_as_listed(address, stat) as file:
        assert file.read() == (tmp_path / "a.parquet").read_bytes()
    monkeypatch.setattr(reading, "BLOCK", 0)
    with open_as_listed(address, stat) as file, pq.ParquetFile(file) as opened:
        assert opened.read_row_group(1).equals(TABLE.slice(100, 100))
    assert all(gets(asked, "pinned/a.parquet"))
    with pytest.raises(SourceError, match="changed while it was being read"), open_as_listed(address, stat) as file:
        put("pinned/a.parquet", parquet(tmp_path, OTHER))
        pq.ParquetFile(file).read()
    with pytest.raises(SourceError, match="changed while it was being read"), open_as_listed(address, stat):
        pass


@pytest.mark.ci
def test_a_small_object_is_asked_for_once_by_a_run(anonymise: Anonymise, asked: Path, tmp_path: Path) -> None:
    """Every phase reads the source, and the recount has a statement for each column."""
    put("many/people.parquet", parquet(tmp_path))
    job = people_job(tmp_path, TABLE, source={"path": "s3://source/many/*.parquet"})
    anonymise(job)
    assert len(gets(asked, "many/people.parquet")) == 1


def test_many_objects_of_a_folder_are_listed_once_more(asked: Path) -> None:
    """One that is another by then is told, as one is that is gone."""
    for number in range(20):
        objects().pipe_file(f"source/listed/{number}", b"one")
    listed = matching_objects("s3://source/listed/*")
    before = len(asked.read_text().splitlines())
    reading.check_all_as_listed(listed)
    assert len(asked.read_text().splitlines()) - before <= 2
    objects().pipe_file("source/listed/7", b"two")
    with pytest.raises(SourceError, match="'s3://source/listed/7' changed while it was being read"):
        reading.check_all_as_listed(listed)
    objects().rm("source/listed/7")
    with pytest.raises(SourceError, match="'s3://source/listed/7' changed while it was being read"):
        reading.check_all_as_listed(listed)


@pytest.mark.parametrize("content", [b"", b"two", b"three"])
def test_a_small_object_that_is_another_by_now_is_not_read(asked: Path, content: bytes) -> None:
    objects().pipe_file("source/other/a", b"one")
    [(address, stat)] = matching_objects("s3://source/other/*").items()
    objects().pipe_file("source/other/a", content)
    with pytest.raises(SourceError, match="changed while it was being read"):
        reading.content_of(address, stat)


@pytest.mark.ci
def test_small_objects_are_held_up_to_a_bound(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "HELD", 250)
    for name in "abc":
        objects().pipe_file(f"source/held/{name}", name.encode() * 100)
    listed = matching_objects("s3://source/held/*")
    for name in "abcbca":
        address = f"s3://source/held/{name}"
        assert reading.content_of(address, listed[address]) == name.encode() * 100
    assert [len(gets(asked, f"held/{name}")) for name in "abc"] == [2, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("phase", ["count_pairs", "search_lattice", "verify_and_publish"])
def test_an_object_that_is_put_in_anothers_place_in_mid_run_ends_it(
    anonymise: Anonymise, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, phase: str
) -> None:
    name, write = f"{phase}/a.{kind}", parquet if kind == "parquet" else as_csv
    put(name, write(tmp_path))
    called = getattr(flows.skald, phase)

    def late(*arguments: Any, **named: Any) -> Any:
        put(name, write(tmp_path, OTHER))
        return called(*arguments, **named)

    types = {"types": CSV_TYPES} if kind == "csv" else {}
    job = people_job(tmp_path, source={"path": f"s3://source/{name}", **types})
    with monkeypatch.context() as patch:
        patch.setattr(flows.skald, phase, late)
        with pytest.raises(SourceError, match=f"'s3://source/{name}' changed while it was being read"):
            anonymise(job, *SETTINGS)
    assert not list((tmp_path / "releases").glob("people-*"))
    here = anonymise(people_job(tmp_path / "here", OTHER), *SETTINGS)
    assert digests(anonymise(job, *SETTINGS).folder) == digests(here.folder)


def as_csv(folder: Path, table: Any = TABLE) -> Path:
    write_csv(folder / "a.csv", table)
    return folder / "a.csv"


@pytest.mark.slow
def test_what_an_object_became_is_made_anew_where_it_is_lost(anonymise: Anonymise, asked: Path, tmp_path: Path) -> None:
    put("lost/a.csv", as_csv(tmp_path))
    job = write_job(tmp_path, job_of(source={"path": "s3://source/lost/*.csv", "types": CSV_TYPES}))
    made = anonymise(job, *SETTINGS)
    [converted] = (load_job(job).work_path / "artifacts" / "converted").glob("*.parquet")
    converted.write_bytes(converted.read_bytes()[:-1])
    again = anonymise(job, *SETTINGS, "privacy.k=5")
    assert again.new
    assert again.manifest.sources == made.manifest.sources
    assert not list((load_job(job).work_path / "spill").glob("**/*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_records_of_a_person_are_bounded_where_the_source_is_in_a_bucket(
    anonymise: Anonymise, asked: Path, tmp_path: Path, kind: str
) -> None:
    table = TABLE.set_column(0, "person", pa.array([row % 37 for row in range(len(TABLE))]))
    put(f"bounded/a.{kind}", (parquet if kind == "parquet" else as_csv)(tmp_path, table))
    columns = job_of()["columns"] | {"person": "person", "most_records": 4}
    types = {"types": CSV_TYPES} if kind == "csv" else {}
    made = anonymise(write_job(tmp_path, job_of(columns=columns, source={"path": f"s3://source/bounded/*.{kind}", **types})), *SETTINGS)
    assert made.manifest.records == 37 * 4
    assert made.manifest.persons is not None
    assert made.manifest.persons.withheld == len(TABLE) - 37 * 4
    if kind == "parquet":
        (tmp_path / "here").mkdir()
        here = anonymise(people_job(tmp_path / "here", table, columns=columns, row_group=100), *SETTINGS)
        assert here.manifest.records == made.manifest.records


@pytest.mark.parametrize("name", ["a::b", "a b", "a#b", "a%20b"])
def test_an_object_has_any_name(asked: Path, tmp_path: Path, name: str) -> None:
    put(f"names/{name}/a.parquet", parquet(tmp_path))
    for pattern in (f"s3://source/names/{name}/a.parquet", f"s3://source/names/{name}/*.parquet"):
        [(address, stat)] = matching_objects(pattern).items()
        with open_as_listed(address, stat) as file:
            assert file.read() == (tmp_path / "a.parquet").read_bytes()
