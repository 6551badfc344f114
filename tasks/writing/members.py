"""Which class each record of a release came to, in the order of the source: what later releases are compared by; never published."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tasks.source.chunks import Chunk
from tasks.store.store import Artifact


class Part(BaseModel):
    """Records of a release with their classes.

    Attributes:
        files: Digests of the files that they stand in, one after the other, and how many stand in each; empty of records that were shared
            out over fragments.
        members: Table of ``class`` in the order of the chunk; of a fragment with the digests of its records beside it.
        contents: Table of these digests in the same order; None of a fragment, or where they are not known yet.
        sets: Table of ``column`` (the number of a value's digest), ``digest`` and ``value``, where a digest stands for several values of a
            person; None where each stands for itself.
    """

    model_config = ConfigDict(frozen=True)

    files: tuple[tuple[str, int], ...]
    members: Artifact
    contents: Artifact | None = None
    sets: Artifact | None = None

    @classmethod
    def of(cls, chunk: Chunk, members: Artifact) -> Self:
        """Returns the records of a chunk, given their classes."""
        return cls(files=tuple((piece.file.digest, piece.rows) for piece in chunk.pieces), members=members)

    @property
    def in_fragment(self) -> bool:
        """Whether its records stand in no order of the source."""
        return not self.files


def write_fragment_members(path: Path, first: int, classes: NDArray[np.int32], kept: pa.Table) -> int:
    """Writes the digests of the records of a fragment, and their classes; returns how many there are.

    Args:
        path: Gets them.
        first: What is added to the number of a class, so that it is that of no other fragment.
        classes: Shape (n,), negative for records that are not released.
        kept: n rows of digests, as ``contents_table`` of ``tasks.counting.contents`` has them.
    """
    numbers = np.where(classes < 0, np.int64(-1), classes.astype(np.int64) + first)
    others = {name: kept[name] for name in kept.column_names}
    return write_members(path, numbers, **others)


def write_members(path: Path, classes: NDArray[np.signedinteger], **others: pa.ChunkedArray) -> int:
    """Writes the class of each record, negative for one that is not released, and what else is kept of it; returns how many there are."""
    table = pa.table({"class": classes, **others})
    # Digests are all different and look like chance: neither a dictionary nor a codec makes them less. Of classes the low bytes do, and the
    # high ones are alike: set apart they take as little as a dictionary would, in a third of the time.
    packed = {name: "none" if name in others else "lz4" for name in table.column_names}
    values = [name for name in others if name.startswith("value_")]
    pq.write_table(table, path, compression=packed, use_dictionary=values, use_byte_stream_split=["class"], write_statistics=False)
    return len(table)
