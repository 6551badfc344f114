"""The class sizes of the source as it is, for the risk before anonymisation: out of core, from the histograms that phase 2 counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from core.lattice import Node
from core.risk import ClassSizes, Figures, risk_of
from core.rollups import packing_of
from schemas.job import Job
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import Coding, load_coding
from tasks.database import connect, literal
from tasks.histograms import counted_at

VERSION = 1
MOST_ROWS = 30_000_000
"""Cells of all chunks together beyond which adding them up once more would cost too much of a run."""


class Sizes(BaseModel):
    """How many combinations of QID values there are of each number of records."""

    model_config = ConfigDict(frozen=True)

    sizes: tuple[int, ...]
    classes: tuple[int, ...]


def sizes_sql(files: Sequence[str], words: Sequence[str]) -> str:
    """Returns the statement that counts combinations of QID values by their records.

    It is right because counts of disjoint chunks add up, and so do those of cells that differ in a sensitive value alone.

    Args:
        files: Quoted paths of histograms at the finest node.
        words: What tells combinations apart; nothing where every row is one.
    """
    source = f"read_parquet([{', '.join(files)}])"
    summed = f"(SELECT sum(count)::BIGINT AS count FROM {source} GROUP BY {', '.join(words)})" if words else source
    return f"SELECT count AS size, count(*) AS classes FROM {summed} GROUP BY size ORDER BY size"


def qid_words(coding: Coding) -> list[str]:
    """Returns what tells the QIDs of cells at the finest node apart: their words, without the digits of sensitive columns."""
    packing, qids = packing_of(coding.finest, coding.axes), len(coding.domains)
    words = []
    for number, positions in enumerate(packing.words):
        mine = [position for position in positions if position < qids]
        if mine:
            words.append(f"cell_{number} // {packing.weights[mine[-1]]}")
    return words


def is_counted(job: Job, coding: Coding, root: Node, parts: Sequence[Artifact]) -> bool:
    """Tells whether there are histograms at the finest node, and few enough cells in them to be added up."""
    return counted_at(job, coding, root) == coding.finest and (root == coding.finest or sum(part.rows for part in parts) <= MOST_ROWS)


def sizes_key(coding: Coding, files: Sequence[Artifact]) -> str:
    """Returns the fingerprint of the class sizes of the source."""
    return key_of(VERSION, coding.key, len(coding.domains), sorted(file.sha256 for file in files))


def count_sizes(job: Job, domain: Artifact, files: Sequence[Artifact], store: Store, spill: Path) -> Artifact:
    """Counts the combinations of QID values of the source by their records.

    Args:
        job: Gives the memory.
        domain: The domain table.
        files: Histograms at the finest node, of the whole source or of its chunks.
        store: Gets the counts.
        spill: Folder for what does not fit into memory.
    """
    coding = load_coding(job, domain, store)

    def write(path: Path) -> int:
        words = qid_words(coding) if len(files) > 1 or coding.sensitive else []
        with connect(job, spill) as connection:
            rows = connection.execute(sizes_sql([literal(str(store.path(file))) for file in files], words)).fetchall()
        found = Sizes(sizes=tuple(int(size) for size, _ in rows), classes=tuple(int(classes) for _, classes in rows))
        path.write_text(found.model_dump_json())
        return len(rows)

    return store.make("sizes", sizes_key(coding, files), ".json", write)


class Before(NamedTuple):
    """The source as it is: its risk, and the number of its classes by size."""

    risk: Figures
    sizes: dict[int, int]


def risk_before(sizes: Artifact | None, store: Store) -> Before | None:
    """Returns the risk of the source as it is, or None where its classes were not counted."""
    if sizes is None:
        return None
    found = Sizes.model_validate_json(store.path(sizes).read_bytes())
    counts = np.array(found.sizes, np.int64)
    risk = risk_of(ClassSizes(counts, np.array(found.classes, np.int64), counts))
    return Before(risk, dict(zip(found.sizes, found.classes, strict=True)))
