"""Which quasi-identifiers a release publishes in ranges that end at values of the data, and how a report says where they end."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from schemas.hierarchies.hierarchy import WidthsHierarchy
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.job.method import METHODS

RANGED = ("widths", "date")
"""The kinds of hierarchy that only numbers and dates have."""
Endpoints = Literal["observed", "shared"]
SENTENCES: Mapping[Endpoints, str] = {
    "shared": "ranges end at values that k {unit}s have, at edges of bins with k {unit}s at or beyond them, or are open",
    "observed": "ranges end at the least and the greatest value in them, which may be those of a single {unit}",
}


def in_ranges(job: Job, qid: QuasiIdentifier) -> bool:
    """Tells whether each class publishes a range of its own where the values of a quasi-identifier are numbers or dates."""
    if METHODS[job.method.name].one_level:
        return False
    ways: Any = getattr(job.method, "generalisation", None)
    way = ways.get(qid.name) if isinstance(ways, dict) else ways
    # What may not be published exactly goes by its hierarchy; only some methods can be told to do so of numbers too.
    return way == "interval" or (not qid.hides and (not METHODS[job.method.name].ways or way is None))


def in_ranks(qid: QuasiIdentifier) -> bool:
    """Tells whether the bins of a quasi-identifier are of ranks, so that they end at values of the source."""
    return isinstance(qid.hierarchy, WidthsHierarchy) and qid.hierarchy.encode


def endpoints_of(
    job: Job, numerical: Mapping[str, bool], node: tuple[int, ...] | None = None, withheld: Collection[str] = ()
) -> dict[str, Endpoints]:
    """Returns where ranges end, by each quasi-identifier that is published in ranges which end at values of the data.

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
        if in_ranges(job, qid) and numerical[qid.name]:
            found[qid.name] = "shared" if job.shared_ends else "observed"
        elif in_ranks(qid) and (node is None or node[place]):
            found[qid.name] = "observed"
    return found


def endpoint_sentences(endpoints: Mapping[str, Endpoints], unit: str) -> tuple[str, ...]:
    """Returns where ranges end, a sentence for each way."""
    told = []
    for way, words in SENTENCES.items():
        if names := [f"'{name}'" for name, mine in endpoints.items() if mine == way]:
            told.append(f"{', '.join(names)}: {words.format(unit=unit)}.")
    return tuple(told)
