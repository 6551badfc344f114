"""What a search found out about the lattice, kept beside its outcome as figures that may be shown: levels, statuses and counts."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from core.columns.domains import Node
from core.lattice.map import LatticeMap, Statuses, map_of
from schemas.job.job import Job
from tasks.store.keys import Key
from tasks.store.store import Artifact, Store

STEP = "lattice"
_JSON = TypeAdapter(LatticeMap)


def has_map(store: Store, key: Key) -> bool:
    """Return whether the map of a search was kept."""
    return store.find(STEP, key) is not None


def keep_map(job: Job, statuses: Statuses, node: Node, store: Store, key: Key) -> Artifact:
    """Keep what a picture of the lattice shows.

    Args:
        job: Gives the names.
        statuses: In the shape of the searched lattice; sensitive columns are axes of one level, after the QIDs.
        node: The chosen node.
        store: Gets the map.
        key: Of the search.
    """
    names = [qid.name for qid in job.columns.quasi_identifiers]

    def write(path: Path) -> int:
        path.write_bytes(map_json(map_of(job.name, names, statuses.reshape(statuses.shape[: len(names)]), node)))
        return 1

    return store.make(STEP, key, ".json", write)


def read_map(outcome: Artifact, store: Store) -> LatticeMap | None:
    """Read the map of the search that had this outcome, or None if none was kept."""
    kept = store.find(STEP, outcome.key)
    return _JSON.validate_json(store.path(kept).read_bytes()) if kept else None


def map_json(drawn: LatticeMap) -> bytes:
    """Return a map as JSON."""
    return _JSON.dump_json(drawn, indent=2)
