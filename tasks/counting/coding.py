"""Domains and hierarchies of a run, loaded once per process, and the cells of chunks in their coding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import Coder, Codes, PackedWords, Packing, Translation
from core.columns.column_types import spelling_counts, spelling_words
from core.columns.data_parallel import prefetch
from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.histograms.cells import packing_of
from core.histograms.projections import Bundles
from core.units.class_table import exact_hierarchy
from schemas.errors.folders import WorkError
from schemas.job.job import Job, quasi_identifiers_digest
from tasks.counting.chunk_counts import OF_CHUNK, axis_names, cell_columns, cell_table
from tasks.engine.progress import notify
from tasks.engine.runs import Run
from tasks.store.keys import fingerprint_of
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_domains, read_table

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Coding:
    """Domains and hierarchies of the QIDs in job order, and domains of sensitive columns under a model.

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
        """Return the object cached under a name; the first call makes it while other threads wait.

        Args:
            name: What it is, and all that it depends on besides.
        """
        with self._making:
            if name not in self._made:
                self._made[name] = make()
            made: Loaded = self._made[name]
            return made

    def drop_cached(self, name: Hashable) -> None:
        """Remove the object of this name from the cache of ``once``, if it is there."""
        with self._making:
            self._made.pop(name, None)

    @cached_property
    def axes(self) -> tuple[Hierarchy, ...]:
        """The axes of cells: the QIDs' hierarchies, then sensitive columns ungeneralised."""
        return (*self.hierarchies, *map(exact_hierarchy, self.sensitive))

    @cached_property
    def packing(self) -> Packing:
        """The packing of the finest node's cells."""
        return packing_of(self.finest, self.axes)

    @property
    def finest(self) -> Node:
        """The node at which no column is generalised."""
        return (0,) * len(self.axes)

    @property
    def records(self) -> int:
        """N, the number of records counted in phase 1."""
        return self.domains[0].records

    @property
    def nbytes(self) -> int:
        """Bytes of the domains' values and the hierarchies' groups."""
        values: int = sum(domain.values.nbytes + domain.counts.nbytes for domain in (*self.domains, *self.sensitive))
        return values + sum(groups.nbytes for hierarchy in self.hierarchies for groups in hierarchy.groups)


@dataclass(frozen=True)
class CellCoder:
    """Coder of records into packed cells of a node."""

    packing: Packing
    coders: tuple[Coder, ...]

    @classmethod
    def at(cls, coding: Coding, node: Node) -> CellCoder:
        """Return the coder for a node of the QIDs or of all axes, cached in the coding."""
        return coding.once((cls, node), lambda: cls._of(coding, node))

    @classmethod
    def _of(cls, coding: Coding, node: Node) -> CellCoder:
        domains, axes = (*coding.domains, *coding.sensitive)[: len(node)], coding.axes[: len(node)]
        coders = [Coder(domain, axis.groups[level]) for domain, axis, level in zip(domains, axes, node, strict=True)]
        return cls(packing_of(node, axes), tuple(coders))

    def codes(self, columns: Sequence[pa.Array]) -> list[Codes]:
        """Return, per column, the group number of each record's value at the node, shape (n,).

        Arguments and errors are as for ``cells``.
        """
        return [coder.code(column) for coder, column in zip(self.coders, columns, strict=True)]

    def cells(self, columns: Sequence[pa.Array]) -> PackedWords:
        """Return the packed cell of each record, words of shape (n,).

        Args:
            columns: The QIDs in job order, then the other axes if the node has them, each of shape (n,).
        """
        return self.packing.pack(self.codes(columns))


CODING, MEMORY_PART = "coding", 32
"""Which part of a job's memory a coding that was loaded may take until the end of the run."""


def load_coding(job: Job, domain: Artifact, store: Store) -> Coding:
    """Return the domains and hierarchies of a run, built on the first call and cached by the store."""
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
    """The domain table of a run, with job, store and spill folder."""

    job: Job
    domain: Artifact
    store: Store
    spill: Path

    @classmethod
    def of(cls, run: Run, domain: Artifact) -> DomainTable:
        """Return the domain table of a run from its artefact; the coding is loaded on first use."""
        return DomainTable(run.job, domain, run.store, run.spill)

    @cached_property
    def coding(self) -> Coding:
        """The table's domains and hierarchies."""
        return load_coding(self.job, self.domain, self.store)


def _note_spellings(domains: Sequence[Domain]) -> None:
    """Report values that differ only in spelling, which privacy models count as different.

    Values for missing data, such as empty text and N/A, are reported too.
    """
    for domain in domains:
        if found := spelling_words(*spelling_counts(domain.values)):
            notify(
                f"Column '{domain.qid}' has {found}; privacy models count each spelling as a value of its own. Read them as "
                f"one: {{name: {domain.qid}, normalise: [case, space, empty]}} under columns.sensitive."
            )


def forget_large_coding(job: Job, store: Store) -> None:
    """Drop the store's cached coding if it is large for the job's memory; the recount needs none."""
    store.unload(CODING, lambda coding: coding.nbytes * MEMORY_PART > job.memory)


ChunkCells = tuple[Bundles, NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]


def chunk_domains(part: Artifact, names: Sequence[str], store: Store) -> tuple[Domain, ...]:
    """Return the domains that code a chunk's histogram; raise ``WorkError`` if they are missing."""
    found = store.find("domains", part.key)
    if found is None:
        raise WorkError.damaged(str(store.folder / "domains"))
    return load_domains(store, found, names)


def translation_of(coding: Coding, part: Artifact, store: Store) -> Translation | None:
    """Return the translation of a chunk's codes into the source's coding; None if none is needed."""
    if part.step != OF_CHUNK:
        return None
    whole = (*coding.domains, *coding.sensitive)
    found = Translation.between(chunk_domains(part, [domain.qid for domain in whole], store), whole)
    return found if found.changes else None


def cells_in_source_coding(coding: Coding, part: Artifact, store: Store) -> tuple[PackedWords, NDArray[np.int64]]:
    """Return packed cells and counts of a finest-node histogram, translated into the source's coding."""
    translation = translation_of(coding, part, store)
    # Checked when it was written, and its digest since.
    words, counts = cell_columns(read_table(store, part))
    return translation.translated(words) if translation else words, counts


def bundled_cells(coding: Coding, parts: Sequence[Artifact], store: Store) -> Iterator[ChunkCells]:
    """Yield bundles, bundled cell codes and counts of each finest-node histogram; the next is read ahead.

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
    """Return Parquet paths of histograms' cells in the source's coding; write translated ones.

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
