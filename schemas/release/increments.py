"""Relations of a release to earlier ones: common files, reused counts, joint disclosure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from pydantic import Field

from schemas.errors.base import counted, listed, verb_of
from schemas.reading.model import FrozenModel
from schemas.release.figures import may_publish_count, reported_count, stated_count_text


class SourceDigest(FrozenModel):
    """Keyed digest and record count of a source file, without its name.

    Attributes:
        digest: Of its content, in hex, keyed with the secret of the work folder.
        records: How many it holds. None of all files where one of them holds fewer than k, whose number would be the difference. None too
            of several files where k counts people, of whom one may have all the records of a file.
    """

    digest: str
    records: int | None = None


class Increment(FrozenModel):
    """Counts of source files by change since the last release, and of chunks with reused counts.

    Attributes:
        since: The last release; None if there is none or nothing is kept of it.
        unchanged: Files whose content was in it; ``changed`` had other content under the same name, ``new`` neither.
        removed: Files of it that are there no more.
        chunks: Chunks of the source.
        domains_reused: Chunks whose values were not counted again, with ``domains_records`` records; None where it would follow how many
            others there are, and these may be of fewer than k.
        histograms_reused: Chunks whose cells were not counted again, with ``histograms_records`` records; None likewise.
    """

    since: str | None
    unchanged: int = 0
    new: int = 0
    changed: int = 0
    removed: int = 0
    chunks: int
    domains_reused: int
    domains_records: int | None
    histograms_reused: int
    histograms_records: int | None

    def sentences(self, record_count: int) -> tuple[str, ...]:
        """Return the changes as sentences, for a source with the given number of records."""
        told = []
        if self.since:
            told.append(
                f"Since release {self.since}: {counted(self.unchanged, 'file')} unchanged, {self.new:,} new, {self.changed:,} changed, "
                f"{self.removed:,} removed."
            )
        if self.domains_reused and self.domains_records is not None and self.histograms_records is not None:
            told.append(
                f"Of {counted(record_count, 'record')}, {self.domains_records:,} {verb_of(self.domains_records, 'were')} not "
                "scanned again for the values and "
                f"{self.histograms_records:,} not for the combinations: they had been counted before."
            )
        return tuple(told)


class Overlap(FrozenModel):
    """Another release with some of the same records, and the risk when a reader has both releases.

    Attributes:
        release: The other release.
        k: The smaller of what both promise.
        by: How it is known what both share: ``files`` of the same content, or ``contents``: records that are alike in all columns that the
            other release is about count as the same ones, or ``persons``: of others, those of one person do.
        unit: What is counted at risk: persons where the job names them, else records.
        shared: Records in the sources of both, of which ``shared_at_risk`` share both their published combinations with fewer than k. To be
            left out of a release is a combination too.
        added: Records that only this one was made of, of which ``added_at_risk`` have fewer than k of these in their class.
        removed: Records that only the other was made of, of which ``removed_at_risk`` have fewer than k of these in their class there.
        changed: Records in both of which another value is published here, or perhaps is: they count among ``added`` and ``removed`` too.
        values_at_risk: Records or persons in joint classes that break the l or t of either job; None where neither promises any.
        means_at_risk: Records or persons whose two means of a column, here and there, fewer than k share, for the column with most of
            them; None where not both publish means of one.
        rounded: Whether fewer than k came, left, changed or stayed alike, or are in both, so that there are at least ``shared``, and at
            most ``added`` and ``removed``. Where k records or more of these are of fewer than k persons, ``shared`` is 0 and ``changed``
            None.
        unmeasured: Why the records at risk were not measured, as the end of a sentence; empty if they were. A figure that was not measured
            is None.
        exact: Quasi-identifiers of either release that the other one publishes as values. No figure looks at these values.
        most: Upper bounds of how many both sources hold, by what their releases state; None where the releases state the numbers.
            It is not published.
        few_persons: Whether a number of k records or more is, or may be, of fewer than k persons. It is not published.
    """

    counts: ClassVar[str] = "record"
    """What is counted in both, or in either alone."""

    release: str
    k: int
    by: Literal["files", "contents", "persons"] = "files"
    unit: Literal["record", "person"] = "record"
    shared: int | None = None
    shared_at_risk: int | None = None
    added: int | None = None
    added_at_risk: int | None = None
    removed: int | None = None
    removed_at_risk: int | None = None
    changed: int | None = None
    values_at_risk: int | None = None
    means_at_risk: int | None = None
    rounded: bool = False
    unmeasured: str = ""
    exact: tuple[str, ...] = ()
    most: tuple[int, int] | None = Field(default=None, exclude=True)
    few_persons: bool = Field(default=False, exclude=True)

    @property
    def known_at_risk(self) -> int:
        """Number of records or persons known to be at risk; what was not measured counts as 0."""
        return sum(getattr(self, name) or 0 for name in _AT_RISK if name != "changed")

    @property
    def is_safe(self) -> bool:
        """Whether the joint risk was measured, and no record or person is at risk.

        A figure of None was not measured, or is of values of which neither job promises anything.
        """
        return self._figures_are_safe and not self.exact

    @property
    def _figures_are_safe(self) -> bool:
        return self.shared_at_risk == 0 and not (self.known_at_risk or self.unmeasured)

    def reported(self) -> Overlap:
        """Return the figures in published form: counts from 1 to k - 1 as k, and shared ones as fewer.

        A count of k so says "at most k". How many records either release was made of is known, or at most how
        many. So where fewer than k came or left, changed or stayed alike, or a number is not stated, the shared ones are reported as so
        many fewer. The counts that came and left are the differences to what is known.
        """
        found: dict[str, int | None]
        found = {name: reported_count(count, self.k) for name in _AT_RISK if (count := getattr(self, name)) is not None}
        if self.shared is not None and self.added is not None and self.removed is not None:
            # Those that changed are in both, and count among those that came and those that left too.
            changed = self.changed or 0
            came, left, alike = self.added - changed, self.removed - changed, self.shared - changed
            mine, others = self.most or (self.shared + came, self.shared + left)
            if self.few_persons and self.counts == "record" and (came or left or changed):
                # How many records these have is known of no person.
                found |= {"shared": 0, "added": mine, "removed": others, "changed": None, "rounded": True}
            elif self.most is not None or not all(may_publish_count(count, self.k) for count in (came, left, changed, alike, self.shared)):
                # Of which at least so many are known to be in both that fewer than k others are no difference.
                known = self.shared if may_publish_count(alike, self.k) else changed
                known = known if may_publish_count(known, self.k) else 0
                shared, told = max(min(known, mine - self.k, others - self.k), 0), reported_count(changed, self.k)
                found |= {"shared": shared, "added": mine - shared + told, "removed": others - shared + told, "rounded": True}
        return self.model_copy(update=found)

    def sentence(self) -> str:
        """Return the warning about the joint risk of both releases, with its reason and counts."""
        if not self.exact:
            return self._counted()
        told = (
            f"Of {listed(self.exact)}, one of both publishes values and the other takes them to be known. Whoever knows them finds "
            f"fewer {self.unit}s by them. Name {'it' if len(self.exact) == 1 else 'them'} under 'quasi_identifiers' in both jobs."
        )
        return f"{self._counted()} {told}"

    def _counted(self) -> str:
        """Return what the figures say as sentences."""
        shares = f"Release {self.release} shares {'person' if self.by == 'persons' else self.counts}s with this one"
        if self._figures_are_safe:
            return (
                f"{shares}, which was measured: whoever has both finds no {self.unit} that shares "
                f"its published combinations with fewer than k = {self.k:,}{self._kept()}."
            )
        if self.shared is None:
            return (
                f"Release {self.release} is made of some of the same {self.counts}s, or may be, and cannot be compared with this one: "
                f"{self.unmeasured}. How many {self.counts}s both together put at risk is not known."
            )
        alike, shared = _ALIKE[self.by], f"{'at least ' * self.rounded}{counted(self.shared, self.counts)}"
        shared, many = (f"some {self.counts}s", 0) if self.rounded and not self.shared else (shared, self.shared)
        told = [
            f"{shares}: {shared} {verb_of(many, 'are')} in the sources of both{alike}. "
            "Whoever has both can look for somebody who is in both among the few that share both published combinations."
        ]
        if self.shared_at_risk is None:
            return f"{told[0]} How many {self.counts}s that puts at risk was not measured: {self.unmeasured}."
        told.append(f"Fewer than k = {self.k:,} share them for {self._most(self.shared_at_risk, self.unit)}.")
        told += self._differing(self.added or 0, self.added_at_risk, "came since", "gained")
        told += self._differing(self.removed or 0, self.removed_at_risk, "left since", "lost")
        if self.changed:
            told.append(
                f"Those that came and those that left include {self._most(self.changed, self.counts)} of which a published value changed, "
                "or perhaps changed behind labels that are others now."
            )
        if self.values_at_risk:
            told.append(
                f"For {self._most(self.values_at_risk, self.unit)} what is left in both breaks the l-diversity or t-closeness that one of "
                "both promises."
            )
        if self.means_at_risk:
            told.append(
                f"For {self._most(self.means_at_risk, self.unit)}, the means that both publish of a column are together those of fewer "
                "than k. Their difference may give single values away."
            )
        if self.unmeasured:
            told.append(
                f"The {counted(self.removed or 0, self.counts)} that left since {verb_of(self.removed or 0, 'were')} not "
                f"measured: {self.unmeasured}."
            )
        return " ".join(told)

    def in_short(self) -> str:
        """Return the joint risk of both releases as one line: how many of each kind are below k."""
        exact = [f"{listed(self.exact)} published as values by one of both and a quasi-identifier of the other"] if self.exact else []
        return f"{self.release}: {'; '.join([*self._counts_in_short(), *exact])}"

    def _counts_in_short(self) -> list[str]:
        """Return the parts of the line that say what the figures say."""
        if self.shared is None or self.shared_at_risk is None:
            return [f"not compared ({self.unmeasured})"]
        if self._figures_are_safe:
            return [f"no {self.unit} below k = {self.k:,}{self._kept()}"]
        parts = [
            self._part(self.shared_at_risk, self.shared, "in both", "at least"),
            self._part(self.added_at_risk, self.added, "that came since", "at most"),
            self._part(self.removed_at_risk, self.removed, "that left since", "at most"),
        ]
        below = [f"below k = {self.k:,}: {', '.join(part for part in parts if part)}"] if any(parts) else []
        broken = [f"{self._most(self.values_at_risk, self.unit)} in joint classes that break l or t"] if self.values_at_risk else []
        if self.means_at_risk:
            broken.append(f"{self._most(self.means_at_risk, self.unit)} whose two means of a column are those of fewer than k = {self.k:,}")
        left = [f"those that left were not compared ({self.unmeasured})"] if self.unmeasured else []
        return [*below, *broken, *left]

    def _part(self, at_risk: int | None, count: int | None, which: str, bound: str) -> str:
        """Return how many of some records are at risk, as text; empty if none are."""
        if not at_risk:
            return ""
        fewer = stated_count_text(at_risk, self.k)
        risked = fewer if self.unit == self.counts else f"{fewer} {'person' if at_risk == 1 else 'persons'}"
        return f"{risked} of {f'{bound} ' * self.rounded}{counted(count or 0, self.counts)} {which}" if count else f"{risked} {which}"

    def _most(self, count: int, unit: str) -> str:
        return stated_count_text(count, self.k, unit)

    def _kept(self) -> str:
        """Return the clause that both releases together keep l and t, or an empty text."""
        return "" if self.values_at_risk is None else ", and what they share keeps the l and t that either promises"

    def _differing(self, records: int, at_risk: int | None, which: str, how: str) -> list[str]:
        """Return the sentence about records that only one of the releases has, as a list of 0 or 1."""
        if not records or at_risk is None:
            return []
        of = self._most(at_risk, self.unit) if self.unit == self.counts else f"those of {self._most(at_risk, 'person')}"
        those, are = f"{'at most ' * self.rounded}{counted(records, self.counts)}", verb_of(at_risk, "are")
        left = ": whoever takes the others out of it is left with these" if at_risk else ""
        return [f"Of {those} that {which}, {of} {are} in a class that {how} fewer than k = {self.k:,}{left}."]


class PersonsOverlap(Overlap):
    """Another release of some of the same persons, compared by histories.

    Every figure counts persons.
    """

    counts: ClassVar[str] = "person"
    unit: Literal["record", "person"] = "person"


_AT_RISK = ("shared_at_risk", "added_at_risk", "removed_at_risk", "changed", "values_at_risk", "means_at_risk")
_ALIKE = {
    "files": "",
    "contents": ", what is alike in all that the other is about counted as the same",
    "persons": ", what is alike in all that the other is about, or of one person, counted as the same",
}


class Joined(FrozenModel):
    """Counts of people at risk by all releases that share pseudonyms of the given columns.

    The columns name a person together, or are those of one key, which other releases may call otherwise. Where pseudonyms are not those
    that name persons, a number of people from 1 to k - 1 is reported as k.

    Attributes:
        columns: The columns here.
        releases: Earlier releases with the same pseudonyms.
        k: The smallest of what all of them promise.
        people: Different people of this release whom an earlier one has too. Each pseudonym counts as one, unless it is known whose it is.
        below_k: How many share all that is published of them, in all releases together, with fewer than k.
        by_labels: How many do so by the labels of quasi-identifiers alone.
        smallest: How many people share the set that fewest share; 0 where nobody is in several releases.
        unmeasured: Why this was not counted, or not of all releases, as the end of a sentence; a figure that was not counted is None.
    """

    columns: tuple[str, ...]
    releases: int
    k: int
    people: int | None = None
    below_k: int | None = None
    by_labels: int | None = None
    smallest: int | None = None
    unmeasured: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether all releases were compared and no person is below k."""
        return self.below_k == 0 and not self.unmeasured

    def sentence(self) -> str:
        """Return the warning about the joint disclosure of the releases, with counts."""
        of = f"The pseudonyms of {listed(self.columns)}"
        if self.below_k is None:
            return (
                f"{of} join this release to earlier ones, or may, and what all of them disclose together was not compared: "
                f"{self.unmeasured}. How many people that puts at risk is not known."
            )
        earlier, people = counted(self.releases, "earlier release"), self._most(self.people or 0)
        told = [f"{of} join this release to {earlier}: {people} in both or in several of them."]
        if self.below_k:
            told.append(
                f"Whoever has them all sees sets of labels and values that fewer than k = {self.k:,} share for "
                f"{self._most(self.below_k)}, by labels alone for {self._most(self.by_labels or 0)}; the smallest has "
                f"{self._most(self.smallest or 0)}."
            )
        else:
            compared = "Of those that were compared, each" if self.unmeasured else "All that they publish was compared: each"
            told.append(f"{compared} set of labels and values of somebody in several of them is that of at least k = {self.k:,} people.")
        if self.unmeasured:
            told.append(f"Not all of them were compared: {self.unmeasured}.")
        return " ".join(told)

    def _most(self, count: int) -> str:
        return stated_count_text(count, self.k, "person")

    def in_short(self) -> str:
        """Return the joint risk of all releases with these pseudonyms as one line."""
        by = f"pseudonyms of {listed(self.columns)}, {counted(self.releases, 'earlier release')}"
        if self.below_k is None:
            return f"{by}: not compared ({self.unmeasured})"
        left = f"; not all were compared ({self.unmeasured})" if self.unmeasured else ""
        below = self._most(self.below_k) if self.below_k else "nobody"
        return f"{by}: {self._most(self.people or 0)} in several; below k = {self.k:,}: {below}{left}"


class ComparedRelease(Protocol):
    """Protocol of manifests, of one table or of several, with comparisons with earlier releases."""

    @property
    def compositions(self) -> Sequence[Overlap | Joined]:
        """Comparisons with earlier releases."""

    @property
    def unmeasured_overlaps(self) -> int:
        """Number of older releases that this release was not compared with."""


def joint_warnings(release: ComparedRelease) -> tuple[str, ...]:
    """Return a warning for each unsafe comparison with earlier releases, and on those not compared."""
    older = [f"Together with {counted(many, 'older release')} it was not compared."] if (many := release.unmeasured_overlaps) else []
    return (*(one.sentence() for one in release.compositions if not one.is_safe), *older)


def composition_warning(release: ComparedRelease) -> str:
    """Return warnings that earlier releases add risk, or that some were not compared; empty without any."""
    unsafe = [one for one in release.compositions if not one.is_safe]
    at_risk = [one for one in unsafe if (one.known_at_risk or one.exact if isinstance(one, Overlap) else one.below_k)]
    told = []
    if at_risk:
        told.append(
            "Together with earlier releases this one tells more than alone. Whoever has them can find people among fewer than k. Publish "
            "less often, or let 'overlaps: refuse' end such a run."
        )
    if release.unmeasured_overlaps or len(at_risk) < len(unsafe) or any(one.unmeasured for one in unsafe):
        told.append("Not all earlier releases of the same people were compared with it.")
    return " ".join(told)
