"""Tree merge of chunk tables on cluster workers, so that the flow merges only a few tables.

Sums of counts do not depend on the order of adding, so the result and its key are those of all parts merged at once.
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
    """The tables to merge into one: those of all chunks, or bundles of them.

    Attributes:
        parts: The tables of all chunks, which the result's key depends on.
        bundles: The same, some of them merged already; empty where none are.
    """

    parts: Sequence[Artifact]
    bundles: Sequence[Artifact] = ()

    @property
    def read(self) -> Sequence[Artifact]:
        """The tables to read."""
        return self.bundles or self.parts


def merge_on_cluster(
    run: Run, step: FileStep[G, Sequence[Artifact]], given: G, parts: Sequence[Artifact], always_merged: str | None = None
) -> Sequence[Artifact]:
    """Merge chunk tables on cluster workers until at most ``FAN`` are left; without a cluster, do nothing.

    Args:
        run: The run.
        step: Merges some tables, of chunks or bundles, into one.
        given: What every call gets.
        parts: The tables.
        always_merged: The step of tables that are merged however few there are, because they hold what the flow does not read.
    """
    while count_remote_workers() and (len(parts) > FAN or (always_merged and parts and parts[0].step == always_merged)):
        parts = each_alone(run, step, given, [parts[first : first + FAN] for first in range(0, len(parts), FAN)])
    return parts
