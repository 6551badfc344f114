"""Persons that differ only in spelling, for warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import is_text, spelling_words, working_type
from core.units.repeats import PersonSpellings, character_marks, may_be_alike, merge_spellings, spellings_of
from schemas.errors.base import listed
from tasks.engine.progress import notify
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, merge_on_cluster, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_array


@dataclass(frozen=True)
class ColumnsReading:
    """The columns that are read of each chunk, and the artefact store."""

    columns: tuple[str, ...]
    store: Store


def _mark_characters(given: ColumnsReading, chunk: Chunk, path: Path) -> int:
    marks = np.zeros(len(given.columns), np.uint8)
    for batch in read_chunk(chunk, given.columns, plain=given.columns):
        marks |= np.array([character_marks(column) for column in batch.columns], np.uint8)
    return write_array(path, marks)


CHARACTERS = FileStep(
    "characters", make=_mark_characters, reads=lambda _given, chunk: chunk.key, settings=lambda given: given.columns, suffix=".npy"
)
"""The marks of the texts of each column of a chunk."""


def _count_spellings(given: ColumnsReading, chunk: Chunk, path: Path) -> int:
    batches = read_chunk(chunk, given.columns, plain=given.columns)
    return _write_spellings(path, merge_spellings(spellings_of(batch.columns, batch.num_rows) for batch in batches))


def _write_spellings(path: Path, found: PersonSpellings) -> int:
    table = pa.table({"person": found.persons, "folded": found.folded}).replace_schema_metadata({"bits": str(found.bits)})
    pq.write_table(table, path, compression="lz4", write_statistics=False, use_dictionary=False)
    return len(table)


def _read_spellings(given: ColumnsReading, parts: Iterable[Artifact]) -> PersonSpellings:
    tables = (pq.read_table(given.store.path(part)) for part in parts)
    return merge_spellings(
        PersonSpellings(int(table.schema.metadata[b"bits"]), table["person"].to_numpy(), table["folded"].to_numpy()) for table in tables
    )


SPELLINGS = FileStep("spellings", make=_count_spellings, reads=lambda _given, chunk: chunk.key, settings=lambda given: given.columns)
"""The persons of a chunk, as they are and without case and blanks."""


def _add_spellings(given: ColumnsReading, parts: Sequence[Artifact], path: Path) -> int:
    return _write_spellings(path, _read_spellings(given, parts))


BUNDLED_SPELLINGS = FileStep(
    BUNDLES,
    make=_add_spellings,
    reads=lambda _given, parts: [part.sha256 for part in parts],
    settings=lambda given: given.columns,
    phase="bundle spellings",
)
"""The persons of several chunks, or of bundles of them."""


def report_spellings(run: Run, source: ChunkedSource, persons: Sequence[str]) -> None:
    """Notify how many persons differ only in spelling, and how many are placeholders; nothing if none.

    Args:
        persons: The columns that name a person.
    """
    # Only texts have spellings, and where nobody is named each record is a person.
    if not any(is_text(working_type(source.columns.field(name).type)) for name in persons):
        return
    given = ColumnsReading(tuple(persons), run.store)
    # Codes, which most keys are, need not be compared.
    marked = [np.load(run.store.path(one)) for one in run_for_items(run, CHARACTERS, given, source.chunks)]
    if not any(map(may_be_alike, np.bitwise_or.reduce(marked, axis=0).tolist())):
        return
    parts = run_for_items(run, SPELLINGS, given, source.chunks)
    found = _read_spellings(given, merge_on_cluster(run, BUNDLED_SPELLINGS, given, parts, always_merged=SPELLINGS.name))
    if words := spelling_words(found.alike, found.unknown, "about " if found.bits else ""):
        having = f"Columns {listed(persons)} have" if len(persons) > 1 else f"Column '{persons[0]}' has"
        notify(
            f"{having} {words}; k counts each spelling as a person of its own, so that fewer than k people may share a "
            "class. Write each person in one way in the source, and nobody as null."
        )
