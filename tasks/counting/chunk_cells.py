"""Cells of chunks, translated from each chunk's own domains into the coding of the whole source."""

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


def chunk_domains(part: Artifact, names: Sequence[str], store: Store) -> tuple[Domain, ...]:
    """Return the domains of a chunk, against which its histogram is coded."""
    found = store.find("domains", part.key)
    if found is None:
        raise StorageError.malformed("domains", ["missing"])
    return load_domains(store, found, names)


def translation_of(coding: Coding, part: Artifact, store: Store) -> Translation | None:
    """Return the translation of a chunk's codes into the source's coding; None if none is needed."""
    if part.step != OF_CHUNK:
        return None
    whole = (*coding.domains, *coding.sensitive)
    found = Translation.between(chunk_domains(part, [domain.qid for domain in whole], store), whole)
    return found if found.changes else None


def cells_in_source_coding(coding: Coding, part: Artifact, store: Store) -> tuple[PackedWords, NDArray[np.int64]]:
    """Return the cells and counts of a finest-node histogram in the source's coding."""
    translation = translation_of(coding, part, store)
    # Checked when it was written, and its digest since.
    words, counts = cell_columns(read_table(store, part))
    return translation.translated(words) if translation else words, counts


def bundled_cells(coding: Coding, parts: Sequence[Artifact], store: Store) -> Iterator[ChunkCells]:
    """Yield the unpacked cell codes and counts of each finest-node histogram.

    Histograms that are coded alike have the same bundles.
    """
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
    """Return Parquet files with the cells of histograms in the source's coding.

    Artefacts in this coding are used as they are, all others are copied.
    """
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
