"""What the levels that a job asks for cannot keep."""

from __future__ import annotations

from schemas.errors.base import PrivacyError, counted


class LevelsError(PrivacyError):
    """The job names levels, and nothing at them keeps the promise."""

    @classmethod
    def node_fails(cls, suppressed: int, records: int, most: int) -> LevelsError:
        """The one node that the job names suppresses too much."""
        return cls(
            f"The node of method.node does not keep the promise: {counted(suppressed, 'record')} of {records:,} are in classes that fail, "
            f"and suppression.limit allows {most:,}. Name a coarser one, or leave it out, so that one is looked for; nothing was published."
        )

    @classmethod
    def none_within(cls) -> LevelsError:
        """Not even the coarsest node that the job allows passes."""
        return cls("No node within method.levels keeps the promise. Allow coarser ones, or raise suppression.limit; nothing was published.")
