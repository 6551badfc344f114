"""Errors of keys, vaults and values: of a wrong type, or beyond the limits of a release.

No key, content of a file or value is ever part of a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

from schemas.errors.base import SkaldError, SourceError, StorageError, counted, listed, shown_path, verb_of


class PseudonymError(SkaldError):
    """Raised when identifiers cannot be published as pseudonyms in the way the job asks."""

    @classmethod
    def refused(cls, faults: Sequence[str]) -> Self:
        """Keys or vaults cannot be used; ``faults`` lists all of them."""
        lines = "".join(f"\n  - {fault}" for fault in faults)
        return cls(f"{counted(len(faults), 'fault')} of keys and vaults; nothing was published:{lines}")

    @classmethod
    def unfit(cls, column: str, file: str, count: int, reason: str) -> Self:
        """Values of a column do not fit its treatment."""
        return cls(f"Column '{column}': {counted(count, 'different value')} in '{shown_path(file)}' {reason}. Nothing was published.")

    @classmethod
    def no_subject(cls, column: str, subject: str, file: str, records: int) -> Self:
        """Dates to be shifted belong to no person, so that no shift is known."""
        return cls(
            f"Column '{column}': {counted(records, 'record')} in '{shown_path(file)}' "
            f"{verb_of(records, 'have')} a date but no '{subject}', "
            "whose dates it would be shifted with. Give them one, or make the dates null; nothing was published."
        )

    @classmethod
    def another_key(cls, column: str) -> Self:
        """One worker reads another key or vault than the run began with."""
        return cls(
            f"Column '{column}': a worker reads another key or vault than the run began with. Give all workers the same one and run again; "
            "nothing was published."
        )

    @classmethod
    def not_in_vault(cls, column: str, values: int) -> Self:
        """Values of the source have no token in the vault.

        Source or vault changed after the tokens were assigned.
        """
        return cls(
            f"Column '{column}': {counted(values, 'different value')} of the source got no token in the vault: source or vault changed "
            "during the run. Run again when they are at rest; nothing was published."
        )

    @classmethod
    def irreversible(cls, column: str, words: str) -> Self:
        """Pseudonyms of this treatment cannot be reversed."""
        return cls(f"Column '{column}': {words} cannot be undone, not even with a key.")

    @classmethod
    def no_pseudonyms(cls, column: str, hint: str) -> Self:
        """Column is not published as pseudonyms by the job."""
        return cls(f"'{column}' is not among the identifiers that the job publishes as pseudonyms{hint}.")

    @classmethod
    def unreadable_list(cls, reason: str) -> Self:
        """Pseudonyms to reveal cannot be read from the input."""
        return cls(f"The pseudonyms to reveal cannot be read: {reason}.")

    @classmethod
    def originals_not_writable(cls, path: str, reason: str) -> Self:
        """Originals may not be written to this path."""
        return cls(f"'{path}' cannot take the originals: {reason}.")


class SecretError(StorageError):
    """Raised when the secret of a work folder is weak or damaged.

    Without a secret every digest of a release would confirm guesses about its source.
    """

    @classmethod
    def weak(cls, variable: str) -> SecretError:
        """Secret in the environment variable is too weak.

        Anyone who can guess the secret can guess the source from the digests.
        """
        return cls(
            f"{variable} is set and too weak for a secret: 128 random bits are needed, such as the 64 characters that "
            "'openssl rand -hex 32' prints. Set it to those, or unset it; then each work folder has a secret of its own."
        )

    @classmethod
    def damaged(cls, path: str) -> SecretError:
        """Secret file of the work folder is incomplete, or no run wrote it."""
        return cls(
            f"'{path}' is not the secret that this work folder was given. Put it back; or remove it: releases then get other ids, so that "
            "the same job on the same data makes another one."
        )


class ValuesError(SourceError):
    """Raised when a column holds values that programs cannot read, or not all alike.

    The values are counted, never shown.
    """

    @classmethod
    def not_utf8(cls, column: str, file: str, count: int) -> ValuesError:
        """Text column holds bytes that are not UTF-8."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds {counted(count, 'value')} that "
            f"{verb_of(count, 'are')} not UTF-8 text. Write the "
            "file anew with that text decoded, or give the column a binary type."
        )

    @classmethod
    def moments_out_of_range(cls, column: str, count: int, first: str, last: str) -> ValuesError:
        """Dates or times lie outside the range that all programs read alike."""
        return cls(
            f"Column '{column}' holds {counted(count, 'value')} before {first} or after {last}, which not every program reads alike. Make "
            "them null, or correct them."
        )

    @classmethod
    def nanoseconds(cls, column: str, file: str, count: int) -> ValuesError:
        """INT96 timestamps have digits below the microsecond, and are read in microseconds."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds {counted(count, 'timestamp')} in INT96 with digits below the microsecond, in "
            "which INT96 is read. Round them, or write the column as TIMESTAMP(NANOS)."
        )

    @classmethod
    def too_large(cls, column: str, count: int, most: float) -> ValuesError:
        """Numbers are so large that distances between them are not exact."""
        return cls(f"Column '{column}' holds {counted(count, 'value')} beyond {most:g}. Make them null, or give them another unit.")

    @classmethod
    def too_long(cls, column: str, file: str, most: int) -> ValuesError:
        """Values are longer than any source may have."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds values of more than {most // 1_000_000:,} MB, which no source may have. "
            "Shorten them, or leave the column out of the file."
        )

    @classmethod
    def too_many_equal_records(cls, count: int, needed: int) -> ValuesError:
        """Memory is too small for the one file that holds all equal records."""
        return cls(
            f"{counted(count, 'record')} stand in one file of the release, because they are equal, and the job's memory has no room for "
            f"them. Raise 'memory' to {needed / 1e6:,.0f} MB."
        )

    @classmethod
    def large_page(cls, column: str, file: str, size: int, most: int) -> ValuesError:
        """One page of a Parquet column is larger than the memory has room for."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' has a page of {size / 1e6:,.0f} MB, and the job's memory has room for "
            f"{most / 1e6:,.0f} MB at a time. Raise memory, or write the file with smaller pages."
        )

    @classmethod
    def large_batch(cls, file: str, size: int, most: int) -> ValuesError:
        """One batch of an Arrow file is larger than the memory has room for."""
        return cls(
            f"A batch of '{shown_path(file)}' takes {size / 1e6:,.0f} MB, and the job's memory has room for {most / 1e6:,.0f} MB "
            "at a time. Raise memory, or write the file in smaller batches."
        )

    @classmethod
    def repeated(cls, column: str, size: int, most: int) -> ValuesError:
        """Many equal records share long values, so that a data file would be too large.

        Equal records are written next to each other in one file.
        """
        return cls(
            f"Column '{column}' holds long values that many equal records share: one data file of them would unpack to "
            f"{size / 1e6:,.0f} MB, and at most {most // 1_000_000:,} MB are written. Shorten them, or leave the column out; "
            "nothing was published."
        )

    @classmethod
    def long_keys(cls, column: str, most: int) -> ValuesError:
        """Values are too long for a quasi-identifier or a privacy model's column.

        Labels and tables are made from the values of such columns.
        """
        return cls(
            f"Column '{column}' holds values of more than {most // 1000:,} kB, which no quasi-identifier may have, and no column "
            "that a privacy model looks at. Shorten them, or give the column another role."
        )

    @classmethod
    def zero_names(cls, names: int) -> ValuesError:
        """Names of columns hold the character of code zero, at which programs end a text."""
        return cls(
            f"{counted(names, 'column')} of the source {verb_of(names, 'have')} a name with a character of code zero, at which other "
            "programs end it. Rename."
        )

    @classmethod
    def long_names(cls, count: int, most: int) -> ValuesError:
        """Column names are too long for readers of a release."""
        them = "it" if count == 1 else "them"
        return cls(f"The source has {counted(count, 'column')} with a name of more than {most:,} characters. Rename {them}.")

    @classmethod
    def no_names(cls, count: int) -> ValuesError:
        """Columns without a name would be published.

        Every reader would give them another name.
        """
        them = "it a name, or list it" if count == 1 else "them names, or list them"
        return cls(f"The source has {counted(count, 'column')} without a name. Give {them} under withheld to leave it out.")

    @classmethod
    def same_names(cls, names: Sequence[str]) -> ValuesError:
        """Columns have equal names, or names that differ only in case."""
        if most := [name for name, columns in Counter(names).items() if columns > 1]:
            return cls(f"Several columns of the source are called {listed(most)}. Rename all but one.")
        return cls(f"The names {listed(names)} of columns of the source differ in case only, and databases take them for one. Rename one.")

    @classmethod
    def line_breaks_in_names(cls, count: int) -> ValuesError:
        """Column names have a line break, which the first line of a CSV file cannot hold."""
        them = "it" if count == 1 else "them"
        said = f"{counted(count, 'column')} of the source {verb_of(count, 'have')} a line break in the name"
        return cls(f"{said}, which the first line of a CSV file does not hold. Rename {them}, or publish Parquet.")

    @classmethod
    def file_names(cls, count: int) -> ValuesError:
        """Source paths are not UTF-8 text, so that no manifest or message can name them."""
        them = "it" if count == 1 else "them"
        said = f"{counted(count, 'file')} of the source {verb_of(count, 'have')} a path that is not UTF-8 text"
        return cls(f"{said}. Rename {them}, or the folder; where PYTHONUTF8=0 is set, take that away.")
