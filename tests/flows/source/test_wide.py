"""Long records: files are cut by bytes and runs are written in rounds, and neither files, chunks nor rounds change a byte."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tasks.counting import untreated_figures
from tasks.source import chunks
from tasks.verification.file_forms import parquet_faults
from tasks.writing import cells
from tasks.writing.runs import write_release
from tests.conftest import Anonymise
from tests.house.replaced import READING_BATCH_ROWS
from tests.jobs import data_files, digests, people, people_job, released

ROWS = 900
TABLE = people(ROWS).append_column("essay", pa.array([f"{number % 700:05d}" * 40 if number % 9 else None for number in range(ROWS)]))


def wide_job(folder: Path, table: pa.Table = TABLE, **parts: int) -> Path:
    path = people_job(folder, table, **parts)
    path.write_text(path.read_text().replace("  - visits\n", "  - visits\n  - essay\n"))
    return path


@pytest.mark.ci
def test_files_are_cut_by_bytes_whatever_files_and_chunks_the_records_come_in(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = anonymise(wide_job(tmp_path / "whole"))
    monkeypatch.setattr(chunks, "FILE_SHARE", 256_000_000)
    monkeypatch.setattr(chunks, "LEAST_FILE", 60_000)
    cut = anonymise(wide_job(tmp_path / "cut"))
    assert len(data_files(whole.folder)) == 1
    # Of a record the numbers and dates take 32 bytes or more, the texts 178 on average.
    assert 3 <= len(data_files(cut.folder)) <= 8
    order = np.random.default_rng(3).permutation(ROWS)
    other = anonymise(wide_job(tmp_path / "other", TABLE.take(order), files=5, row_group=40), "chunk_rows=110", "threads=1")
    assert digests(other.folder) == digests(cut.folder)
    names = released(whole.folder).columns
    assert released(whole.folder).sort(names).equals(released(cut.folder).sort(names))


@pytest.mark.ci
@pytest.mark.parametrize("rounds", [False, True])
def test_texts_that_are_carried_plain_are_published_as_those_that_are_carried_as_dictionaries(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: bool
) -> None:
    plain = anonymise(wide_job(tmp_path / "plain", row_group=50), "rows_per_file=200")
    monkeypatch.setattr(untreated_figures, "OWN", 0)
    if rounds:
        monkeypatch.setattr(cells, "ROUND_SHARE", 2**60)
    coded = anonymise(wide_job(tmp_path / "coded", row_group=50), "rows_per_file=200")
    assert digests(coded.folder) == digests(plain.folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [[], ["columns.insensitive=[]"], ["suppression.limit=0.4", "suppression.treatment=mask"]])
def test_a_chunk_that_is_set_apart_in_rounds_makes_the_same_release(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]
) -> None:
    if "columns.insensitive=[]" in settings:
        settings = [*settings, "columns.identifiers=[person, note, score, visits, essay]"]
    cuts = [*settings, "rows_per_file=200"]
    whole = anonymise(wide_job(tmp_path / "whole", row_group=50), *cuts)
    monkeypatch.setattr(cells, "ROUND_SHARE", 2**60)
    monkeypatch.setattr(READING_BATCH_ROWS, 70)
    rounds = anonymise(wide_job(tmp_path / "rounds", row_group=50), *cuts)
    assert digests(rounds.folder) == digests(whole.folder)


@pytest.mark.ci
def test_long_texts_are_written_so_that_a_reader_with_little_memory_can_read_them(tmp_path: Path) -> None:
    texts = pa.array([f"{number:05d}" * 1_000 for number in range(15_000)])
    schema = pa.schema([("essay", pa.string())])
    write_release(tmp_path / "part.parquet", {"essay": texts.dictionary_encode()}, schema)
    with duckdb.connect(config={"memory_limit": "56MB", "threads": 1}) as connection:
        connection.execute("SET disable_parquet_prefetching = true")
        read = connection.execute(f"SELECT sum(length(essay)) FROM '{tmp_path}/part.parquet'").fetchall()
    assert read == [(75_000_000,)]
    assert parquet_faults([tmp_path / "part.parquet"], tmp_path, same_library=True) == []
