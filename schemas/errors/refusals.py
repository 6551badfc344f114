"""What is refused because pseudonyms show which records belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.errors.base import PrivacyError, SkaldError, SourceError, counted, listed
from schemas.errors.shown import shown_path


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


class PopulationError(SourceError):
    """The population that risk is measured against cannot be read as the job has it."""

    @classmethod
    def no_files(cls, pattern: str) -> PopulationError:
        """A pattern of the population matches nothing."""
        return cls(
            f"population.path '{shown_path(pattern)}' matches no file. Correct the path, which is relative to the job file, or "
            "leave it out."
        )

    @classmethod
    def lacks(cls, columns: Sequence[str]) -> PopulationError:
        """Quasi-identifiers are missing in it, or of a kind of type in which their labels cannot be read."""
        return cls(f"The population has no {listed(columns)} of the type that the source has. Name and type its columns like the source's.")

    @classmethod
    def no_parquet(cls) -> PopulationError:
        """One of its files is damaged or no Parquet."""
        return cls("The population cannot be read as Parquet. Mend its files, or leave population out.")


class PassthroughError(SourceError):
    """Columns that would have been published untreated without anybody having named them."""

    @classmethod
    def identifying_columns(cls, columns: Mapping[str, Sequence[str]]) -> PassthroughError:
        """Values of columns, each with the reasons, look as if they told who somebody is."""
        named = "; ".join(f"'{name}': {', '.join(reasons)}" for name, reasons in columns.items())
        return cls(
            f"'insensitive: rest' does not take in {counted(len(columns), 'column')} that may tell who people are ({named}). Give each "
            "another role, such as identifiers; to publish one all the same, list the insensitive columns by their names."
        )


class UntreatedError(PrivacyError):
    """Untreated columns together tell fewer than k people apart, and the policy forbids to accept that."""

    @classmethod
    def below_k(cls, below: str, whole: int, unit: str, k: int, policy: str) -> UntreatedError:
        """So many share what is published of them untreated with fewer than k; ``below`` is a count as it may be told."""
        return cls(
            f"By the untreated columns together {below} of {counted(whole, unit)} share what is published of them with fewer than "
            f"k = {k:,}, and the policy '{policy}' forbids to accept it. Coarsen insensitive columns as quasi-identifiers, or list them "
            "under withheld; nothing was published."
        )


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


class OverlapError(PrivacyError):
    """Together with releases that are there already, one would tell more than it may by itself."""

    @classmethod
    def overlap_unchecked(cls) -> OverlapError:
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
    def refused(cls, releases: int, told: Sequence[str], *, replays: bool = True) -> OverlapError:
        """The job says ``overlaps: refuse``; ``told`` has a sentence for each that tells more, or cannot be compared."""
        replay = "Replay one of them (replay); or give" if replays else "Give"
        return cls(
            f"Nothing was published, because the job says 'overlaps: refuse' and {counted(releases, 'earlier release')} would tell more "
            f"together with this one, or cannot be compared with it. {replay} pseudonyms another key; or say "
            "'overlaps: warn'; or, of one that was never handed on, remove its folder and what '.skald/.releases' holds under its name:"
            + "".join(f"\n  - {sentence}" for sentence in told)
        )


class AttackError(PrivacyError):
    """An attack on a release wins more than the job accepts, or attacks that must be played could not be."""

    @classmethod
    def broken(cls, attacks: Sequence[str], by: str) -> AttackError:
        """Attack break a release, each in words; ``by`` says what asks to refuse that."""
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"Nothing was published, because {counted(len(attacks), 'attack')} on the release won more than the job accepts, and {by} "
            f"says to refuse that. Raise k, coarsen or withhold the columns that are named, or accept what they disclose by name:{said}"
        )

    @classmethod
    def published(cls, release: str, attacks: Sequence[str], by: str) -> AttackError:
        """Attack break a release that is there; ``by`` says what asks to refuse that."""
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"{counted(len(attacks), 'attack')} on '{release}' won more than the job accepts, and {by} says to refuse that. Withdraw the "
            f"release:{said}"
        )

    @classmethod
    def unplayed(cls, reasons: Sequence[str], by: str) -> AttackError:
        """Attack that must be played could not be, each reason a sentence; ``by`` says what asks for them."""
        return cls(f"Nothing was published, because {by} says to refuse what attacks break, and not all were played: {' '.join(reasons)}")
