"""What is refused because pseudonyms show which records belong together."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import PrivacyError, counted, listed


class LinkedError(PrivacyError):
    """All records of somebody together tell more than each of them may."""

    @classmethod
    def below_k(cls, columns: Sequence[str], below: int, people: int, smallest: int, k: int, unit: str, keep: str) -> LinkedError:
        """Fewer than k people share a set of combinations; ``keep`` is the setting that would keep it, if there is one."""
        return cls(
            f"The pseudonyms of {listed(columns)} show which records belong together: {counted(below, unit)} of {people:,} share the set "
            f"of combinations that all their records are in with fewer than k = {k:,}, the least {smallest:,}. Leave the column out, "
            f"{keep and f'ask for {keep}, '}or accept it by name, as columns.linkable: [{', '.join(columns)}]; nothing was published."
        )
