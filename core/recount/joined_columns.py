"""The recount of columns with equal pseudonyms: how many persons share what joins show.

Patients and their mothers, or doctors who are patients, have equal pseudonyms in two columns under one key. An attacker joins the records
over them, as often as there are equal pseudonyms. What is seen of a record is its combination, and by column what is seen of all records
that it is joined to. So digests of records and of pseudonyms are made of each other in turn, until they tell no more records apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from core.recount.people import NOBODY
from schemas.job.job import Job
from schemas.registry.treatment_kinds import treatment_kind

MOST_ROUNDS = 64
"""Joins one after the other. Who knows what is farther away from one record is not thought of."""
ROWS, SEEN = "joined_rows", "seen_of_pseudonyms"


def comparable_columns(job: Job) -> list[tuple[str, str]]:
    """Return the pairs of linking columns in which equal pseudonyms are those of one value.

    Hashes and tokens are equal under one key or vault alone, by whatever place it is named. Encryptions with two keys meet by chance.
    """
    treated = {one.name: one.treatment for one in job.columns.pseudonyms}
    kinds = {name: treatment_kind(treated[name]) for name in job.columns.linking}
    together = {name: group for group in job.columns.links for name in group}
    return [
        (one, other)
        for one, other in combinations(kinds, 2)
        if kinds[one].name == kinds[other].name and kinds[one].tells_apart and other not in together[one]
        if kinds[one].meets == "never" or treated[one].secret == treated[other].secret
    ]


def comparable_sql(job: Job, column: str, expression: str) -> str:
    """Return an SQL expression of a column's pseudonyms, which is equal for equal values under one key.

    A hash may be shorter than another of the same value, and an encrypted number has lost the zeros before it.
    """
    [treatment] = [one.treatment for one in job.columns.pseudonyms if one.name == column]
    if treatment.width:
        return f"lpad({expression}::VARCHAR, {treatment.width:d}, '0')"
    stable = treatment_kind(treatment).stable
    return f"left({expression}::VARCHAR, {stable:d})" if stable else f"{expression}::VARCHAR"


def meeting_sql(source: str, one: str, other: str) -> str:
    """Return SQL that says whether two expressions have a value in common."""
    first, second = (f"(SELECT {link} AS link FROM {source})" for link in (one, other))
    return f"SELECT count(*) > 0 FROM {first} SEMI JOIN {second} USING (link)"


def columns_that_meet(columns: Sequence[str], meeting: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the groups of several columns that pairs connect, in the order of the columns."""
    group = {name: name for name in columns}
    for one, other in meeting:
        group = {name: group[one] if of == group[other] else of for name, of in group.items()}
    found = [tuple(name for name in columns if group[name] == of) for of in dict.fromkeys(group.values())]
    return [one for one in found if len(one) > 1]


def joined_rows_sql(published: str, person_pseudonyms: str, links: Sequence[str]) -> str:
    """Return SQL that makes ``joined_rows``: what is published of each person, with the digest ``seen``.

    Args:
        published: From ``core.recount.linked.published_rows_sql``.
        person_pseudonyms: From ``core.recount.linked.person_pseudonyms_sql``; without it, every pseudonym is a person.
        links: Expressions of the pseudonyms over ``link_0`` … of these.
    """
    named = ", ".join(f"{link} AS link_{number}" for number, link in enumerate(links))
    rows = person_pseudonyms or f"(SELECT *, NULL::UBIGINT AS person FROM ({published}))"
    return f"""
        CREATE OR REPLACE TEMP TABLE {ROWS} AS
        SELECT combination, person, {named}, sum(records) AS records, md5(combination::VARCHAR) AS seen
        FROM {rows} WHERE combination IS NOT NULL GROUP BY ALL
    """


def _member(number: int, seen: str = "seen") -> str:
    """Return the SQL expression of what a record adds to what is seen of its pseudonym in a column."""
    return f"'{number}:' || {seen}"


def _set_digest(member: str, aggregate: str = "") -> str:
    """Return the SQL expression of the digest of a set's members in any order, 128 bits as text.

    DuckDB makes text of two halves a hundred times as fast as of one number.
    """
    return " || '.' || ".join(f"{aggregate}(md5_number_{half}({member}))" for half in ("lower", "upper"))


def joining_round_sql(count: int) -> Iterator[str]:
    """Yield SQL statements that add what a further join shows; the last one counts different records.

    It is right because only what is seen of others enters, each of them once and in any order, and nothing that was told apart is made
    equal again. A record without a pseudonym in a column is joined to no other there.

    Args:
        count: Number of columns.
    """
    members = " UNION ALL ".join(
        f"SELECT link_{number} AS link, {_member(number)} AS member FROM {ROWS} WHERE link_{number} IS NOT NULL" for number in range(count)
    )
    digest, each = _set_digest("member", "bit_xor"), f"SELECT DISTINCT * FROM ({members})"
    yield f"CREATE OR REPLACE TEMP TABLE {SEEN} AS SELECT link, {digest} AS seen FROM ({each}) GROUP BY link"
    joins = " ".join(f"LEFT JOIN {SEEN} AS s{number} ON s{number}.link = r.link_{number}" for number in range(count))
    parts = " || ':' || ".join(
        ["r.seen", *(f"coalesce(s{number}.seen, {_set_digest(_member(number, 'r.seen'))})" for number in range(count))]
    )
    yield f"CREATE OR REPLACE TEMP TABLE {ROWS} AS SELECT r.* REPLACE (md5({parts}) AS seen) FROM {ROWS} AS r {joins}"
    yield f"SELECT count(DISTINCT seen) FROM {ROWS}"


def joined_counts_sql(count: int, k: int, published: str, person_pseudonyms: str, *, unlinked_are_persons: bool) -> str:
    """Return SQL on ``joined_rows`` that yields the fields of ``LinkCount`` after ``known``.

    Args:
        count: Number of columns.
        k: How many people must share what is seen of each.
        published: From ``core.recount.linked.published_rows_sql``.
        person_pseudonyms: From ``core.recount.linked.person_pseudonyms_sql``; without it, every pseudonym is a person.
        unlinked_are_persons: Whether every record without a pseudonym is a person then too; else it is nobody's.
    """
    person = "person" if person_pseudonyms else "link"
    held = " UNION ALL ".join(
        f"SELECT link_{number} AS link, person, {_member(number)} AS member, records FROM {ROWS}" for number in range(count)
    )
    others = "0" if person_pseudonyms or not unlinked_are_persons else "records"
    whose = f"person IS DISTINCT FROM {NOBODY}"
    unexpected = "0"
    if person_pseudonyms:
        links = ", ".join(f"link_{number}" for number in range(count))
        kept = f"SELECT combination, {links}, sum(records) FROM {person_pseudonyms} GROUP BY ALL"
        unexpected = f"(SELECT count(*) FROM ((({published}) EXCEPT ({kept})) UNION ALL (({kept}) EXCEPT ({published}))))"
    return f"""
        WITH held AS ({held}),
        linked AS (
            SELECT {_set_digest("member", "bit_xor")} AS own, {person} AS person
            FROM (SELECT DISTINCT link, person, member FROM held WHERE link IS NOT NULL AND {whose}) GROUP BY link, person
        ),
        shared AS (
            SELECT own, person, bool_or(linked) AS linked, sum(others) AS others FROM (
                SELECT own, person, true AS linked, 0 AS others FROM linked UNION ALL
                SELECT {_set_digest("member")}, person, false, {others} FROM held WHERE link IS NULL AND {whose}
            ) GROUP BY ALL
        ),
        counted AS (SELECT own, count(person) + sum(others) AS people FROM shared GROUP BY ALL HAVING bool_or(linked)),
        exposed AS (FROM shared SEMI JOIN (FROM counted WHERE people < {k:d}) USING (own))
        SELECT (SELECT count(DISTINCT person) FROM linked), (SELECT count(DISTINCT seen) FROM {SEEN}), coalesce(min(people), 0)::BIGINT,
            (SELECT count(DISTINCT person) FROM exposed WHERE linked), count(*) FILTER (people < {k:d}), {unexpected}
        FROM counted
    """
