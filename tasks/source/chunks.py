"""A source as its steps see it: files, and the chunks that they are read in. How it was found and converted is no matter of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from tasks.source.object_store import Stat
from tasks.source.partitions import Partition, relation
from tasks.store.keys import fingerprint_of


class SourceFile(BaseModel):
    """One file of the source, as Parquet.

    Attributes:
        name: Path or address as the user knows it.
        path: The Parquet file to read: the file itself, or the artefact that it was fetched, converted or extracted to.
        digest: BLAKE3 of the user's file, in hex; with what its folders say of its records where they are partitions.
        stat: What changes when the user's file does, as it was when it was digested; None for rows of a database, which are kept as they
            were.
        rows: Number of records.
        partition: Columns that the file's folders name.
        content: Digest of the rows whatever their order, where they come in none.
        converted: SHA-256 of the Parquet file, where the user's was converted.
        drift: Columns that the file lacks or writes in another type than they are read in; None if there is none.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    path: Path
    digest: str
    stat: Stat | None
    rows: int
    partition: Partition = ()
    content: str | None = None
    converted: str | None = None
    drift: pa.Schema | None = None


class Chunk(BaseModel):
    """A range of rows of one file."""

    model_config = ConfigDict(frozen=True)

    file: SourceFile
    first: int
    rows: int

    @property
    def key(self) -> tuple[str | int, ...]:
        """What the chunk's content depends on."""
        # Another reading makes other rows of the same bytes, such as CSV with other types.
        converted = [self.file.converted] if self.file.converted else []
        drift = self.file.drift or ()
        return self.file.digest, self.first, self.rows, *converted, *(f"{field.name}: {field.type}" for field in drift)


class Source(BaseModel):
    """All files of a job's source, and what is published of their columns.

    Attributes:
        files: In the order of their names.
        chunks: Row ranges that cover all files.
        payload: Sensitive and insensitive columns and pseudonyms, in the order of the release.
        columns: Names and types as which all files are read.
        published: Types of the payload.
        keys: Fingerprints of keys and ids of vaults by pseudonymised column, once they are read.
        treatments: How these columns are treated, in canonical form, and suppressed records with them.
        evolved: By column that files write differently, what was made of it.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    files: tuple[SourceFile, ...]
    chunks: tuple[Chunk, ...]
    payload: tuple[str, ...]
    columns: pa.Schema
    published: tuple[pa.DataType, ...]
    keys: dict[str, str] = {}
    treatments: dict[str, Any] = {}
    evolved: dict[str, str] = {}

    @property
    def records(self) -> int:
        """N, the number of records."""
        return sum(file.rows for file in self.files)

    @property
    def payload_key(self) -> object:
        """What the published columns depend on besides the records: names and types, and how and with which keys some are treated."""
        # What a program noted beside the schema, as pandas does, changes no byte of a release.
        columns = self.columns.to_string(show_field_metadata=False, show_schema_metadata=False)
        return self.payload, columns, self.treatments, self.keys

    @property
    def digest(self) -> str:
        """Fingerprint of the records, whatever the files are called and however they are listed."""
        return fingerprint_of(sorted(file.content or file.digest for file in self.files))

    @property
    def relation(self) -> str:
        """What DuckDB reads the source as."""
        return relation([(str(file.path), file.partition) for file in self.files], alike=not self.evolved)
