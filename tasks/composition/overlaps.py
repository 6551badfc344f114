"""Earlier releases that are made of some of the same records, and how many records both together put at risk.

They are known by the registry of the folder of jobs, whatever job, target, method or file they came from, and by their manifests in the
target. What both share is told by files of equal content where these tell it; else by the records themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.composition.classes import at_risk
from core.composition.identities import Sample
from core.composition.members import side_by_side
from schemas.errors.base import StorageError
from schemas.errors.overlaps import OverlapError
from schemas.errors.signals import UnmeasuredError
from schemas.release.increments import Overlap
from tasks.composition.by_files import figures_by_files
from tasks.composition.earlier import Earlier, earlier_releases
from tasks.composition.ledger import read_entry
from tasks.composition.members import KeptClasses, read_members
from tasks.engine.runs import Run
from tasks.source.chunks import Source
from tasks.store.store import Store

MOST = 3
"""Earlier releases that are measured at most, the newest first."""
MOST_RECORDS = 100_000_000
"""Records, counted once per earlier release, beyond which only one is measured: each costs about 0.03 CPU s per million."""


def overlaps_of(run: Run, source: Source, release: str, sample: Sample, kept: KeptClasses) -> dict[str, Any]:
    """Returns what the manifest says of other releases, by field.

    Args:
        run: The run.
        source: The source.
        release: The id of the release.
        sample: Of the records of the source.
        kept: What the classes of the release are compared by.

    Raises:
        OverlapError: one tells more together with this one, or cannot be compared, and the job says to refuse that.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: an artefact is not what its step promises.
    """
    refuse, replayed = run.job.overlaps == "refuse", run.job.replay.name if run.job.replay else None
    # What was replayed comes first: it is what readers will lay beside this one.
    earlier = sorted(earlier_releases(run.job, source, release, sample), key=lambda one: one.release != replayed)
    most = len(earlier) if refuse else max(1, min(MOST, MOST_RECORDS // source.records))
    overlaps = [_measured(run, source, one, kept) for one in earlier[:most]]
    if refuse and (telling := [one for one in overlaps if not one.is_safe]):
        raise OverlapError.refused(len(telling), [one.sentence() for one in telling])
    return {"overlaps": tuple(overlaps), "unmeasured_overlaps": len(earlier) - len(overlaps), "replay_of": replayed}


def _measured(run: Run, source: Source, earlier: Earlier, kept: KeptClasses) -> Overlap:
    # The weaker of the two promises: what both keep alone is what both together must not break.
    overlap = Overlap(release=earlier.release, k=min(run.job.privacy.k, earlier.k), unmeasured=earlier.untold)
    if earlier.files and earlier.told:
        shared = sum(file.rows for file in source.files if file.digest in earlier.files)
        overlap = overlap.model_copy(update={"shared": shared, "added": source.records - shared, "removed": earlier.records - shared})
    if overlap.unmeasured:
        return overlap
    try:
        if earlier.told:
            return overlap.model_copy(update=figures_by_files(run, source, overlap))
    except UnmeasuredError:
        # Other hierarchies, another method or another job: their classes can be compared all the same.
        pass
    try:
        return overlap.model_copy(update=_side_by_side(run, earlier, overlap.k, kept))
    except UnmeasuredError as reason:
        return overlap.model_copy(update={"unmeasured": str(reason)})


def _side_by_side(run: Run, earlier: Earlier, k: int, kept: KeptClasses) -> Mapping[str, int | str]:
    """Counts by combinations, where files do not tell what both share or classes are not those of the same groups."""
    store = run.store if earlier.work in (None, run.job.work_path) else Store(Path(str(earlier.work), "artifacts"))
    try:
        entry = read_entry(earlier.release, store)
        if entry is None:
            raise UnmeasuredError("nothing is kept of it here, because another job made it or its artefacts were removed")
        theirs = read_members(entry.kept, store, run.job.memory)
    except (OSError, StorageError):
        raise UnmeasuredError("its artefacts are gone") from None
    together = side_by_side(read_members(kept, run.store, run.job.memory), theirs)
    *classes, records = together.shared
    parts = [
        ("shared", classes, records),
        ("added", [together.added[0]], together.added[1]),
        ("removed", [together.removed[0]], together.removed[1]),
    ]
    figures: dict[str, int | str] = {"by": "records"}
    for name, of, counts in parts:
        figures[name] = int(counts.sum())
        figures[f"{name}_at_risk"] = at_risk([_numbered(one) for one in of], counts, k)
    if not figures["removed"]:
        del figures["removed_at_risk"]
    return figures


def _numbered(classes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Numbers classes from 0, those that are not published as they are."""
    released = classes >= 0
    numbers = np.full(len(classes), -1, np.int32)
    numbers[released] = np.unique(classes[released], return_inverse=True)[1]
    return numbers
