"""Recodings by several nodes and with suppressed cells, and their losses.

Readers know neither nodes nor suppressed cells: they see combinations of labels. Two parts may publish the same combination, and then it is
one class. A label may occur at several levels of a hierarchy, and a suppressed cell looks like the last level. The class is safe because
both parts of it are: a union of safe classes is safe under every model (``core.privacy.models``). Sizes add up, values too. Entropy is
concave and the earth mover's distance from the source is convex, so that of a mixture lies between those of its parts. Recursive diversity
is monotone. Where persons are counted it is not always so, and ``core.local_suppression.local_transformation`` handles it.

A suppressed cell costs as much as a suppressed record does in the same QID: NCP 1, all bits. ``suppressed`` are records that are withheld
in every QID, dropped or masked. Records that are published with some cells suppressed, or at the levels of a further pass, are not among
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram
from core.lattice.objectives import WEIGHTED, Pricing, objective_of
from core.local_suppression.residual import ResidualLevel, selected_cells
from core.recoding.classes import QidLabels, text_ranks
from core.recoding.labels import SUPPRESSED_VALUE, same_labels
from core.recoding.recoding import DROPPED, Recoding, Stage
from core.units.class_table import ClassMembers
from core.units.losses import c_avg, dm, group_penalties, sum_of_squares

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


def recode_parts(parts: Sequence[RecodedPart], hierarchies: Sequence[Hierarchy], dropped: Sequence[Histogram] = ()) -> Recoding:
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


Floats = NDArray[np.float64]
Price = Callable[[Hierarchy, Domain, int], Floats]
"""What a record of each group at a level costs in one QID, shape (groups,)."""


@dataclass(frozen=True, eq=False)
class SuppressionCosts:
    """Counts of suppressed records and cells, and the losses of a recoding.

    Attributes:
        suppressed: Records that are dropped or masked.
        masked: How many of them are published.
        records_with_suppressed_cells: Other records with a suppressed cell.
        suppressed_cells: Suppressed cells, those of masked records included.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, in job order.
    """

    suppressed: int
    masked: int
    records_with_suppressed_cells: int
    suppressed_cells: int
    loss: dict[str, int | float]
    ncp: list[float]


def costs_of(
    parts: Sequence[RecodedPart],
    classes: NDArray[np.int32],
    domains: Sequence[Domain],
    hierarchies: Sequence[Hierarchy],
    k: int,
    unpublished: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
) -> SuppressionCosts:
    """Return counts of suppressed records and cells, and the losses, of a locally transformed release.

    Args:
        parts: The node of all, then further passes, then records with suppressed cells.
        classes: Shape (cells of all parts,), the class of each.
        domains: One per QID, of the source.
        hierarchies: One per QID.
        k: Fewest persons or records of a class.
        unpublished: Shape (cells,), records of the cells that are in no part.
        persons: Shape (classes,), where k counts them.
    """
    records, dropped = domains[0].records, int(unpublished.sum())
    counts = np.concatenate([part.cells.counts for part in parts])
    # What the node of all publishes is not suppressed, even if all of it is withheld by its levels.
    first = np.zeros(parts[0].cells.cells, np.bool_)
    masks = np.concatenate([first, *(part.withheld(hierarchies).all(axis=1) for part in parts[1:])])
    some = np.concatenate([part.suppressed_cells.any(axis=1) for part in parts]) & ~masks
    stars = np.concatenate([part.suppressed_cells.sum(axis=1) for part in parts])
    masked = int(counts[masks].sum())
    suppressed = masked + dropped
    sizes = np.bincount(classes[~masks], weights=counts[~masks]).astype(np.int64)
    # A class that holds nothing but masked records is the mask, which is charged as suppressed.
    kept = np.flatnonzero(sizes)
    sizes, units = sizes[kept], records - suppressed if persons is None else int(persons[kept].sum())
    charged = [part_charge(parts, qid, group_penalties, 1.0, domains, hierarchies) for qid in range(len(hierarchies))]
    ncp = [(charge + dropped) / records for charge in charged]
    loss: dict[str, int | float] = {
        "dm": dm(sizes, suppressed, records),
        "dm_star": sum_of_squares(sizes) + suppressed * suppressed,
        "dm_all": sum_of_squares(sizes) + masked * masked + sum_of_squares(unpublished),
        "gcp": sum(ncp) / len(ncp),
        "precision": _precision(parts, masks, hierarchies),
        "c_avg": c_avg(units, len(sizes), k),
        "suppression_rate": suppressed / records,
    }
    return SuppressionCosts(suppressed, masked, int(counts[some].sum()), int(np.dot(stars, counts)), loss, ncp)


def part_charge(
    parts: Sequence[RecodedPart], qid: int, price: Price, star: float, domains: Sequence[Domain], hierarchies: Sequence[Hierarchy]
) -> float:
    """Return the summed loss of the published records in one QID; a suppressed cell costs ``star``."""
    total = 0.0
    for part in parts:
        prices = price(hierarchies[qid], domains[qid], part.cells.node[qid])
        total += float(np.dot(np.where(part.suppressed_cells[:, qid], star, prices[part.cells.codes[:, qid]]), part.cells.counts))
    return total


def objective_value(
    objective: str, parts: Sequence[RecodedPart], domains: Sequence[Domain], hierarchies: Sequence[Hierarchy], dropped_records: int,
    weights: Sequence[float] = (),
) -> dict[str, float]:  # fmt: skip
    """Return ``{objective: its loss per record and QID}``; empty if every release reports that loss."""
    records = domains[0].records
    priced = objective_of(objective)
    if not isinstance(priced, Pricing) or priced.groups is None or not (priced.is_reported or weights):
        return {}
    total = 0.0
    for qid, (domain, weight) in enumerate(zip(domains, weights or (1.0,) * len(domains), strict=True)):
        star = priced.withheld(domain)
        cost = part_charge(parts, qid, priced.groups, star, domains, hierarchies) + dropped_records * star
        if priced.relative:
            values = np.append(domain.counts, domain.nulls)[: domain.size]
            cost -= float(np.dot(values, priced.groups(hierarchies[qid], domain, 0)))
        total += weight * cost
    return {WEIGHTED if weights else objective: total / (records * (sum(weights) if weights else len(domains)))}


def _precision(parts: Sequence[RecodedPart], masks: NDArray[np.bool_], hierarchies: Sequence[Hierarchy]) -> float:
    """Return Sweeney's precision of the records that are not suppressed: 1 − mean(level / last level).

    A suppressed cell counts as the last level.
    """
    lost, records, start = 0.0, 0, 0
    for part in parts:
        kept = ~masks[start : start + part.cells.cells]
        start += part.cells.cells
        shares = np.array([level / max(hierarchy.top, 1) for hierarchy, level in zip(hierarchies, part.cells.node, strict=True)])
        counts = part.cells.counts[kept]
        lost += float(np.dot(np.where(part.suppressed_cells[kept], 1.0, shares).sum(axis=1), counts))
        records += int(counts.sum())
    return 1 - lost / (records * len(hierarchies)) if records else 0.0
