"""What values of a Parquet file take is known before any is unpacked: by headers of pages, and by a look at dictionaries."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from tasks.source import unpacked as bounds
from tasks.source.apart import unpacked_of
from tasks.source.chunks import Chunk, SourceFile
from tasks.source.reading import read_chunk, read_footer
from tasks.source.unpacked import MOST_VALUE, SHORT, Unpacked, long_value_lengths, pages_of, rows_of_long

MEMORY = 512_000_000
FORMS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False},
    {"compression": "none", "data_page_version": "2.0", "write_page_index": True},
    {"compression": "zstd", "row_group_size": 7, "data_page_size": 64, "write_batch_size": 3},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}, "data_page_version": "2.0"},
    {"dictionary_pagesize_limit": 600},
]


def found_in(path: Path, memory: int = MEMORY) -> Unpacked:
    with pa.OSFile(str(path)) as opened:
        return long_value_lengths(opened, pq.read_metadata(path), path.name, memory)


@given(
    texts=st.lists(st.one_of(st.none(), st.integers(0, 3), st.sampled_from([10, SHORT, 999, 2_000])), min_size=1, max_size=40),
    form=st.sampled_from(FORMS),
)
def test_headers_count_all_values_and_no_value_is_longer_than_what_is_found(
    texts: list[int | None], form: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pages") / "in.parquet"
    values = [None if size is None else chr(97 + place % 5) * size for place, size in enumerate(texts)]
    pq.write_table(pa.table({"text": pa.array(values, pa.string()), "number": list(range(len(values)))}), path, **form)
    metadata = pq.read_metadata(path)
    with pa.OSFile(str(path)) as opened:
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(2)):
                pages = list(pages_of(opened, column))
                assert sum(page.values for page in pages if not page.is_dictionary) == column.num_values
                assert sum(page.size for page in pages) <= column.total_uncompressed_size
    longest = found_in(path).long.get("text", SHORT)
    held = max((len(text) for text in values if text is not None), default=0)
    # Of values that stand one after the other only the average of a page is known, and that is what so many of them take.
    plain = not form.get("use_dictionary", True) and "DELTA_BYTE_ARRAY" not in form.get("column_encoding", {}).values()
    assert longest >= (sum(len(text or "") for text in values) // len(values) if plain or "dictionary_pagesize_limit" in form else held)


def test_files_of_duckdb_are_known_as_well(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    duckdb.sql("SELECT repeat(chr((97 + i % 3)::INT), 5000) AS text, i AS number FROM range(9000) r(i)").write_parquet(str(path))
    assert found_in(path).long == {"text": 5000}


@pytest.mark.ci
@pytest.mark.parametrize("encoding", ["dictionary", "DELTA_BYTE_ARRAY", "PLAIN"])
def test_long_values_are_read_few_at_a_time_whatever_their_encoding(tmp_path: Path, encoding: str) -> None:
    size, rows = 1_000_000, 100
    form: dict[str, Any] = {} if encoding == "dictionary" else {"use_dictionary": False, "column_encoding": {"text": encoding}}
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["x" * size] * rows, "age": [30] * rows}), path, compression="zstd", write_batch_size=10, **form)
    footer = read_footer(path, "in.parquet", unpacked_of(path, "in.parquet", MEMORY))
    assert size <= footer.long["text"] <= size + 100
    assert footer.size >= size * rows
    texts = () if footer.plain else ("text",)
    file = SourceFile(
        name=str(path), path=path, digest="", stat=None, groups=footer.groups, width=footer.size // rows, texts=texts, long=footer.long
    )
    batches = list(read_chunk(Chunk.of(file), ["text"]))
    assert sum(batch.num_rows for batch in batches) == rows
    assert max(batch.num_rows for batch in batches) <= rows_of_long([size]) == 32
    # Of columns whose values are short, as many as ever.
    assert [batch.num_rows for batch in read_chunk(Chunk.of(file), ["age"])] == [rows]


@pytest.mark.parametrize("form", [{"use_dictionary": False}, {"dictionary_pagesize_limit": 600}])
def test_a_batch_holds_no_short_texts_of_the_batches_before_it(form: dict[str, Any], tmp_path: Path) -> None:
    path, rows = tmp_path / "in.parquet", 4_000
    pq.write_table(pa.table({"text": [f"{number:09d}" for number in range(rows)]}), path, **form)
    file = SourceFile(name=str(path), path=path, digest="", stat=None, groups=(rows,), width=9, texts=("text",), long={"text": 100_000})
    batches = list(read_chunk(Chunk.of(file), ["text"]))
    assert len(batches) > 1
    assert [len(batch.column("text").dictionary) for batch in batches] == [batch.num_rows for batch in batches]


@pytest.mark.parametrize(
    "form", [{}, {"use_dictionary": False}, {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}]
)
def test_a_value_of_more_than_16_megabytes_is_refused(tmp_path: Path, form: dict[str, Any]) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["x" * (MOST_VALUE + 1)] * 2}), path, compression="zstd", **form)
    with pytest.raises(ValuesError, match="values of more than 16 MB"):
        found_in(path)


def test_a_page_larger_than_a_part_of_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LEAST_PAGE", 1_000_000)
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["x" * 10_000] * 1_000}), path, compression="zstd", use_dictionary=False)
    with pytest.raises(ValuesError, match="has a page of 10 MB"):
        found_in(path, 30_000_000)
    assert found_in(path, MEMORY).long


def test_pages_that_take_more_than_the_footer_says_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["x" * 100_000] * 1_000}), path, compression="zstd")
    honest = bounds.pages_of
    monkeypatch.setattr(bounds, "pages_of", lambda *given: (page._replace(size=page.size + 1_000) for page in honest(*given)))
    with pytest.raises(SourceError, match="cannot be read as parquet"):
        found_in(path)


@given(junk=st.binary(min_size=0, max_size=80), place=st.integers(0, 60))
def test_no_bytes_in_the_place_of_a_header_end_otherwise_than_refused(
    junk: bytes, place: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("junk") / "in.parquet"
    pq.write_table(pa.table({"text": ["abc", "def"] * 20}), path)
    content = path.read_bytes()
    path.write_bytes(content[: 4 + place] + junk + content[4 + place + len(junk) :] if len(junk) + place < 90 else content)
    column = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(0)
    with pa.OSFile(str(path)) as opened, suppress(ValueError):
        assert len(list(pages_of(opened, column))) < 100
