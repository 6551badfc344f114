"""The levels that the labels of a release are said to be of, which a recount holds them against."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from schemas.release.manifest import Manifest


class ClaimedLevels(BaseModel):
    """What a release says of the levels of its labels.

    Attributes:
        levels: By quasi-identifier, each level that one of its labels may be of, ascending; empty where that is any.
        tops: By quasi-identifier, the last level that there is; those that are not known are left out.
        starred: Whether ``*`` may stand in single cells.
    """

    model_config = ConfigDict(frozen=True)

    levels: dict[str, tuple[int, ...]]
    tops: dict[str, int]
    starred: bool


def claimed_levels(names: Sequence[str], nodes: Sequence[Sequence[int]], tops: Sequence[int] = (), *, starred: bool) -> ClaimedLevels:
    """Returns the claim of a release whose records are published at some nodes.

    Args:
        names: The quasi-identifiers.
        nodes: A level for each of them.
        tops: The last level of each, if that is known.
        starred: Whether ``*`` may stand in single cells.
    """
    levels = {name: tuple(sorted({node[place] for node in nodes})) for place, name in enumerate(names)}
    return ClaimedLevels(levels=levels, tops=dict(zip(names, tops, strict=False)), starred=starred)


def claim_of(manifest: Manifest) -> ClaimedLevels | None:
    """Returns what a manifest says of its labels; None where classes have labels of their own."""
    if manifest.levels is None:
        return None
    remainder, names = manifest.remainder, list(manifest.levels)
    rounds = [one.node for one in remainder.rounds if len(one.node) == len(names)] if remainder else []
    nodes = [tuple(manifest.levels.values()), *rounds]
    claim = claimed_levels(names, nodes, starred=remainder is not None and remainder.stars > 0)
    return claim.model_copy(update={"tops": manifest.tops})
