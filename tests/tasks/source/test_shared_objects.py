"""Objects that several threads of DuckDB read by one file."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors.base import VerificationError
from schemas.errors.storage import ObjectStoreError
from tasks.engine.guard import is_transient
from tasks.release.files import file_error
from tasks.source import pinned, pinned_objects
from tasks.source.listing import scan_address
from tasks.source.pinned import read_stretches
from tasks.source.pinned_objects import PinnedObjects
from tasks.store.database import database

ROWS, SIZES = 4_000, pytest.mark.parametrize("most_small", [0, 1_000_000])
MOMENTS = count()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, most_small: int) -> Iterator[str]:
    """The address of a Parquet object of many row groups, held in memory."""
    written = io.BytesIO()
    pq.write_table(pa.table({name: np.arange(ROWS) % 97 for name in "abcdef"}), written, row_group_size=100)
    content = written.getvalue()
    monkeypatch.setattr(pinned_objects, "SMALL", most_small)
    monkeypatch.setattr(pinned_objects, "content_of", lambda *_: content)
    monkeypatch.setattr(pinned_objects, "open_pinned", lambda *_: io.BytesIO(content))
    before = sys.getswitchinterval()
    # Threads take turns between any two steps.
    sys.setswitchinterval(1e-6)
    # Each test reads an object of its own: what was read of another is held.
    yield scan_address("s3://bucket/a.parquet", (len(content), next(MOMENTS), 2, 3))
    sys.setswitchinterval(before)


@SIZES
def test_a_thread_reads_where_it_has_moved_to(address: str) -> None:
    file: Any = PinnedObjects().open(address)
    whole = file.read(-1)
    file.seek(10)
    other: list[bytes] = []

    def read() -> None:
        file.seek(-4, io.SEEK_END)
        other.append(file.read(10))

    thread = Thread(target=read)
    thread.start()
    thread.join()
    assert other == [b"PAR1"]
    assert (file.read(5), file.tell()) == (whole[10:15], 15)


@SIZES
def test_all_threads_of_a_query_read_what_the_object_holds(address: str) -> None:
    query = f"SELECT sum(a), count(DISTINCT b), sum(f) FROM read_parquet(['{address}'])"
    right = int((np.arange(ROWS) % 97).sum())
    with duckdb.connect(config={"threads": 8}) as connection:
        connection.register_filesystem(PinnedObjects())
        assert {connection.execute(query).fetchone() for _ in range(100)} == {(right, 97, right)}


@SIZES
def test_a_store_that_fails_while_a_query_reads_is_told_of_as_that_and_says_nothing_of_the_release(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            try:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
            except OSError:
                raise ObjectStoreError.failed("s3://bucket/a.parquet", "no answer in time") from None

    def fail(*_: object) -> bytes:
        return Failing().read()

    monkeypatch.setattr(pinned_objects, "content_of", fail)
    monkeypatch.setattr(pinned_objects, "open_pinned", lambda *_: Failing())
    for _ in range(2):
        with pytest.raises(ObjectStoreError, match="no answer in time") as told, database(100_000_000, tmp_path) as connection:
            connection.register_filesystem(PinnedObjects())
            with file_error("release 'a'"):
                connection.execute(f"SELECT sum(a) FROM read_parquet(['{address}'])").fetchall()
        assert is_transient(told.value)
    with pytest.raises(VerificationError), database(100_000_000, tmp_path) as connection, file_error("release 'a'"):
        connection.execute("SELECT 'a'::INTEGER").fetchall()


@given(
    st.binary(max_size=60),
    st.integers(1, 20),
    st.integers(0, 80),
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 40)), min_size=1, max_size=12),
)
def test_what_is_read_by_stretches_is_what_the_object_holds(content: bytes, stretch: int, held: int, wanted: list[tuple[int, int]]) -> None:
    stat = len(content), next(MOMENTS), 2, 3

    def read(at: int, size: int) -> bytes:
        return content[at : at + size]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pinned, "STRETCH", stretch)
        patched.setattr(pinned, "HELD", held)
        for at, size in wanted:
            assert read_stretches("s3://bucket/b", stat, at, size, read) == read(at, size)


@pytest.mark.parametrize("most_small", [0])
def test_what_one_query_has_read_of_an_object_the_next_one_asks_no_store_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = pinned_objects.open_pinned(address, (0, 0, 0, 0)).read()
    asked: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    monkeypatch.setattr(pinned_objects, "open_pinned", lambda *_: Counted(content))
    for _ in range(2):
        with database(100_000_000, Path()) as connection:
            connection.register_filesystem(PinnedObjects())
            connection.execute(f"SELECT sum(a), sum(c) FROM read_parquet(['{address}'])").fetchall()
    # For hundreds of pages.
    assert asked == [pinned.STRETCH]
