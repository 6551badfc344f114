"""What classes are counted in, and the words that follow from it: people only where people were counted, and a maximum risk only where
nothing says that records stand for fewer people than there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.privacy.risk import THRESHOLD, least_class, preset_met
from schemas.errors.base import counted
from schemas.job.job import Job
from schemas.release.figures import RepeatedColumn, repeating_identifiers_sentence
from schemas.release.manifest import Manifest
from schemas.release.report import Limit


@dataclass(frozen=True)
class UnitWording:
    """What k counts.

    Attributes:
        one: Its name, in the singular.
        repeats: Identifiers that repeat, where it counts records.
        linked: Whether pseudonyms show sets of records that fewer than k share.
    """

    one: Literal["person", "record"] = "record"
    repeats: Mapping[str, RepeatedColumn] = field(default_factory=dict)
    linked: bool = False

    @classmethod
    def of_job(cls, job: Job, repeats: Mapping[str, RepeatedColumn] | None = None) -> UnitWording:
        """Returns what the k of a job counts."""
        return cls("person" if job.columns.person else "record", repeats or {})

    @classmethod
    def of_release(cls, manifest: Manifest) -> UnitWording:
        """Returns what the k of a release counts."""
        linked = any(one.below_k for one in manifest.linked or ())
        return cls("person" if manifest.persons else "record", manifest.repeats, linked)

    @property
    def several(self) -> str:
        """Its name in the plural."""
        return f"{self.one}s"

    @property
    def of_persons(self) -> bool:
        """Whether different persons are counted."""
        return self.one == "person"

    def promise(self, k: int) -> str:
        """Returns what k-anonymity asks of every class."""
        return f"Every published combination of quasi-identifiers is shared by at least {counted(k, self.one)} (k-anonymity)."

    def lacking(self, k: int) -> str:
        """Returns what suppressed records lacked, to be said after their number."""
        persons = " persons" if self.of_persons else ""
        return f"at the published levels fewer than k = {k:,}{persons} share their combination."

    def warning(self) -> str:
        """Returns what to say of identifiers that repeat; nothing where none does."""
        return repeating_identifiers_sentence(self.repeats)

    def maximum_risk(self, least: int) -> str:
        """Returns the strictest published maximum risk that classes of so many keep, in a sentence."""
        if self.repeats:
            return "Identifiers repeat and no person is named, so that no maximum risk is claimed."
        if self.linked:
            return "Pseudonyms show sets of records that fewer than k share, so that no maximum risk is claimed."
        if preset := preset_met(least):
            return f"No {self.one}'s risk is above {preset[0]} ({preset[1]})."
        return "No published maximum risk (0.2 or 0.09) is kept; these need k = 5 and k = 12."

    def maximum_risk_in_short(self, least: int) -> str:
        """Returns the same as the command line says it."""
        if self.repeats:
            return "none claimed: identifiers repeat and columns.person names nobody"
        if self.linked:
            return "none claimed: pseudonyms show sets of records that fewer than k share"
        preset = preset_met(least)
        return f"keeps {preset[0]} ({preset[1]})" if preset else f"keeps no preset; {THRESHOLD} needs k = {least_class(THRESHOLD)}"

    def risks(self) -> dict[str, tuple[str, bool, str]]:
        """Returns titles of risks, whether they are shares, and their meanings, in the order of the report."""
        if self.of_persons:
            return OF_PERSONS
        # Where a class of k records may be one person, a share above a threshold is a claim that nothing bears out.
        return {name: words for name, words in OF_RECORDS.items() if not (self.repeats and name in CLAIMS)}

    def basis(self) -> str:
        """Returns what risks are counted from."""
        if self.of_persons:
            return "Counted from the persons of each class; who is in several classes counts in each"
        if self.repeats:
            return "Counted from class sizes as if every record were a person of its own, which repeating identifiers speak against"
        return "Counted from class sizes"

    def limits(self) -> tuple[Limit, ...]:
        """Returns what counting in this unit does not promise."""
        if not self.of_persons:
            return (Limit(text=ONLY_RECORDS, source=""),)
        return (Limit(text=SETS_OF_CLASSES, source=PERSONS),)


def share_limits(manifest: Manifest) -> tuple[Limit, ...]:
    """Returns what the number of somebody's records reveals, where it was counted."""
    share = manifest.persons.largest_share if manifest.persons else None
    return () if share is None else (Limit(text=LARGEST_SHARE.format(share=f"{share:.0%}"), source=PERSONS),)


CLAIMS = frozenset({"share_above"})
OF_RECORDS = {
    "unique": ("Unique records", False, "records that nobody shares their combination with"),
    "min_class": ("Smallest class", False, "records that share the rarest combination"),
    "prosecutor_max": ("Highest risk", True, "chance to pick the right record of somebody known to be in the data, at worst"),
    "prosecutor_mean": ("Mean risk", True, "the same for a record on average"),
    "marketer": ("Marketer risk", True, "share of all records that matching them with a register would get right"),
    "share_above": ("Records at higher risk", True, "share of records whose risk is above {threshold}"),
}
OF_PERSONS = {
    "unique": ("Unique persons", False, "persons who are alone with a combination, counted once for each"),
    "min_class": ("Smallest class", False, "persons who share the rarest combination"),
    "prosecutor_max": ("Highest risk", True, "chance to pick the right person for somebody known to be in the data, at worst"),
    "prosecutor_mean": ("Mean risk", True, "the same for a person of a class on average"),
    "marketer": ("Marketer risk", True, "share of the persons of all classes that matching them with a register would get right"),
    "share_above": ("Persons at higher risk", True, "share of the persons of all classes whose risk is above {threshold}"),
}
PERSONS = "Wang and Fung, Anonymizing sequential releases, KDD 2006"
ONLY_RECORDS = "Classes are counted in records. Where one person has several records, a class of k records may hold fewer than k people."
LARGEST_SHARE = (
    "No person holds more than {share} of the records of any class (rounded up, so that nobody's number shows). Who knows that somebody "
    "has far more records than others can tell which values are likely theirs."
)
SETS_OF_CLASSES = (
    "Each class is that of at least k persons, and so is each record by itself. Who knows which records are one person's, by other columns "
    "or from elsewhere, can look at all of that person's classes together, and fewer than k may share these."
)
