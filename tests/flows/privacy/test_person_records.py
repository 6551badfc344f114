"""At most so many records of a person are published: which ones follows from no value, and verification finds the same ones."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.verification import verified_release
from schemas.errors.base import JobError, SkaldError, SourceError, VerificationError
from schemas.job.job import load_job
from schemas.release.manifest import Persons
from tasks.recount.original import original_of
from tests.conftest import Anonymise
from tests.jobs import digests, job_of, people, people_job, released

MOST, RECORDS = 3, 400
METHODS: dict[str, dict[str, Any]] = {
    "skald": {},
    "mondrian": {"name": "mondrian"},
    "kmember": {"name": "kmember"},
    "rayden": {"name": "rayden"},
}


def visits(seed: int = 0) -> pa.Table:
    """Visits of persons who have one to some forty, and some of nobody; the note tells records apart."""
    random = np.random.default_rng(seed)
    whose = random.geometric(0.02, RECORDS).tolist()
    whose = [None if row % 50 == 0 else 7 if row % 9 == 0 else person for row, person in enumerate(whose)]
    table = people(RECORDS, seed)
    table = table.set_column(table.column_names.index("note"), "note", pa.array([f"note {row}" for row in range(RECORDS)]))
    return table.set_column(table.column_names.index("person"), "person", pa.array(whose, pa.int64()))


TABLE = visits()
WHOSE = dict(zip(TABLE["note"].to_pylist(), TABLE["person"].to_pylist(), strict=True))


def job(folder: Path, table: pa.Table = TABLE, most: int | None = MOST, files: int = 2, **parts: Any) -> Path:
    columns = job_of()["columns"] | {"person": "person"} | ({"most_records": most} if most else {})
    return people_job(folder, table, files=files, **({"columns": columns, "privacy": {"k": 3}, "suppression": {"limit": 0.3}} | parts))


def kept(folder: Path, whose: Mapping[str, Any] = WHOSE) -> Counter[Any]:
    """How many records of each person are published."""
    return Counter(whose[note] for note in released(folder)["note"].to_list())


def persons_of(published: Any) -> Persons:
    assert published.manifest.persons is not None
    found: Persons = published.manifest.persons
    return found


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", list(METHODS))
def test_nobody_has_more_records_and_nothing_else_is_withheld(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    done = anonymise(job(tmp_path, method=METHODS[method] or {"name": "skald"}))
    found, given = kept(done.folder), Counter(WHOSE.values())
    assert max(count for person, count in found.items() if person is not None) <= MOST
    beyond = {person: count - MOST for person, count in given.items() if person is not None and count > MOST}
    assert persons_of(done).withheld == sum(beyond.values())
    assert done.manifest.records == RECORDS - sum(beyond.values())
    assert done.manifest.released == done.manifest.records - done.manifest.suppressed + done.manifest.masked
    if not done.manifest.suppressed:
        assert found == Counter({person: count - beyond.get(person, 0) for person, count in given.items()})


def test_of_few_persons_it_is_not_told_how_many_were_withheld(anonymise: Anonymise, tmp_path: Path) -> None:
    whose = [number // 3 if number < RECORDS - 30 else number % 2 for number in range(RECORDS)]
    table = TABLE.set_column(TABLE.column_names.index("person"), "person", pa.array(whose, pa.int64()))
    done = anonymise(job(tmp_path, table))
    assert persons_of(done).withheld is None
    assert done.manifest.records < RECORDS


@pytest.mark.slow
def test_verification_draws_the_same_records_from_job_and_source(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path)
    done = anonymise(path)
    shutil.rmtree(tmp_path / ".skald")
    found = verified_release(load_job(path), str(done.folder), None)
    assert not any("not held against the source" in note for note in found.notes)
    assert found.recount.records == done.manifest.released
    manifest = json.loads((done.folder / "manifest.json").read_text())
    original = original_of(load_job(path))
    assert original is not None and original.source_relation
    assert manifest["persons"]["withheld"] > 0


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("setting", "said"), [("columns.most_records=2", "more than 2 records"), ("columns.most_records=5", "records")])
def test_a_release_by_another_bound_is_found_out(anonymise: Anonymise, tmp_path: Path, setting: str, said: str) -> None:
    path = job(tmp_path)
    done = anonymise(path)
    with pytest.raises(VerificationError, match=said):
        verified_release(load_job(path, (setting,)), str(done.folder), None)


@pytest.mark.slow
def test_the_draw_depends_on_the_source_alone(anonymise: Anonymise, tmp_path: Path) -> None:
    first = anonymise(job(tmp_path / "one"))
    again = anonymise(job(tmp_path / "two"), "chunk_rows=50", "threads=1")
    assert digests(first.folder) == digests(again.folder)
    other = anonymise(job(tmp_path / "three", visits(1)))
    assert set(released(first.folder)["note"]) != set(released(other.folder)["note"])


@pytest.mark.ci
def test_files_whose_folders_name_the_person(anonymise: Anonymise, tmp_path: Path) -> None:
    whose = np.array([number % 40 for number in range(RECORDS)])
    for person in range(40):
        rows = TABLE.drop_columns(["person"]).filter(pa.array(whose == person))
        folder = tmp_path / "people" / f"person={person}"
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "part.parquet")
    path = job(tmp_path / "job", files=1)
    done = anonymise(path, f"source.path={tmp_path}/people/**/*.parquet", "source.hive=true")
    notes = dict(zip(TABLE["note"].to_pylist(), whose.tolist(), strict=True))
    assert max(kept(done.folder, notes).values()) <= MOST
    assert persons_of(done).withheld == RECORDS - 40 * MOST


def test_a_bound_without_persons_is_refused(tmp_path: Path) -> None:
    columns = job_of()["columns"] | {"most_records": 2}
    with pytest.raises(JobError, match="no person is named"):
        load_job(people_job(tmp_path, columns=columns))
    with pytest.raises(JobError, match="most_records"):
        load_job(people_job(tmp_path, columns=columns | {"person": "person", "most_records": 0}))


def test_a_column_by_the_name_that_the_recount_needs_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path, TABLE.append_column("file_row_number", pa.array(range(RECORDS))))
    with pytest.raises(SourceError, match="rename it"):
        anonymise(path, "columns.withheld=[file_row_number]")


def test_errors_hold_no_value(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(SkaldError) as raised:
        anonymise(job(tmp_path), "columns.most_records=1", "privacy.k=200")
    assert "note" not in str(raised.value)
