"""Recodings as the store keeps them: what a run publishes by, and what is left of an earlier release to compare it with."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.local_suppression.recoding import read_stages
from core.recoding.recoding import Recoding, read_recoding
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table


class RecodingArtifacts(BaseModel):
    """The outcome (JSON), the cells with their classes, the classes with their labels, and cells of later stages, if any (Parquet).

    Also, where linked records are taken out of their classes, whose go from which.
    """

    model_config = ConfigDict(frozen=True)

    outcome: Artifact
    cells: Artifact
    classes: Artifact
    later: Artifact | None = None
    withheld: Artifact | None = None

    @property
    def digests(self) -> tuple[str, ...]:
        """What the class of a record depends on."""
        return tuple(part.sha256 for part in (self.cells, self.classes, self.later, self.withheld) if part)


Withheld = NDArray[Any]
_loaded: dict[tuple[str, ...], Recoding] = {}
_loading = Lock()


def load_recoding(job: Job, coding: Coding, artifacts: RecodingArtifacts, store: Store) -> Recoding:
    """Reads a recoding from its tables, once per process.

    Raises:
        StorageError: an artefact is not what its step promises.
    """
    key = (*coding.key, *artifacts.digests, job.intervals)
    # Chunk tasks are threads, and the table of a recoding is large: it is made once, and one is held.
    with _loading:
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = read_recoding_of(coding, artifacts, job.intervals, store)
        return _loaded[key]


def read_recoding_of(coding: Coding, artifacts: RecodingArtifacts, intervals: Literal["text", "bounds"], store: Store) -> Recoding:
    """Reads a recoding of cells: at the node that its outcome names, or at the finest if each class has labels of its own.

    Raises:
        StorageError: an artefact is not what its step promises.
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
    """Returns whose records go from which class, mapped and not read, with the fields ``person`` and ``class``; None where none do."""
    if artifacts.withheld is None:
        return None
    held: Withheld = np.load(store.path(artifacts.withheld), mmap_mode="r" if artifacts.withheld.rows else None)
    return held
