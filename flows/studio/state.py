"""State of a studio: the path of the job file, and caches.

All else is read from the file at every request.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from flows.studio.works import Work, Works
from schemas.errors.base import JobError, SkaldError, StorageError, counted, verb_of
from schemas.job.job import Job, load_job
from schemas.job.policy import read_policy
from schemas.reading.job_files import is_of_tables
from schemas.reading.regular_files import GivenJob, read_text
from tasks.engine.runs import POLICY, policy_in_force
from tasks.planning.pareto_page import ParetoFront
from tasks.planning.pilot_runs import CodedPeople
from tasks.store.files import USER_UMASK, write_atomically
from tasks.studio.choices import coded_people, sample_pareto_front
from tasks.studio.job_text import full_text, hidden_text, read_data, with_value
from tasks.studio.sample import PeopleSample, files_here, people_sample_of

LEAST = 5
"""People who must share a value for it to be shown, whatever less a job promises."""


class PageMessage(NamedTuple):
    """A message for the page, of kind ``good`` or ``bad``."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class Opened:
    """The job file as read for one request.

    Attributes:
        path: Where it is.
        text: What it holds.
        stamp: By which a page notices that it is another by now.
        job: What it says, if that is a job of one table.
        faults: What is wrong with it.
        several: Whether it is a job of several tables.
    """

    path: Path
    text: str
    stamp: str
    job: Job | None
    faults: tuple[str, ...] = ()
    several: bool = False


@dataclass
class Studio:
    """State of one studio: job file, long work, messages, and the cached sample of the source.

    Attributes:
        path: The job file; None until one is named.
        messages: Sentences for the next page.
    """

    path: Path | None = None
    messages: list[PageMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create locks, caches and the digest key."""
        self._key = secrets.token_bytes(32)
        self._lock = threading.RLock()
        self._sample: tuple[object, PeopleSample] | None = None
        self._coded: tuple[str, CodedPeople] | None = None
        self._front: tuple[str, ParetoFront | None] | None = None
        self._searching = threading.Lock()
        self.works = Works(self._finished)
        self.utilities: dict[str, dict[str, Any]] = {}

    def stamp_of(self, text: str) -> str:
        """Return 32 hexadecimal digits of a text's digest, under a key of this studio.

        Without the key it confirms no guess.
        """
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    def read_job_file(self) -> Opened:
        """Return the job file's text, job and faults; raise ``StorageError`` if none has been named.

        Raises:
            StorageError: no file is named, or it is gone.
        """
        if self.path is None:
            raise StorageError("No job is open. Name a source or a job file.")
        text, faults = read_text(self.path)
        if faults:
            return Opened(self.path, "", self.stamp_of(""), None, tuple(faults))
        return self._read(text)

    def stamp(self) -> str:
        """Return the stamp of the current job file without parsing it; empty without a file."""
        if self.path is None:
            return ""
        text, _ = read_text(self.path)
        return self.stamp_of(text or "")

    def _read(self, text: str) -> Opened:
        """Parse a job text, and return it with its job or its faults."""
        assert self.path is not None
        given, stamp = GivenJob(text, self.path.parent.absolute(), self.path.name), self.stamp_of(text)
        if is_of_tables(given):
            return Opened(self.path, text, stamp, None, (), several=True)
        try:
            return Opened(self.path, text, stamp, load_job(given))
        except JobError as error:
            return Opened(self.path, text, stamp, None, error.faults)

    def save(self, opened: Opened, text: str) -> Opened:
        """Write the job file and return it as read; raise if it is no allowed job, or was changed.

        Args:
            opened: What the file held when the change was made.
            text: What it is to hold.

        Raises:
            JobError: it would be no job.
            PolicyError: it would stand below the policy.
            StorageError: the file is another by now, or cannot be written.
        """
        read = self._read(text)
        if read.faults:
            raise JobError(opened.path.name, read.faults)
        if read.job is not None:
            policy_in_force(read.job)
        with self._lock:
            if self.read_job_file().stamp != opened.stamp:
                raise StorageError("The job file was changed elsewhere meanwhile. This page shows it as it is now; do it again.")
            mode = opened.path.stat().st_mode & 0o777 if opened.path.exists() else 0o666 & ~USER_UMASK
            write_atomically(opened.path, lambda part: part.write_text(text, "utf-8", newline=""), mode)
        return read

    def least(self, job: Job | None) -> int:
        """Return the number of people who must share a value before it is shown, at least five.

        It is k of the job or the policy, and never fewer than five.
        """
        floors = [LEAST, *([job.privacy.k] if job else [])]
        if path := os.environ.get(POLICY):
            try:
                floors.append(read_policy(path).privacy.k)
            except SkaldError:
                # What floor there is, is not known.
                floors.append(1 << 62)
        return max(floors)

    def sample(self, opened: Opened) -> PeopleSample:
        """Return the sample of the job's source, drawn once per source.

        Raises:
            JobError: the file is no job of one table.
            SkaldError: the source cannot be read.
        """
        job = self.job(opened)
        source = read_data(opened.text)["source"]
        key = (repr(source), job.columns.person, str(opened.path), tuple(_states(job)))
        with self._lock:
            if self._sample is None or self._sample[0] != key:
                self._sample, self._coded = None, None
                self._sample = key, people_sample_of(job, source)
            return self._sample[1]

    def coded(self, opened: Opened) -> CodedPeople:
        """Return the sample as codes for the methods, coded once for each text of the job file.

        Raises:
            SkaldError: a hierarchy does not fit the values, or the source cannot be read.
        """
        with self._lock:
            if self._coded is None or self._coded[0] != opened.stamp:
                self._coded = opened.stamp, coded_people(self.job(opened), self.sample(opened))
            return self._coded[1]

    def sample_front(self, opened: Opened) -> ParetoFront | None:
        """Return the Pareto front of the sample, or None if the lattice is too large.

        It is searched once for each state of the job.

        Raises:
            SkaldError: a hierarchy does not fit the values, or the source cannot be read.
        """
        coded = self.coded(opened)
        with self._searching:
            if self._front is None or self._front[0] != opened.stamp:
                self._front = opened.stamp, sample_pareto_front(coded)
            return self._front[1]

    def job(self, opened: Opened) -> Job:
        """Return the job of the file, or raise ``JobError`` with its faults.

        Raises:
            JobError: there is none.
        """
        if opened.job is None:
            raise JobError(opened.path.name, opened.faults or ["it is of several tables, which the studio does not show yet"])
        return opened.job

    def shared_tree_values(self, opened: Opened) -> dict[str, frozenset[str]]:
        """Return tree values by QID that enough people share to be shown; empty if nothing can be read."""
        trees = [qid.name for qid in opened.job.columns.quasi_identifiers if qid.hierarchy.kind == "tree"] if opened.job else []
        if not trees:
            return {}
        try:
            sample, least = self.sample(opened), self.least(opened.job)
        except SkaldError:
            return {}
        return {name: frozenset(text for text, _ in sample.shared_values(name, least)) for name in trees if name in sample.names}

    def shown_text(self, opened: Opened) -> str:
        """Return the job's text with its rare values hidden."""
        return hidden_text(opened.text, self.shared_tree_values(opened))

    def edited_text(self, opened: Opened, shown: str, view: str) -> str:
        """Return the job's text after an edit, with the hidden values put back.

        Args:
            shown: What the page sent.
            view: Stamp of the text that was shown.

        Raises:
            StorageError: the text that was shown is another by now.
            JobError: a sign stands for nothing that was hidden.
        """
        if self.stamp_of(self.shown_text(opened)) != view:
            raise StorageError(
                "The job file was changed elsewhere meanwhile. Nothing was saved; copy what you wrote, and load the page again."
            )
        return full_text(shown, opened.text, self.shared_tree_values(opened))

    def _finished(self, work: Work) -> None:
        """Store the result of finished work, and add a message for the page."""
        if work.fault:
            self.messages.append(PageMessage("bad", work.fault))
        elif work.cancelled:
            stays = " What is finished stays, and the same work continues from there." if work.kind == "run" else ""
            self.messages.append(PageMessage("good", f"{work.words}: cancelled.{stays}"))
        elif work.result and work.kind == "draft":
            self.path = Path(work.result["job"])
        elif work.result and work.kind == "groups":
            self._take_groups(work.result)
        elif work.result and work.kind == "utility":
            self.utilities[work.result["release"]] = work.result
        elif work.result and work.kind == "complete":
            added = work.result["added"]
            self.messages.append(
                PageMessage("good", f"{counted(added, 'value')} {verb_of(added, 'were')} added at the end of the list. Look where.")
            )

    def _take_groups(self, result: Mapping[str, Any]) -> None:
        """Write a drafted hierarchy of groups to the job file."""
        try:
            opened = self.read_job_file()
            names = [qid.name for qid in self.job(opened).columns.quasi_identifiers]
            way = ("columns", "quasi_identifiers", names.index(result["column"]), "hierarchy")
            self.save(opened, with_value(opened.text, way, result["hierarchy"]))
        except (SkaldError, ValueError) as error:
            self.messages.append(
                PageMessage("bad", str(error) if isinstance(error, SkaldError) else "The column is no quasi-identifier any more.")
            )


def _states(job: Job) -> list[tuple[str, int, int]]:
    """Return path, size and time of the local source files, to notice changes."""

    states = [(str(one), one.stat()) for one in files_here(job)]
    return [(one, state.st_size, state.st_mtime_ns) for one, state in states]
