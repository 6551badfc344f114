"""What is refused because of earlier releases, or because attacks win more than a job accepts; exit code 3."""

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


class AttackError(PrivacyError):
    """An attack on a release wins more than the job accepts, or attacks that must be played could not be."""

    @classmethod
    def broken(cls, attacks: Sequence[str], by: str) -> AttackError:
        """Attacks break a release, each in words; ``by`` says what asks to refuse that."""
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"Nothing was published, because {counted(len(attacks), 'attack')} on the release won more than the job accepts, and {by} "
            f"says to refuse that. Raise k, coarsen or withhold the columns that are named, or accept what they disclose by name:{said}"
        )

    @classmethod
    def published(cls, release: str, attacks: Sequence[str], by: str) -> AttackError:
        """Attacks break a release that is there; ``by`` says what asks to refuse that."""
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"{counted(len(attacks), 'attack')} on '{release}' won more than the job accepts, and {by} says to refuse that. Withdraw the "
            f"release:{said}"
        )

    @classmethod
    def unplayed(cls, reasons: Sequence[str], by: str) -> AttackError:
        """Attacks that must be played could not be, each reason a sentence; ``by`` says what asks for them."""
        return cls(f"Nothing was published, because {by} says to refuse what attacks break, and not all were played: {' '.join(reasons)}")
