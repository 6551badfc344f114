"""Files, digests and chunks of a source."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import SourceError
from schemas.job.job import load_job
from tasks.source.chunks import ChunkedSource
from tasks.source.extracts import open_run
from tasks.source.locations import find_files
from tasks.source.reading import read_chunk
from tasks.source.sources import check_unchanged, read_source
from tests.jobs import people, people_job
from tests.laws import tried

TABLE, MANY = people(60), people(20_000)


def source_of(job_path: Path, *overrides: str) -> ChunkedSource:
    with open_run(load_job(job_path, overrides)) as run:
        return read_source(run)


@pytest.mark.ci
@tried(20)
@given(files=st.integers(1, 4), row_group=st.integers(1, 70), chunk_rows=st.integers(1, 70))
def test_chunks_hold_every_row_once_in_order_and_are_no_larger_than_asked(
    tmp_path_factory, files: int, row_group: int, chunk_rows: int
) -> None:
    source = source_of(people_job(tmp_path_factory.mktemp("job"), TABLE, files=files, row_group=row_group), f"chunk_rows={chunk_rows}")
    read = [pa.Table.from_batches(read_chunk(chunk, ["person", "sex"])) for chunk in source.chunks]
    assert [len(part) for part in read] == [chunk.rows for chunk in source.chunks]
    assert max(chunk.rows for chunk in source.chunks) <= chunk_rows
    whole = pa.concat_tables([part.cast(pa.schema([("person", pa.int64()), ("sex", pa.string())])) for part in read])
    assert whole.equals(TABLE.select(["person", "sex"]))


@pytest.mark.ci
def test_of_a_few_columns_of_many_more_records_are_read_at_a_time(tmp_path: Path) -> None:
    """A batch is bounded by the bytes of what is read, whatever else is in the file."""
    texts = [f"{number} was seen by somebody" for number in range(len(MANY))]
    wide = pa.table({name: MANY[name] for name in MANY.column_names} | {f"c{place}": pa.array(texts) for place in range(40)})
    people_job(tmp_path, wide, row_group=len(wide))
    [chunk] = source_of(tmp_path / "job.yaml", f"columns.insensitive=[{', '.join(wide.column_names[8:])}]").chunks
    few, all_of_them = ([batch.num_rows for batch in read_chunk(chunk, names)] for names in (["sex", "c7"], wide.column_names))
    assert len(few) == 1
    assert len(all_of_them) > 1
    assert sum(few) == sum(all_of_them) == len(MANY)


@pytest.mark.ci
def test_of_texts_that_a_file_packs_no_more_are_read_at_a_time_than_all_of_its_columns_would_allow(tmp_path: Path) -> None:
    """What a dictionary of few long texts takes says nothing of what the texts take where they are read plain."""
    letters = pa.array([f"letter {number} " * 200 for number in range(50)]).take(pa.array(np.arange(len(MANY)) % 50))
    numbers = np.random.default_rng(0).random(len(MANY))
    wide = pa.table({name: MANY[name] for name in MANY.column_names} | {f"c{place}": numbers + place for place in range(100)})
    people_job(tmp_path, wide.append_column("letter", letters), row_group=len(wide))
    names = [*wide.column_names[8:], "letter"]
    [chunk] = source_of(tmp_path / "job.yaml", f"columns.insensitive=[{', '.join(names)}]").chunks
    coded, plain = ([batch.num_rows for batch in read_chunk(chunk, ["letter"], as_written=plain)] for plain in (False, True))
    # No more than would be held if every record had the longest text.
    assert len(coded) < len(plain)


@pytest.mark.ci
def test_a_batch_holds_no_values_of_the_batches_before_it(tmp_path: Path) -> None:
    """Where Arrow reads texts as dictionaries, it holds all that a row group lists beside its dictionary."""
    essays = pa.array([f"{number:05d}" * 200 for number in range(len(MANY))])
    people_job(tmp_path, MANY.append_column("essay", essays), row_group=len(MANY))
    [chunk] = source_of(tmp_path / "job.yaml", f"columns.insensitive=[{', '.join(MANY.column_names[8:])}, essay]").chunks
    read = [batch.column("essay") for batch in read_chunk(chunk, ["sex", "essay"])]
    assert len(read) > 1
    assert [len(column.dictionary) for column in read] == [len(column) for column in read]
    assert pa.chunked_array([column.dictionary_decode() for column in read]).combine_chunks().equals(essays)


def test_files_are_listed_once_and_by_name(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=3, source={"path": ["people/*.parquet", "people/001.parquet", "**/*.parquet"]})
    assert [path.name for path in find_files(load_job(job))] == ["000.parquet", "001.parquet", "002.parquet"]


def test_folders_with_brackets_in_their_name_are_taken_as_they_are(tmp_path: Path) -> None:
    job = people_job(tmp_path / "a[1]*?", TABLE)
    assert len(find_files(load_job(job))) == 1


def test_digest_is_of_the_content_and_not_of_names_or_times(tmp_path: Path) -> None:
    one, two = people_job(tmp_path / "one", TABLE, files=2), people_job(tmp_path / "two", TABLE, files=2)
    (tmp_path / "two" / "people" / "000.parquet").rename(tmp_path / "two" / "people" / "zzz.parquet")
    os.utime(tmp_path / "two" / "people" / "001.parquet", (0, 0))
    assert source_of(one).digest == source_of(two).digest
    assert source_of(one).digest != source_of(people_job(tmp_path / "three", people(60, seed=1), files=2)).digest


def test_a_file_is_digested_again_when_it_changed(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    before = source_of(job)
    assert source_of(job) == before
    pq.write_table(people(60, seed=5), tmp_path / "people" / "000.parquet")
    assert source_of(job).digest != before.digest


@pytest.mark.parametrize("change", [Path.touch, Path.unlink, lambda path: path.write_bytes(path.read_bytes() + b"x")])
def test_a_change_after_the_digest_is_noticed(tmp_path: Path, change) -> None:
    source = source_of(people_job(tmp_path, TABLE))
    check_unchanged(source)
    change(tmp_path / "people" / "000.parquet")
    with pytest.raises(SourceError, match=r"000\.parquet' changed while it was being read"):
        check_unchanged(source)


def test_payload_is_sensitive_before_insensitive_in_the_order_of_the_job(tmp_path: Path) -> None:
    assert source_of(people_job(tmp_path, TABLE)).payload == ("disease", "note", "score", "visits")


def test_releases_and_artefacts_are_no_source(tmp_path: Path) -> None:
    job = people_job(tmp_path, source={"path": "**/*.parquet"}, target=".", work="kept")
    assert len(find_files(load_job(job))) == 1
    for folder in ("people-0123456789abcdef/data", "kept/artifacts"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.parquet").touch()
        (tmp_path / "people-0123456789abcdef" / "manifest.json").touch()
        with pytest.raises(SourceError, match="1 file of releases in the target or of the work folder"):
            find_files(load_job(job))
        (tmp_path / folder / "part.parquet").unlink()
