"""Counts of a release's labels by quasi-identifier, and their loss (GCP)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.columns.numbers import filled
from core.evaluation.utility import Meaning, bound_texts, meaning_of
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.histograms.cells import roll_up
from core.recoding.labels import gcp_of_class_values
from core.units.class_table import classes_of, without_sensitive
from schemas.errors.base import StorageError, counted
from schemas.job.job import Job
from schemas.release.manifest import Manifest, published_qids
from tasks.counting.coding import Coding
from tasks.counting.histograms import load_histogram
from tasks.lattice.promises import promise_of
from tasks.mondrian.cells import bytes_of_rows
from tasks.release.files import data_files, layout_of, relation_of
from tasks.store.database import connect
from tasks.store.store import Artifact, Store
from tasks.utility.side_by_side import UtilityComparison

BATCH = 20_000
"""Labels whose values are written out at a time: ranges over a large domain have many each."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Texts, codes and record counts of one QID's labels in a release, with domain and hierarchy.

    Attributes:
        number: Of the QID, in job order.
        names: Of its columns.
        domain: Its values in the source.
        level: Level of a full-domain release, else None.
        texts: The label of each group; two bounds with a bar between; None for a null.
        exact: Shape (labels,), the code where a value itself is published, else -1.
        counts: Shape (labels,), records in the files.
    """

    number: int
    names: tuple[str, ...]
    domain: Domain
    hierarchy: Hierarchy
    level: int | None
    texts: list[str | None]
    exact: NDArray[np.int64]
    counts: NDArray[np.int64]

    def meaning(self, release: Path, first: int = 0, end: int | None = None) -> Meaning:
        """Return which values some labels cover, with costs; raise ``StorageError`` for unknown labels."""
        try:
            return meaning_of(self.texts[first:end], self.exact[first:end], self.domain, self.hierarchy, self.level)
        except LookupError as error:
            lost = counted(error.args[0], "label")
            reason = f"{lost} of '{self.domain.qid}' in neither its hierarchy nor a range or a set of the source's values"
            raise StorageError.not_a_release(str(release), reason) from None


def labels_of(bench: UtilityComparison, job: Job, coding: Coding, levels: dict[str, int] | None) -> Iterator[Labels]:
    """Yield each QID's published labels with record counts; create tables ``labels_<number>``.

    Args:
        bench: With the release.
        job: Gives the columns.
        coding: Of the source.
        levels: Of a full-domain release.
    """
    published = set(published_qids(job))
    for number, (domain, hierarchy) in enumerate(zip(coding.domains, coding.hierarchies, strict=True)):
        # Where the QID is not published under its own name it is so as two bounds.
        names = (domain.qid,) if domain.qid in published else (f"{domain.qid}_low", f"{domain.qid}_high")
        table, level = bench.labels(number, names), levels[domain.qid] if levels else None
        yield Labels(number, names, domain, hierarchy, level, *_texts(table, domain, level), table["records"].to_numpy())


def _texts(table: pa.Table, domain: Domain, level: int | None) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return labels as text, and the code of labels that are single values.

    Two bounds have a bar between them.
    """
    keys = [table[name].combine_chunks() for name in table.column_names if name.startswith("key_")]
    exact = np.full(len(table), -1, np.int64)
    if len(keys) == 2:
        low, high = (key.cast(pa.string()) for key in keys)
        return bound_texts(low, high).to_pylist(), exact
    [key] = keys
    # At a chosen level above 0 a group may happen to be called like a value, and is not that value.
    if not level and (key.type == domain.values.type or pa.types.is_string(domain.values.type)):
        exact = filled(pc.index_in(key.cast(domain.values.type), domain.values), -1).astype(np.int64)
    return (key if pa.types.is_string(key.type) else as_text(key)).to_pylist(), exact


def published_gcp(job: Job, coding: Coding, release: Path, manifest: Manifest, spill: Path) -> float:
    """Return the GCP of a release's files, from labels alone; each record not in the files costs 1.

    The code is the same for all methods. It uses only the job, the source's values and the files.
    """
    lost = 0.0
    with connect(job, spill) as connection:
        files = data_files(release)
        bench = UtilityComparison(connection, "", relation_of(connection, files, layout_of(files, manifest.columns)))
        for labels in labels_of(bench, job, coding, manifest.levels_of_all):
            for first in range(0, len(labels.texts), BATCH):
                wide = labels.meaning(release, first, first + BATCH).costs
                lost += float(np.dot(wide, labels.counts[first : first + BATCH]))
    # Masked records are in the files, so that the loop has priced them already.
    dropped = manifest.suppressed - manifest.masked
    return (lost / len(coding.domains) + dropped) / manifest.records


def gcp_of_source_values(job: Job, coding: Coding, histogram: Artifact, node: Node, store: Store) -> float | None:
    """Return the GCP by the source values in each class at a node; None if memory is too short.

    Args:
        job: Gives the privacy models and the memory.
        coding: Of the run.
        histogram: Of the whole source at the finest node.
        node: Level of each QID in the release.
        store: Has the histogram.
    """
    # A comparison does without this one figure sooner than without the run.
    if bytes_of_rows(coding, histogram.rows) > job.memory:
        return None
    counted = load_histogram(histogram, coding, coding.finest, store)
    # Sensitive values are axes of the histogram too; they must stay apart until the spread of each class is known.
    rolled = roll_up(counted, (*node, *(0 for _ in coding.sensitive)), coding.axes)
    # The penalty is of QIDs alone, so that cells which differ in a sensitive value only are one from here on.
    cells, chosen = (without_sensitive(one, coding.hierarchies) for one in (counted, rolled))
    failing = classes_of(rolled, coding.sensitive)[0].failing(promise_of(job, coding))
    return gcp_of_class_values(cells, chosen, failing, coding.domains, coding.hierarchies)
