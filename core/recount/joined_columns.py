"""The recount of linking columns together: how many persons share what joins show.

Patients and their mothers, or doctors who are patients, have equal pseudonyms in two columns under one key. Patients and households stand
beside each other in one record. An attacker joins the records over all of these, as often as there are equal pseudonyms. What is seen of a
record is its combination, and by column what is seen of all records that it is joined to. So digests of records and of pseudonyms are made
of each other in turn, until they tell no more records apart.
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

Link = tuple[str, ...]
"""Columns whose pseudonyms link records together: a column, or those that name a person."""


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


def link_sql(job: Job, columns: Link, expressions: Sequence[str], kind: int) -> str:
    """Return an SQL expression of the pseudonyms in columns that link together; null where one of them is.

    Args:
        kind: The same number for columns whose pseudonyms may be compared.
    """
    if len(columns) == 1:
        return f"'{kind:d}:' || {comparable_sql(job, columns[0], expressions[0])}"
    return " || ".join([f"'{kind:d}:'", *(f"length({one}::VARCHAR) || ':' || {one}::VARCHAR" for one in expressions)])


def meeting_sql(source: str, one: str, other: str) -> str:
    """Return SQL that says whether two expressions have a value in common."""
    first, second = (f"(SELECT {link} AS link FROM {source})" for link in (one, other))
    return f"SELECT count(*) > 0 FROM {first} SEMI JOIN {second} USING (link)"


def crossing_sql(source: str, one: str, other: str, meets: tuple[bool, bool] = (False, False)) -> str:
    """Return SQL that says whether two expressions of links tell more together than each by itself.

    They do not where they link the same records, nor where one of them links none: neither in its own column nor in another. Then no record
    may have that one alone, unless the other links none either: by elimination it is found among records that the other links.

    Args:
        one, other: Null where there is no link.
        meets: Whether each has values in common with a further column.
    """
    names = ("one", "other")
    unlinked = [f"(NOT {met} AND records_of_{name} = {name}s)" for name, met in zip(names, meets, strict=True)]
    none = " OR ".join(
        f"({mine} AND (with_{name} = with_both OR {theirs}))" for name, mine, theirs in zip(names, unlinked, unlinked[::-1], strict=True)
    )
    return f"""
        WITH pairs AS (
            SELECT one, other, count(*) AS records FROM (SELECT {one} AS one, {other} AS other FROM {source})
            WHERE one IS NOT NULL OR other IS NOT NULL GROUP BY ALL
        ),
        counted AS (
            SELECT count(*) AS pairs, count(DISTINCT one) AS ones, count(DISTINCT other) AS others, count(one) AS with_one,
                count(other) AS with_other, count(*) FILTER (one IS NOT NULL AND other IS NOT NULL) AS with_both,
                coalesce(sum(records) FILTER (one IS NOT NULL), 0) AS records_of_one,
                coalesce(sum(records) FILTER (other IS NOT NULL), 0) AS records_of_other
            FROM pairs
        )
        SELECT NOT ({none} OR (NOT {all(meets)} AND pairs = ones AND pairs = others AND pairs = with_one AND pairs = with_other))
        FROM counted
    """


def connected_groups(links: Sequence[Link], pairs: Sequence[tuple[Link, Link]]) -> list[list[Link]]:
    """Return the groups of links that pairs connect, in the order of the links."""
    group = {one: one for one in links}
    for one, other in pairs:
        group = {link: group[one] if of == group[other] else of for link, of in group.items()}
    return [[link for link in links if group[link] == of] for of in dict.fromkeys(group.values())]


def joined_rows_sql(published: str, person_pseudonyms: str, links: Sequence[str]) -> str:
    """Return SQL that makes ``joined_rows``: what is published of each person, with the digest ``seen``.

    Args:
        published: From ``core.recount.linked.published_rows_sql``.
        person_pseudonyms: From ``core.recount.linked.person_pseudonyms_sql``; without it, every pseudonym is a person.
        links: From ``link_sql``, over ``link_0`` … of these.
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


def alike_at_once_sql(link_count: int) -> Iterator[str]:
    """Yield SQL statements that add what records show that agree in two links at once, or in all.

    Each link by itself may show the same of three persons, of whom only one has records that agree in both.
    """
    for places in dict.fromkeys([*combinations(range(link_count), 2), tuple(range(link_count))]):
        links = ", ".join(f"link_{place}" for place in places)
        each = f"SELECT DISTINCT {links}, combination::VARCHAR AS member FROM {ROWS}"
        digest = _set_digest("member", "bit_xor")
        yield f"CREATE OR REPLACE TEMP TABLE {SEEN} AS SELECT {links}, {digest} AS more FROM ({each}) GROUP BY {links} HAVING count(*) > 1"
        seen = "md5(seen || ':' || coalesce(more, '')) AS seen"
        joined = f"{ROWS} LEFT JOIN {SEEN} USING ({links})"
        yield f"CREATE OR REPLACE TEMP TABLE {ROWS} AS SELECT * EXCLUDE (more) REPLACE ({seen}) FROM {joined}"


def joining_round_sql(link_count: int) -> Iterator[str]:
    """Yield SQL statements that add what a further join shows; the last one counts different records.

    It is right because only what is seen of others enters, each of them once and in any order, and nothing that was told apart is made
    equal again. A record without a pseudonym in a column is joined to no other there.
    """
    members = " UNION ALL ".join(
        f"SELECT link_{number} AS link, {_member(number)} AS member FROM {ROWS} WHERE link_{number} IS NOT NULL"
        for number in range(link_count)
    )
    digest, each = _set_digest("member", "bit_xor"), f"SELECT DISTINCT * FROM ({members})"
    yield f"CREATE OR REPLACE TEMP TABLE {SEEN} AS SELECT link, {digest} AS seen FROM ({each}) GROUP BY link"
    joins = " ".join(f"LEFT JOIN {SEEN} AS s{number} ON s{number}.link = r.link_{number}" for number in range(link_count))
    parts = " || ':' || ".join(
        ["r.seen", *(f"coalesce(s{number}.seen, {_set_digest(_member(number, 'r.seen'))})" for number in range(link_count))]
    )
    yield f"CREATE OR REPLACE TEMP TABLE {ROWS} AS SELECT r.* REPLACE (md5({parts}) AS seen) FROM {ROWS} AS r {joins}"
    yield f"SELECT count(DISTINCT seen) FROM {ROWS}"


def joined_counts_sql(
    column_count: int, link_count: int, k: int, published: str, person_pseudonyms: str, *, unlinked_are_persons: bool
) -> str:
    """Return SQL on ``joined_rows`` that yields the fields of ``LinkCount`` after ``known``.

    Args:
        k: How many people must share what is seen of each.
        published: From ``core.recount.linked.published_rows_sql``.
        person_pseudonyms: From ``core.recount.linked.person_pseudonyms_sql``; without it, every pseudonym is a person.
        unlinked_are_persons: Whether every record without a pseudonym is a person then too; else it is nobody's.
    """
    person = "person" if person_pseudonyms else "link"
    held = " UNION ALL ".join(
        f"SELECT {number} AS place, link_{number} AS link, person, {_member(number)} AS member, records FROM {ROWS}"
        for number in range(link_count)
    )
    others = "0" if person_pseudonyms or not unlinked_are_persons else "records"
    # A record may lack the pseudonyms of several columns, and is one person all the same.
    by_place = "(SELECT coalesce(max(others), 0) FROM (SELECT sum(others) AS others FROM exposed GROUP BY place))::BIGINT"
    left_over = "(SELECT count(DISTINCT person) FILTER (NOT linked) FROM exposed)" if person_pseudonyms else by_place
    whose = f"person IS DISTINCT FROM {NOBODY}"
    unexpected = "0"
    if person_pseudonyms:
        links = ", ".join(f"link_{number}" for number in range(column_count))
        kept = f"SELECT combination, {links}, sum(records) FROM {person_pseudonyms} GROUP BY ALL"
        unexpected = f"(SELECT count(*) FROM ((({published}) EXCEPT ({kept})) UNION ALL (({kept}) EXCEPT ({published}))))"
    return f"""
        WITH held AS ({held}),
        linked AS (
            SELECT {_set_digest("member", "bit_xor")} AS own, {person} AS person
            FROM (SELECT DISTINCT link, person, member FROM held WHERE link IS NOT NULL AND {whose}) GROUP BY link, person
        ),
        shared AS (
            SELECT own, person, bool_or(linked) AS linked, sum(others) AS others, max(place) AS place FROM (
                SELECT own, person, true AS linked, 0 AS others, NULL AS place FROM linked UNION ALL
                SELECT {_set_digest("member")}, person, false, {others}, place FROM held WHERE link IS NULL AND {whose}
            ) GROUP BY own, person
        ),
        counted AS (SELECT own, count(person) + sum(others) AS people, bool_or(linked) AS has_link FROM shared GROUP BY ALL),
        exposed AS (FROM shared SEMI JOIN (FROM counted WHERE people < {k:d}) USING (own))
        SELECT (SELECT count(DISTINCT person) FROM linked), (SELECT count(DISTINCT seen) FROM {SEEN}),
            coalesce(min(people) FILTER (has_link), 0)::BIGINT, (SELECT count(DISTINCT person) FROM exposed WHERE linked),
            count(*) FILTER (people < {k:d} AND (has_link OR people > 0)), {left_over}, {unexpected}
        FROM counted
    """
