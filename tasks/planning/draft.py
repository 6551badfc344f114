"""Draft of a first job file for a source, with a role for each column, tried on a sample.

The draft holds no cell value.

Sensitive columns are guarded by l-diversity. Rare values become others before l is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised
from core.formats.concept_names import numbered_by
from core.formats.person_proposals import PersonChoice, choose_person
from core.formats.proposals import COORDINATES, Proposal, propose_role
from core.recoding.publishing import published_values
from schemas.errors.base import StorageError
from schemas.job.identifiers import SHARED
from tasks.planning.draft_text import PERSON, DraftContents, Question, job_text, person_question, questions_of
from tasks.planning.evidence import (
    Exposures,
    columns_exposures,
    columns_that_repeat,
    determines_column,
    draw_sample,
    has_repeats,
    is_dominated,
    with_value_patterns,
)
from tasks.planning.listed_hierarchies import with_drafted_hierarchies
from tasks.planning.open_sources import OpenSource, SourceOptions, SourceProfile, job_name, open_for_draft, profile_source
from tasks.planning.pilot_runs import best_draft, typed_column_sql
from tasks.source.published_columns import count_values, make_number_table, make_value_table
from tasks.store.database import quote
from tasks.store.files import USER_UMASK, write_atomically

K, FEW_K, FEW_RECORDS = 12, 5, 400
"""The proposed k; the k for few records, where larger classes would lose all information; and the number that counts as few."""
WELL_KNOWN_SHARE = (
    "age",
    "date of birth",
    "sex or gender",
    "a postal code",
    "a place",
    "coordinates",
    "race or ethnicity",
    "marital status",
    "education",
    "occupation or employer",
    "nationality or origin",
    "date of death",
    "when something happened",
    "household or family",
    "body",
    "language",
    "religion",
    "a facility or institution",
)
"""Concepts that other people may know of a person, best known first."""
MOST_GUESSED = 12
"""Columns that are taken for known where none is surely."""
GUESSED_VALUES = (2, 1)
"""Different values of these at least: a column of one value is taken where no other is there, so that the draft runs."""
ALWAYS, MOST_ALWAYS = 13, 16
"""How many of these are quasi-identifiers whatever they cost, and how many columns at most."""


class DraftedJob(NamedTuple):
    """What a written draft proposes: roles, questions, loss on a sample, exposure and obstacle.

    Attributes:
        proposals: What is proposed for each column, in the order of the source.
        questions: Questions that the user can answer and the data cannot.
        records: How many were looked at.
        has_more: Whether the source has more.
        gcp: What it would lose, tried on a sample; None where it could not be tried.
        hierarchy_files: Files of hierarchies that were written.
        exposed: What the columns that are published give away.
        unit: What k counts, a record or a person.
        promises: What that keeps, in words.
        obstacle: Why it does not run yet, in a sentence; empty if it does.
    """

    proposals: tuple[Proposal, ...]
    questions: tuple[Question, ...]
    records: int
    has_more: bool
    gcp: float | None
    hierarchy_files: tuple[Path, ...]
    exposed: Exposures
    unit: str
    promises: str
    obstacle: str


def drafted_k(person_count: int) -> int:
    """Return the k proposed for a number of persons or records: 12, or 5 below 400."""
    return K if person_count >= FEW_RECORDS else FEW_K


def draft_job(given: SourceOptions, out: Path, *, accept: bool = False) -> DraftedJob:
    """Write a first job file for a source and return the draft; ``accept`` marks questions as answered.

    Args:
        out: The job file; one that exists stays as it is.
    """
    if out.exists():
        raise StorageError(f"'{out}' exists and stays as it is. Name another file with --out, or move it away.")
    with open_for_draft(given, out) as front:
        found = profile_source(front)
        proposals = [propose_role(column) for column in with_value_patterns(front.connection, found.columns)]
        choice = _person(front.connection, proposals)
        person = choice.person
        if person:
            # Whoever is told by it is not published: by its counts alone, too.
            reason = person.reason if person.role == "identifier" else PERSON
            named = replace(person, role="identifier", reason=reason, confidence=max(person.confidence, 0.8), question=None)
            proposals = [named if one is person else one for one in proposals]
            person, choice = named, choice._replace(person=named)
        proposals = _together(_without_repeats(front.connection, proposals))
        for values in GUESSED_VALUES:
            proposals = with_guessed_quasi_identifiers(proposals, values)
        proposals, ladders = with_drafted_hierarchies(front, proposals, out)
        sampled = draw_sample(front.connection, person.profile.name if person else None)
        decided, text, gcp, exposed, questions = _tried(front, proposals, choice, found, sampled, out, accept=accept)
    write_atomically(out, lambda part: part.write_text(text, "utf-8"), 0o666 & ~USER_UMASK)
    unit = "person" if person else "record"
    return DraftedJob(
        decided.proposals, questions, found.records, front.has_more, gcp, tuple(ladders), exposed, unit, decided.promises, decided.obstacle
    )


def _person(connection: duckdb.DuckDBPyConnection, proposals: Sequence[Proposal]) -> PersonChoice:
    able = partial(_may_be_people, connection)
    return choose_person(
        proposals,
        able,
        lambda one, other: determines_column(connection, one.profile, other.profile),
        lambda one: has_repeats(connection, one.profile),
    )


def _may_be_people(connection: duckdb.DuckDBPyConnection, one: Proposal) -> bool:
    # A column that is named after persons may have one with very many records, or a number for all that are unknown.
    return numbered_by(one.profile.name) == "person" or not is_dominated(connection, one.profile)


def _without_repeats(connection: duckdb.DuckDBPyConnection, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Withhold columns whose values correspond one to one with those of a quasi-identifier."""
    repeated = columns_that_repeat(connection, proposals)

    def kept(one: Proposal) -> Proposal:
        twin = repeated.get(one.profile.name)
        if twin is None:
            return one
        return replace(one, role="withheld", reason=f"repeats '{twin}', value by value", confidence=max(one.confidence, 0.8), question=None)

    return [kept(one) for one in proposals]


def _together(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Make all coordinates quasi-identifiers, or none of them.

    One coordinate alone discloses half of a place, and cannot be coarsened with the other.
    """
    places = [one for one in proposals if one.concept == COORDINATES]
    if all(one.role == "quasi_identifier" for one in places) or not any(one.role == "quasi_identifier" for one in places):
        return list(proposals)
    return [
        replace(one, role="identifier", reason="half of a place, of which the other half cannot be coarsened") if one in places else one
        for one in proposals
    ]


def with_guessed_quasi_identifiers(proposals: Sequence[Proposal], least_distinct: int) -> list[Proposal]:
    """Return proposals with guessed quasi-identifiers if none is proposed yet, else unchanged.

    A job needs a quasi-identifier, and other people may know any of these columns.

    Args:
        least_distinct: Different values of such a column, at least.
    """
    if any(one.role == "quasi_identifier" for one in proposals):
        return list(proposals)
    published = [one for one in proposals if one.publish_setting and one.hierarchy and one.profile.distinct >= least_distinct]
    able = [one for one in published if one.question] or published
    some = sorted(able, key=lambda one: one.profile.distinct)[:MOST_GUESSED]
    return [
        replace(one, role="quasi_identifier", confidence=min(one.confidence, 0.6), question="outside") if one in some else one
        for one in proposals
    ]


def _rank(one: Proposal) -> tuple[bool, int, float]:
    place = WELL_KNOWN_SHARE.index(one.concept) if one.concept in WELL_KNOWN_SHARE else len(WELL_KNOWN_SHARE)
    return one.confidence < 0.8, place, one.profile.top


def _tried(
    front: OpenSource, proposals: Sequence[Proposal], choice: PersonChoice, found: SourceProfile, sampled: int, out: Path, *, accept: bool
) -> tuple[DraftContents, str, float | None, Exposures, tuple[Question, ...]]:
    """Try the proposals on a sample; return what the draft says, its text, loss, exposure and questions."""
    ranked = sorted((one for one in proposals if one.role == "quasi_identifier"), key=_rank)
    surely = [one for place, one in enumerate(ranked) if place < MOST_ALWAYS and _rank(one)[1] < ALWAYS and one.confidence >= 0.8]
    able = [one for one in ranked if one not in surely]
    k, person = drafted_k(sampled), choice.person

    by_name = {one.profile.name: one for one in proposals}

    @cache
    def values_kept(name: str) -> int:
        return count_values_kept(*published_holders(front, by_name[name], person.profile.name if person else None, k))

    @cache
    def guarded(name: str) -> pa.Array:
        return published_numbers(front, by_name[name], k)

    def decided(taken: Sequence[Proposal]) -> DraftContents:
        mine = [_moved(one) if one in able and one not in taken else one for one in proposals]
        return DraftContents(
            job_name(out), front.source, front.texts, found.records, front.has_more, sampled, tuple(mine), person, k=k,
            values_kept=guarded_columns(mine, values_kept),
            accept=accept,
        )  # fmt: skip

    def text(taken: Sequence[Proposal], method: str) -> str:
        return job_text(decided(taken), out, method=method)

    trial = best_draft(front.connection, len(surely), able, text, guarded, out.parent)
    final = decided(trial.accepted_proposals)
    known = [one.profile.name for one in final.proposals if one.role == "quasi_identifier"]
    published = [one.profile.name for one in final.proposals if one.publish_setting or one.role == "quasi_identifier"]
    others = {name: [other for other in known if other != name] for name in published}
    exposed = columns_exposures(front.connection, others, person.profile.name if person else None, found.records)
    questions = (*person_question(choice), *questions_of(final.proposals))
    written = partial(job_text, final, out, exposed=exposed, questions=questions)
    return final, written(method=trial.method, figures=trial.figures), trial.gcp, exposed, questions


def _moved(one: Proposal) -> Proposal:
    """Make a column sensitive, because coarsening it too would cost the other columns too much."""
    reason = f"{one.reason}; as one more quasi-identifier it would cost the others too much"
    return replace(one, role="sensitive", reason=reason, confidence=min(one.confidence, 0.6), question="outside")


Integers = NDArray[np.int64]

GUARDED = ("diagnosis or condition", "money", "performance or an answer", "a laboratory value or measurement", "drug or treatment")
"""What is guarded first."""
MOST_GUARDED = 3
"""Sensitive columns of which l is asked: each costs the quasi-identifiers something."""
MOST_DISTINCT = 3
"""The most distinct sensitive values that a class is asked for; more cost much and protect little better."""
SPARE = 0.25
"""Share of the people who must have none of the l - 1 most frequent values, so that most classes find one of these."""


def guarded_columns(proposals: Sequence[Proposal], values_kept: Callable[[str], int]) -> dict[str, int]:
    """Return by name up to three sensitive columns to guard, with distinct values asked per class.

    Args:
        values_kept: Returns that number for a column.
    """
    able = [one for one in proposals if one.role == "sensitive" and one.concept in GUARDED and one.profile.kind != "boolean"]
    found: dict[str, int] = {}
    for one in sorted(able, key=lambda one: (GUARDED.index(one.concept), -one.confidence)):
        if len(found) < MOST_GUARDED and (kept := values_kept(one.profile.name)) > 1:
            found[one.profile.name] = kept
    return found


def published_holders(front: OpenSource, proposal: Proposal, person: str | None, k: int) -> tuple[Integers, Integers, int]:
    """Return a column's distinct (person, value) pairs as two arrays, and the number of people.

    Args:
        front: The source, with the table ``sample``, which has one record of each person.
        proposal: For the column; its texts are read without case, blanks and words for nothing, as the draft reads them.
        person: The column that names the person of a record; None where every record is a person of its own.
        k: People who share a value, at least.

    Returns:
        People and values as numbers from 0, each of shape (n,), and the number of people. A pair occurs once; nulls are left out.
    """
    value = typed_column_sql(proposal.profile.name, proposal.profile.kind if front.texts else None)
    if person is None:
        statement = f"SELECT row_number() OVER () AS owner, {value} AS value FROM sample"
    else:
        # All records of these people: somebody may have several values.
        statement = f"SELECT {quote(person)} AS owner, {value} AS value FROM source SEMI JOIN sample USING ({quote(person)})"
    read = front.connection.sql(statement).to_arrow_table()
    values, owners = normalised(read["value"].combine_chunks(), ALL), read["owner"].combine_chunks().dictionary_encode()
    published = _shared(front, values, np.asarray(owners.indices), k)
    pairs = pa.table({"owner": owners.indices, "value": published}).filter(published.is_valid()).group_by(["owner", "value"]).aggregate([])
    numbers = pairs["value"].combine_chunks().dictionary_encode().indices
    return np.asarray(pairs["owner"]).astype(np.int64), np.asarray(numbers).astype(np.int64), len(owners.dictionary)


def published_numbers(front: OpenSource, proposal: Proposal, k: int) -> pa.Array:
    """Return the published value of each record of the sample as a number from 0; shape (n,).

    All rare values have one number.

    Arguments as for ``published_holders``; of each person the sample has one record.
    """
    value = typed_column_sql(proposal.profile.name, proposal.profile.kind if front.texts else None)
    read = front.connection.sql(f"SELECT {value} AS value FROM sample").to_arrow_table()
    values = normalised(read["value"].combine_chunks(), ALL)
    return _shared(front, values, np.arange(len(values)), k).dictionary_encode().indices


def _shared(front: OpenSource, values: pa.Array, owners: Integers, k: int) -> pa.Array:
    """Return values as they are published, rare ones as one; ``owners`` numbers whose each is, shape (n,)."""
    # As a digest 0 is that of nobody, so that the first person would have no value.
    persons = owners.astype(np.uint64) + np.uint64(1)
    make_value_table(front.connection, [([values], persons)], 1)
    make_number_table(front.connection, [(persons, [pa.array(owners)])], [pa.int64()])
    counted = count_values(front.connection, 0, values.type, k, SHARED, count_persons=True)
    return published_values(counted, SHARED, k).apply(values)


def count_values_kept(owners: Integers, values: Integers, person_count: int) -> int:
    """Return how many distinct values (1 to 3) every class can be asked to hold of a column.

    Args:
        owners: Shape (n,), whose each value is.
        values: Shape (n,), the values as numbers from 0.
    """
    frequent = np.argsort(-np.bincount(values), kind="stable") if len(values) else values
    kept, others = 1, set(owners.tolist())
    for distinct, value in enumerate(frequent[: MOST_DISTINCT - 1].tolist(), 2):
        others -= set(owners[values == value].tolist())
        if len(others) < SPARE * person_count:
            break
        kept = distinct
    return kept
