"""Maps of searched lattices, stored with the outcome: levels, statuses and counts of nodes."""

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
    """Return whether the lattice map of a search is in the store."""
    return store.find(STEP, key) is not None


def keep_map(job: Job, statuses: Statuses, node: Node, store: Store, key: Key) -> Artifact:
    """Write the lattice map of a search to the store.

    Args:
        job: Gives the names.
        statuses: In the shape of the searched lattice; sensitive columns are axes of one level, after the QIDs.
        node: The chosen node.
        store: The store.
        key: The key of the search.
    """
    names = [qid.name for qid in job.columns.quasi_identifiers]

    def write(path: Path) -> int:
        path.write_bytes(map_json(map_of(job.name, names, statuses.reshape(statuses.shape[: len(names)]), node)))
        return 1

    return store.make(STEP, key, ".json", write)


def read_map(outcome: Artifact, store: Store) -> LatticeMap | None:
    """Read the lattice map of the search with this outcome; None if there is none."""
    kept = store.find(STEP, outcome.key)
    return _JSON.validate_json(store.path(kept).read_bytes()) if kept else None


def map_json(drawn: LatticeMap) -> bytes:
    """Return a lattice map as JSON."""
    return _JSON.dump_json(drawn, indent=2)
