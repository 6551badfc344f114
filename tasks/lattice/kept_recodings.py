"""Recodings as the store keeps them, for a run's release and for comparison with later releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from core.local_suppression.recoding import read_stages
from core.recoding.recoding import Recoding, read_recoding, recoding_tables
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding
from tasks.store.keys import Key
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table, write_undeclared_table


class RecodingArtifacts(FrozenModel):
    """Stored artefacts of a recoding: outcome (JSON), cells, classes and later stages (Parquet).

    Where linked records are withheld from their classes, ``withheld`` holds persons and classes.
    """

    outcome: Artifact
    cells: Artifact
    classes: Artifact
    later: Artifact | None = None
    withheld: Artifact | None = None

    @property
    def digests(self) -> tuple[str, ...]:
        """Return the SHA-256 digests of a recoding's stored tables, in the order of the fields."""
        return tuple(part.sha256 for part in (self.cells, self.classes, self.later, self.withheld) if part)


def read_recoding_artifacts(store: Store, key: Key, steps: Mapping[str, str]) -> RecodingArtifacts | None:
    """Find all stored artefacts of a recoding by key, without reading them; None if any is missing.

    A kill between two of them leaves a part, which is made again with the same bytes.

    Args:
        steps: The step of each artefact, by field name.
    """
    found = {name: store.find(step, key) for name, step in steps.items()}
    return None if None in found.values() else RecodingArtifacts.model_validate(found)


def write_search_outcome(store: Store, key: Key, outcome: BaseModel) -> Artifact:
    """Return the artefact of a search outcome as JSON, written unless the store has the key already."""
    return store.make("outcome", key, ".json", lambda path: path.write_text(outcome.model_dump_json()))


def write_recoding_of_cells(store: Store, key: Key, recoding: Recoding, outcome: BaseModel) -> RecodingArtifacts:
    """Write a recoding of cells and its outcome to the store; return their artefacts."""
    cells, classes = recoding_tables(recoding)
    return RecodingArtifacts(
        outcome=write_search_outcome(store, key, outcome),
        cells=store.make("cells", key, ".parquet", partial(write_undeclared_table, cells)),
        classes=store.make("classes", key, ".parquet", partial(write_undeclared_table, classes)),
    )


OF_CELLS = {name: name for name in ("outcome", "cells", "classes")}
"""The steps of a recoding of cells."""
Withheld = NDArray[Any]


def load_recoding(job: Job, coding: Coding, artifacts: RecodingArtifacts, store: Store) -> Recoding:
    """Return a recoding from the store, read once and then cached for all chunks."""
    key = (*coding.key, *artifacts.digests, job.intervals)
    return store.load("recoding", key, lambda: read_recoding_of(coding, artifacts, job.intervals, store))


def read_recoding_of(coding: Coding, artifacts: RecodingArtifacts, intervals: Literal["text", "bounds"], store: Store) -> Recoding:
    """Return a recoding of cells read from the store, without caching.

    It is at the node of its outcome, or at the finest node if each class has labels of its own.
    """
    cells, classes = read_table(store, artifacts.cells), read_table(store, artifacts.classes)
    outcome = json.loads(store.path(artifacts.outcome).read_bytes())
    node = outcome.get("node", coding.finest[: len(coding.hierarchies)])
    recoding = read_recoding(cells, classes, tuple(node), coding.hierarchies, intervals)
    if artifacts.later is None:
        return recoding
    nodes = [tuple(stage) for stage in outcome["local"]["stages"]]
    return replace(recoding, later=read_stages(read_table(store, artifacts.later), nodes, coding.hierarchies))


def load_withheld(artifacts: RecodingArtifacts, store: Store) -> Withheld | None:
    """Return the withheld pairs of ``person`` and ``class`` as a memory map; None if none were stored."""
    if artifacts.withheld is None:
        return None
    held: Withheld = np.load(store.path(artifacts.withheld), mmap_mode="r" if artifacts.withheld.rows else None)
    return held
