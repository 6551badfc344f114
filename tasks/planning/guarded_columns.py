"""Sensitive columns that a draft guards by l-diversity, counted on published values.

Rare values become others before l is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised
from core.formats.proposals import Proposal
from core.recoding.publishing import published_values
from schemas.privacy.publish import SHARED
from tasks.planning.open_sources import OpenSource
from tasks.planning.pilot_runs import typed_column_sql
from tasks.source.bounds.published_columns import count_values, make_value_table
from tasks.store.database import quote

Integers = NDArray[np.int64]

GUARDED = ("diagnosis or condition", "money", "performance or an answer", "a laboratory value or measurement", "drug or treatment")
"""What is guarded first."""
MOST_GUARDED = 3
"""Sensitive columns of which l is asked: each costs the quasi-identifiers something."""
MOST_DISTINCT = 3
"""The most distinct sensitive values that a class is asked for; more cost much and protect little better."""
SPARE = 0.25
"""Share of the people who must have none of the l - 1 most frequent values, so that most classes find one of these."""


def guarded_columns(proposals: Sequence[Proposal], values_kept: Callable[[str], int]) -> dict[str, int]:
    """Return the sensitive columns to guard, with the number of distinct values asked of each class.

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


def published_holders(front: OpenSource, proposal: Proposal, person: str | None, k: int) -> tuple[Integers, Integers, int]:
    """Return distinct pairs of person and value of a column, rare values as one, and the number of people.

    Args:
        front: The source, with the table ``sample``, which has one record of each person.
        proposal: For the column; its texts are read without case, blanks and words for nothing, as the draft reads them.
        person: The column that names the person of a record; None where every record is a person of its own.
        k: People who share a value, at least.

    Returns:
        People and values as numbers from 0, each of shape (n,), and the number of people. A pair occurs once; nulls are left out.
    """
    value = typed_column_sql(proposal.profile.name, proposal.profile.kind if front.texts else None)
    if person is None:
        statement = f"SELECT row_number() OVER () AS owner, {value} AS value FROM sample"
    else:
        # All records of these people: somebody may have several values.
        statement = f"SELECT {quote(person)} AS owner, {value} AS value FROM source SEMI JOIN sample USING ({quote(person)})"
    read = front.connection.sql(statement).to_arrow_table()
    values, owners = normalised(read["value"].combine_chunks(), ALL), read["owner"].combine_chunks().dictionary_encode()
    make_value_table(front.connection, [([values], np.asarray(owners.indices).astype(np.uint64))], 1)
    counted = count_values(front.connection, 0, values.type, k, persons=True, every=False)
    published = published_values(counted, SHARED, k).apply(values)
    pairs = pa.table({"owner": owners.indices, "value": published}).filter(published.is_valid()).group_by(["owner", "value"]).aggregate([])
    numbers = pairs["value"].combine_chunks().dictionary_encode().indices
    return np.asarray(pairs["owner"]).astype(np.int64), np.asarray(numbers).astype(np.int64), len(owners.dictionary)


def count_values_kept(owners: Integers, values: Integers, people: int) -> int:
    """Return how many distinct values of a column every class can hold; 1 if not even two.

    Args:
        owners: Shape (n,), whose each value is.
        values: Shape (n,), the values as numbers from 0.
        people: How many people there are.
    """
    frequent = np.argsort(-np.bincount(values), kind="stable") if len(values) else values
    kept, others = 1, set(owners.tolist())
    for distinct, value in enumerate(frequent[: MOST_DISTINCT - 1].tolist(), 2):
        others -= set(owners[values == value].tolist())
        if len(others) < SPARE * people:
            break
        kept = distinct
    return kept
