"""What is refused because of earlier releases; exit code 3."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import PrivacyError, counted


class OverlapError(PrivacyError):
    """Together with releases that are there already, one would tell more than it may by itself."""

    @classmethod
    def not_looked_for(cls) -> OverlapError:
        """The job says ``overlaps: refuse``, and what is made is held against no earlier release."""
        return cls("Nothing was published, because the job says 'overlaps: refuse' and earlier releases are not looked for here.")

    @classmethod
    def published(cls, told: Sequence[str]) -> OverlapError:
        """A release that is there tells more together with others, or was not compared; the job says ``overlaps: refuse``."""
        return cls(
            "The files are what was published, and the job says 'overlaps: refuse', under which this release would not have been. Withdraw "
            "it, or say 'overlaps: warn':" + "".join(f"\n  - {sentence}" for sentence in told)
        )

    @classmethod
    def refused(cls, releases: int, told: Sequence[str]) -> OverlapError:
        """The job says ``overlaps: refuse``; ``told`` has a sentence for each that tells more, or cannot be compared."""
        return cls(
            f"Nothing was published, because the job says 'overlaps: refuse' and {counted(releases, 'earlier release')} would tell more "
            "together with this one, or cannot be compared with it. Replay one of them (replay); or give pseudonyms another key; or say "
            "'overlaps: warn'; or, of one that was never handed on, remove its folder and what '.skald/.releases' holds under its name:"
            + "".join(f"\n  - {sentence}" for sentence in told)
        )
