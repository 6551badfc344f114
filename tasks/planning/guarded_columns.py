"""Sensitive columns that a draft guards by l, of the values that it publishes: rare ones become others before l is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised
from core.formats.proposals import Proposal
from core.recoding.publishing import CountedValues, published_values, values_of_k
from schemas.privacy.publish import SHARED
from tasks.planning.open_sources import OpenSource
from tasks.planning.pilot_runs import counted_values

GUARDED = ("diagnosis or condition", "money", "performance or an answer", "a laboratory value or measurement", "drug or treatment")
"""What is guarded first."""
MOST_GUARDED = 3
"""Sensitive columns of which l is asked: each costs the quasi-identifiers something."""
MOST_DISTINCT = 3
"""Different sensitive values that a class is asked for at most; more cost much and tell an attacker little less."""
SPARE = 0.25
"""Share of the records that must lie outside the l - 1 most frequent values, so that most classes find one of these."""


def guarded_columns(proposals: Sequence[Proposal], values_kept: Callable[[str], int]) -> dict[str, int]:
    """Returns sensitive columns with how many different values every class can be asked for.

    Args:
        proposals: For all columns.
        values_kept: Returns that number for a column.
    """
    able = [one for one in proposals if one.role == "sensitive" and one.concept in GUARDED and one.profile.kind != "boolean"]
    found: dict[str, int] = {}
    for one in sorted(able, key=lambda one: (GUARDED.index(one.concept), -one.confidence)):
        if len(found) < MOST_GUARDED and (kept := values_kept(one.profile.name)) > 1:
            found[one.profile.name] = kept
    return found


def published_counts(front: OpenSource, proposal: Proposal, k: int) -> tuple[NDArray[np.int64], int]:
    """Returns how many records of the sample have each value of a column as a draft publishes it, and how many records there are.

    Args:
        front: The source, with the table ``sample``.
        proposal: For the column; its texts are read without case, blanks and words for nothing, as the draft reads them.
        k: Records that share a value, at least.
    """
    domain = counted_values(front.connection, "sample", proposal.profile.name, proposal.profile.kind if front.texts else None)
    spelled = normalised(domain.values, ALL)
    entries = spelled.dictionary_encode()
    there = np.asarray(entries.is_valid())
    codes = np.asarray(entries.indices.filter(entries.is_valid()))
    counts = np.bincount(codes, domain.counts[there], len(entries.dictionary)).astype(np.int64)
    nulls = domain.nulls + int(domain.counts[~there].sum())
    order = pc.array_sort_indices(entries.dictionary)
    values, counts = entries.dictionary.take(order), counts[np.asarray(order)]
    counted = CountedValues(values, counts, counts, counts, nulls, int(counts[~values_of_k(counts, k)].sum()))
    shown = published_values(counted, SHARED, k).apply(values).dictionary_encode()
    published = np.bincount(np.asarray(shown.indices.filter(shown.is_valid())), counts[np.asarray(shown.is_valid())], len(shown.dictionary))
    return published.astype(np.int64), domain.records


def count_values_kept(counted: tuple[NDArray[np.int64], int]) -> int:
    """Returns how many different values of a column every class can be asked for; 1 where it cannot be asked for two.

    Args:
        counted: Shape (m,), records of each published value that is no null, and all records.
    """
    counts, records = counted
    frequent = np.sort(counts)[::-1]
    able = [distinct for distinct in range(2, min(len(counts), MOST_DISTINCT) + 1) if frequent[distinct - 1 :].sum() >= SPARE * records]
    return max(able, default=1)
