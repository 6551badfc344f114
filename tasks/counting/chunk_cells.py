"""The cells of chunks as the coding of the whole source has them: each chunk is counted against its own domains, which bear its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Translation
from core.columns.data_parallel import prefetch
from core.columns.domains import Domain
from core.histograms.projections import Bundles
from schemas.errors.base import StorageError
from tasks.counting.chunk_histograms import OF_CHUNK, cell_columns, cell_table
from tasks.counting.coding import Coding
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_domains, read_table

ChunkCells = tuple[Bundles, NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]


def own_domains(part: Artifact, names: Sequence[str], store: Store) -> tuple[Domain, ...]:
    """Return the domains that a chunk's histogram is coded against."""
    found = store.find("domains", part.key)
    if found is None:
        raise StorageError.malformed("domains", ["missing"])
    return load_domains(store, found, names)


def translation_of(coding: Coding, part: Artifact, store: Store) -> Translation | None:
    """Return how a histogram at the finest node reads in the coding of the whole; None if it is coded so already."""
    if part.step != OF_CHUNK:
        return None
    whole = (*coding.domains, *coding.sensitive)
    found = Translation.between(own_domains(part, [domain.qid for domain in whole], store), whole)
    return found if found.changes else None


def cells_in_source_coding(coding: Coding, part: Artifact, store: Store) -> tuple[PackedWords, NDArray[np.int64]]:
    """Return the cells of a histogram at the finest node, and their counts, in the coding of the whole."""
    translation = translation_of(coding, part, store)
    # Checked when it was written, and its digest since.
    words, counts = cell_columns(read_table(store, part))
    return translation.translated(words) if translation else words, counts


def bundled_cells(coding: Coding, parts: Sequence[Artifact], store: Store) -> Iterator[ChunkCells]:
    """Yield the cells of each histogram at the finest node, taken apart, and their counts; those coded alike have the same bundles."""
    return prefetch(_unpacked_codes(coding, parts, store))


def _unpacked_codes(coding: Coding, parts: Sequence[Artifact], store: Store) -> Iterator[ChunkCells]:
    plain = Bundles(coding.packing)
    last: tuple[Translation, Bundles] | None = None
    for part in parts:
        translation, bundles = translation_of(coding, part, store), plain
        if translation:
            if last is None or not last[0].same_as(translation):
                last = translation, Bundles(translation.own, translation.maps)
            bundles = last[1]
        words, counts = cell_columns(read_table(store, part))
        yield bundles, bundles.codes(words), counts


def cell_files_in_source_coding(coding: Coding, parts: Sequence[Artifact], store: Store, folder: Path) -> list[Path]:
    """Return files with the cells of histograms in the coding of the whole: the artefacts where they are coded so, else copies."""
    files = []
    for number, part in enumerate(parts):
        translation = translation_of(coding, part, store)
        if translation is None:
            files.append(store.path(part))
            continue
        words, counts = cell_columns(read_table(store, part))
        folder.mkdir(parents=True, exist_ok=True)
        files.append(folder / f"cells-{number}.parquet")
        pq.write_table(cell_table(translation.translated(words), counts), files[-1], compression="lz4", write_statistics=False)
    return files
