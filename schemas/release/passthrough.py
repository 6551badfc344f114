"""What a release says of a column that it publishes untreated: figures and what its values look like, never a value."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted, listed


class PassedColumn(BaseModel):
    """A column that is published as it is in the source; a null is no value of it.

    Attributes:
        distinct: Different values.
        unique_records: Records whose value no other record has.
        values: Records that have a value.
        looked_at: Distinct values that were looked at for what they might be: all, or as many with the smallest digests.
        reasons: What they look like that tells who somebody is, as in ``e-mail addresses``; empty if nothing was found.
    """

    model_config = ConfigDict(frozen=True)

    distinct: int
    unique_records: int
    values: int
    looked_at: int
    reasons: tuple[str, ...] = ()


Passthrough = Mapping[str, PassedColumn]


def telling(columns: Passthrough) -> list[str]:
    """Returns the columns whose values look as if they told who somebody is, in order."""
    return [name for name, one in columns.items() if one.reasons]


def passthrough_warnings(columns: Passthrough) -> list[str]:
    """Returns a sentence for each such column."""
    return [
        f"Column '{name}' is published as it is and looks like: {', '.join(one.reasons)} ({counted(one.distinct, 'distinct value')}, "
        f"{counted(one.unique_records, 'record')} alone with theirs). If so, it tells who people are, whatever k is."
        for name, one in columns.items()
        if one.reasons
    ]


def unclaimed_because(columns: Passthrough) -> str:
    """Returns why no maximum risk is claimed of a release; empty where nothing stands against it."""
    found = telling(columns)
    if not found:
        return ""
    one = "a column" if len(found) == 1 else counted(len(found), "column")
    return f"No maximum risk is claimed: {one} published as in the source may tell who people are ({listed(found)})."
