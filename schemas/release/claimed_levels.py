"""Levels that a release claims for its labels, which a recount compares with the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.reading.model import FrozenModel
from schemas.registry.hierarchies import WidthsHierarchy
from schemas.release.manifest import Manifest


class ClaimedLevels(FrozenModel):
    """Levels by quasi-identifier that a release claims for its labels.

    Attributes:
        levels: By quasi-identifier, each level that one of its labels may be of, ascending; empty where that is any.
        tops: By quasi-identifier, the last level that there is; those that are not known are left out.
        starred: Whether ``*`` may stand in single cells.
    """

    levels: dict[str, tuple[int, ...]]
    tops: dict[str, int]
    starred: bool


def claimed_levels(
    names: Sequence[str], nodes: Sequence[Sequence[int]], tops: Sequence[int] = (), *, has_suppressed_cells: bool
) -> ClaimedLevels:
    """Return the claimed levels of a release whose records are published at the given nodes.

    Args:
        names: The quasi-identifiers.
        nodes: A level for each of them.
        tops: The last level of each, if that is known.
        has_suppressed_cells: Whether ``*`` may stand in single cells.
    """
    levels = {name: tuple(sorted({node[place] for node in nodes})) for place, name in enumerate(names)}
    return ClaimedLevels(levels=levels, tops=dict(zip(names, tops, strict=False)), starred=has_suppressed_cells)


def claim_of(manifest: Manifest) -> ClaimedLevels | None:
    """Return the claimed levels in a manifest, or None if classes have labels of their own."""
    if manifest.levels is None:
        return None
    remainder, names = manifest.remainder, list(manifest.levels)
    rounds = [one.node for one in remainder.rounds if len(one.node) == len(names)] if remainder else []
    nodes = [tuple(manifest.levels.values()), *rounds]
    claim = claimed_levels(names, nodes, has_suppressed_cells=remainder is not None and remainder.stars > 0)
    return claim.model_copy(update={"tops": manifest.tops})


NULL_MEMBER = "null"
"""What stands for a null among values, as in ``{a, b, null}``; a value that could be read as it is in quotes there."""


RANGED = ("widths", "date")
"""The kinds of hierarchy that only numbers and dates have."""
Endpoints = Literal["observed", "shared"]
SENTENCES: Mapping[Endpoints, str] = {
    "shared": "ranges end at values that k {unit}s have, at edges of bins with k {unit}s at or beyond them, or are open",
    "observed": "ranges end at the least and the greatest value in them, which may be those of a single {unit}",
}


def has_class_ranges(job: Job, qid: QuasiIdentifier) -> bool:
    """Return whether classes have ranges of their own for a QID, if its values are numbers or dates.

    Dates count as numbers.
    """
    if METHODS[job.method.name].one_level:
        return False
    ways: Any = getattr(job.method, "generalisation", None)
    way = ways.get(qid.name) if isinstance(ways, dict) else ways
    # What may not be published exactly goes by its hierarchy; only some methods can be told to do so of numbers too.
    return way == "interval" or (not qid.hides and (not METHODS[job.method.name].ways or way is None))


def has_rank_bins(qid: QuasiIdentifier) -> bool:
    """Return whether a quasi-identifier has bins of ranks.

    Such bins end at values of the source.
    """
    return isinstance(qid.hierarchy, WidthsHierarchy) and qid.hierarchy.encode


def endpoints_of(
    job: Job, numerical: Mapping[str, bool], node: tuple[int, ...] | None = None, withheld: Collection[str] = ()
) -> dict[str, Endpoints]:
    """Return ``shared`` or ``observed`` for each quasi-identifier whose ranges end at data values.

    Args:
        job: The job.
        numerical: By quasi-identifier, whether its values are numbers or dates.
        node: The level of each quasi-identifier; None where classes have labels of their own.
        withheld: Columns in which the files hold nothing but ``*``: no range of theirs ends anywhere.
    """
    found: dict[str, Endpoints] = {}
    for place, qid in enumerate(job.columns.quasi_identifiers):
        if qid.name in withheld:
            continue
        if has_class_ranges(job, qid) and numerical[qid.name]:
            found[qid.name] = "shared" if job.shared_ends else "observed"
        elif has_rank_bins(qid) and (node is None or node[place]):
            found[qid.name] = "observed"
    return found


def endpoint_sentences(endpoints: Mapping[str, Endpoints], unit: str) -> tuple[str, ...]:
    """Return a sentence for each kind of range ends, with the names of its quasi-identifiers."""
    told = []
    for way, words in SENTENCES.items():
        if names := [f"'{name}'" for name, mine in endpoints.items() if mine == way]:
            told.append(f"{', '.join(names)}: {words.format(unit=unit)}.")
    return tuple(told)
