"""What a manifest says of its job, held against the job."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from operator import le

from pydantic_core import to_jsonable_python

from core.recount.classes import Recount, manifest_faults
from core.recount.figures import drawn_heights, figure_faults, nodes_by_height
from schemas.errors.base import JobError, listed
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.release.manifest import Manifest
from schemas.release.terms import NOT_FOR_NODES, OWN_NODE, LatticeFigures
from tasks.recount.recount import risk_faults
from tasks.release.manifest import hierarchies_as_in, is_of_job
from tasks.report.terms import terms_of
from tasks.store.secret import read_secrets

OTHER_JOB = (
    "The manifest names another job than this one, or the same with other settings: the files keep this one's promise, and what the "
    "manifest says of its own was not held against it."
)
NO_SECRET = (
    "The secret of the work folder is not at hand, without which nobody can tell whether the manifest is of this job: the files keep this "
    "one's promise, and what the manifest says of its own was not held against it."
)
NO_HIERARCHIES = "Files of the job's hierarchies cannot be read: what the manifest says of its job was not held against it."


def job_faults(job: Job, manifest: Manifest) -> tuple[list[str], list[str]]:
    """Return what a manifest says of its job that is not so, and what could not be held against it, in sentences."""
    known = read_secrets(job)
    try:
        mine, hierarchies = is_of_job(manifest, job, known), hierarchies_as_in(manifest, job, known)
    except JobError:
        # For k they do not matter.
        return [], [NO_HIERARCHIES]
    if not mine:
        return [], [OTHER_JOB if known else NO_SECRET]
    wrong = [name for name, same in _claims(job, manifest, hierarchies).items() if not same]
    return [f"the manifest's {listed(wrong)} cannot be: the job that it names says something else"] if wrong else [], []


def _claims(job: Job, manifest: Manifest, hierarchies: Mapping[str, str]) -> dict[str, bool]:
    """Return by field of the manifest whether it says what the job does."""
    names = [qid.name for qid in job.columns.quasi_identifiers]
    tops = [manifest.tops[name] for name in names if name in manifest.tops]
    levelled = job.method.name == "skald"
    whole = getattr(job.method, "root", None) == "occupied" and not any(qid.hides for qid in job.columns.quasi_identifiers)
    replayed = job.replay.name if job.replay else None
    return {
        "name": manifest.name == job.name and manifest.release.startswith(f"{job.name}-"),
        "method": manifest.method == job.method.name,
        "privacy": manifest.privacy == to_jsonable_python(job.privacy.summary()),
        "hierarchies": manifest.hierarchies == hierarchies,
        "node": (manifest.node is not None) == levelled and (not levelled or _is_node_of(job, manifest, names)),
        "ncp": not manifest.ncp or list(manifest.ncp) == names,
        "asked": manifest.asked == terms_of(job, manifest.node, tops),
        "optimal": _is_worded(job, manifest.optimal),
        "masked": _masks_as_asked(job, manifest),
        "remainder": (manifest.remainder is not None) == (job.suppression.is_local and levelled),
        "lattice": manifest.lattice is None or not tops or _is_drawn(job, manifest.lattice, names, tops),
        "search.nodes": not whole or manifest.search.get("nodes") == _nodes(job, names, tops),
        "replay_of": manifest.replay_of == replayed,
    }


def _is_node_of(job: Job, manifest: Manifest, names: list[str]) -> bool:
    """Return whether a node is one that the job lets be taken."""
    method, node = full_domain(job.method), list(manifest.node or ())
    if list(manifest.levels or {}) != names or list(manifest.tops) != names or len(node) != len(names):
        return False
    within = (method.levels.get(name, [0, level]) for name, level in zip(names, node, strict=True))
    kept = all(least <= level <= most for (least, most), level in zip(within, node, strict=True))
    return kept and (method.node is None or job.replay is not None or node == method.node)


def _spans(job: Job, names: list[str], tops: list[int]) -> list[tuple[int, int]]:
    """Return the least and the greatest level of each quasi-identifier that the job lets be taken."""
    levels = full_domain(job.method).levels
    spans = [levels.get(name, [0, top]) for name, top in zip(names, tops, strict=True)] if len(names) == len(tops) else []
    return [(least, most) for least, most in spans]


def _nodes(job: Job, names: list[str], tops: list[int]) -> int:
    """Return how many nodes there are to choose from."""
    return prod(most - least + 1 for least, most in _spans(job, names, tops))


def _is_drawn(job: Job, drawn: LatticeFigures, names: list[str], tops: list[int]) -> bool:
    """Return whether the picture of a lattice is that of the nodes that the job lets be taken."""
    spans = _spans(job, names, tops)
    if drawn.levels != tuple(most + 1 for _, most in spans):
        return False
    heights, most = drawn_heights(drawn), nodes_by_height(spans)
    # Of a column that hides values, which levels tell them is not in the job alone.
    hides = any(qid.hides for qid in job.columns.quasi_identifiers)
    return len(heights) == len(most) and (all(map(le, heights, most)) if hides else heights == most)


def _is_worded(job: Job, optimal: str) -> bool:
    if job.method.name != "skald":
        return optimal == NOT_FOR_NODES
    if job.replay is not None:
        return optimal.startswith(f"replay of {job.replay.name}")
    if full_domain(job.method).node is not None:
        return optimal.startswith(OWN_NODE)
    return optimal == "certified" or optimal.startswith("best of ")


def _masks_as_asked(job: Job, manifest: Manifest) -> bool:
    if not job.suppression.masks:
        return manifest.masked == 0
    return manifest.masked <= manifest.suppressed


def stated_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Return which figures of a manifest are not those of its job and of the recount of its files with the source."""
    faults = manifest_faults(job, manifest, recount) + risk_faults(manifest, recount)
    return faults + job_faults(job, manifest)[0] + figure_faults(manifest, recount, proved=True)
