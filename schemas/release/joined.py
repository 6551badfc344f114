"""What several releases with the same key disclose together of the people whose pseudonyms they publish."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from schemas.errors.base import counted, listed


class Joined(BaseModel):
    """What all releases with one key disclose together under the pseudonyms of a column, or of several that name somebody together.

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

    model_config = ConfigDict(frozen=True)

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
        """Whether all was measured, and nobody is below k."""
        return self.below_k == 0 and not self.unmeasured

    def sentence(self) -> str:
        """Returns the warning: what the releases disclose together, and of how many."""
        of = f"The pseudonyms of {listed(self.columns)}"
        if self.below_k is None:
            return (
                f"{of} join this release to earlier ones, or may, and what all of them disclose together was not compared: "
                f"{self.unmeasured}. How many people that puts at risk is not known."
            )
        earlier, people = counted(self.releases, "earlier release"), counted(self.people or 0, "person")
        told = [f"{of} join this release to {earlier}: {people} in both or in several of them."]
        if self.below_k:
            told.append(
                f"Whoever has them all sees sets of labels and values that fewer than k = {self.k:,} share for "
                f"{counted(self.below_k, 'person')}, by labels alone for {self.by_labels or 0:,}; the smallest has {self.smallest:,}."
            )
        else:
            told.append(f"All that they publish was compared: each set of labels and values is that of at least k = {self.k:,} people.")
        if self.unmeasured:
            told.append(f"Not all of them were compared: {self.unmeasured}.")
        return " ".join(told)
