"""Recodings by several nodes and with suppressed cells: parts, each published at its own node.

Readers know neither nodes nor suppressed cells: they see combinations of labels. Two parts may publish the same combination, and then it is
one class. A label may occur at several levels of a hierarchy, and a suppressed cell looks like the last level. The class is safe because
both parts of it are: a union of safe classes is safe under every model (``core.privacy.models``). Sizes add up, values too. Entropy is
concave and the earth mover's distance from the source is convex, so that of a mixture lies between those of its parts. Recursive diversity
is monotone. Where persons are counted it is not always so, and ``core.local_suppression.local_transformation`` handles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram
from core.local_suppression.residual import ResidualLevel, selected_cells
from core.recoding.classes import QidLabels, text_ranks
from core.recoding.labels import SUPPRESSED_VALUE, same_labels
from core.recoding.recoding import DROPPED, Recoding, Stage
from core.units.class_table import ClassMembers

NOT_COUNTED = np.empty(0)


@dataclass(frozen=True, eq=False)
class RecodedPart:
    """Part of the records that is published at one node, with its suppressed cells.

    Attributes:
        cells: Their cells, of the QIDs alone.
        suppressed_cells: Shape (cells, QIDs): which values are replaced by ``*``.
        members: Who is in the cells; None where the job has no person column.
    """

    cells: Histogram
    suppressed_cells: NDArray[np.bool_]
    members: ClassMembers | None = None

    @classmethod
    def of(cls, level: ResidualLevel, published: NDArray[np.bool_], starred: NDArray[np.bool_] | None = None) -> RecodedPart:
        """Return the published cells of a level as a part; without a mask no cell value is suppressed."""
        nothing = np.zeros((level.cells.cells, len(level.node)), np.bool_)
        return cls(level.cells, nothing if starred is None else starred, level.members).marked_cells(published)

    def marked_cells(self, marked: NDArray[np.bool_]) -> RecodedPart:
        """Return the part with the marked cells alone."""
        rows, numbers = np.flatnonzero(marked), np.full(len(marked), -1)
        numbers[rows] = np.arange(len(rows))
        return RecodedPart(
            selected_cells(self.cells, rows),
            self.suppressed_cells[rows],
            self.members.relabelled_without_outside(numbers) if self.members else None,
        )

    def withheld(self, hierarchies: Sequence[Hierarchy]) -> NDArray[np.bool_]:
        """Return a mask of values published as ``*``, shape (cells, QIDs): suppressed or at the last level."""
        tops = np.array([level == hierarchy.top for hierarchy, level in zip(hierarchies, self.cells.node, strict=True)])
        found: NDArray[np.bool_] = self.suppressed_cells | tops
        return found


def recode_parts(parts: Sequence[RecodedPart], hierarchies: Sequence[Hierarchy], dropped: Sequence[Histogram]) -> Recoding:
    """Build a recoding from parts; each combination of labels is a class, all columns are text.

    Args:
        parts: The first is looked up first; a record whose cell is in it is in no later one.
        hierarchies: One per QID in job order.
        dropped: Of the first parts, the cells of their nodes that neither they nor later ones publish.
    """
    labels, numbers, firsts = labels_of(parts, hierarchies)
    counts = np.concatenate([part.cells.counts for part in parts])
    sizes = np.bincount(numbers, weights=counts, minlength=len(firsts)).astype(np.int64)
    columns = {name: column.take(pa.array(firsts)) for label in labels for name, column in label.columns.items()}
    ends = np.cumsum([part.cells.cells for part in parts])
    classes = np.split(numbers.astype(np.int32), ends[:-1])
    none = [None] * (len(parts) - len(dropped))
    first, *later = [_stage(part.cells, mine, out) for part, mine, out in zip(parts, classes, [*dropped, *none], strict=True)]
    return Recoding(first.node, first.packing, first.words, first.classes, pa.table(columns), sizes, tuple(later))


def _stage(cells: Histogram, classes: NDArray[np.int32], dropped: Histogram | None) -> Stage:
    """Build the stage of a part's cells and its dropped cells; no cell is in both."""
    if dropped is None or not dropped.cells:
        return Stage(cells.node, cells.packing, cells.words, classes)
    words = [np.concatenate(pair) for pair in zip(cells.words, dropped.words, strict=True)]
    order = np.lexsort(words[::-1])
    joined = np.append(classes, np.full(dropped.cells, DROPPED))
    return Stage(cells.node, cells.packing, tuple(word[order] for word in words), joined[order])


def labels_of(
    parts: Sequence[RecodedPart], hierarchies: Sequence[Hierarchy]
) -> tuple[list[QidLabels], NDArray[np.int64], NDArray[np.intp]]:
    """Return the labels of the parts' cells by QID, the class of each cell, and a cell of each class.

    Returns:
        Labels by QID; shape (cells of all parts,), the class of each; and shape (classes,), a cell of each class.
    """
    labels = [_labels(parts, hierarchy, qid) for qid, hierarchy in enumerate(hierarchies)]
    return labels, *same_labels(labels)


def _labels(parts: Sequence[RecodedPart], hierarchy: Hierarchy, qid: int) -> QidLabels:
    """Return the labels of one QID for the cells of all parts."""
    taken = []
    for part in parts:
        texts = as_text(hierarchy.labels[part.cells.node[qid]]).take(pa.array(part.cells.codes[:, qid]))
        taken.append(pc.if_else(pa.array(part.suppressed_cells[:, qid]), SUPPRESSED_VALUE, texts))
    texts = pa.concat_arrays(taken)
    # Ranked by text and not by code: parts at different levels may publish the same label, which is one class to readers.
    return QidLabels({hierarchy.qid: texts}, text_ranks(texts), NOT_COUNTED, NOT_COUNTED)


def stages_table(stages: Sequence[Stage]) -> pa.Table:
    """Return later stages as one table with the columns ``stage``, ``cell_0 …`` and ``class``.

    Stages are numbered from 0. Narrow cells use the first cell columns only.
    """
    width = max((len(stage.words) for stage in stages), default=1)
    sizes = [len(stage.classes) for stage in stages]
    columns: dict[str, NDArray[np.integer]] = {"stage": np.repeat(np.arange(len(stages), dtype=np.int16), sizes)}
    for word in range(width):
        cells = [stage.words[word] if word < len(stage.words) else np.zeros(len(stage.classes), np.int64) for stage in stages]
        columns[f"cell_{word}"] = np.concatenate([np.empty(0, np.int64), *cells])
    columns["class"] = np.concatenate([np.empty(0, np.int32), *(stage.classes for stage in stages)])
    return pa.table(columns)


def read_stages(table: pa.Table, nodes: Sequence[Node], hierarchies: Sequence[Hierarchy]) -> tuple[Stage, ...]:
    """Build stages at the given nodes from the table of ``stages_table``."""
    starts = np.searchsorted(table["stage"].to_numpy(), np.arange(len(nodes) + 1)).tolist()
    stages = []
    for node, start, end in zip(nodes, starts[:-1], starts[1:], strict=True):
        packing, rows = packing_of(node, hierarchies), table.slice(start, end - start)
        words = tuple(rows[f"cell_{number}"].to_numpy() for number in range(len(packing.words)))
        stages.append(Stage(node, packing, words, rows["class"].to_numpy()))
    return tuple(stages)
