"""What a manifest says that nothing at hand can tell: whoever makes it anew may say it otherwise, and only a signature shows that."""

from __future__ import annotations

from core.recount.classes import Recount, is_of_labels
from schemas.job.job import Job
from schemas.release.manifest import Manifest

OF_SIZES = frozenset({"dm", "dm_star", "suppression_rate", "c_avg"})
"""Losses that follow from the sizes of classes."""
OF_LABELS = frozenset({"gcp", "gcp_held"})
"""Losses that follow from the labels."""
OF_THE_RUN = ("created", "run_by", "source_name", "policy", "versions", "seconds", "peak_rss", "workers", "evolved", "increment")
"""What a run says of itself."""
OF_THE_SEARCH = ("optimal", "search", "lattice", "suppressed_for", "remainder")
"""What it found out about choices that it did not publish."""
TOGETHER = ("passthrough_together", "sensitive_together", "pseudonyms_together")
"""What columns tell together of persons: only the run folder keeps what their records publish."""
OF_THE_SOURCE = ("records", "suppressed", "source_sizes", "risk.before", "sources")
"""What the source tells where it is at hand."""
OTHER_LIBRARY = {
    ".parquet": "Another version of PyArrow wrote the files: columns, types, row groups and who wrote them were looked at, "
    "not whether they hold anything but their records.",
    ".csv": "Another version of DuckDB wrote the files: whether they hold anything but their records, or these in another form, was not "
    "looked at.",
}
"""What was not looked at in files that other versions wrote, which may write the same records in other bytes."""


def taken_on_trust(job: Job | None, manifest: Manifest, recount: Recount, *, is_its_job: bool) -> tuple[str, ...]:
    """Returns the fields of a manifest that were taken as they are.

    Args:
        job: The job, if it is at hand.
        manifest: The manifest.
        recount: What was counted.
        is_its_job: Whether the manifest was held against the job.
    """
    told: list[str] = [name for name in OF_THE_RUN if getattr(manifest, name) not in (None, {}, ())]
    # What the labels lost is counted in the files.
    of_labels = is_of_labels(manifest) and bool(recount.lost)
    known = OF_SIZES | (OF_LABELS if of_labels else frozenset())
    told += [f"loss.{name}" for name in manifest.loss if name not in known or (name == "c_avg" and manifest.unit != recount.unit)]
    told += ["ncp"] if manifest.ncp and not of_labels else []
    told += [
        name
        for name in (*OF_THE_SEARCH, "passthrough", "repeats", "overlaps", "attacks", "attacked")
        if getattr(manifest, name) not in (None, {}, ())
    ]
    if job is None or recount.source is None or recount.unproved:
        told += OF_THE_SOURCE
    elif manifest.persons is not None:
        # Persons of classes of the source as it is are not counted.
        told += ["source_sizes", "risk.before"]
    told += [] if is_its_job else ["asked", "hierarchies", "node"]
    told += TOGETHER if manifest.persons is not None and not recount.together else []
    told += ["persons"] if manifest.persons is not None and recount.persons is None else []
    return tuple(dict.fromkeys(told))


def exchanged_unseen(recount: Recount) -> str:
    """Returns in how many classes values that were exchanged between records could go unnoticed, in a sentence; empty for none."""
    if recount.sampled is None or recount.sampled >= recount.classes:
        return ""
    return (
        f"Values that were exchanged between records were looked for in {recount.sampled:,} of {recount.classes:,} classes, chosen by "
        "chance, and elsewhere column by column."
    )
