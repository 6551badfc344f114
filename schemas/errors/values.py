"""Values of a source that are not what the type of their column says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schemas.errors.base import SourceError, counted, listed
from schemas.errors.shown import shown_path


class ValuesError(SourceError):
    """A column holds values that cannot be read, or that not every program reads alike; they are counted, never shown."""

    @classmethod
    def not_utf8(cls, column: str, file: str, count: int) -> ValuesError:
        """A column of text holds bytes that are none."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds {counted(count, 'value')} that "
            f"{'is' if count == 1 else 'are'} not UTF-8 text. Write the "
            "file anew with that text decoded, or give the column a binary type."
        )

    @classmethod
    def no_moments(cls, column: str, count: int, first: str, last: str) -> ValuesError:
        """Dates or times lie where programs do not agree on what they are."""
        return cls(
            f"Column '{column}' holds {counted(count, 'value')} before {first} or after {last}, which not every program reads alike. Make "
            "them null, or correct them."
        )

    @classmethod
    def nanoseconds(cls, column: str, file: str, count: int) -> ValuesError:
        """Timestamps in INT96 have digits below the microsecond, in which they are read."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds {counted(count, 'timestamp')} in INT96 with digits below the microsecond, in "
            "which INT96 is read. Round them, or write the column as TIMESTAMP(NANOS)."
        )

    @classmethod
    def too_large(cls, column: str, count: int, most: float) -> ValuesError:
        """Numbers are so large that no distance between them is one."""
        return cls(f"Column '{column}' holds {counted(count, 'value')} beyond {most:g}. Make them null, or give them another unit.")

    @classmethod
    def too_long(cls, column: str, file: str, most: int) -> ValuesError:
        """Values take more than any format is read with."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds values of more than {most // 1_000_000:,} MB, which no source may have. "
            "Shorten them, or leave the column out of the file."
        )

    @classmethod
    def many_alike(cls, count: int, needed: int) -> ValuesError:
        """So many records are equal that the one file which holds them does not fit the memory."""
        return cls(
            f"{counted(count, 'record')} stand in one file of the release, because they are equal, and the job's memory has no room for "
            f"them. Raise 'memory' to {needed / 1e6:,.0f} MB."
        )

    @classmethod
    def large_page(cls, column: str, file: str, size: int, most: int) -> ValuesError:
        """A piece of a column that is unpacked at once takes more than memory has room for."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' has a page of {size / 1e6:,.0f} MB, and the job's memory has room for "
            f"{most / 1e6:,.0f} MB at a time. Raise memory, or write the file with smaller pages."
        )

    @classmethod
    def large_batch(cls, file: str, size: int, most: int) -> ValuesError:
        """A batch of an Arrow file is unpacked at once, and takes more than memory has room for."""
        return cls(
            f"A batch of '{shown_path(file)}' takes {size / 1e6:,.0f} MB, and the job's memory has room for {most / 1e6:,.0f} MB "
            "at a time. Raise memory, or write the file in smaller batches."
        )

    @classmethod
    def repeated(cls, column: str, size: int, most: int) -> ValuesError:
        """Equal records are published side by side, and share long values."""
        return cls(
            f"Column '{column}' holds long values that many equal records share: one data file of them would unpack to "
            f"{size / 1e6:,.0f} MB, and at most {most // 1_000_000:,} MB are written. Shorten them, or leave the column out; "
            "nothing was published."
        )

    @classmethod
    def long_keys(cls, column: str, length: int, most: int) -> ValuesError:
        """Of the values of a quasi-identifier, and of those that a privacy model looks at, labels and tables are made."""
        return cls(
            f"Column '{column}' holds values of {length / 1000:,.0f} kB. A quasi-identifier, and a column that a privacy model looks at, "
            f"may have {most // 1000:,} kB. Shorten them, or give the column another role."
        )

    @classmethod
    def long_names(cls, count: int, most: int) -> ValuesError:
        """Columns have names that no reader of a release could be expected to take."""
        them = "it" if count == 1 else "them"
        return cls(f"The source has {counted(count, 'column')} with a name of more than {most:,} characters. Rename {them}.")

    @classmethod
    def no_names(cls, count: int) -> ValuesError:
        """Columns without a name would be published, and whoever reads them gives them another one each."""
        them = "it a name, or list it" if count == 1 else "them names, or list them"
        return cls(f"The source has {counted(count, 'column')} without a name. Give {them} under withheld to leave it out.")

    @classmethod
    def same_names(cls, names: Sequence[str]) -> ValuesError:
        """Columns cannot be told apart, or by case alone."""
        if most := [name for name, columns in Counter(names).items() if columns > 1]:
            return cls(f"Several columns of the source are called {listed(most)}. Rename all but one.")
        return cls(f"The names {listed(names)} of columns of the source differ in case only, and databases take them for one. Rename one.")

    @classmethod
    def names_of_lines(cls, count: int) -> ValuesError:
        """Columns have names that a first line of CSV does not hold."""
        them = "it" if count == 1 else "them"
        said = f"{counted(count, 'column')} of the source {'has' if count == 1 else 'have'} a line break in the name"
        return cls(f"{said}, which the first line of a CSV file does not hold. Rename {them}, or publish Parquet.")

    @classmethod
    def file_names(cls, count: int) -> ValuesError:
        """Files have names that are no text: neither a manifest nor a message could name them."""
        them = "it" if count == 1 else "them"
        said = f"{counted(count, 'file')} of the source {'has' if count == 1 else 'have'} a path that is not UTF-8 text"
        return cls(f"{said}. Rename {them}, or the folder.")
