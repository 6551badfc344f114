"""What the classes of a full-domain release hold, from the histogram of its source."""

from __future__ import annotations

from core.columns.node import Node
from core.evaluation import gcp_of_values as held_values
from core.histograms.cells import roll_up
from core.units.sensitive_axes import classes_of, without_sensitive
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.counting.histograms import load_histogram
from tasks.lattice.promises import promise_of
from tasks.mondrian.cells import bytes_of_rows
from tasks.store.store import Artifact, Store


def held_gcp(job: Job, coding: Coding, histogram: Artifact, node: Node, store: Store) -> float | None:
    """Returns GCP of the values that the classes of a release hold, or None where the cells do not fit the job's memory.

    Args:
        job: Gives the privacy models and the memory.
        coding: Of the run.
        histogram: Of the whole source at the finest node.
        node: Level of each QID in the release.
        store: Has the histogram.

    Raises:
        StorageError: artefacts are gone.
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
    return held_values.held_gcp(cells, chosen, failing, coding.domains, coding.hierarchies)
