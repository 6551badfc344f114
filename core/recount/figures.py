"""The figures of a manifest that follow from class sizes and from each other, computed a second time.

A run computes them where classes are searched and written. This is a second reading of the same definitions, from the counts of the
files, so that a changed figure, or an error in one of the two, is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, prod
from operator import le

from core.recount.classes import Recount, follows_from_labels, unmasked_class_sizes
from schemas.errors.base import listed
from schemas.release.manifest import Manifest
from schemas.release.terms import LatticeFigures

Figure = int | float
SAME = 1e-9
"""Relative difference of floats that are the same sum, taken in another order."""


def figure_faults(manifest: Manifest, recount: Recount, *, proved: bool) -> list[str]:
    """Return a message on figures of a manifest that contradict the files or each other.

    Args:
        proved: Whether that was done with the source of the release, from whose shares t-closeness is measured.
    """
    wrong = [f"loss.{name}" for name, value in _losses(manifest, recount).items() if _differs(manifest.loss.get(name), value)]
    # How far classes are from the source is told by releases of earlier versions alone: it follows from records that are in no file.
    of_source = proved and "t" in manifest.measured
    wrong += _sums(manifest) + _levels(manifest) + _measured(manifest, recount, ("l", "t") if of_source else ("l",))
    wrong += _of_labels(manifest, recount) if proved and follows_from_labels(manifest) else []
    return [f"the manifest's {listed(wrong)} cannot be: the files and its other figures say something else"] if wrong else []


def _differs(said: Figure | None, found: Figure) -> bool:
    """Return whether a stated figure differs from the computed one; a figure that is not stated does not."""
    if said is None:
        return False
    return said != found if isinstance(found, int) else not isclose(said, found, rel_tol=SAME, abs_tol=SAME)


def _losses(manifest: Manifest, recount: Recount) -> dict[str, Figure]:
    """Return the losses that follow from the sizes of published classes alone."""
    lost, records = manifest.suppressed, manifest.records
    masked = min(manifest.masked, recount.masked)
    # Records that are masked are in one class with those whose level publishes * everywhere, if there are any.
    sizes = dict(recount.sizes)
    if masked:
        sizes[recount.masked] = sizes.get(recount.masked, 0) - 1
        if recount.masked > masked:
            sizes[recount.masked - masked] = sizes.get(recount.masked - masked, 0) + 1
    squares = sum(size * size * many for size, many in sizes.items())
    found: dict[str, Figure] = {
        "dm": squares + lost * records,
        "dm_star": squares + lost * lost,
        "suppression_rate": lost / records if records else 0.0,
    }
    if manifest.persons is None or recount.persons:
        units = unmasked_class_sizes(recount.unit_sizes, *recount.fully_suppressed_units(manifest.masked))
        classes = sum(units.values())
        found["c_avg"] = sum(size * many for size, many in units.items()) / classes / int(manifest.privacy["k"]) if classes else 0.0
    return found


def _of_labels(manifest: Manifest, recount: Recount) -> list[str]:
    """Return the names of certainty penalties that do not follow from the labels."""
    dropped = manifest.suppressed - manifest.masked
    found = {name: (one.penalty + dropped) / manifest.records for name, one in recount.losses.items()}
    if not found:
        return []
    wrong = [f"ncp.{name}" for name, value in found.items() if _differs(manifest.ncp.get(name, -1.0), value)]
    mean = sum(found.values()) / len(found)
    return wrong + [f"loss.{name}" for name in ("gcp", "gcp_held") if _differs(manifest.loss.get(name), mean)]


def _sums(manifest: Manifest) -> list[str]:
    """Return the names of figures that are not the sums of their parts."""
    wrong = []
    counts = [one.records for one in manifest.sources if one.records is not None]
    # Where a file has fewer than k records, none of them tells how many it has.
    if counts and (len(counts) < len(manifest.sources) or sum(counts) != manifest.records):
        wrong.append("sources")
    if sum(file.rows for file in manifest.files) != manifest.released:
        wrong.append("files.rows")
    if manifest.suppressed_for and sum(manifest.suppressed_for.values()) != manifest.suppressed:
        wrong.append("suppressed_for")
    if manifest.source_sizes and "before" in manifest.risk:
        before = manifest.risk["before"]
        bands = (sum(one.records for one in manifest.source_sizes), sum(one.classes for one in manifest.source_sizes))
        if bands != (before.get("records"), before.get("classes")):
            wrong.append("source_sizes")
    return wrong


def _levels(manifest: Manifest) -> list[str]:
    """Return the names of lattice figures that contradict each other, where classes are those of a node."""
    if manifest.node is None or manifest.levels is None:
        return [name for name in ("node", "levels", "tops", "lattice") if getattr(manifest, name)]
    wrong = []
    tops = manifest.tops or manifest.levels
    if tuple(manifest.levels.values()) != manifest.node:
        wrong.append("node")
    if list(manifest.levels) != list(tops) or not all(0 <= level <= tops[name] for name, level in manifest.levels.items()):
        wrong.append("levels")
    nodes = manifest.search.get("nodes")
    # Levels that tell values which the job hides are in no node, so that there may be fewer.
    if not isinstance(nodes, int) or (manifest.tops and nodes > prod(top + 1 for top in tops.values())):
        return [*wrong, "search.nodes"]
    if isinstance(passing := manifest.search.get("passing"), int) and passing > nodes:
        wrong.append("search.passing")
    if manifest.lattice and manifest.tops and not _is_drawn(manifest.lattice, manifest.node, tuple(tops.values()), nodes):
        wrong.append("lattice")
    return wrong


def _is_drawn(drawn: LatticeFigures, node: Sequence[int], tops: Sequence[int], nodes: int) -> bool:
    """Return whether a picture of the lattice is possible for the levels of a job.

    It may have fewer nodes than all: levels that the job keeps out are not drawn, nor those that show values which it hides. The search
    may have covered only the nodes above one root.
    """
    if len(drawn.levels) != len(tops) or not all(
        level < many <= top + 1 for level, many, top in zip(node, drawn.levels, tops, strict=True)
    ):
        return False
    heights, most = drawn_heights(drawn), nodes_by_height([(0, many - 1) for many in drawn.levels])
    return len(heights) == len(most) and all(map(le, heights, most)) and nodes <= sum(heights)


def drawn_heights(drawn: LatticeFigures) -> list[int]:
    """Return the number of nodes at each height of a lattice picture, from height 0 up."""
    return [sum(counts) for counts in zip(*drawn.heights.values(), strict=False)]


def nodes_by_height(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Count lattice nodes at each height from 0 up, given the least and greatest level of each QID."""
    found = [1]
    for least, most in spans:
        longer = [0] * (len(found) + most)
        for height, many in enumerate(found):
            for level in range(least, most + 1):
                longer[height + level] += many
        found = longer
    return found


def _measured(manifest: Manifest, recount: Recount, promises: Sequence[str]) -> list[str]:
    """Return the names of measured promises that differ from the files or were not promised."""
    unasked = [
        f"measured.{promise}.{column}"
        for promise, columns in manifest.measured.items()
        for column in columns
        if column not in manifest.privacy.get(promise, {})
    ]
    # What records of nobody hold is in the files, and no person's: without the persons the files say how much it is at most.
    at_most = manifest.persons is not None and recount.persons is None
    return unasked + [
        f"measured.{promise}.{column}"
        for promise, columns in recount.measured.items()
        for column, found in columns.items()
        if promise in promises
        # What was counted now was counted then: a figure that is not there was taken out.
        and _differs(said := manifest.measured.get(promise, {}).get(column, float("nan")), found)
        and not (at_most and said <= found)
    ]
