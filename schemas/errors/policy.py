"""What stands against the policy of those who answer for the data; exit code 2."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import SkaldError, counted


class PolicyError(SkaldError):
    """The policy cannot be read, or a job would pass under it; carries every fault, not only the first."""

    def __init__(self, sentence: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__(sentence + "".join(f"\n  - {fault}" for fault in faults))

    @classmethod
    def below(cls, job: str, policy: str, faults: Sequence[str]) -> PolicyError:
        """A job asks for less than the policy does."""
        return cls(f"Job '{job}' stands below the policy '{policy}' in {counted(len(faults), 'point')}; nothing was published:", faults)

    @classmethod
    def unreadable(cls, policy: str, faults: Sequence[str]) -> PolicyError:
        """What the environment names is no policy; without one that can be read no job runs."""
        return cls(f"The policy '{policy}', which SKALD_POLICY names, cannot be used ({counted(len(faults), 'fault')}):", faults)
