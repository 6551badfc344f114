"""What phases 2 and 3 share: the domains and hierarchies of a run, loaded once per process from the domain artefact."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import pyarrow as pa

from core.columns.coding import Coder, Codes, PackedWords, Packing
from core.columns.column_types import spelling_counts
from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.histograms.cells import packing_of
from core.units.class_table import exact_hierarchy
from schemas.errors.base import counted
from schemas.job.job import Job, quasi_identifiers_digest
from tasks.counting.domains import axis_names
from tasks.engine.progress import notify
from tasks.engine.runs import Run
from tasks.store.keys import fingerprint_of
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_domains

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Coding:
    """Domains and hierarchies in job order.

    Attributes:
        domains: One per QID.
        hierarchies: One per QID.
        key: Fingerprint of both.
        sensitive: Domains of the sensitive columns that a privacy model looks at.
    """

    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]
    key: tuple[str, str]
    sensitive: tuple[Domain, ...] = ()
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _making: RLock = field(default_factory=RLock, init=False, repr=False, compare=False)

    def once(self, name: Hashable, make: Callable[[], Loaded]) -> Loaded:
        """Return what is made of it and is as large as the domains: once for all tasks, which are threads, and let go of with it.

        Args:
            name: What it is, and all that it depends on besides.
            make: Makes it, for who asks first; others wait.
        """
        with self._making:
            if name not in self._made:
                self._made[name] = make()
            made: Loaded = self._made[name]
            return made

    def let_go(self, name: Hashable) -> None:
        """Let go of what was made once and will hardly be asked for again; whoever does has it made anew."""
        with self._making:
            self._made.pop(name, None)

    @cached_property
    def axes(self) -> tuple[Hierarchy, ...]:
        """What tells cells apart: the QIDs' hierarchies, then sensitive columns as they are."""
        return (*self.hierarchies, *map(exact_hierarchy, self.sensitive))

    @cached_property
    def packing(self) -> Packing:
        """How cells of the finest node are packed."""
        return packing_of(self.finest, self.axes)

    @property
    def finest(self) -> Node:
        """The node at which nothing is generalised."""
        return (0,) * len(self.axes)

    @property
    def records(self) -> int:
        """N, as counted in phase 1."""
        return self.domains[0].records

    @property
    def nbytes(self) -> int:
        """Bytes of what it holds for each value."""
        values: int = sum(domain.values.nbytes + domain.counts.nbytes for domain in (*self.domains, *self.sensitive))
        return values + sum(groups.nbytes for hierarchy in self.hierarchies for groups in hierarchy.groups)


@dataclass(frozen=True)
class CellCoder:
    """Packs the QIDs of a batch into cells of a node."""

    packing: Packing
    coders: tuple[Coder, ...]

    @classmethod
    def at(cls, coding: Coding, node: Node) -> CellCoder:
        """Return the coder of a node, of the QIDs alone or of all axes; a value's code goes straight to its group there."""
        return coding.once((cls, node), lambda: cls._of(coding, node))

    @classmethod
    def _of(cls, coding: Coding, node: Node) -> CellCoder:
        domains, axes = (*coding.domains, *coding.sensitive)[: len(node)], coding.axes[: len(node)]
        coders = [Coder(domain, axis.groups[level]) for domain, axis, level in zip(domains, axes, node, strict=True)]
        return cls(packing_of(node, axes), tuple(coders))

    def codes(self, columns: Sequence[pa.Array]) -> list[Codes]:
        """Return the group of each record in each column, arrays of shape (n,); arguments and what is raised as of ``cells``."""
        return [coder.code(column) for coder, column in zip(self.coders, columns, strict=True)]

    def cells(self, columns: Sequence[pa.Array]) -> PackedWords:
        """Return the cell of each record.

        Args:
            columns: The QIDs in job order, then the other axes if the node has them, each of shape (n,).
        """
        return self.packing.pack(self.codes(columns))


CODING, MEMORY_PART = "coding", 32
"""Which part of a job's memory a coding that was loaded may take until the end of the run."""


def load_coding(job: Job, domain: Artifact, store: Store) -> Coding:
    """Return the domains and hierarchies of a run, built once for all steps and chunks."""
    key = (domain.sha256, fingerprint_of(quasi_identifiers_digest(job), job.privacy.columns))

    def read() -> Coding:
        domains = load_domains(store, domain, axis_names(job))
        qids = job.columns.quasi_identifiers
        hierarchies = [build_hierarchy(qid, values, job.folder) for qid, values in zip(qids, domains[: len(qids)], strict=True)]
        _note_spellings(domains[len(qids) :])
        return Coding(domains[: len(qids)], tuple(hierarchies), key, domains[len(qids) :])

    return store.load(CODING, key, read)


@dataclass(frozen=True)
class DomainTable:
    """The domain table of a run, with what it is read by: what all have in common that is made of coded records."""

    job: Job
    domain: Artifact
    store: Store
    spill: Path

    @classmethod
    def of(cls, run: Run, domain: Artifact) -> DomainTable:
        """Return it for a run."""
        return DomainTable(run.job, domain, run.store, run.spill)

    @cached_property
    def coding(self) -> Coding:
        """Its domains and hierarchies."""
        return load_coding(self.job, self.domain, self.store)


def _note_spellings(domains: Sequence[Domain]) -> None:
    """Tells of values that privacy models take for different ones and people do not."""
    for domain in domains:
        alike, missing = spelling_counts(domain.values)
        found = [
            *([f"{counted(alike, 'value')} that differ from another only in case or blanks"] if alike else []),
            *([f"{counted(missing, 'value')} that say that nothing is known, such as empty text and N/A"] if missing else []),
        ]
        if found:
            notify(
                f"Column '{domain.qid}' has {' and '.join(found)}; privacy models count each spelling as a value of its own. Read them as "
                f"one: {{name: {domain.qid}, normalise: [case, space, empty]}} under columns.sensitive."
            )


def forget_large_coding(job: Job, store: Store) -> None:
    """Let go of the domains and hierarchies that were loaded, where they are large: the recount, which follows, knows only the job."""
    store.unload(CODING, lambda coding: coding.nbytes * MEMORY_PART > job.memory)
