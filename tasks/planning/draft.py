"""A first job file for a source: proposals for its columns, tried on a sample of it so that it publishes something; no cell value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb

from core.formats.names import numbered_by
from core.formats.persons import person_candidates, propose_person
from core.formats.proposals import Proposal, propose
from schemas.errors.base import SourceError, StorageError
from tasks.planning.draft_text import PERSON, Decided, Undecided, job_text
from tasks.planning.drafted_ladders import with_ladders
from tasks.planning.exposure import determines, draw_sample, exposures, is_dominated, values_kept
from tasks.planning.fronts import Front, Given, front_of, job_name
from tasks.planning.profiles import profile
from tasks.planning.trials import best_draft
from tasks.store.files import USER_UMASK, write_whole

K, FEW_K, FEW_RECORDS = 12, 5, 400
"""What is proposed for k, and where there are so few records that classes of that size would tell nothing."""

MOST_OTHERS = 12
"""Columns together with which it is looked what one gives away."""


class Drafted(NamedTuple):
    """A job that was drafted.

    Attributes:
        proposals: What is proposed for each column.
        coarsened: Undecided columns that are quasi-identifiers in it; the other ones are withheld.
        records: How many were looked at.
        gcp: What it would lose, tried on a sample; None where it could not be tried.
        ladders: Files of hierarchies that were written.
    """

    proposals: tuple[Proposal, ...]
    coarsened: frozenset[str]
    records: int
    gcp: float | None
    ladders: tuple[Path, ...]


def draft_job(given: Given, out: Path) -> Drafted:
    """Looks at a source and writes a job file for it.

    Args:
        given: What the user names.
        out: The job file; one that exists stays as it is.

    Raises:
        SourceError: no files, files of different formats, unreadable ones, or no record.
        JobError: an address that holds a password, or a database without a table or query.
        StorageError: the job file exists or cannot be written.
    """
    if out.exists():
        raise StorageError(f"'{out}' exists and stays as it is. Name another file with --out, or move it away.")
    with front_of(given, out) as front:
        columns, records = profile(front.connection, texts=front.texts)
        if not records:
            raise SourceError.empty(len(front.files))
        proposals = [propose(column) for column in columns]
        person = _person(front.connection, proposals)
        if person:
            # Whoever is told by it is not published: by its counts alone, too.
            proposals = [replace(one, role="identifiers", reason=one.reason or PERSON) if one is person else one for one in proposals]
        proposals, ladders = with_ladders(front, proposals, out)
        sampled = draw_sample(front.connection, person.profile.name if person else None)
        decided = Decided(
            job_name(out), front.source, front.texts, records, sampled, tuple(proposals), person,
            k=K if sampled >= FEW_RECORDS else FEW_K, kept=_kept(front.connection, proposals),
        )  # fmt: skip
        text, coarsened, gcp = _tried(front, decided, out)
    write_whole(out, lambda part: part.write_text(text, "utf-8"), 0o666 & ~USER_UMASK)
    return Drafted(tuple(proposals), coarsened, records, gcp, tuple(ladders))


def _person(connection: duckdb.DuckDBPyConnection, proposals: Sequence[Proposal]) -> Proposal | None:
    able = [one for one in person_candidates(proposals) if _may_be_people(connection, one)]
    return propose_person(able, lambda one, other: determines(connection, one.profile.name, other.profile.name))


def _may_be_people(connection: duckdb.DuckDBPyConnection, one: Proposal) -> bool:
    # A column that is named after persons may have one with very many records, or a number for all that are unknown.
    return numbered_by(one.profile.name) == "person" or not is_dominated(connection, one.profile)


def _kept(connection: duckdb.DuckDBPyConnection, proposals: Sequence[Proposal]) -> dict[str, int]:
    names = [one.profile.name for one in proposals if one.role == "sensitive"]
    return {name: kept for name in names if (kept := values_kept(connection, name)) > 1}


def _tried(front: Front, decided: Decided, out: Path) -> tuple[str, frozenset[str], float | None]:
    """Returns the text of the job, which undecided columns are quasi-identifiers in it, and what it would lose."""
    known = [one.profile.name for one in decided.proposals if one.role == "quasi_identifiers"]
    open_ones = {one.profile.name: one for one in decided.proposals if one.role == "open"}
    # Where no column is known to others, any of them may be.
    others = {name: known or [other for other in open_ones if other != name][:MOST_OTHERS] for name in open_ones}
    measured = [Undecided(open_ones[name], away) for name, away in exposures(front.connection, others).items()]
    # What gives most away comes first, for whoever decides.
    ranked = sorted(measured, key=lambda one: (one.exposed.adds, one.exposed.alone, one.proposal.profile.distinct), reverse=True)
    able = [one.proposal for one in reversed(ranked) if one.proposal.hierarchy]
    written = partial(job_text, decided, out, ranked)
    trial = best_draft(front.connection, len(known), able, written, out.parent)
    return written(trial.taken, method=trial.method, gcp=trial.gcp), frozenset(one.profile.name for one in trial.taken), trial.gcp
