"""Base classes of all errors that end a run, their sentences, and safe forms of names.

A message says what is wrong, where (file, column, level, how many) and what to do next. It never carries a cell value: the constructors
take names and counts only. Code that catches an error of DuckDB, Polars, PyArrow, Pandera or Pydantic raises one of these ``from None``,
because those libraries print the offending values.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

STAYS = "What is finished stays, and the same command continues from there."
CONTINUES = "Nothing was published; what is finished stays, and the same command continues from there."
_ADVICE = {
    os.strerror(errno.EACCES): " It is another user's, or closed to you: run as that user, or take a folder of your own."
} | dict.fromkeys(
    map(os.strerror, (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY)), " Another file or folder is in its place: move it away."
)
_PARTITION = re.compile(r"((?:^|[/'])[^/'=\s]+)=[^/']+(?=/)")


def shown_path(path: str) -> str:
    """Return a path for a message, with the values of Hive partitions replaced by ``…``.

    The folders of Hive partitions, and a file with a name of that form, are values of cells.
    """
    return "/".join(f"{name}=…" if name and mark else part for part in path.split("/") for name, mark, _ in [part.partition("=")])


def printable_message(sentence: str) -> str:
    """Return a message with partition values hidden and control characters escaped."""
    return printable(_PARTITION.sub(r"\1=…", sentence))


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text with its control characters and direction marks written as escapes.

    Args:
        text: Names of columns and files in it are what somebody called them.
        lines: Whether it may be of several lines.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or (lines and one == "\n") else _escaped(one) for one in text)


def _escaped(letter: str) -> str:
    """Return a character as its escape sequence."""
    return letter.encode("unicode_escape").decode("ascii")


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return ``" (did you mean 'x'?)"`` for the known name closest to ``name``, or an empty string.

    Case counts only between names that are equal without it. ``alike`` is how similar they must be, from 0 to 1.
    """
    spellings: dict[str, list[str]] = {}
    for word in known:
        spellings.setdefault(word.casefold(), []).append(word)
    close = difflib.get_close_matches(name.casefold(), list(spellings), n=1, cutoff=alike)
    return f" (did you mean '{difflib.get_close_matches(name, spellings[close[0]], n=1, cutoff=0)[0]}'?)" if close else ""


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return names as ``'a', 'b' and 3 more``, at most ``most`` of them written out, in the order given."""
    quoted = [f"'{name}'" for name in names]
    shown = quoted if len(quoted) <= most else [*quoted[:most], f"{len(quoted) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 value`` or ``1,200 values``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def verb_of(count: int, plural: str) -> str:
    """Return the verb for a count, from its plural: ``is`` or ``refers`` for 1, else ``are`` or ``refer``."""
    singulars = {"are": "is", "have": "has", "were": "was", "do": "does", "publish": "publishes"}
    return singulars.get(plural, f"{plural}s") if count == 1 else plural


class SkaldError(Exception):
    """Base class of all errors that a user can cause or repair.

    Attributes:
        exit_code: What the command line returns.
        transient: Whether it came of a fault of the operating system that may be over when the step is tried again.
        continuation: What a command that keeps its finished steps may add to the message; empty where nothing would be gained by that.
    """

    exit_code: ClassVar[int] = 2
    transient: bool = False
    continuation: str = ""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(printable_message(sentence))

    def continuing(self, continuation: str = CONTINUES) -> Self:
        """Set the sentence that ``message`` may add, and return this error."""
        self.continuation = continuation
        return self

    def message(self, *, continues: bool) -> str:
        """Return the message, with its continuation if the command keeps its finished steps."""
        return f"{self} {self.continuation}".rstrip() if continues else str(self)


class JobError(SkaldError):
    """Raised when the job file is wrong; keeps every fault in ``faults``.

    The message lists every fault of the file, not only the first.
    """

    def __init__(self, path: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"{path}: {counted(len(faults), 'fault')} in the job:{lines}")


class SourceError(SkaldError):
    """Raised when the source cannot be read, or does not fit the job."""

    @classmethod
    def no_files(cls, pattern: str) -> SourceError:
        """No file matches ``source.path``."""
        return cls(f"No file matches '{shown_path(pattern)}'. source.path is relative to the job file; check it and run again.")

    @classmethod
    def of_tables(cls, faults: Mapping[str, str]) -> SourceError:
        """One or several tables have sources that cannot be read, or do not fit the job."""
        lines = "".join(f"\n  - table '{name}': {fault}" for name, fault in faults.items())
        return cls(f"{counted(len(faults), 'table')} of the job cannot be read as it says:{lines}")

    @classmethod
    def own_files(cls, files: int, first: str) -> SourceError:
        """Patterns of ``source.path`` match releases or files of the work folder."""
        matched = f"source.path matches {counted(files, 'file')} of releases in the target or of the work folder"
        return cls(f"{matched}, such as '{shown_path(first)}'. Narrow the pattern, or move target or work.")

    @classmethod
    def same_files(cls, patterns: Sequence[str], files: int, one: str, other: str) -> SourceError:
        """Two paths lead to the same file, whose records would count twice."""
        matched = (
            f"source.path ({listed(map(shown_path, patterns))}) matches {counted(files, 'file')} under several "
            f"names, such as '{shown_path(one)}' and '{shown_path(other)}'"
        )
        return cls(f"{matched}: links, whose records would count twice. Narrow the pattern, or remove the links.")

    @classmethod
    def empty(cls, files: int) -> SourceError:
        """All files of the source together hold no record."""
        return cls(f"The source is empty: {counted(files, 'file')} and no record. There is nothing to anonymise.")

    @classmethod
    def unreadable(cls, file: str, kind: str) -> SourceError:
        """File contents are truncated, of another format, or not readable by this user."""
        reasons = f"truncated, damaged, {'not text in UTF-8, ' if kind == 'csv' else ''}of another format or not yours to read"
        return cls(f"'{shown_path(file)}' cannot be read as {kind}: it is {reasons}. Replace it.")

    @classmethod
    def schemas_differ(cls, file: str, first: str, columns: Sequence[str]) -> SourceError:
        """Two files of one source have different columns or types."""
        return cls(
            f"'{shown_path(file)}' and '{shown_path(first)}' differ in {listed(columns)} (missing, added or of another type). "
            "All files of a source must have the same columns and types, unless a job says source.schema: evolve. "
            "Files of several tables belong in a folder of this machine for each table; skald init then takes these folders."
        )

    @classmethod
    def no_common_type(cls, column: str, one: str, file: str, other: str, other_file: str) -> SourceError:
        """Two files give a column different types, and no type can hold the values of both."""
        return cls(
            f"Column '{column}' is {one} in '{shown_path(file)}' and {other} in '{shown_path(other_file)}', and no type "
            "holds both. Write it in one of them, or "
            "make a job for each."
        )

    @classmethod
    def not_exact(cls, column: str, file: str, dtype: str) -> SourceError:
        """Report column values that the type in which all files are read cannot hold exactly."""
        return cls(
            f"Column '{column}' of '{shown_path(file)}' holds values that {dtype} cannot hold exactly, and all files "
            "are read in it. Write the "
            "column in one type that can, in every file."
        )

    @classmethod
    def unknown_columns(cls, faults: Sequence[str]) -> SourceError:
        """Columns of the job are missing from the source; each fault names one."""
        return cls(f"The source lacks {counted(len(faults), 'column')} that the job names: {', '.join(faults)}.")

    @classmethod
    def unlisted_columns(cls, names: Sequence[str]) -> SourceError:
        """Columns of the source have no role in the job."""
        return cls(
            f"No role is given to {listed(names, most=12)}. List each under identifiers, withheld, quasi_identifiers, sensitive or "
            "insensitive, or say 'insensitive: rest'."
        )

    @classmethod
    def wrong_type(cls, column: str, dtype: str, role: str, remedy: str) -> SourceError:
        """Column type and role do not fit together."""
        return cls(f"Column '{column}' is of type {dtype}, which cannot be {role}: {remedy}.")

    @classmethod
    def treated_on_cluster(cls) -> SourceError:
        """Columns with ``publish`` cannot be published by workers that publish into a bucket."""
        return cls("Columns with 'publish' are not published by workers into a bucket. Give a folder as target, or run it on one machine.")

    @classmethod
    def too_many_values(cls, column: str, distinct: int, needed: int) -> SourceError:
        """Column to be published in changed form has more distinct values than memory can hold."""
        return cls(
            f"Column '{column}' has {distinct:,} different values, and to publish them as the job says takes {needed / 1e9:,.1f} GB. "
            "Raise memory, round the column in the source, or publish it exact."
        )

    @classmethod
    def no_numbers(cls, method: str) -> SourceError:
        """No quasi-identifier is numerical, and the method needs one."""
        return cls(f"Method '{method}' compares numbers and dates, and no quasi-identifier holds any. Use another one, such as 'rayden'.")

    @classmethod
    def not_finite(cls, column: str, count: int) -> SourceError:
        """Numerical quasi-identifiers may not hold NaN or infinity, and this one does."""
        return cls(f"Column '{column}' holds NaN or infinity in {counted(count, 'record')}. Make them null or give them a number.")

    @classmethod
    def bad_rows(cls, file: str, faults: Sequence[str]) -> SourceError:
        """Rows of a CSV file have too many or too few fields, or fields of a wrong type.

        Each fault names a column and a count.
        """
        return cls(
            f"'{shown_path(file)}' cannot be read as it is: {'; '.join(faults)}. Mend the file, or correct source.types, "
            "delimiter or null_values."
        )

    @classmethod
    def changed(cls, file: str) -> SourceError:
        """Source files changed between two phases of one run."""
        return cls(f"'{shown_path(file)}' changed while it was being read. Nothing was published; run again when the source is at rest.")


class PrivacyError(SkaldError):
    """Raised when this data cannot keep the privacy promise of the job."""

    exit_code = 3

    @classmethod
    def too_few(cls, k: int, there: int, unit: str = "record") -> PrivacyError:
        """There are fewer records, or persons, than k."""
        return cls(f"k = {k:,} cannot be met by {counted(there, unit)}. Lower privacy.k or add data; nothing was published.")

    @classmethod
    def memory_too_small(cls, memory: int) -> PrivacyError:
        """Not even the coarsest histogram fits into the memory of the job."""
        return cls(f"memory = {memory:,} bytes cannot hold any histogram of this job. Raise memory.")

    @classmethod
    def too_many_suppressed(cls, suppressed: int, most: int) -> PrivacyError:
        """More records would be suppressed than ``suppression.limit`` allows."""
        return cls(
            f"{counted(suppressed, 'record')} would be suppressed, and suppression.limit allows {most:,}. Raise it, or let them join other "
            "classes (method.pool: join); nothing was published."
        )

    @classmethod
    def replay_fails(cls, release: str, suppressed: int, records: int, most: int) -> PrivacyError:
        """Classes of the replayed earlier release fail too often on this data."""
        return cls(
            f"The classes of release '{release}' do not hold here: {counted(suppressed, 'record')} of {records:,} "
            f"{verb_of(suppressed, 'are')} in classes that fail, and suppression.limit allows {most:,}. Leave replay out, so that others "
            "are looked for; nothing was published."
        )

    @classmethod
    def too_many_records(cls, method: str, records: int, needed: int) -> PrivacyError:
        """Memory is too small for a method that holds every record."""
        return cls(
            f"Method '{method}' holds all {counted(records, 'record')} at once, which takes about {needed // 1_000_000 + 1:,} MB. Raise "
            "memory, or use method 'skald', which holds counts."
        )

    @classmethod
    def fragment_too_large(cls, method: str, records: int, needed: int) -> PrivacyError:
        """One fragment of records that cannot be divided further does not fit into memory.

        This concerns methods that hold every record of a fragment.
        """
        return cls(
            f"One fragment has {counted(records, 'record')} too much alike to be cut apart, and method '{method}' holds all of them at "
            f"once, which takes about {needed // 1_000_000 + 1:,} MB. Raise memory, or use method 'skald', or 'mondrian' in strict mode, "
            "which hold counts."
        )

    @classmethod
    def one_class_fails(cls, models: Sequence[str]) -> PrivacyError:
        """Even one class of all records breaks a privacy model.

        So no partition can keep it.
        """
        return cls(f"All records in one class would not keep {listed(models)}. Ask for less, or add data; nothing was published.")

    @classmethod
    def no_records_left(cls, records: int) -> PrivacyError:
        """Even the best node suppresses all records."""
        return cls(
            f"The best choice would suppress all {counted(records, 'record')}. Lower suppression.limit, or choose objective: dm_star; "
            "nothing was published."
        )


class VerificationError(SkaldError):
    """Raised when written files do not keep the job's promise.

    Each fault is a count, never a value. A note says what may explain the faults.
    """

    exit_code = 4

    def __init__(self, what: str, faults: Sequence[str], note: str = "") -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n  - {fault}" for fault in faults) + (f"\n{note}" if note else "")
        super().__init__(f"{what} does not keep the job's promise:{lines}")


class InternalError(SkaldError):
    """Raised when SKALD itself has a fault.

    The message has only the kind and the place of the error behind it, because the text of that error may hold cell values.
    """

    exit_code = 1

    def __init__(self, kind: str, place: str) -> None:
        super().__init__(
            f"Internal error ({kind} at {place}). No release is published in part. With SKALD_DEBUG=1 the command ends in the traceback, "
            "which may show data."
        )
        self.continuing(STAYS)


class StorageError(SkaldError):
    """Raised when a folder, the disk or another run prevents the work.

    The message says which files stay and what the next run will do.
    """

    @classmethod
    def not_writable(cls, folder: str, reason: str) -> StorageError:
        """Folder or file cannot be written: no permission, disk full, not a folder, or gone."""
        return cls(f"'{shown_path(folder)}' cannot be written ({reason}).{_ADVICE.get(reason, '')}").continuing()

    @classmethod
    def out_of_memory(cls, memory: int) -> StorageError:
        """DuckDB had too little of the job's memory, even with spilling to disk."""
        return cls(
            f"The job's memory ({memory // 1_000_000:,} MB) does not suffice for this step. Raise 'memory' or lower 'threads'."
        ).continuing()

    @classmethod
    def timed_out(cls, step: str, seconds: float) -> StorageError:
        """One step ran longer than the time limit of steps."""
        return cls(
            f"Step '{step}' had not ended after {seconds / 3600:g} hours and was given up: most likely a file system does not answer. "
            "With --direct a step has no such limit."
        ).continuing()

    @classmethod
    def malformed(cls, step: str, checks: Sequence[str]) -> StorageError:
        """Artefact of a step does not have the columns or shape of that step."""
        return cls(f"The artefact of step '{step}' is malformed ({listed(checks)}). Remove it with 'skald clean' and run again.")

    @classmethod
    def altered(cls, release: str, files: int) -> StorageError:
        """Files of an existing release of the same job and data are missing or altered."""
        said = f"Release '{release}' exists with {counted(files, 'file')} missing or altered"
        return cls(f"{said}, which 'skald verify' names. Move it away and run again.")

    @classmethod
    def not_a_release(cls, folder: str, reason: str) -> StorageError:
        """Folder for ``skald verify`` or another command holds no release."""
        return cls(f"'{folder}' is not a release ({reason}). Give the folder that holds manifest.json and data/.")

    @classmethod
    def other_job(cls, release: str) -> StorageError:
        """Given job is not the job that made the release."""
        return cls(f"The job is not the one that made '{release}': their digests differ. Give that one, with the settings it was run with.")

    @classmethod
    def other_kind(cls, release: str, *, of_tables: bool) -> StorageError:
        """Given job is of one table and the release of several, or the reverse."""
        theirs, mine = ("several tables", "one table") if of_tables else ("one table", "several tables")
        return cls(f"'{release}' is a release of {theirs}, and the job is a job of {mine}. Give the job that made the release.")
