"""How often the values of an identifier repeat, where k counts records because the job names no person."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted


class RepeatedColumn(BaseModel):
    """An identifier whose values repeat.

    Attributes:
        mean: Records of a value on average.
        most: Records of the value that has most, at least.
        share: Share of the values that were looked at: 1 if all, and both figures are exact; else the mean is right to a percent or so.
    """

    model_config = ConfigDict(frozen=True)

    mean: float
    most: int
    share: float

    @property
    def words(self) -> str:
        """Both figures."""
        return f"{self.mean:,.2f} and {self.most:,}{' or more' if self.share < 1 else ''}"


def repeats_sentence(repeats: Mapping[str, RepeatedColumn]) -> str:
    """Returns the warning of a release whose classes are counted in records although its identifiers repeat; nothing where none does."""
    if not repeats:
        return ""
    told = ", ".join(f"'{name}' {one.words}" for name, one in repeats.items())
    which = "it" if len(repeats) == 1 else "one of them"
    several = f"{counted(len(repeats), 'identifier')} {'repeats' if len(repeats) == 1 else 'repeat'}"
    return (
        f"{several}, with so many records for each value on average and at most: {told}. If {which} says whose a record is, a class of k "
        "records may be that of fewer than k persons, even of one: name it as columns.person, or say person: none if every record is a "
        "person of its own. No maximum risk is claimed."
    )
