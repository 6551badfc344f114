"""The recount of linked records: how many persons share the set of classes of one person's records.

Equal pseudonyms show which records belong together. An attacker who knows one person's quasi-identifiers in every record looks for a
pseudonym with just these combinations. As many persons fit as share that set, and have the same of its combinations themselves where
a pseudonym is that of several; each of the combinations alone would fit more. A record without a pseudonym has one combination. It may be
all that is left of these when the links of the others are followed.

`core.recount.joined_columns` counts what several columns with equal pseudonyms show together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.recount.groups import Groups
from core.recount.people import COMBINATIONS, NOBODY
from schemas.errors.base import counted, listed, verb_of
from schemas.job.identifiers import Identifier
from schemas.job.job import Job
from schemas.registry.treatment_kinds import treatment_kind
from schemas.release.figures import reported_count
from schemas.release.manifest import MASK, Manifest, left_over_clause

DIGEST = "md5_number(combination::VARCHAR)"


@dataclass(frozen=True)
class LinkCount:
    """Counts of the persons and sets of combinations that one linking column shows in the written files.

    Several columns that name a person together are one linking column.

    Attributes:
        known: Whether the persons are known; else every pseudonym counts as a person.
        people: Different people with a pseudonym.
        sets: Different sets of combinations.
        smallest: How many people share the set that fewest share; 0 if no person has a pseudonym.
        below_k: People who share one of theirs with fewer than k.
        failing: Sets that fewer than k people share, and combinations in which fewer than k are left over.
        left_over: People without a pseudonym in a combination of fewer than k, apart from those whom links show elsewhere too.
        unexpected: Pseudonyms in combinations of which the private file says otherwise.
    """

    columns: tuple[str, ...]
    known: bool
    people: int
    sets: int
    smallest: int
    below_k: int
    failing: int
    left_over: int
    unexpected: int

    @property
    def share(self) -> float:
        """Share of the people whose set of combinations fewer than k people share."""
        return self.below_k / self.people if self.people else 0.0


def person_pseudonyms_sql(classed_persons: str, link_positions: Sequence[int]) -> str:
    """Return the SQL relation of each person's label combinations and pseudonyms, from private files.

    Its columns are ``combination``, ``person``, ``records`` and ``link_0`` ….

    Args:
        classed_persons: As ``core.recount.people.classed_persons_sql`` returns them, with ``link_0`` ….
        link_positions: Of the pseudonyms among those that are kept.
    """
    links = ", ".join(f"p.link_{place}::VARCHAR AS link_{number}" for number, place in enumerate(link_positions))
    return f"(SELECT n.combination, p.person, p.records, {links} FROM {classed_persons})"


def published_rows_sql(source: str, qids: Sequence[str], links: Sequence[str]) -> str:
    """Return SQL of the published ``combination`` and pseudonyms ``link_0`` … with ``records``.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published quasi-identifiers.
        links: Expressions of the pseudonyms over the columns of ``source``.
    """
    same = " AND ".join(f"s.{qid}::VARCHAR IS NOT DISTINCT FROM c.label_{number}" for number, qid in enumerate(qids))
    named = ", ".join(f"{link} AS link_{number}" for number, link in enumerate(links))
    return f"SELECT c.combination, {named}, count(*) AS records FROM {source} AS s JOIN {COMBINATIONS} AS c ON {same} GROUP BY ALL"


def linked_sql(
    source: str,
    qids: Sequence[str],
    link_columns: Sequence[str],
    k: int,
    person_pseudonyms: str = "",
    *,
    unlinked_are_persons: bool = True,
) -> str:
    """Return SQL that yields ``LinkCount``'s fields: how many persons share each set of linked classes.

    It is right because a set is known by its size and by a 128-bit digest of its members in any order. No list of members is held, and
    two sets that differ are taken for one with a chance of 1 in 2^128. A record without a pseudonym is linked to no other: whose it is
    may be anybody with one record there. A pseudonym that is nobody's makes a set that it does not fill.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published quasi-identifiers.
        link_columns: Quoted names of the columns whose pseudonyms link together; a null in one of them links nothing.
        person_pseudonyms: From ``person_pseudonyms_sql``; without it, every pseudonym is a person.
        unlinked_are_persons: Whether every record without a pseudonym is a person then too; else it is nobody's.
    """
    keys = ", ".join(f"link_{number}" for number in range(len(link_columns)))
    published = published_rows_sql(source, qids, [f"s.{link}::VARCHAR" for link in link_columns])
    there = " AND ".join(f"link_{number} IS NOT NULL" for number in range(len(link_columns)))
    person, own, whose, loose, unexpected = (
        _owned(keys, there, person_pseudonyms) if person_pseudonyms else _alone(keys, there, unlinked_are_persons)
    )
    return f"""
        CREATE OR REPLACE TEMP TABLE linked_records AS {published};
        WITH records AS (FROM linked_records),
        members AS (FROM records WHERE {there}),
        sets AS (SELECT {keys}, count(*) AS size, bit_xor({DIGEST}) AS digest FROM members GROUP BY ALL),
        shared AS (
            SELECT size, digest, own, person, bool_or(linked) AS linked, sum(others) AS others FROM (
                SELECT size, digest, {own} AS own, {person} AS person, true AS linked, 0 AS others FROM sets {whose} UNION ALL {loose}
            ) GROUP BY ALL
        ),
        counted AS (
            SELECT size, digest, own, count(person) + sum(others) AS people, bool_or(linked) AS has_link FROM shared GROUP BY ALL),
        exposed AS (FROM shared SEMI JOIN (FROM counted WHERE people < {k:d}) USING (size, digest, own))
        SELECT (SELECT count(person) FROM (SELECT DISTINCT person FROM shared WHERE linked)),
            count(DISTINCT (size, digest)) FILTER (has_link), coalesce(min(people) FILTER (has_link), 0)::BIGINT,
            (SELECT count(person) FROM (SELECT DISTINCT person FROM exposed WHERE linked)), count(*) FILTER (people < {k:d}),
            (SELECT count(DISTINCT person) FILTER (NOT linked) + coalesce(sum(others), 0) FROM exposed)::BIGINT, {unexpected}
        FROM counted
    """


def _alone(keys: str, there: str, records: bool) -> tuple[str, str, str, str, str]:
    """Return the SQL parts of ``linked_sql`` where every pseudonym is taken for a person.

    They are the expressions of a person and of the person's own part of the set, the join that finds both, the records without a
    pseudonym, and the count of unexpected pseudonyms.
    """
    loose = f"SELECT 1, {DIGEST}, {DIGEST}, NULL, false, sum(records) FROM records WHERE {records} AND NOT ({there}) GROUP BY combination"
    return f"row({keys})", "digest", "", loose, "0"


def _owned(keys: str, there: str, owners: str) -> tuple[str, str, str, str, str]:
    """Return the SQL parts of ``linked_sql`` where the persons behind the pseudonyms are known."""
    theirs = f"SELECT DISTINCT {keys}, person, combination FROM {owners} WHERE {there} AND person <> {NOBODY}"
    whose = f"LEFT JOIN (SELECT {keys}, person, bit_xor({DIGEST}) AS own FROM ({theirs}) GROUP BY ALL) USING ({keys})"
    loose = f"SELECT 1, {DIGEST}, {DIGEST}, person, false, 0 FROM {owners} WHERE NOT ({there}) AND person <> {NOBODY}"
    kept = f"SELECT combination, {keys}, sum(records) AS records FROM {owners} WHERE {there} GROUP BY ALL"
    differ = "h.records IS DISTINCT FROM members.records"
    return (
        "person",
        "coalesce(own, digest)",
        whose,
        loose,
        f"(SELECT count(*) FROM members FULL JOIN ({kept}) AS h USING (combination, {keys}) WHERE {differ})",
    )


def pseudonyms_are_persons(job: Job, columns: Sequence[str]) -> bool:
    """Return whether each pseudonym in linking columns stands for exactly one person.

    It does where the job names no person column, and where the linking columns are the person columns themselves.
    """
    if not job.columns.person:
        return True
    kinds = [treatment_kind(one.treatment) for one in job.columns.pseudonyms if one.name in columns]
    return set(columns) == set(job.columns.person) and all(kind.tells_apart for kind in kinds)


def accepts_linking(job: Job, columns: Sequence[str]) -> bool:
    """Return whether the job accepts that pseudonyms of these columns show which records belong together."""
    return set(columns) <= set(job.columns.linkable)


def exposing_links(job: Job, linked: Sequence[LinkCount]) -> list[LinkCount]:
    """Return the linking columns of known persons that expose sets of fewer than k and are not accepted."""
    return [one for one in linked if one.known and one.failing and not accepts_linking(job, one.columns)]


def mismatched_pseudonym_faults(linked: Sequence[LinkCount]) -> list[str]:
    """Return messages on pseudonyms whose label combinations differ from the private file of persons."""
    return [
        f"{counted(one.unexpected, 'combination')} of pseudonyms in {listed(one.columns)} not as the run folder keeps them"
        for one in linked
        if one.unexpected
    ]


def link_faults(job: Job, linked: Sequence[LinkCount]) -> list[str]:
    """Return messages on linking columns that expose more than the job allows."""
    return [
        f"{listed(one.columns)} shows which records belong together: {one.below_k:,} of {one.people:,} "
        f"{verb_of(one.below_k, 'share')} the set of combinations that "
        f"theirs are in with fewer than k = {job.privacy.k:,}{left_over_clause(one.left_over)}"
        for one in exposing_links(job, linked)
    ]


def reported_link_count(job: Job, found: LinkCount) -> LinkCount:
    """Return counts in published form: k for 1 to k - 1, but where pseudonyms show each person."""
    if pseudonyms_are_persons(job, found.columns):
        return found
    people, smallest, below_k, left_over = (
        reported_count(count, job.privacy.k) for count in (found.people, found.smallest, found.below_k, found.left_over)
    )
    return replace(found, people=people, smallest=smallest, below_k=below_k, left_over=left_over)


def link_claims(job: Job, manifest: Manifest, linked: Sequence[LinkCount]) -> list[str]:
    """Return messages on a manifest's counts of linked records that differ from the files.

    Manifests of older versions have no such counts.
    """
    if manifest.linked is None:
        return []
    if [one.columns for one in manifest.linked] != [one.columns for one in linked]:
        return ["the manifest does not say truly which columns show which records belong together"]
    faults = []
    for said, held in zip(manifest.linked, linked, strict=True):
        names = ("people", "sets", "smallest", "below_k", "left_over") if held.known else ("sets",)
        reported = reported_link_count(job, held)
        faults += [
            f"the manifest says linked {listed(said.columns)} {name} = {getattr(said, name):,}, the files hold {getattr(held, name):,}"
            for name in names
            # Earlier versions reported each count as it is.
            if getattr(said, name) not in {getattr(held, name), getattr(reported, name)}
        ]
        if said.accepted != accepts_linking(job, said.columns):
            faults.append(f"the manifest does not say truly whether the job accepts that {listed(said.columns)} links records")
    return faults


SPARSE = 500_000
"""An encryption may give one person another one's number. With fewer numbers than this in the source, half of the smallest domain, it
does not happen to all, so that all of at least ``SAMPLE`` published ones being in the source means that they were not encrypted."""
SAMPLE = 20


def malformed_pseudonym_groups(source: str, qids: Sequence[str], column: str, identifier: Identifier) -> Groups:
    """Return the query that counts malformed pseudonyms, and masked records that have a pseudonym.

    It is right because the whole value is matched, and because who is published with ``*`` in every QID is known from the files alone.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published QID columns.
    """
    entry = treatment_kind(identifier.treatment)
    form = entry.form(identifier.treatment).replace("'", "''")
    wrong = f"NOT regexp_full_match({column}::VARCHAR, '{form}')"
    # A form is one of text: a number of another type could be written alike and still not be what the job says.
    if types := " OR ".join(f"typeof({column}) LIKE '{dtype}'" for dtype in entry.types):
        wrong += f" OR NOT ({types})"
    starred = " AND ".join(f"{qid}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for qid in qids)
    counts = {"malformed": f"({wrong})", "revealed": f"({starred})"}
    return Groups(source, counts=tuple((f"count(*) FILTER ({column} IS NOT NULL AND {what})", name) for name, what in counts.items()))


def shared_sql(source: str, reference: str, column: str) -> str:
    """Return SQL that counts distinct pseudonyms, those among the source's values, and distinct values.

    It is right because values are compared as text, whatever the types before and after.
    """
    return f"""
        WITH published AS (SELECT DISTINCT {column}::VARCHAR AS value FROM {source} WHERE {column} IS NOT NULL),
        originals AS (SELECT DISTINCT {column}::VARCHAR AS value FROM {reference} WHERE {column} IS NOT NULL)
        SELECT (SELECT count(*) FROM published), (SELECT count(*) FROM published SEMI JOIN originals USING (value)),
            (SELECT count(*) FROM originals)
    """


def pseudonyms_are_compared(identifier: Identifier) -> bool:
    """Return whether pseudonyms are compared with source values: not if many may be equal."""
    return treatment_kind(identifier.treatment).meets != "often"


def pseudonym_faults(identifier: Identifier, masks: bool, counts: tuple[int, int], shared: tuple[int, int, int] | None) -> list[str]:
    """Return messages on pseudonyms of the wrong form, of masked records, or equal to source values.

    Args:
        shared: From ``shared_sql``, where the source is available.
    """
    (malformed, revealed), entry = counts, treatment_kind(identifier.treatment)
    faults = []
    if malformed:
        faults.append(f"{counted(malformed, 'record')} in '{identifier.name}' without the form of its treatment ({entry.words})")
    if masks and revealed:
        faults.append(f"{counted(revealed, 'masked record')} with a pseudonym in '{identifier.name}', which links them")
    if shared is not None:
        published, same, originals = shared
        unchanged = entry.meets == "by chance" and SAMPLE <= published == same and originals < SPARSE
        if unchanged or (entry.meets == "never" and same):
            faults.append(f"{counted(same, 'value')} of the source's '{identifier.name}' published as pseudonyms")
    return faults
