"""What a method or a command refuses because of the job or the data."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import PrivacyError, SkaldError, counted, listed, nearest


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


class HoldersError(PrivacyError):
    """Persons have several values, and too many of them hold the same one."""

    @classmethod
    def of_one_class(cls, models: Sequence[str], column: str) -> HoldersError:
        """One class of all records breaks a privacy model by nothing but who holds a value."""
        return cls(
            f"Persons have several values of '{column}', and in one class of all records too many would hold the same one to keep "
            f"{listed(models)}: who knows a person would know that value. Ask for less, or give the source fewer records of each person; "
            "nothing was published."
        )


class ReplayError(SkaldError):
    """An earlier release cannot be applied to this job."""

    @classmethod
    def other_method(cls, release: str, theirs: str, mine: str) -> ReplayError:
        """The release was made by another algorithm."""
        return cls(f"Release '{release}' was made by method '{theirs}' and cannot be replayed by '{mine}'. Set method.name: {theirs}.")

    @classmethod
    def hierarchies_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """Levels of one and of the other do not mean the same."""
        return cls(
            f"The quasi-identifiers or hierarchies of release '{release}' are not those of this job ({listed(qids)}), so its levels do not "
            "mean the same here. Replay it with the job that made it, or leave replay out."
        )

    @classmethod
    def levels_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """The same hierarchy has another number of levels over these data."""
        return cls(
            f"The hierarchies of {listed(qids)} have another number of levels over this source than in release '{release}', because the "
            "columns are of another type, so its levels do not mean the same here. Leave replay out."
        )

    @classmethod
    def other_cuts(cls, release: str) -> ReplayError:
        """The cuts of a partition are found again by the settings that made them."""
        return cls(
            f"Release '{release}' was cut under other promises or settings of the method. Its cuts are replayed by a job of the same "
            "privacy and method; leave replay out."
        )

    @classmethod
    def without_counts(cls, release: str) -> ReplayError:
        """The cuts of a partition are found again from its counts, and these are gone."""
        return cls(
            f"The counts of release '{release}', from which its cuts are found again, are not in this run folder any more, or "
            "another version of this program made them. Leave replay out, and keep the artefacts (artifacts: keep)."
        )

    @classmethod
    def in_fragments(cls, release: str) -> ReplayError:
        """Fragments, and relaxed cuts, are not replayed."""
        return cls(
            f"Release '{release}' cannot be replayed, because it or this source is cut in fragments or by relaxed cuts. Raise memory, or "
            "leave replay out."
        )

    @classmethod
    def not_recorded(cls, release: str) -> ReplayError:
        """The release is older than the record of its hierarchies, and another job's."""
        return cls(f"Release '{release}' does not say which hierarchies it was made with. Run its job again and replay that release.")

    @classmethod
    def no_origin(cls, release: str) -> ReplayError:
        """The manifest was altered: the release says that it replays itself, or a folder that is no release of the target."""
        return cls(f"Release '{release}' does not say which release of its target it replayed. Replay that release itself.")


class FragmentsError(SkaldError):
    """Records cannot be anonymised in fragments."""

    @classmethod
    def of_persons(cls, method: str) -> FragmentsError:
        """Two fragments may publish the same, and what is promised of each class of persons need not hold for both together."""
        return cls(
            f"Method '{method}' has to cut these records in fragments, and entropy, recursive and t of persons cannot be kept in classes "
            "that two fragments share. Leave method.fragments out or raise memory, ask for distinct, or use method 'skald'."
        )

    @classmethod
    def of_shared_values(cls, method: str) -> FragmentsError:
        """Who shares a published value is counted over all records that are released, and fragments know nothing of each other."""
        return cls(
            f"Method '{method}' has to cut these records in fragments, and columns with publish: shared or microaggregate need all of them "
            "at once. Leave method.fragments out or raise memory, or use method 'skald'."
        )

    @classmethod
    def of_one_merged_class(cls, method: str) -> FragmentsError:
        """Records that are suppressed as outliers are pooled over all fragments, and fragments know nothing of each other."""
        return cls(
            f"Method '{method}' with pool: suppress looks for outliers among all records together, and method.fragments works on a part of "
            "them at a time. Leave method.fragments out, or say pool: join."
        )


class NoLatticeError(SkaldError):
    """There is nothing to draw."""

    @classmethod
    def other_method(cls, method: str) -> NoLatticeError:
        """The job's algorithm searches no lattice."""
        return cls(f"method.name is {method}, which searches no lattice; only jobs of the method skald have one to draw.")

    @classmethod
    def too_large(cls, most: int) -> NoLatticeError:
        """The front would be of a lattice that cannot be held."""
        return cls(f"The front is searched in lattices of {most:,} nodes at most; leave --front out, or narrow method.levels.")

    @classmethod
    def without_nodes(cls) -> NoLatticeError:
        """The search did not keep what it knows of single nodes."""
        return cls("The lattice was searched without keeping what is known of every node, so there is nothing to draw.")


class UtilityError(SkaldError):
    """What was asked for cannot be measured."""

    @classmethod
    def no_target(cls, column: str, columns: Sequence[str]) -> UtilityError:
        """The column is not published beside the QIDs."""
        return cls(f"--target '{column}' is not among the sensitive and insensitive columns of the job{nearest(column, columns)}.")

    @classmethod
    def no_classes(cls, column: str, values: int, most: int) -> UtilityError:
        """Telling it is no classification."""
        return cls(f"--target '{column}' has {counted(values, 'value')}; a classifier tells a column of 2 to {most}.")

    @classmethod
    def too_few_records(cls, column: str, needed: int) -> UtilityError:
        """There is nothing to learn from."""
        return cls(f"--target '{column}' has a value in fewer than {needed} records of the source or the release; name another column.")

    @classmethod
    def not_installed(cls) -> UtilityError:
        """The optional extra is missing."""
        return cls("--target needs the optional extra 'utility': install it with pip install 'skald[utility]', or leave the option out.")
