"""What phases 2 and 3 share: the domains and hierarchies of a run, loaded once per process from the domain artefact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from core.coding import Coder, Packing, Words
from core.domains import Domain, read_domains
from core.hierarchy import Hierarchy, build_hierarchy
from core.lattice import Node
from core.rollups import packing_of
from schemas.job import Job
from schemas.job_digest import quasi_identifiers_digest
from tasks.artifacts import Artifact, Store
from tasks.domains import qid_names
from tasks.tables import read_table


@dataclass(frozen=True)
class Coding:
    """Domains and hierarchies in job order.

    Attributes:
        domains: One per QID.
        hierarchies: One per QID.
        key: Fingerprint of both.
    """

    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]
    key: tuple[str, str]

    @property
    def records(self) -> int:
        """N, as counted in phase 1."""
        return self.domains[0].records


@dataclass(frozen=True)
class CellCoder:
    """Packs the QIDs of a batch into cells of a node."""

    packing: Packing
    coders: tuple[Coder, ...]

    @classmethod
    def at(cls, coding: Coding, node: Node) -> CellCoder:
        """Returns the coder of a node; a value's code goes straight to its group there."""
        coders = [
            Coder(domain, hierarchy.groups[level])
            for domain, hierarchy, level in zip(coding.domains, coding.hierarchies, node, strict=True)
        ]
        return cls(packing_of(node, coding.hierarchies), tuple(coders))

    def cells(self, columns: Sequence[pa.Array]) -> Words:
        """Returns the cell of each record.

        Args:
            columns: The QIDs in job order, each of shape (n,).

        Raises:
            LookupError: a value is not in its domain.
        """
        return self.packing.pack([coder.code(column) for coder, column in zip(self.coders, columns, strict=True)])


_loaded: dict[tuple[str, str], Coding] = {}
_loading = Lock()


def load_coding(job: Job, domain: Artifact, store: Store) -> Coding:
    """Returns the domains and hierarchies of a run, built once per process.

    Raises:
        HierarchyError: a hierarchy does not nest, does not cover the domain, or does not fit its type.
    """
    key = (domain.sha256, quasi_identifiers_digest(job))
    with _loading:
        if key in _loaded:
            return _loaded[key]
        domains = read_domains(read_table(store, domain), qid_names(job))
        hierarchies = [build_hierarchy(qid, values, job.folder) for qid, values in zip(job.columns.quasi_identifiers, domains, strict=True)]
        _loaded.clear()
        _loaded[key] = Coding(domains, tuple(hierarchies), key)
        return _loaded[key]
