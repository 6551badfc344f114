"""Errors that refuse a release because it would disclose more than the job or policy allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.errors.base import PrivacyError, SkaldError, SourceError, counted, listed, shown_path, verb_of


class LinkedError(PrivacyError):
    """Raised when the linked records of one person would disclose more than the job allows."""

    @classmethod
    def below_k(
        cls, columns: Sequence[str], below: int, people: int, smallest: int, k: int, unit: str, left_over: str, remedy: str
    ) -> LinkedError:
        """Fewer than k people share the set of classes of their linked records.

        ``left_over`` is a clause on who has no link, ``remedy`` what would keep k.
        """
        return cls(
            f"The pseudonyms of {listed(columns)} show which records belong together: {counted(below, unit)} of {people:,} "
            f"{verb_of(below, 'share')} the set "
            f"of combinations that all their records are in with fewer than k = {k:,}, the least {smallest:,}{left_over}. {remedy}, "
            f"or accept it by name, as columns.linkable: [{', '.join(columns)}]; nothing was published."
        )


class PopulationError(SourceError):
    """Raised when the population table for the risk cannot be read."""

    @classmethod
    def no_files(cls, pattern: str) -> PopulationError:
        """No file matches a pattern of ``population.path``."""
        return cls(
            f"population.path '{shown_path(pattern)}' matches no file. Correct the path, which is relative to the job file, or "
            "leave it out."
        )

    @classmethod
    def lacks(cls, columns: Sequence[str]) -> PopulationError:
        """Quasi-identifiers are missing from the population table, or have another type there."""
        return cls(f"The population has no {listed(columns)} of the type that the source has. Name and type its columns like the source's.")

    @classmethod
    def no_parquet(cls) -> PopulationError:
        """One file of the population is damaged or not Parquet."""
        return cls("The population cannot be read as Parquet. Mend its files, or leave population out.")


class PassthroughError(SourceError):
    """Raised when ``insensitive: rest`` would publish columns that may identify persons."""

    @classmethod
    def identifying_columns(cls, columns: Mapping[str, Sequence[str]]) -> PassthroughError:
        """Columns under ``insensitive: rest`` look as if they identify persons.

        ``columns`` holds the reasons of each column.
        """
        return cls._named({f"'{name}'": reasons for name, reasons in columns.items()})

    @classmethod
    def identifying_table_columns(cls, tables: Mapping[str, Mapping[str, Sequence[str]]]) -> PassthroughError:
        """Columns under ``insensitive: rest`` of several tables look as if they identify persons."""
        return cls._named({f"'{name}' of '{table}'": why for table, columns in tables.items() for name, why in columns.items()})

    @classmethod
    def _named(cls, columns: Mapping[str, Sequence[str]]) -> PassthroughError:
        named = "; ".join(f"{name}: {', '.join(reasons)}" for name, reasons in columns.items())
        return cls(
            f"'insensitive: rest' does not take in {counted(len(columns), 'column')} that may tell who people are ({named}). Give each "
            "another role, such as identifiers; to publish one all the same, list the insensitive columns by their names."
        )


class UntreatedError(PrivacyError):
    """Raised when untreated columns single out fewer than k people, and the policy forbids it."""

    @classmethod
    def below_k(cls, below: str, unit_count: int, unit: str, k: int, policy: str) -> UntreatedError:
        """Untreated values of some records, or persons, are shared by fewer than k.

        ``below`` is the number of these records or persons in a form that may be published.
        """
        return cls(
            f"By the untreated columns together {below} of {counted(unit_count, unit)} share what is published of them with fewer than "
            f"k = {k:,}, and the policy '{policy}' forbids to accept it. Coarsen insensitive columns as quasi-identifiers, or list them "
            "under withheld; nothing was published."
        )

    @classmethod
    def published(cls, release: str, policy: str) -> UntreatedError:
        """Untreated columns of a published release single out fewer than k, which the policy forbids."""
        return cls(
            f"The untreated columns of '{release}', which is published, single out fewer than k, and the policy '{policy}' forbids "
            "to accept it. Withdraw the release."
        )


class PolicyError(SkaldError):
    """Raised when the policy cannot be read, or a job asks for less than the policy.

    The message lists every fault, not only the first.
    """

    def __init__(self, sentence: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__(sentence + "".join(f"\n  - {fault}" for fault in faults))

    @classmethod
    def below(cls, job: str, policy: str, faults: Sequence[str]) -> PolicyError:
        """Job settings are weaker than the policy demands."""
        return cls(f"Job '{job}' stands below the policy '{policy}' in {counted(len(faults), 'point')}; nothing was published:", faults)

    @classmethod
    def unreadable(cls, policy: str, faults: Sequence[str]) -> PolicyError:
        """Policy file named by ``SKALD_POLICY`` cannot be used, so that no job runs."""
        return cls(f"The policy '{policy}', which SKALD_POLICY names, cannot be used ({counted(len(faults), 'fault')}):", faults)


class OverlapError(PrivacyError):
    """Raised when a release and earlier ones together would disclose too much."""

    @classmethod
    def overlap_unchecked(cls) -> OverlapError:
        """``overlaps: refuse`` is set, and the command compares with no earlier release."""
        return cls("Nothing was published, because the job says 'overlaps: refuse' and earlier releases are not looked for here.")

    @classmethod
    def published(cls, sentences: Sequence[str]) -> OverlapError:
        """One published release discloses more together with others, or was not compared.

        The job says ``overlaps: refuse``. ``sentences`` has one for each finding.
        """
        return cls(
            "The files are what was published, and the job says 'overlaps: refuse', under which this release would not have been. Withdraw "
            "it, or say 'overlaps: warn':" + "".join(f"\n  - {sentence}" for sentence in sentences)
        )

    @classmethod
    def recalled(cls, release: str, sentences: Sequence[str]) -> OverlapError:
        """Release that a run finds already published discloses more with others than the job allows.

        The job says ``overlaps: refuse``. ``sentences`` has one for each finding.
        """
        return cls(
            f"'{release}' is published, and the job says 'overlaps: refuse', under which it would not have been. Withdraw it, or say "
            "'overlaps: warn':" + "".join(f"\n  - {sentence}" for sentence in sentences)
        )

    @classmethod
    def refused(cls, releases: int, sentences: Sequence[str], *, replays: bool = True, linked: bool = True) -> OverlapError:
        """Earlier releases would disclose more together with this one, or cannot be compared.

        The job says ``overlaps: refuse``. ``sentences`` has one for each such release. ``replays`` is whether the job can replay
        one, ``linked`` whether pseudonyms link them.
        """
        remedies = (
            ["replay one of them that this job made (replay)"] * replays
            + ["give pseudonyms another key"] * linked
            + ["say 'overlaps: warn'"]
        )
        remedy, stays = "; or ".join(remedies), ", which leaves what its pseudonyms disclosed counted" * linked
        said = "".join(f"\n  - {sentence}" for sentence in sentences)
        return cls(
            f"Nothing was published, because the job says 'overlaps: refuse' and {counted(releases, 'earlier release')} would tell more "
            f"together with this one, or cannot be compared with it. {remedy[0].upper()}{remedy[1:]}; or, of one that was never handed "
            f"on, remove its folder and what '.skald/.releases' holds under its name{stays}:{said}"
        )


class AttackError(PrivacyError):
    """Raised when an attack succeeds more than the job accepts, or a required attack did not run."""

    @classmethod
    def broken(cls, attacks: Sequence[str], refused_by: str) -> AttackError:
        """Attacks on a release before publication succeed more than the job accepts.

        ``attacks`` has a sentence for each; ``refused_by`` names the setting that refuses the release.
        """
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"Nothing was published, because {counted(len(attacks), 'attack')} on the release won more than the job accepts, and "
            f"{refused_by} says to refuse that. Raise k, coarsen or withhold the columns that are named, or accept what they "
            f"disclose by name:{said}"
        )

    @classmethod
    def published(cls, release: str, attacks: Sequence[str], refused_by: str) -> AttackError:
        """Attacks on a published release succeed more than the job accepts.

        ``attacks`` has a sentence for each; ``refused_by`` names the setting that refuses the release.
        """
        said = "".join(f"\n  - {one}" for one in attacks)
        return cls(
            f"{counted(len(attacks), 'attack')} on '{release}' won more than the job accepts, and {refused_by} says to refuse that. "
            f"Withdraw the release:{said}"
        )

    @classmethod
    def recalled_unplayed(cls, release: str, refused_by: str) -> AttackError:
        """Release that a run finds already published lacks attacks that are required."""
        return cls(
            f"'{release}' is published, and not all attacks that {refused_by} requires were played then. Withdraw the release, and run "
            "the job again."
        )

    @classmethod
    def unplayed(cls, reasons: Sequence[str], refused_by: str) -> AttackError:
        """Attacks that the job or policy requires could not run.

        ``reasons`` has a sentence for each; ``refused_by`` names the setting that requires them.
        """
        return cls(
            f"Nothing was published, because {refused_by} says to refuse what attacks break, and not all were played: {' '.join(reasons)}"
        )
