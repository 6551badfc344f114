"""How often the values of an identifier repeat, where k counts records because the job names no person."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted


class RepeatedColumn(BaseModel):
    """An identifier whose values repeat.

    Attributes:
        mean: Records of a value on average; None in a release, which tells only that they repeat.
        most: Records of the value that has most, at least; None in a release.
        share: Share of the values that were looked at: 1 if all, and both figures are exact; else the mean is right to a percent or so.
    """

    model_config = ConfigDict(frozen=True)

    mean: float | None = None
    most: int | None = None
    share: float = 1.0

    @property
    def words(self) -> str:
        """Both figures; empty where they are not told."""
        return "" if self.mean is None else f"{self.mean:,.2f} and {self.most:,}{' or more' if self.share < 1 else ''}"


def repeats_sentence(repeats: Mapping[str, RepeatedColumn]) -> str:
    """Returns the warning of a release whose classes are counted in records although its identifiers repeat; nothing where none does."""
    if not repeats:
        return ""
    told = ", ".join(f"'{name}' {one.words}".rstrip() for name, one in repeats.items())
    figures = ", with so many records for each value on average and at most" if any(one.words for one in repeats.values()) else ""
    which = "it" if len(repeats) == 1 else "one of them"
    several = f"{counted(len(repeats), 'identifier')} {'repeats' if len(repeats) == 1 else 'repeat'}"
    return (
        f"{several}{figures}: {told}. If {which} says whose a record is, a class of k "
        "records may be that of fewer than k persons, even of one: name it as columns.person, or say person: none if every record is a "
        "person of its own. No maximum risk is claimed."
    )
