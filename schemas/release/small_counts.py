"""Which counts of records or persons a release tells, and what stands in the place of others: the one place that decides it."""

from __future__ import annotations


def told_count(count: int, k: int) -> int:
    """Returns a count as a release tells it: from 1 to k - 1 it is told as k, so that it says "at most k" and nobody how few there are.

    Args:
        count: Of records or persons, 0 or more.
        k: What every class has at least.
    """
    return k if 0 < count < k else count


def told_in_words(count: int, k: int) -> str:
    """Returns a count as a sentence tells it, whether it was made fit to be told or not."""
    told = told_count(count, k)
    return f"at most {told:,}" if told == k else f"{told:,}"
