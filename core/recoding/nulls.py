"""Classes in which nulls meet values: ``{a, b, null}``, ``{[20 - 29], null}``, never a word that a value could be taken for.

The null is the last of such a set. A value that could be read as one there, ``null`` itself or what ends in it behind a comma, stands in
quotes, and what is in quotes already in further ones, so that no two sets are written alike (docs/methods/mondrian.md).
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.spelling import as_text
from schemas.release.labels import NULL_MEMBER

BESIDE_NULL = f", {NULL_MEMBER}}}"
"""How a set with a null ends."""
_LOOKS_NULL = rf'(?s)^(?:"*|.*, ){NULL_MEMBER}"*$'
_LOOKS_LIKE_A_SET = rf"(?s)^\{{.*, {NULL_MEMBER}\}}$"

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def as_members(texts: pa.Array) -> pa.Array:
    """Writes texts as members of a set; shape (m,), nulls stay."""
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.if_else(pc.fill_null(pc.match_substring_regex(texts, _LOOKS_NULL), False), quoted, texts)


def as_value(member: str) -> str:
    """Returns the text that `as_members` wrote so."""
    within = member[1:-1] if len(member) > 1 and member[0] == member[-1] == '"' else None
    return within if within is not None and re.search(_LOOKS_NULL, within) else member


def beside_null(labels: pa.Array, mixed: Flags) -> pa.Array:
    """Writes the labels of classes that hold nulls too, where these are ``mixed``, as sets of the label and the null.

    Args:
        labels: Shape (classes,), text: what the values of each class publish by themselves; ``*`` stays, because it covers nulls.
        mixed: Shape (classes,).
    """
    wanted = pc.and_(pa.array(mixed), pc.fill_null(pc.not_equal(labels, pa.scalar("*", labels.type)), False))
    return pc.if_else(wanted, pc.binary_join_element_wise("{", as_members(labels), BESIDE_NULL, ""), labels)


def can_name_nulls(domain: Domain, hierarchy: Hierarchy) -> bool:
    """Tells whether no value and no group of a column looks like a set with a null; else ``*`` is what such a class publishes."""
    if not domain.nulls:
        return True
    values = as_text(domain.values)
    texts = [values, *(labels for labels in hierarchy.labels[1:] if is_text(labels.type))]
    return not any(pc.any(pc.match_substring_regex(text, _LOOKS_LIKE_A_SET), min_count=0).as_py() for text in texts)


def price_beside_null(penalties: Floats, size: int) -> Floats:
    """Returns NCP of labels that stand for the null besides: one of ``size`` values more, a single value being one of them."""
    return np.minimum(np.maximum(penalties, 1 / size) + 1 / size, 1.0)
