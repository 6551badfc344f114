"""What can be wrong with a table as a whole, in a file or handed over by a program; never a value of it."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import PrivacyError, SourceError, counted, listed
from schemas.errors.shown import shown_path


class FrameError(SourceError):
    """A table in memory cannot be anonymised."""

    @classmethod
    def no_table(cls, kind: str) -> FrameError:
        """It is something else."""
        return cls(f"'{kind}' is no table. Give a DataFrame of Polars or pandas (a Series has to_frame()), or a table of Arrow.")

    @classmethod
    def same_names(cls, names: Sequence[str]) -> FrameError:
        """Columns cannot be told apart."""
        return cls(f"Several columns are called {listed(names)}. Rename them.")

    @classmethod
    def several_types(cls, column: str, row: int) -> FrameError:
        """A column of Python's objects holds different kinds of them."""
        where = f"the first other one in row {row:,} counted from 0"
        return cls(f"Column '{column}' holds values of several types, {where}. Convert it to one, such as text.")

    @classmethod
    def unwritten(cls, kind: str) -> FrameError:
        """Its types cannot be written, or what makes it failed."""
        return cls(f"The table cannot be written as Parquet ({kind}). Convert columns of unusual types, such as lists or objects.")

    @classmethod
    def no_such_type(cls, column: str, dtype: str) -> FrameError:
        """Values of its type cannot be kept as they are."""
        return cls(f"Column '{column}' is of type {dtype}, which is not read. Convert it to text, a number or a time, or leave it out.")

    @classmethod
    def uncomputed(cls, kind: str) -> FrameError:
        """The plan of a lazy frame fails by itself."""
        return cls(f"The lazy frame cannot be computed ({kind}). Collect it first: the whole message, which may show data, says why.")


class RelationError(SourceError):
    """Tables of one job do not hang together as the job says; carries every fault, not only the first."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"The tables do not hang together:{lines}")

    @classmethod
    def too_many_rows(cls, table: str, rows: int) -> RelationError:
        """A table has more rows than can be numbered."""
        return cls([f"'{table}' has {counted(rows, 'row')}, and a table of such a job may have 2^32 - 2 at most; make a job for each part"])


class HistoryError(PrivacyError):
    """Histories of persons cannot keep the promise of a job of several tables."""

    @classmethod
    def too_few(cls, k: int, there: int, unit: str = "person") -> HistoryError:
        """Fewer persons than k."""
        return cls(f"k = {k:,} cannot be met by {counted(there, unit)}. Lower privacy.k or add data; nothing was published.")

    @classmethod
    def top_fails(cls, k: int, failing: int, persons: int, most: int, *, withholds: bool) -> HistoryError:
        """Even with every value generalised to ``*``, numbers of rows set too many persons apart.

        Args:
            k: Of the job.
            failing: Persons whose history too few share.
            persons: All of them.
            most: How many may be so.
            withholds: Whether some of these may stay with fewer rows.
        """
        limits = "suppression.limit and suppression.rows together allow" if withholds else "suppression.limit allows"
        return cls(
            f"With every value generalised to * {counted(failing, 'person')} of {persons:,} still have a history that fewer than {k:,} "
            f"share, by their numbers of rows alone, and {limits} {most:,}. Bound the rows of a person "
            "(rows: {most: n}), raise the limit or lower privacy.k; nothing was published."
        )

    @classmethod
    def values_fail(cls, most: int) -> HistoryError:
        """k can be kept, and what is promised of sensitive values cannot."""
        return cls(
            f"No levels keep what privacy.l and privacy.t promise of the values of persons with one history while at most "
            f"{counted(most, 'person')} are left out. Ask for less, or raise suppression.limit; nothing was published."
        )

    @classmethod
    def rows_fail(cls, most: int) -> HistoryError:
        """Classes of persons withhold more rows than may be, also without those that withhold most."""
        return cls(
            f"Classes of persons withhold more rows than suppression.rows allows, also with {counted(most, 'person')} left out. Raise "
            "suppression.rows or suppression.limit, bound the rows of a person (rows: {most: n}) or lower privacy.k; nothing was published."
        )

    @classmethod
    def values_fail_classes(cls, most: int) -> HistoryError:
        """Classes of persons cannot keep what is promised of sensitive values."""
        return cls(
            f"No classes of persons keep what privacy.l and privacy.t promise of their values while at most {counted(most, 'person')} are "
            "left out. Ask for less, or raise suppression.limit; nothing was published."
        )

    @classmethod
    def choices_fail(cls, k: int, rows: int, most: int) -> HistoryError:
        """Even at the coarsest levels too many persons have a choice of rows that few share."""
        return cls(
            f"Even with every value generalised to * more than {counted(most, 'person')} have a choice of at most {counted(rows, 'row')} "
            f"of each table that fewer than {k:,} share, by numbers of rows alone. Bound the rows of a person (rows: {{most: n}}), "
            "raise suppression.limit or lower privacy.k; nothing was published."
        )

    @classmethod
    def too_many_choices(cls, choices: int, needed: int) -> HistoryError:
        """There are more choices of rows than the memory holds."""
        return cls(
            f"There are {choices:,} choices of rows to count, which take about {needed // 1_000_000 + 1:,} MB. Bound the rows of a person "
            "(rows: {most: n}), ask for fewer known rows, or raise memory; nothing was published."
        )

    @classmethod
    def nobody_left(cls, persons: int) -> HistoryError:
        """The best node leaves everybody out."""
        return cls(f"The best levels would leave out all {counted(persons, 'person')}. Lower suppression.limit; nothing was published.")

    @classmethod
    def too_many_nodes(cls, nodes: int, most: int) -> HistoryError:
        """The lattice of all tables is too large to be searched."""
        return cls(f"The lattice of all tables has {nodes:,} nodes, and {most:,} can be searched. Give hierarchies fewer levels.")

    @classmethod
    def memory(cls, persons: int, needed: int) -> HistoryError:
        """A few numbers for each person do not fit the memory."""
        return cls(
            f"{counted(persons, 'person')} take about {needed // 1_000_000 + 1:,} MB, a few numbers for each. Raise memory; nothing was "
            "published."
        )


class FileError(SourceError):
    """A file is not laid out as the job says, or not of a format that is read."""

    @classmethod
    def one_column(cls, file: str, delimiter: str, fields: int, other: str) -> FileError:
        """A CSV file is one column to the delimiter that is in force, and several to another."""
        return cls(
            f"'{shown_path(file)}' has one column where the delimiter is {delimiter}, and {counted(fields, 'column')} "
            f"where it is {other}. Say "
            f"source.delimiter: {other} in the job."
        )

    @classmethod
    def wrong_encoding(cls, file: str, encoding: str) -> FileError:
        """A text file holds bytes that are no characters in its encoding."""
        return cls(
            f"'{shown_path(file)}' is not text in {encoding}. Say what it is in under source.encoding, such as windows-1252 or utf-16, "
            "or save it as UTF-8."
        )

    @classmethod
    def before_header(cls, file: str, fields: int, rows: int) -> FileError:
        """The first line has fewer fields than nearly all others."""
        return cls(
            f"The first line of '{shown_path(file)}' has {counted(fields, 'field')}, and {counted(rows, 'row')} below it have more. Most "
            "likely a title or a comment stands before the header: remove it, so that the first line names the columns."
        )

    @classmethod
    def no_header(cls, file: str) -> FileError:
        """The first line names no column that the job knows."""
        return cls(
            f"The first line of '{shown_path(file)}' names no column of the job. Most likely the file has no header, or a title or a "
            "comment stands before it: the first line must name the columns."
        )

    @classmethod
    def separator_line(cls, file: str) -> FileError:
        """A spreadsheet was told its delimiter in the first line."""
        return cls(
            f"The first line of '{shown_path(file)}' is 'sep=', by which spreadsheets are told the delimiter. Remove it, so that the first "
            "line names the columns, and say source.delimiter in the job."
        )

    @classmethod
    def folder(cls, path: str, ending: str) -> FileError:
        """The job names a folder, and not files."""
        name = shown_path(path).rstrip("/")
        return cls(
            f"'{name}' is a folder. Say which of its files are the source: '{name}/*{ending}', or '{name}/**/*{ending}' with those of all "
            "folders in it."
        )

    @classmethod
    def hidden_alone(cls, pattern: str, files: int) -> FileError:
        """A pattern matches no file but those that are no data by their names."""
        return cls(
            f"'{shown_path(pattern)}' matches {counted(files, 'file')}, and each has a name, or lies in a folder, that begins with _ or a "
            "dot, as programs call what is no data yet. Name such a file or folder in source.path if it is meant."
        )

    @classmethod
    def table_of_files(cls, folder: str, words: str) -> FileError:
        """A folder's log says which of its files are a table's today."""
        return cls(
            f"'{shown_path(folder)}' is a table of {words}: its log says which files belong to it today, and the others hold records that "
            "were removed. Write the table as Parquet with what reads it (Spark, DuckDB, Polars), and give those files."
        )

    @classmethod
    def no_objects(cls, pattern: str) -> FileError:
        """The bucket is there, and nothing in it matches."""
        return cls(f"No object matches '{shown_path(pattern)}'. The bucket is there; check what stands behind its name in source.path.")

    @classmethod
    def no_bucket(cls, pattern: str, bucket: str) -> FileError:
        """The bucket is missing, or kept from whoever asks."""
        return cls(
            f"There is no bucket '{bucket}', of which '{shown_path(pattern)}' is, or these credentials do not see it. Check its name, the "
            "end point and the credentials of the environment."
        )

    @classmethod
    def encrypted(cls, file: str) -> FileError:
        """A Parquet file is encrypted, all of it or some of its columns."""
        return cls(f"'{shown_path(file)}' is encrypted, and keys of Parquet files are not taken. Write it anew without encryption.")

    @classmethod
    def fatal(cls, file: str) -> FileError:
        """The library that reads it ended its process."""
        return cls(f"'{shown_path(file)}' cannot be read: the library that reads it gave up without a word. It is damaged; replace it.")

    @classmethod
    def unsupported_format(cls, file: str, words: str) -> FileError:
        """A file is of a format that is not read."""
        return cls(f"'{shown_path(file)}' is {words}.")

    @classmethod
    def records_lost(cls, file: str, there: int, read: int) -> FileError:
        """A file has another number of records than were read of it."""
        return cls(
            f"'{shown_path(file)}' has {counted(there, 'record')}, of which {read:,} were read. Most likely a quote does not close, or "
            "lines do not all end alike. Mend the file, or make it Parquet."
        )

    @classmethod
    def long_records(cls, file: str, longest: int, most: int) -> FileError:
        """A record is longer than any reader here takes."""
        return cls(
            f"'{shown_path(file)}' has a record of {longest:,} bytes, and a record of CSV may have {most // 1_000_000} MB at most. Most "
            "likely a quote does not close; else shorten the record, or leave the column out."
        )

    @classmethod
    def cut_off(cls, file: str, kind: str) -> FileError:
        """A file ends before it says that it ends, or goes on after it."""
        return cls(
            f"'{shown_path(file)}' is cut off, or holds more than one {kind} file: not every record in it can be read. Write it anew."
        )
