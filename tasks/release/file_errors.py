"""Data files that cannot be counted, told in words of ours: a database quotes cells in its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from schemas.errors.base import VerificationError
from tasks.store.database import is_short_of_files


@contextmanager
def file_error(what: str) -> Iterator[None]:
    """Says in words of ours that data files cannot be counted.

    Args:
        what: How the release is called.

    Raises:
        VerificationError: they cannot.
    """
    try:
        yield
    # Says nothing of the files; where the database was opened it becomes an error of storage.
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        if is_short_of_files(error):
            raise
        # The kind alone, because DuckDB's words hold values.
        raise VerificationError(what, [f"the files cannot be counted ({type(error).__name__})"]) from None
