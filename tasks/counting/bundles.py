"""Tables of chunks merged as a tree on the workers of a cluster, so that the flow merges a few, however many chunks there are.

Sums of counts are the same whoever adds what first, so the result and its key are those of all parts merged in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tasks.engine.runs import Run
from tasks.engine.steps import G, count_remote_workers, each_alone
from tasks.store.step import FileStep
from tasks.store.store import Artifact

BUNDLES = "bundles"
"""Names the folder of tables that were merged of several."""
FAN = 8
"""How many tables a task merges, and how many are left to the flow at most."""


class Merge(NamedTuple):
    """Tables to merge.

    Attributes:
        parts: The tables of all chunks, which the result is told by.
        bundles: The same, some of them merged already; empty where none are.
    """

    parts: Sequence[Artifact]
    bundles: Sequence[Artifact] = ()

    @property
    def read(self) -> Sequence[Artifact]:
        """The tables that are read."""
        return self.bundles or self.parts


def bundled(
    run: Run, step: FileStep[G, Sequence[Artifact]], given: G, parts: Sequence[Artifact], raw: str | None = None
) -> Sequence[Artifact]:
    """Merge tables of chunks until there are few; those that are there where no cluster would do it.

    Args:
        run: The run.
        step: Merges some tables, of chunks or bundles, into one.
        given: What every call gets.
        parts: The tables.
        raw: The step of tables that are merged however few there are, because they hold what the flow does not read.
    """
    while count_remote_workers() and (len(parts) > FAN or (raw and parts and parts[0].step == raw)):
        parts = each_alone(run, step, given, [parts[first : first + FAN] for first in range(0, len(parts), FAN)])
    return parts
