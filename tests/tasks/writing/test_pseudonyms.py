"""Pseudonyms stand in the records of their identifiers, in batches as the source is read, whatever else is read with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.values import PseudonymError
from schemas.job.job import Job, load_job
from tasks.source.chunks import Chunk, ChunkedSource, SourceFile
from tasks.source.reading import BATCH_ROWS
from tasks.writing.pseudonyms import give_tokens, key_fingerprints, lacks_vault, pseudonyms_of_key, read_published
from tasks.writing.vaults import MISSING
from tests.jobs import job_of, write_job

KEY = {"env": "SKALD_TEST_KEY"}
TREATMENTS: dict[str, dict[str, Any]] = {"id": {"hash": {"key": KEY}}, "phone": {"mask": {"keep": 1}}}
MOVED = {"shift": {"key": KEY, "subject": "person", "days": 30}}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("SKALD_TEST_KEY", "5ecret-of-the-hospital-0123456789abcdef")
    identifiers = ["person", *({"name": name, "treatment": one} for name, one in (TREATMENTS | {"day": MOVED}).items())]
    columns = {
        "identifiers": identifiers, "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5]}}], "sensitive": [],
        "linkable": list(TREATMENTS),
    }  # fmt: skip
    return load_job(write_job(tmp_path, job_of(columns=columns)))


def read_as_published(job: Job, table: pa.Table, columns: list[str], *, rows: range | None = None) -> list[pa.RecordBatch]:
    path = job.folder / "source.parquet"
    pq.write_table(table, path, row_group_size=BATCH_ROWS)
    written = pq.read_metadata(path)
    groups = tuple(written.row_group(number).num_rows for number in range(written.num_row_groups))
    file = SourceFile(name="source.parquet", path=path, digest="d", stat=None, groups=groups)
    chunk = Chunk.of(file) if rows is None else Chunk.of(file, rows.start, len(rows))
    source: Any = ChunkedSource.model_construct(keys=key_fingerprints(job))
    return list(read_published(job, source, chunk, columns))


def of_each(job: Job, table: pa.Table, column: str) -> list[Any]:
    """The pseudonyms of all records, made for each of the different values alone."""
    [identifier] = [one for one in job.columns.pseudonyms if one.name == column]
    source: Any = ChunkedSource.model_construct(keys=key_fingerprints(job))
    values = [value for value in dict.fromkeys(table[column].to_pylist()) if value is not None]
    made = pseudonyms_of_key(job, source, identifier, pa.array(values)).to_pylist()
    return [dict(zip(values, made, strict=True)).get(value) for value in table[column].to_pylist()]


@pytest.mark.parametrize("columns", [["id"], ["phone", "id"], ["age", "id"], ["id", "age", "phone"], ["age"]], ids="-".join)
@pytest.mark.parametrize("rows", [range(7), range(2, 7), range(3, 4)], ids=str)
def test_each_record_has_the_pseudonym_of_its_value_in_the_order_that_is_asked_for(job: Job, columns: list[str], rows: range) -> None:
    ids = ["a", "b", None, "a", "c", None, "b"]
    table = pa.table({"id": ids, "age": range(7), "phone": [f"0{7 - place}" for place in range(7)]})
    found = pa.Table.from_batches(read_as_published(job, table, columns, rows=rows))
    assert found.column_names == columns
    part = table.slice(rows.start, len(rows))
    for name in columns:
        assert found[name].to_pylist() == (part[name].to_pylist() if name == "age" else of_each(job, part, name))


@pytest.mark.parametrize("columns", [["phone"], ["phone", "age"]], ids="-".join)
@pytest.mark.parametrize("more", [0, 1])
def test_pseudonyms_come_in_batches_of_so_many_records_and_each_once(job: Job, columns: list[str], more: int) -> None:
    many = BATCH_ROWS + more
    places = np.arange(many) % 7
    table = pa.table({"phone": pa.array(places).cast(pa.string()).dictionary_encode(), "age": places})
    found = read_as_published(job, table, columns)
    assert [batch.num_rows for batch in found] == ([BATCH_ROWS, 1] if more else [BATCH_ROWS])
    last = found[-1].slice(found[-1].num_rows - 1).to_pylist()
    assert last == [dict(zip(columns, [of_each(job, table.slice(many - 1), "phone")[0], int(places[-1])], strict=False))]


@pytest.mark.parametrize(("person", "fault"), [(["p", None, "q"], 1), (["p", None, None], 1), (["p", "q", None], 0), ([None, "p", "q"], 1)])
def test_a_day_is_moved_by_the_days_of_its_person_and_refused_where_it_has_none(job: Job, person: list[str | None], fault: int) -> None:
    days = pa.array([10, 10, None], pa.date32())
    table = pa.table({"person": pa.array(person, pa.string()), "day": days, "age": [1, 2, 3]})
    if fault:
        with pytest.raises(PseudonymError, match="'day'"):
            read_as_published(job, table, ["day"])
        return
    for columns in (["day"], ["age", "day"]):
        found = pa.Table.from_batches(read_as_published(job, table, columns))["day"].cast(pa.int32()).to_pylist()
        assert found[2] is None
        assert len({10, *found[:2]}) == 3, "each by some days, and another person by others"


def test_a_source_without_pseudonyms_needs_no_token(job: Job, tmp_path: Path) -> None:
    source = ChunkedSource.model_construct(keys={}, chunks=())
    assert give_tokens(Job.model_validate(job_of()), source, tmp_path) is source
    assert give_tokens(job, source, tmp_path).keys == key_fingerprints(job)


def test_a_vault_is_lacking_until_it_was_made() -> None:
    known = [lacks_vault(ChunkedSource.model_construct(keys=keys)) for keys in ({}, {"id": "0123"}, {"id": "0123", "phone": MISSING})]
    assert known == [False, False, True]
