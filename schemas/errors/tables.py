"""Errors of a table as a whole, in a file or in memory; no message has a value of the table."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors.base import PrivacyError, SkaldError, SourceError, counted, listed, shown_path, verb_of


class FrameError(SourceError):
    """Raised when a table in memory cannot be anonymised."""

    @classmethod
    def no_table(cls, kind: str) -> FrameError:
        """Object is neither a DataFrame nor an Arrow table."""
        return cls(f"'{kind}' is no table. Give a DataFrame of Polars or pandas (a Series has to_frame()), or a table of Arrow.")

    @classmethod
    def job_of_one(cls) -> FrameError:
        """Tables are given by name with a job of one table."""
        return cls(
            "Tables by name need a job that names them under tables, and this job has none. Add tables to the job, or give one table."
        )

    @classmethod
    def job_of_several(cls) -> FrameError:
        """One table is given with a job of several tables."""
        return cls(
            "A job of several tables needs each of them by its name, and one table was given. Give them as {name: table}, or a job with "
            "columns in the place of tables."
        )

    @classmethod
    def same_names(cls, names: Sequence[str]) -> FrameError:
        """Several columns of the table have the same name."""
        return cls(f"Several columns are called {listed(names)}. Rename them.")

    @classmethod
    def several_types(cls, column: str, row: int) -> FrameError:
        """One column of Python objects holds values of several types."""
        where = f"the first other one in row {row:,} counted from 0"
        return cls(f"Column '{column}' holds values of several types, {where}. Convert it to one, such as text.")

    @classmethod
    def unwritten(cls, kind: str) -> FrameError:
        """Table cannot be written as Parquet, because of its types or a failing source."""
        return cls(f"The table cannot be written as Parquet ({kind}). Convert columns of unusual types, such as lists or objects.")

    @classmethod
    def no_such_type(cls, column: str, dtype: str) -> FrameError:
        """Column type is not supported."""
        return cls(f"Column '{column}' is of type {dtype}, which is not read. Convert it to text, a number or a time, or leave it out.")

    @classmethod
    def uncomputed(cls, kind: str) -> FrameError:
        """Lazy frame cannot be computed."""
        return cls(f"The lazy frame cannot be computed ({kind}). Collect it first: the whole message, which may show data, says why.")


class RelationError(SourceError):
    """Raised when the keys and references between the tables of a job are wrong.

    The message lists every fault, not only the first.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"The tables do not hang together:{lines}")

    @classmethod
    def too_many_rows(cls, table: str, rows: int) -> RelationError:
        """Table has more rows than row numbers of 32 bits can count."""
        return cls([f"'{table}' has {counted(rows, 'row')}, and a table of such a job may have 2^32 - 2 at most; make a job for each part"])


def _ways(can_bound: bool, others: str) -> str:
    """Return advice that begins with a bound on the rows of a person, where one can still help."""
    return f"Bound the rows of a person (rows: {{most: n}}), {others}" if can_bound else others.capitalize()


class HistoryError(PrivacyError):
    """Raised when person histories cannot keep the promise of a job of several tables."""

    @classmethod
    def too_few(cls, k: int, there: int, unit: str = "person") -> HistoryError:
        """There are fewer persons than k."""
        return cls(f"k = {k:,} cannot be met by {counted(there, unit)}. Lower privacy.k or add data; nothing was published.")

    @classmethod
    def top_fails(cls, k: int, failing: int, persons: int, most: int, *, withholds: bool, can_bound: bool) -> HistoryError:
        """Too many persons have a rare history even with all values generalised to ``*``.

        Their numbers of rows alone set them apart.

        Args:
            k: Of the job.
            failing: Persons whose history too few share.
            most: How many may be left out.
            withholds: Whether the others may stay with fewer rows.
            can_bound: Whether a table may have several rows of a person.
        """
        rows = ", and suppression.rows does not save enough of the others" if withholds else ""
        return cls(
            f"With every value generalised to * {counted(failing, 'person')} of {persons:,} still {verb_of(failing, 'have')} "
            f"a history that fewer than {k:,} "
            f"share, by their numbers of rows alone; suppression.limit leaves out at most {most:,}{rows}. "
            f"{_ways(can_bound, 'raise the limit or lower privacy.k')}; nothing was published."
        )

    @classmethod
    def values_fail(cls, most: int) -> HistoryError:
        """No levels keep the promises ``privacy.l`` and ``privacy.t``, although some keep k."""
        return cls(
            "No levels keep what privacy.l and privacy.t promise of the values of persons with one history while at most "
            f"{counted(most, 'person')} {verb_of(most, 'are')} left out. Ask for less, or raise suppression.limit; nothing was published."
        )

    @classmethod
    def rows_fail(cls, most: int, *, can_bound: bool) -> HistoryError:
        """Classes of persons withhold more rows than ``suppression.rows`` allows.

        They do so even without the classes that withhold most.
        """
        return cls(
            f"Classes of persons withhold more rows than suppression.rows allows, also with {counted(most, 'person')} left out. "
            f"{_ways(can_bound, 'raise suppression.rows or suppression.limit, or lower privacy.k')}; nothing was published."
        )

    @classmethod
    def values_fail_classes(cls, most: int) -> HistoryError:
        """No classes of persons keep the promises ``privacy.l`` and ``privacy.t``."""
        return cls(
            "No classes of persons keep what privacy.l and privacy.t promise of their values while at most "
            f"{counted(most, 'person')} {verb_of(most, 'are')} left out. Ask for less, or raise suppression.limit; nothing was published."
        )

    @classmethod
    def choices_fail(cls, k: int, rows: int, most: int, *, can_bound: bool) -> HistoryError:
        """Too many persons have a choice of known rows that fewer than k share, at all levels."""
        return cls(
            f"Even with every value generalised to * more than {counted(most, 'person')} {verb_of(most, 'have')} "
            f"a choice of at most {counted(rows, 'row')} of each table that fewer than {k:,} share, by numbers of rows alone. "
            f"{_ways(can_bound, 'raise suppression.limit or lower privacy.k')}; nothing was published."
        )

    @classmethod
    def too_many_choices(cls, choices: int, needed: int, *, can_bound: bool) -> HistoryError:
        """There are more choices of rows than the memory can hold."""
        return cls(
            f"There are {choices:,} choices of rows to count, which take about {needed // 1_000_000 + 1:,} MB. "
            f"{_ways(can_bound, 'ask for fewer known rows, or raise memory')}; nothing was published."
        )

    @classmethod
    def nobody_left(cls, persons: int) -> HistoryError:
        """Even the best node suppresses all persons."""
        return cls(
            f"The best levels would leave out all {counted(persons, 'person')}. Lower privacy.k or the limit; nothing was published."
        )

    @classmethod
    def memory_too_small_for_persons(cls, persons: int, needed: int) -> HistoryError:
        """Memory is too small for the arrays with a few numbers per person."""
        return cls(
            f"{counted(persons, 'person')} {verb_of(persons, 'take')} about {needed // 1_000_000 + 1:,} MB, a few numbers "
            "for each. Raise memory; nothing was "
            "published."
        )


class LatticeSizeError(SkaldError):
    """Raised when the lattice of several tables is too large to be searched, whatever the data would keep."""

    @classmethod
    def too_many_nodes(cls, nodes: int, most: int) -> LatticeSizeError:
        """Lattice of all tables has more nodes than the search allows."""
        return cls(
            f"The lattice of all tables has {nodes:,} nodes, and at most {most:,} are searched. Name fewer quasi-identifiers, give "
            "hierarchies fewer levels, or write method: {name: mondrian}; nothing was published."
        )


class FileError(SourceError):
    """Raised when a file is not laid out as the job says, or has an unsupported format."""

    @classmethod
    def holds_nothing(cls, file: str) -> FileError:
        """File of text holds nothing, not even a first line with the names of columns."""
        return cls(f"'{shown_path(file)}' is empty: it has no first line with the names of its columns. Replace it, or leave it out.")

    @classmethod
    def one_column(cls, file: str, delimiter: str, fields: int, other: str) -> FileError:
        """CSV file has one column with the given delimiter and several with another."""
        return cls(
            f"'{shown_path(file)}' has one column where the delimiter is {delimiter}, and {counted(fields, 'column')} "
            f"where it is {other}. Say "
            f"source.delimiter: {other}."
        )

    @classmethod
    def wrong_encoding(cls, file: str, encoding: str) -> FileError:
        """Text file holds bytes that are no characters of its encoding."""
        return cls(
            f"'{shown_path(file)}' is not text in {encoding}. Say what it is in under source.encoding, such as windows-1252 or utf-16, "
            "or save it as UTF-8."
        )

    @classmethod
    def before_header(cls, file: str, fields: int, rows: int) -> FileError:
        """First line of the CSV file has fewer fields than most other lines."""
        return cls(
            f"The first line of '{shown_path(file)}' has {counted(fields, 'field')}, and {counted(rows, 'row')} below it "
            f"{verb_of(rows, 'have')} more. Most "
            "likely a title or a comment stands before the header: remove it, so that the first line names the columns."
        )

    @classmethod
    def no_header(cls, file: str) -> FileError:
        """First line of the CSV file names no column of the job."""
        return cls(
            f"The first line of '{shown_path(file)}' names no column of the job. Most likely the file has no header, or a title or a "
            "comment stands before it: the first line must name the columns."
        )

    @classmethod
    def separator_line(cls, file: str) -> FileError:
        """First line of the CSV file is a spreadsheet's ``sep=`` line."""
        return cls(
            f"The first line of '{shown_path(file)}' is 'sep=', by which spreadsheets are told the delimiter. Remove it, so that the first "
            "line names the columns, and say source.delimiter."
        )

    @classmethod
    def not_listed(cls, folder: str, reason: str) -> FileError:
        """Folder below a source pattern cannot be listed: it is of another user, or its mount is gone."""
        return cls(
            f"The folder '{shown_path(folder)}' cannot be listed ({reason}), and files of the source may lie in it. See to its permissions "
            "or its mount, or name in source.path the folders that are meant."
        )

    @classmethod
    def dead_link(cls, file: str, links: int) -> FileError:
        """Links that the source pattern matches lead to no file: its records would be missing."""
        return cls(
            f"source.path matches {counted(links, 'link')} that {verb_of(links, 'lead')} to no file, such as '{shown_path(file)}'. "
            "See to the file or its mount, or remove the link."
        )

    @classmethod
    def path_is_folder(cls, path: str, ending: str) -> FileError:
        """Source path is a folder instead of files."""
        name = shown_path(path).rstrip("/")
        return cls(
            f"'{name}' is a folder. Say which of its files are the source: '{name}/*{ending}', or '{name}/**/*{ending}' with those of all "
            "folders in it."
        )

    @classmethod
    def missing(cls, paths: Sequence[str]) -> FileError:
        """No file or folder has a name that a command was given."""
        return cls(f"Not found: {listed(map(shown_path, paths))}. Check the name, and the folder that you are in.")

    @classmethod
    def no_column(cls, column: str, near: str) -> FileError:
        """Column that a command was given is in no file; ``near`` is a clause on the name that it may have."""
        return cls(f"The source has no column '{column}'{near}. Check the name; case and blanks count.")

    @classmethod
    def no_database(cls, name: str) -> FileError:
        """Table or query is named for a source that is no database."""
        return cls(f"'{shown_path(name)}' is not named like a database (.duckdb or .ddb). Leave out --table and --query, or rename it.")

    @classmethod
    def too_large_for_draft(cls, records: int) -> FileError:
        """Draft does not fit the memory that all drafts have."""
        return cls(
            f"A draft counts the values of up to {records:,} records in 1 GB of memory, which does not suffice here. "
            "Draft the job from a file of fewer records, of fewer columns, or without long texts, then name all files and columns in it."
        )

    @classmethod
    def no_table_named(cls, name: str) -> FileError:
        """Database is given with neither a table nor a query, or with both."""
        return cls(f"'{shown_path(name)}' is a database. Name one of its tables with --table, or give --query, and not both.")

    @classmethod
    def no_data_files(cls, folders: Sequence[str], kinds: str) -> FileError:
        """No file of a readable format is in the folders that a command was given."""
        return cls(
            f"No data file was found in {listed(map(shown_path, folders))}. These are read: {kinds}. Name the files or their own folder: "
            "folders in a folder, and files named after a hierarchy or with a leading _ or dot, are left out. "
            "Of several tables name a folder each."
        )

    @classmethod
    def hidden_alone(cls, pattern: str, files: int) -> FileError:
        """Only hidden files match the pattern: names, or folders, with a leading ``_`` or dot."""
        return cls(
            f"'{shown_path(pattern)}' matches {counted(files, 'file')}, and each has a name, or lies in a folder, that begins with _ or a "
            "dot, as programs call what is no data yet. Name such a file or folder in source.path if it is meant."
        )

    @classmethod
    def table_of_files(cls, folder: str, words: str) -> FileError:
        """Folder is a table with a log, which alone knows its current files."""
        return cls(
            f"'{shown_path(folder)}' is a table of {words}: its log says which files belong to it today, and the others hold records that "
            "were removed. Write the table as Parquet with what reads it (Spark, DuckDB, Polars), and give those files."
        )

    @classmethod
    def no_objects(cls, pattern: str) -> FileError:
        """No object of the existing bucket matches the pattern."""
        return cls(f"No object matches '{shown_path(pattern)}'. The bucket is there; check what stands behind its name in source.path.")

    @classmethod
    def no_bucket(cls, pattern: str, bucket: str) -> FileError:
        """Bucket does not exist, or these credentials cannot see it."""
        return cls(
            f"There is no bucket '{bucket}', of which '{shown_path(pattern)}' is, or these credentials do not see it. Check its name, the "
            "end point and the credentials of the environment, which each worker needs in its own."
        )

    @classmethod
    def column_twice(cls, file: str, both: str, columns: Sequence[str]) -> FileError:
        """Folders of a file name a column twice, or one that the file has too."""
        named = " or ".join(f"'{one}'" for one in columns)
        return cls(f"Of '{shown_path(file)}' {both} name a column {named}. Rename one of the two, or leave out source.hive.")

    @classmethod
    def unnamable(cls, file: str) -> FileError:
        """Path cannot be written as a pattern of the database that reads it."""
        return cls(
            f"'{shown_path(file)}' cannot be read: a path with a backslash may have none of *, ? and [, because the database that reads it "
            "takes these for a pattern. Rename the file or the folder."
        )

    @classmethod
    def unattachable(cls, file: str) -> FileError:
        """Path of a DuckDB file for which DuckDB would take another."""
        return cls(
            f"'{shown_path(file)}' cannot be opened as a DuckDB file: its path has a backslash or a question mark, and DuckDB would take "
            "another path. Rename the file or the folder, or publish another format."
        )

    @classmethod
    def encrypted(cls, file: str) -> FileError:
        """Parquet file is encrypted, completely or in some columns."""
        return cls(f"'{shown_path(file)}' is encrypted, and keys of Parquet files are not taken. Write it anew without encryption.")

    @classmethod
    def fatal(cls, file: str) -> FileError:
        """Process of the library that reads the file ended without a message."""
        return cls(f"'{shown_path(file)}' cannot be read: the library that reads it gave up without a word. It is damaged; replace it.")

    @classmethod
    def unsupported_format(cls, file: str, words: str) -> FileError:
        """File format is not supported; ``words`` says which one it is."""
        return cls(f"'{shown_path(file)}' is {words}.")

    @classmethod
    def records_lost(cls, file: str, there: int, read: int) -> FileError:
        """File has another number of records than were read from it."""
        return cls(
            f"'{shown_path(file)}' has {counted(there, 'record')}, of which {read:,} {verb_of(read, 'were')} read. Most "
            "likely a quote does not close, or "
            "lines do not all end alike. Mend the file, or make it Parquet."
        )

    @classmethod
    def long_records(cls, file: str, longest: int, most: int) -> FileError:
        """One record of a CSV file is longer than the readers here accept."""
        return cls(
            f"'{shown_path(file)}' has a record of {longest:,} bytes, and a record of CSV may have {most // 1_000_000} MB at most. Most "
            "likely a quote does not close; else shorten the record, or leave the column out."
        )

    @classmethod
    def cut_off(cls, file: str) -> FileError:
        """File ends too early, or more data follows after its end."""
        return cls(
            f"'{shown_path(file)}' is cut off, or holds more than one Arrow file: not every record in it can be read. Write it anew."
        )
