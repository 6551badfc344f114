"""How long the values of a Parquet file are: looked at once for its content, and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors.base import SourceError
from tasks.source.bounds.int96 import check_int96
from tasks.source.bounds.unpacked import Unpacked, unpacked
from tasks.store.keys import Step
from tasks.store.store import Store

STEP = Step("unpacked", __name__)


def kept_unpacked(path: Path, name: str, digest: str, memory: int, store: Store) -> Unpacked:
    """Return how long the values of a Parquet file are, from the store where they were looked at before.

    Args:
        path: The file.
        name: What the user calls it.
        digest: Of its content.
        memory: Bytes that the job may take.
        store: Keeps what is found.

    Raises:
        SourceError: the file cannot be read, or a page or a value is larger than is read.
        StorageError: the disk is full or the folder cannot be written.
    """

    def write(part: Path) -> int:
        return part.write_text(json.dumps(unpacked_of(path, name, memory)))

    long, size = json.loads(store.path(store.make(STEP.name, STEP.key(digest, memory), ".json", write)).read_text())
    return Unpacked(long, size)


def unpacked_of(path: Path, name: str, memory: int) -> Unpacked:
    """Return how long the values of a Parquet file are.

    Args:
        path: The file.
        name: What the user calls it.
        memory: Bytes that the job may take.

    Raises:
        SourceError: the file cannot be read, or a page or a value is larger than is read.
    """
    try:
        with pa.OSFile(str(path)) as file, pq.ParquetFile(file) as opened:
            check_int96(file, opened.metadata, name)
            return unpacked(file, opened.metadata, name, memory)
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(name, "parquet") from None


def check_int96_of(opened: Any, name: str) -> None:
    """Refuse timestamps of an open Parquet file that are read less finely than they are written.

    Args:
        opened: The file.
        name: What the user calls it.

    Raises:
        SourceError: the file cannot be read, or there are such.
    """
    try:
        with pq.ParquetFile(opened) as file:
            check_int96(opened, file.metadata, name)
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(name, "parquet") from None
