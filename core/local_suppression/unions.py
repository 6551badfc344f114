"""Classes that several parts publish alike, where persons count.

To readers they are one class. With k persons and l different values in one of them it has these. But entropy, recursive diversity and
closeness count everybody once for each of their values, and two safe classes that share those who have a rare value may make one that is
not safe. So such a class is not published a second time: what would join it is treated as what fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import Hierarchy
from core.local_suppression.recoding import Part, labels_of
from core.local_suppression.residual import Level
from core.privacy.promise import Promise
from core.units.class_table import ClassTable
from core.units.members import ClassMembers, joined_members

Bools = NDArray[np.bool_]


def apart(levels: Sequence[Level], new: Level, promise: Promise, hierarchies: Sequence[Hierarchy]) -> Level:
    """Returns a level of which those cells fail, too, that would make unsafe classes with what is published before.

    Args:
        levels: What is published before.
        new: The level.
        promise: What a class must satisfy.
        hierarchies: One per QID.
    """
    if not _matters(new.members, promise):
        return new
    parts = [Part.of(level, ~level.failing) for level in (*levels, new)]
    failing = new.failing.copy()
    failing[~new.failing] = unsafe(parts, promise, hierarchies)[-1]
    return replace(new, failing=failing)


def unsafe(parts: Sequence[Part], promise: Promise, hierarchies: Sequence[Hierarchy]) -> list[Bools]:
    """Returns which cells of each part are in classes that fail; none where a union of safe classes is safe.

    Args:
        parts: Parts of which every class is safe by itself.
        promise: What a class must satisfy.
        hierarchies: One per QID.
    """
    ends = np.cumsum([part.cells.cells for part in parts])
    if not parts or not _matters(parts[0].members, promise):
        return [np.zeros(part.cells.cells, np.bool_) for part in parts]
    _, numbers, firsts = labels_of(parts, hierarchies)
    # A class of one cell is safe by itself, and most are.
    several = np.bincount(numbers, minlength=len(firsts)) > 1
    members = members_of(parts).owned(np.where(several[numbers], numbers, -1)).merged()
    counts = np.bincount(numbers, weights=np.concatenate([part.cells.counts for part in parts])).astype(np.int64)
    failing = ClassTable.of_members(counts, members).failing(promise) & several
    return np.split(failing[numbers], ends[:-1])


def members_of(parts: Sequence[Part]) -> ClassMembers:
    """Returns who is in the cells of all parts, numbered one part after the other."""
    starts = np.cumsum([0, *(part.cells.cells for part in parts)])
    found = [replace(part.members, owners=part.members.owners + start) for part, start in zip(parts, starts, strict=False) if part.members]
    return joined_members(found)


def _matters(members: ClassMembers | None, promise: Promise) -> bool:
    return members is not None and not promise.closed
