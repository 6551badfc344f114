"""How unique the records of a source are, and which quasi-identifiers make them so: from the counts of phase 2, out of core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from core.histograms.rollups import packing_of
from core.privacy.risk import Figures
from schemas.job.job import Job
from tasks.counting.chunk_cells import whole_files
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_sizes import qid_words, read_sizes, sizes_key
from tasks.store.database import connect, literal
from tasks.store.keys import Step
from tasks.store.store import Artifact, Store

STEP = Step("drivers", __name__)
MOST_CELLS = 20_000_000
"""Combinations beyond which to add them up once for each quasi-identifier would take minutes."""


class Exposed(BaseModel):
    """Records that are alone with their combination, and those that share it with fewer than k."""

    model_config = ConfigDict(frozen=True)

    unique: int
    below_k: int


class Drivers(BaseModel):
    """What makes records stand out.

    Attributes:
        whole: Records that stand out by all quasi-identifiers.
        without: By quasi-identifier, those that still do without it; empty where that was not counted.
    """

    model_config = ConfigDict(frozen=True)

    whole: Exposed
    without: dict[str, Exposed]


def uniqueness(
    job: Job, domain: Artifact, files: Sequence[Artifact], sizes: Artifact, store: Store, spill: Path
) -> tuple[Drivers, Figures]:
    """Counts who stands out, by all quasi-identifiers and without each of them.

    Args:
        job: Gives k and the memory.
        domain: The domain table.
        files: Histograms at the finest node, of the whole source or of its chunks.
        sizes: Class sizes of the source, of the same files.
        store: Gets the counts.
        spill: Folder for what does not fit into memory.

    Returns:
        The counts, and the risk of the source as it is.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
    """
    coding, found = load_coding(job, domain, store), read_sizes(sizes, store)
    numbers = list(zip(found.sizes, found.classes, strict=True))
    whole = Exposed(
        unique=sum(classes for size, classes in numbers if size == 1),
        below_k=sum(size * classes for size, classes in numbers if size < job.privacy.k),
    )
    few = sum(found.classes) <= MOST_CELLS
    without = _without_each(job, coding, files, store, spill) if few else {}
    return Drivers(whole=whole, without=without), found.risk() or {}


def _without_each(job: Job, coding: Coding, files: Sequence[Artifact], store: Store, spill: Path) -> dict[str, Exposed]:
    def write(path: Path) -> int:
        found = {}
        with connect(job, spill) as connection:
            whole = whole_files(coding, files, store, spill / "drivers")
            connection.execute(cells_sql([literal(str(file)) for file in whole], qid_words(coding)))
            for position, qid in enumerate(coding.domains):
                [(unique, below)] = connection.execute(exposed_sql(keys_without(coding, position), job.privacy.k)).fetchall()
                found[qid.qid] = Exposed(unique=unique, below_k=below)
        # Only what is dear is kept; the whole follows from the class sizes.
        path.write_text(Drivers(whole=Exposed(unique=0, below_k=0), without=found).model_dump_json())
        return len(found)

    made = store.make("drivers", STEP.key(sizes_key(coding, files), job.privacy.k), ".json", write)
    return Drivers.model_validate_json(store.path(made).read_bytes()).without


def cells_sql(files: Sequence[str], words: Sequence[str]) -> str:
    """Returns the statement that makes the table ``cells``: combinations of QID values, packed, with their records.

    Args:
        files: Quoted paths of histograms at the finest node.
        words: What tells combinations apart.
    """
    named = ", ".join(f"{word} AS word_{number}" for number, word in enumerate(words))
    groups = ", ".join(f"word_{number}" for number in range(len(words)))
    source = f"read_parquet([{', '.join(files)}])"
    return f"CREATE OR REPLACE TEMP TABLE cells AS SELECT {named}, sum(count)::BIGINT AS records FROM {source} GROUP BY {groups}"


def exposed_sql(keys: Sequence[str], k: int) -> str:
    """Returns the statement that counts records in classes of one and of fewer than k, where ``keys`` tell classes apart."""
    classes = f"SELECT sum(records)::BIGINT AS records FROM cells{' GROUP BY ' + ', '.join(keys) if keys else ''}"
    return f"""
        SELECT count(*) FILTER (records = 1), coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT FROM ({classes})
    """


def keys_without(coding: Coding, position: int) -> list[str]:
    """Returns what tells combinations apart without one QID: its digit is taken out of the mixed-radix number that it is part of.

    Args:
        coding: Gives the packing.
        position: Of the QID, in job order.
    """
    packing, qids = packing_of(coding.finest, coding.axes), len(coding.domains)
    keys = []
    for number, positions in enumerate([place for place in word if place < qids] for word in packing.words):
        if not positions:
            continue
        if position not in positions:
            keys.append(f"word_{number}")
            continue
        # Digits of sensitive columns are gone from the word, so that its last QID counts ones.
        weight = packing.weights[position] // packing.weights[positions[-1]]
        if position != positions[0]:
            keys.append(f"word_{number} // {weight * packing.sizes[position]}")
        if position != positions[-1]:
            keys.append(f"word_{number} % {weight}")
    return keys
