"""The pairs of person and cell of all chunks, as files that DuckDB reads: in the coding of the whole, with the cells written out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.counting.chunk_cells import cells_in_source_coding
from tasks.counting.chunk_people import read_pairs
from tasks.counting.coding import Coding
from tasks.store.store import Artifact, Store


def person_cell_files(coding: Coding, parts: Sequence[Artifact], pairs: Sequence[Artifact], store: Store, folder: Path) -> list[Path]:
    """Returns a file for each chunk, with a row for each person and cell: ``cell_0`` …, ``person`` and ``count``, the records of both.

    Args:
        coding: Of the run.
        parts: The histograms of the chunks at the finest node.
        pairs: Their pairs, in the same order.
        store: Has both.
        folder: Gets the files.

    Raises:
        StorageError: the domains of a chunk are gone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, (part, paired) in enumerate(zip(parts, pairs, strict=True)):
        words, _ = cells_in_source_coding(coding, part, store)
        found = read_pairs(paired, store, 0, 1)
        # Joined here by place: DuckDB would have to look every row up.
        columns = {f"cell_{place}": word[found.cells] for place, word in enumerate(words)}
        files.append(folder / f"pairs-{number}.parquet")
        pq.write_table(
            pa.table(columns | {"person": found.persons, "count": found.counts}), files[-1], compression="lz4", write_statistics=False
        )
    return files
