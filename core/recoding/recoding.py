"""Recodings: any algorithm's result as a map from cells to classes, with the label of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing, single_word
from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram

Treatment: TypeAlias = str
"""A name in `schemas.job.privacy.SUPPRESSIONS`."""
Intervals = Literal["text", "bounds"]
# Of four bytes each: 64 MB for the recoding itself, one for each later stage.
LOOKUP_CELLS = 1 << 24
LATER_CELLS = 1 << 18
SUPPRESSED = np.int32(-1)
DROPPED = np.int32(-2)
"""The class of cells that no later stage may take up, though it has their groups."""


@dataclass(frozen=True)
class Stage:
    """Class of each cell at one node; one stage of looking up a record.

    Attributes:
        node: The level of each QID that makes cells.
        packing: How groups make up a cell at that node.
        words: Arrays of shape (cells,), ascending: the cells that are published. A cell that is not there is in no class of the stage.
        classes: Shape (cells,), int32: row of the labels, or DROPPED.
    """

    node: Node
    packing: Packing
    words: PackedWords
    classes: NDArray[np.int32]

    @cached_property
    def assigner(self) -> Assigner:
        """The assigner of records to classes; its table is built once."""
        # Few records come to a later stage, and there may be many stages.
        return Assigner(self, min(LOOKUP_CELLS, LATER_CELLS))


@dataclass(frozen=True)
class Recoding(Stage):
    """Result of an algorithm: the class of each cell, and the labels and sizes of the classes.

    Attributes:
        labels: One row per class, in the order of the release: the published columns.
        sizes: Shape (classes,), int64: records per class.
        later: Where a record is looked up, one stage after the other, if its cell is not in the recoding itself. One that is nowhere is
            suppressed.
    """

    labels: pa.Table
    sizes: NDArray[np.int64]
    later: tuple[Stage, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The recoding itself and the later stages, in the order in which a record is looked up."""
        return (self, *self.later)

    @cached_property
    def assigner(self) -> Assigner:
        """The assigner of records to classes; its table is built once."""
        return Assigner(self)


def label_columns(qid: str, as_bounds: bool) -> tuple[str, ...]:
    """Return the column names of a QID as published: its own name, or two if given as bounds."""
    return (f"{qid}_low", f"{qid}_high") if as_bounds else (qid,)


def recode(
    histogram: Histogram,
    hierarchies: Sequence[Hierarchy],
    failing: NDArray[np.bool_],
    intervals: Intervals,
    *,
    masks: bool,
    masked: NDArray[np.bool_] | None,
) -> Recoding:
    """Build the recoding of a node, each passing cell a class; failing cells are dropped or masked.

    Masked cells form one class of ``*``.

    Args:
        histogram: The cells of the chosen node.
        hierarchies: One per QID in job order.
        failing: Shape (cells,).
        intervals: ``text``, or ``bounds`` for two columns per numerical QID.
        masks: Whether the job may mask records: then all labels are text, whether or not this run masks any.
        masked: Shape (cells,), which failing cells it does mask: they form a class like any other, which must be safe. None for none.
    """
    kept = np.flatnonzero(~failing)
    groups = [codes[kept] for codes in histogram.groups]
    columns: dict[str, pa.Array] = {}
    for hierarchy, level, codes in zip(hierarchies, histogram.node, groups, strict=True):
        columns |= _labels(hierarchy, level, pa.array(codes), intervals, text=masks)
    labels, sizes = pa.table(columns), histogram.counts[kept]
    classes = np.full(histogram.cells, SUPPRESSED)
    classes[kept] = np.arange(len(kept), dtype=np.int32)
    if masked is not None:
        classes[masked] = len(kept)
        labels = pa.concat_tables([labels, pa.table({name: ["*"] for name in labels.column_names})])
        sizes = np.append(sizes, histogram.counts[masked].sum(dtype=np.int64))
    listed = classes != SUPPRESSED
    return Recoding(histogram.node, histogram.packing, tuple(word[listed] for word in histogram.words), classes[listed], labels, sizes)


def _labels(hierarchy: Hierarchy, level: int, codes: pa.Array, intervals: Intervals, *, text: bool) -> dict[str, pa.Array]:
    """Return the published columns of one QID at a level, for codes of groups."""
    bounds = hierarchy.bounds[level] if intervals == "bounds" else None
    columns = [hierarchy.labels[level]] if bounds is None else list(bounds)
    # A column that may hold the mask's `*` is text whatever its type, and whether or not this run masks anything.
    taken = [(as_text(column) if text else column).take(codes) for column in columns]
    return dict(zip(label_columns(hierarchy.qid, bounds is not None), taken, strict=True))


class Assigner:
    """Lookup of each record's class by its packed cell.

    The table has an entry per possible cell where these are few enough.
    """

    def __init__(self, recoding: Stage, look_up_cells: int | None = None) -> None:
        """Build the lookup table where the possible cells are few enough."""
        self._classes = recoding.classes
        self._words = recoding.words
        self._table: NDArray[np.int32] | None = None
        if len(recoding.words) == 1 and recoding.packing.product <= (LOOKUP_CELLS if look_up_cells is None else look_up_cells):
            self._table = np.full(recoding.packing.product, SUPPRESSED)
            self._table[recoding.words[0]] = recoding.classes

    def assign(self, words: PackedWords) -> NDArray[np.int32]:
        """Return the class of each record, shape (n,), or SUPPRESSED."""
        if self._table is not None:
            return self._table[words[0]]
        if not len(self._classes):
            return np.full(len(words[0]), SUPPRESSED)
        if len(words) == 1:
            keys, wanted = self._words[0], words[0]
        else:
            # Ranked together, else the numbers of one side would mean nothing to the other; ranks keep the cells ascending.
            joined = single_word(tuple(np.concatenate(pair) for pair in zip(self._words, words, strict=True)))
            keys, wanted = joined[: len(self._classes)], joined[len(self._classes) :]
        # What lies behind the last key is compared with that one, and differs.
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[found] == wanted, self._classes[found], SUPPRESSED)


def release_columns(hierarchies: Sequence[Hierarchy], intervals: Intervals) -> list[str]:
    """Return the names of the published QID columns, in job order."""
    return [name for one in hierarchies for name in label_columns(one.qid, intervals == "bounds" and one.bounds[0] is not None)]


def recoding_tables(recoding: Recoding) -> tuple[pa.Table, pa.Table]:
    """Return a recoding as a table of cells and a table of classes.

    Their columns are ``cell_0 …`` and ``class``, and ``records`` and ``label_0 …``.
    """
    cells = {f"cell_{number}": word for number, word in enumerate(recoding.words)} | {"class": recoding.classes}
    labels = {f"label_{number}": column for number, column in enumerate(recoding.labels.columns)}
    return pa.table(cells), pa.table({"records": recoding.sizes} | labels)


def read_recoding(cells: pa.Table, classes: pa.Table, node: Node, hierarchies: Sequence[Hierarchy], intervals: Intervals) -> Recoding:
    """Build a recoding from the two tables of ``recoding_tables``."""
    packing = packing_of(node, hierarchies)
    words = tuple(cells[f"cell_{number}"].to_numpy() for number in range(len(packing.words)))
    labels = classes.drop_columns(["records"]).rename_columns(release_columns(hierarchies, intervals))
    return Recoding(node, packing, words, cells["class"].to_numpy(), labels, classes["records"].to_numpy())


def take_labels(labels: pa.Table, classes: NDArray[np.int32]) -> dict[str, pa.Array]:
    """Return the published QID columns of records sorted by class, text as dictionaries of used entries.

    Text becomes a dictionary with only the entries that these records use. A dictionary is written as a whole, and an entry of another
    class or of a suppressed record must not enter a file.

    Args:
        labels: One row per class.
        classes: Shape (n,), ascending.
    """
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(classes), 1), np.bool_), classes[1:] != classes[:-1]]))
    sizes, rows = np.diff(np.append(starts, len(classes))), pa.array(classes[starts])
    repeated = pa.array(np.repeat(np.arange(len(starts)), sizes))
    columns: dict[str, pa.Array] = {}
    for name in labels.column_names:
        mine = labels[name].combine_chunks().take(rows)
        if pa.types.is_string(mine.type) or pa.types.is_large_string(mine.type):
            coded = pc.dictionary_encode(mine)
            # A fifth of what it costs to take them one by one; a null has no number to repeat.
            plain = not coded.indices.null_count
            indices = pa.array(np.repeat(coded.indices.to_numpy(), sizes)) if plain else coded.indices.take(repeated)
            columns[name] = pa.DictionaryArray.from_arrays(indices, coded.dictionary)
        else:
            columns[name] = mine.take(repeated)
    return columns
