"""Hierarchies of codes: so many first characters are kept, each other one is masked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.levels import DraftLevels, labelled
from schemas.errors.hierarchies import HierarchyError
from schemas.hierarchies.hierarchy import PrefixHierarchy


def prefix_levels(qid: str, domain: Domain, spec: PrefixHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Groups text (or the decimal text of integers) by its prefix and its length, counted in Unicode code points.

    The first length becomes level 0 where no value is longer. Values with a sparse beginning share the group ``000``.

    Raises:
        HierarchyError: The column holds neither text nor integers, or negative integers; with sparse beginnings, anything but text, because
            a number has lost its leading zeros.
    """
    if spec.beginnings and not is_text(domain.values.type):
        remedy = "give it the type text in source.types (CSV), or turn it into text with its leading zeros"
        raise HierarchyError.wrong_type(qid, "prefixes with sparse ones", "text", str(domain.values.type), remedy)
    text = _text(qid, domain.values)
    lengths = np.asarray(pc.utf8_length(text)).astype(np.int64)
    longest = int(lengths.max(initial=0))
    merged = spec.prefix[0] >= longest and not spec.hides
    levels = tuple(labelled(_without_sparse(_masked(text, min(kept, longest), spec.mask), text, spec)) for kept in spec.prefix[merged:])
    return DraftLevels(levels, len(text))


def _without_sparse(labels: pa.Array, text: pa.Array, spec: PrefixHierarchy) -> pa.Array:
    if not spec.beginnings:
        return labels
    length = len(spec.beginnings[0])
    sparse = pc.is_in(pc.utf8_slice_codeunits(text, 0, length), pa.array([*spec.beginnings, "0" * length], text.type))
    return pc.if_else(sparse, pa.scalar("0" * length, labels.type), labels)


def _text(qid: str, values: pa.Array) -> pa.Array:
    kind = values.type
    if pt.is_unsigned_integer(kind):
        return values.cast(pa.large_string())
    if pt.is_integer(kind):
        negative = int(pc.sum(pc.less(values, 0)).as_py() or 0)
        if negative:
            raise HierarchyError.negative(qid, negative)
    elif not is_text(kind):
        remedy = "give it the type text in source.types (CSV), or use a hierarchy of widths, dates, a CSV file or a tree"
        raise HierarchyError.wrong_type(qid, "prefixes", "text or integers", str(kind), remedy)
    return values.cast(pa.large_string())


def _masked(text: pa.Array, kept: int, mask: str) -> pa.Array:
    lengths = np.asarray(pc.utf8_length(text)).astype(np.int64)
    masks = pc.binary_repeat(pa.scalar(mask, pa.large_string()), pa.array(np.maximum(lengths - kept, 0)))
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(text, 0, kept), masks, pa.scalar("", pa.large_string()))
