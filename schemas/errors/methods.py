"""Errors of methods and commands that this job or data does not allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.errors.base import PrivacyError, SkaldError, counted, listed, nearest, verb_of


class LevelsError(PrivacyError):
    """Raised when no node at the levels that the job names keeps the privacy promise."""

    @classmethod
    def node_fails(cls, suppressed: int, records: int, most: int) -> LevelsError:
        """One node is fixed by ``method.node``, and it suppresses too many records."""
        return cls(
            f"The node of method.node does not keep the promise: {counted(suppressed, 'record')} of {records:,} "
            f"{verb_of(suppressed, 'are')} in classes that fail, "
            f"and suppression.limit allows {most:,}. Name a coarser one, or leave it out, so that one is looked for; nothing was published."
        )

    @classmethod
    def none_within(cls) -> LevelsError:
        """Not even the coarsest node within ``method.levels`` keeps the privacy promise."""
        return cls("No node within method.levels keeps the promise. Allow coarser ones, or raise suppression.limit; nothing was published.")


class HoldersError(PrivacyError):
    """Raised when too many persons with several values share the same sensitive value."""

    @classmethod
    def of_one_class(cls, models: Sequence[str], column: str) -> HoldersError:
        """Even in one class of all records, too many persons hold the same sensitive value."""
        return cls(
            f"Persons have several values of '{column}', and in one class of all records too many would hold the same one to keep "
            f"{listed(models)}: who knows a person would know that value. Ask for less, or give the source fewer records of each person; "
            "nothing was published."
        )


class SharedValuesError(PrivacyError):
    """Raised when classes break a promise once values of too few people are published as the rest."""

    @classmethod
    def of_the_rest(cls, columns: Sequence[str], models: Sequence[str]) -> SharedValuesError:
        """Suppression leaves shared values to fewer than k people, and classes fail once these are the rest."""
        return cls(
            f"Suppression leaves values of {listed(columns)} to fewer than k people. As publish asks, these go out as the rest, "
            f"and classes then break {listed(models)}. Publish the column exact where that is acceptable, ask for less, raise privacy.k "
            "with coarser hierarchies, or lower suppression.limit; nothing was published."
        )


class ReplayError(SkaldError):
    """Raised when the choices of an earlier release cannot be applied to this job."""

    @classmethod
    def other_method(cls, release: str, theirs: str, mine: str) -> ReplayError:
        """Earlier release was made by another method."""
        return cls(f"Release '{release}' was made by method '{theirs}' and cannot be replayed by '{mine}'. Set method.name: {theirs}.")

    @classmethod
    def hierarchies_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """Quasi-identifiers or hierarchies differ between the earlier release and the job."""
        return cls(
            f"The quasi-identifiers or hierarchies of release '{release}' are not those of this job ({listed(qids)}), so its levels do not "
            "mean the same here; or its digests are keyed with another secret (SKALD_SECRET, or a run folder that was removed since). "
            "Replay it with the job and secret that made it, or leave replay out."
        )

    @classmethod
    def levels_differ(cls, release: str, qids: list[str]) -> ReplayError:
        """Hierarchies have another number of levels on this data than in the earlier release."""
        return cls(
            f"The hierarchies of {listed(qids)} have another number of levels over this source than in release '{release}', because the "
            "columns are of another type, so its levels do not mean the same here. Leave replay out."
        )

    @classmethod
    def levels_not_allowed(cls, release: str, qids: list[str]) -> ReplayError:
        """Levels of the earlier release are excluded by ``method.levels`` or ``method.node`` of the job."""
        return cls(
            f"Release '{release}' publishes {listed(qids)} at levels that method.levels or method.node of this job does not allow. Allow "
            "them, or leave replay out."
        )

    @classmethod
    def other_cuts(cls, release: str) -> ReplayError:
        """Privacy or method settings differ from those that made the earlier cuts.

        The cuts of a partition are computed again from these settings.
        """
        return cls(
            f"Release '{release}' was cut under other promises or settings of the method. Its cuts are replayed by a job of the same "
            "privacy and method; leave replay out."
        )

    @classmethod
    def without_counts(cls, release: str) -> ReplayError:
        """No counts are left of the earlier release, from which its cuts are computed again."""
        return cls(
            f"The counts of release '{release}', from which its cuts are found again, are not in this run folder any more, or "
            "another version of this program made them. Leave replay out, and keep the artefacts (artifacts: keep)."
        )

    @classmethod
    def in_fragments(cls, release: str) -> ReplayError:
        """Neither fragments nor relaxed cuts can be replayed."""
        return cls(
            f"Release '{release}' cannot be replayed, because it or this source is cut in fragments or by relaxed cuts. Raise memory, or "
            "leave replay out."
        )

    @classmethod
    def not_recorded(cls, release: str) -> ReplayError:
        """No hierarchies are recorded in the manifest of the earlier release.

        It is older than this record, and another job made it.
        """
        return cls(f"Release '{release}' does not say which hierarchies it was made with. Run its job again and replay that release.")

    @classmethod
    def no_origin(cls, release: str) -> ReplayError:
        """Manifest names no valid release that the earlier release itself replayed.

        The manifest was altered: the release says that it replays itself, or a folder that is no release of the target.
        """
        return cls(f"Release '{release}' does not say which release of its target it replayed. Replay that release itself.")

    @classmethod
    def origin_gone(cls, release: str, origin: str) -> ReplayError:
        """Earlier release replayed one that is not next to it.

        That one was moved, or is in another target.
        """
        return cls(f"Release '{release}' replayed '{origin}', which is not in the same folder. Replay '{origin}' itself, from where it is.")


class FragmentsError(SkaldError):
    """Raised when the records cannot be anonymised in fragments."""

    @classmethod
    def of_persons(cls, method: str) -> FragmentsError:
        """Models counted by persons cannot be kept in fragments that publish the same class.

        Two fragments may publish the same class, and a promise kept in each fragment need not hold for both together.
        """
        return cls(
            f"Method '{method}' has to cut these records in fragments, and entropy, recursive and t of persons cannot be kept in classes "
            "that two fragments share. Leave method.fragments and mode: relaxed out or raise memory, ask for distinct, or use method "
            "'skald'."
        )

    @classmethod
    def of_shared_values(cls, method: str) -> FragmentsError:
        """Columns with ``publish: shared`` or ``microaggregate`` need all records, not fragments.

        The holders of a published value are counted over all released records.
        """
        return cls(
            f"Method '{method}' has to cut these records in fragments, and columns with publish: shared or microaggregate need all of them "
            "at once. Leave method.fragments and mode: relaxed out or raise memory, or use method 'skald'."
        )

    @classmethod
    def of_one_merged_class(cls, method: str) -> FragmentsError:
        """Outliers are found and suppressed over all records, which fragments do not allow."""
        return cls(
            f"Method '{method}' with pool: suppress looks for outliers among all records together, and method.fragments works on a part of "
            "them at a time. Leave method.fragments out, or say pool: join."
        )


class NoLatticeError(SkaldError):
    """Raised when there is no lattice to draw."""

    @classmethod
    def other_method(cls, method: str) -> NoLatticeError:
        """Only the method skald searches a lattice, and the job names another method."""
        return cls(f"method.name is {method}, which searches no lattice; only jobs of the method skald have one to draw.")

    @classmethod
    def too_large(cls, most: int) -> NoLatticeError:
        """Lattice has too many nodes to compute its Pareto front."""
        return cls(f"The front is searched in lattices of {most:,} nodes at most; leave --front out, or narrow method.levels.")

    @classmethod
    def without_nodes(cls) -> NoLatticeError:
        """Search results of single nodes were not kept, so no lattice can be drawn."""
        return cls("The lattice was searched without keeping what is known of every node, so there is nothing to draw.")


class UtilityError(SkaldError):
    """Raised when the utility of a release cannot be measured for the requested column."""

    @classmethod
    def no_target(cls, column: str, columns: Sequence[str]) -> UtilityError:
        """Target column is not among the sensitive and insensitive columns."""
        return cls(f"--target '{column}' is not among the sensitive and insensitive columns of the job{nearest(column, columns)}.")

    @classmethod
    def no_table(cls, target: str, tables: Iterable[str], hint: str) -> UtilityError:
        """Target names no table of the job that has quasi-identifiers."""
        return cls(
            f"--target '{target}' names no table with quasi-identifiers{hint}: write TABLE.COLUMN, with a table of {', '.join(tables)}."
        )

    @classmethod
    def no_classes(cls, column: str, values: int, most: int) -> UtilityError:
        """Target column has too few or too many values for classification."""
        return cls(f"--target '{column}' has {counted(values, 'value')}; a classifier tells a column of 2 to {most}.")

    @classmethod
    def too_few_records(cls, column: str, needed: int) -> UtilityError:
        """Too few records have a value in the target column."""
        return cls(f"--target '{column}' has a value in fewer than {needed} records of the source or the release; name another column.")

    @classmethod
    def not_installed(cls) -> UtilityError:
        """Extra ``skald[utility]``, an optional dependency, is not installed."""
        return cls("--target needs the optional extra 'utility': install it with pip install 'skald[utility]', or leave the option out.")
