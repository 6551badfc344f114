"""Errors of the hierarchy of a quasi-identifier.

Every constructor names the column, the level and the number of values, and ends with a remedy. None takes a value.
"""

from __future__ import annotations

from typing import Self

from schemas.errors.base import SkaldError, counted, verb_of


class HierarchyError(SkaldError):
    """Raised when a hierarchy cannot be read, does not nest, or does not fit its column."""

    @classmethod
    def unreadable(cls, qid: str, path: str, reason: str) -> Self:
        """CSV file of the hierarchy cannot be read.

        ``reason`` is a clause of ours, never the text of another library.
        """
        return cls(f"Column '{qid}': the hierarchy file '{path}' {reason}.")

    @classmethod
    def changed(cls, path: str) -> Self:
        """CSV file of the hierarchy changed during the run."""
        return cls(f"The hierarchy file '{path}' changed while it was being read. Let it rest and start again; nothing was published.")

    @classmethod
    def ragged(cls, qid: str, where: str, rows: int, total: int, depth: int) -> Self:
        """Rows of the file, or leaves of the tree, differ in their number of levels."""
        return cls(
            f"Column '{qid}': {rows:,} of {counted(total, 'row')} of {where} {verb_of(rows, 'have')} another depth than "
            f"the first ({counted(depth, 'level')}); give every value one label per level, repeating a label where it has no coarser one."
        )

    @classmethod
    def ambiguous(cls, qid: str, where: str, values: int) -> Self:
        """Values occur more than once in the hierarchy, each time under another label."""
        return cls(
            f"Column '{qid}': {counted(values, 'value')} {verb_of(values, 'occur')} more than once in {where}, "
            "under different labels; keep one place for each value."
        )

    @classmethod
    def not_nested(cls, qid: str, level: int, labels: int) -> Self:
        """Labels of one level lie under more than one label of the next level."""
        return cls(
            f"Column '{qid}': the hierarchy does not nest: {counted(labels, 'label')} of level {level} "
            f"{verb_of(labels, 'lie')} under several labels of level {level + 1}; "
            "give each label one parent, or different names to labels that mean different groups."
        )

    @classmethod
    def no_null_leaf(cls, qid: str, where: str) -> Self:
        """No row of the hierarchy lists the value that stands for nulls."""
        return cls(
            f"The hierarchy of '{qid}' says which value stands for nulls, and {where} does not list it: add it, or leave nulls: out."
        )

    @classmethod
    def not_covered(cls, qid: str, where: str, values: int, total: int) -> Self:
        """Values of the column are missing from the hierarchy."""
        return cls(
            f"Column '{qid}': {values:,} of {counted(total, 'value')} {verb_of(values, 'are')} not in {where}; "
            "add each of them with its labels ('skald hierarchy complete' does it in a CSV file), and check spelling, spaces and the "
            "delimiter if most are missing."
        )

    @classmethod
    def wrong_type(cls, qid: str, kind: str, needs: str, found: str, remedy: str) -> Self:
        """Column type does not fit the kind of hierarchy."""
        return cls(f"Column '{qid}': a hierarchy of {kind} needs {needs}, but the column is of type {found}; {remedy}.")

    @classmethod
    def not_finite(cls, qid: str, records: int) -> Self:
        """NaN or infinite numbers occur in the column, and lie in no bin."""
        return cls(
            f"Column '{qid}': {counted(records, 'record')} {verb_of(records, 'hold')} NaN or an infinite number, which no "
            "bin can take; make them null in the source, or give the column a CSV hierarchy that lists them."
        )

    @classmethod
    def negative(cls, qid: str, values: int) -> Self:
        """Negative integers occur in the column, and their prefixes mean nothing."""
        return cls(
            f"Column '{qid}': {counted(values, 'value')} {verb_of(values, 'are')} negative, and a prefix of a negative "
            "number means nothing; use a hierarchy of widths."
        )

    @classmethod
    def unknown_zone(cls, qid: str, zone: str) -> Self:
        """Time zone of the timestamp column is not installed on this machine."""
        return cls(
            f"Column '{qid}': the time zone '{zone}' of its timestamps is not known on this machine; install the time zone "
            "database (tzdata), or convert the column to UTC in the source."
        )

    @classmethod
    def not_recounted(cls, name: str, kind: str) -> Self:
        """No independent reader of this kind of hierarchy is registered for the recount."""
        why = f"the recount cannot read hierarchies of the kind {kind}, so that nothing would be proved of their labels"
        return cls(f"Column '{name}': {why}. Use another kind, or register a reader of it for the recount.")

    @classmethod
    def no_level(cls, qid: str, where: str, level: int, top: int) -> Self:
        """No level of this number exists in the hierarchy of the column."""
        return cls(f"{where}: column '{qid}' has levels 0 to {top} over this source, and none of number {level}. Name another one.")

    @classmethod
    def discloses_values(cls, qid: str, where: str, level: int, least: int) -> Self:
        """Level named in the job is finer than the finest one that may be published."""
        return cls(f"{where}: at level {level} column '{qid}' tells what the job hides; the finest level that may be published is {least}.")

    @classmethod
    def unlisted_type(cls, qid: str, kind: str) -> Self:
        """Column values are of a type that cannot be listed in a hierarchy file."""
        return cls(f"Column '{qid}' is of type {kind}, whose values cannot be listed in a file; convert it to text in the source.")

    @classmethod
    def no_qid(cls, qid: str, known: str) -> Self:
        """Column given to a command is no quasi-identifier; ``known`` is a hint of a similar name, or empty."""
        return cls(f"Column '{qid}' is no quasi-identifier of the job{known}; give the name of one with --column.")

    @classmethod
    def no_file(cls, qid: str, kind: str) -> Self:
        """Only CSV files can be completed, and this hierarchy is written in the job itself."""
        return cls(
            f"Column '{qid}' has a hierarchy of {kind}, which is written in the job; 'complete' adds to CSV files alone. Change the job."
        )
