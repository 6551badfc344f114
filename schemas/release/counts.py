"""Which counts of people or records may be told: the one rule for manifest, report, pictures, artifacts of Prefect, events and logs.

Nothing is told of fewer than k, in the unit of k: where people are counted, seven records of one person are one. A count that is withheld
must not follow from others either, so that what is left of a total that is told must be none, or k at least, as well.

What anybody can count in the data files is no secret, and the rule is not about it: classes, their sizes, the rows of each file. Nor is it
about what every release says of itself: how many records its source has, how many of them are released, and so how many are not.
"""

from __future__ import annotations


def tellable(count: int, k: int, *totals: int) -> bool:
    """Tells whether a count of units may be told.

    Args:
        count: Of the unit of k: persons where they are named, else records.
        k: That was promised.
        *totals: Counts that are told as well and hold these units among theirs, so that the difference follows.
    """
    return all(not found or found >= k for found in (count, *(total - count for total in totals)))


def reported_count(count: int, k: int) -> int:
    """Returns a count as a release tells it: from 1 to k - 1 it is told as k, so that it says "at most k" and nobody how few there are.

    Args:
        count: Of the unit of k, 0 or more.
        k: That was promised.
    """
    return count if tellable(count, k) else k


def reported_in_words(count: int, k: int) -> str:
    """Returns a count as a sentence tells it, whether it was made fit to be told or not."""
    told = reported_count(count, k)
    return f"at most {told:,}" if told == k else f"{told:,}"
