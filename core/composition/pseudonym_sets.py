"""SQL statements on what releases disclose together of each person, in one table or in several.

Releases with the same key publish the same pseudonym of a person. An attacker who has them all joins them, and sees for each pseudonym
how often it comes with which combination of labels and values, in which release. People who share that set cannot be distinguished
by it (Nergiz, Clifton and Nergiz, Multirelational k-anonymity, TKDE 2009, for tables of one release).

A set is held as one digest of 64 bits. Of each release it is the digest of its members with their counts in any order, keyed with the
release, and of several releases the bitwise sum (exclusive or) of these. So a further release is added without a look at earlier ones, and
what is held of a pseudonym is of one size whatever the number of releases. Two sets that differ are taken for one with a chance of 1 in
2^64.

Over several tables a set has the rows that join to one pseudonym. A row is one digest of 64 bits, made of what it publishes and of the rows
below it. Rows below are a multiset, whose digest is the sum of those of its members with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

OLD, NEW, FOLDED = "known_before", "published_now", "known_now"
"""Tables of what earlier releases disclosed, of what this one does, and of all."""


def text_sql(columns: Sequence[str]) -> str:
    """Return the SQL expression that joins columns to one text, different for different values.

    Every value comes with its length, a null without.
    """
    texts = [f"coalesce(length({column}::VARCHAR)::VARCHAR || ':' || {column}::VARCHAR, '-')" for column in columns]
    return " || ".join(texts) or "''"


def disclosed_sql(source: str, link: Sequence[str], labels: Sequence[str], others: Sequence[str], salt: str) -> str:
    """Return SQL that yields two digests per pseudonym: of all its published values and of labels alone.

    Its columns are ``key``, ``everything`` and ``labels``. It is right because records that publish the same are counted together, and
    each member of a set enters its digest once, with its count: an exclusive or of equal members would else be nothing. A record without
    a pseudonym is joined to no other.

    Args:
        link: Expressions of the columns whose pseudonyms name a person together.
        labels: Those of the published quasi-identifiers.
        others: Those of everything else that is published, but for pseudonyms.
        salt: Text that enters every digest of labels and values, as an SQL string.
    """
    there = " AND ".join(f"{column} IS NOT NULL" for column in link)
    digests = {"labels": text_sql(labels), "everything": text_sql([*labels, *others])}
    made = ", ".join(f"md5_number_lower({salt} || {text}) AS {name}" for name, text in digests.items())
    counted = {
        name: f"(SELECT key, bit_xor(md5_number_lower({salt} || {name} || ':' || times)) AS {name} FROM ("
        f"SELECT key, {name}, sum(times)::BIGINT AS times FROM counted GROUP BY ALL) GROUP BY key)"
        for name in digests
    }
    return f"""
        WITH records AS (SELECT md5_number_lower({text_sql(link)}) AS key, {made} FROM {source} WHERE {there}),
        counted AS MATERIALIZED (SELECT key, labels, everything, count(*) AS times FROM records GROUP BY ALL)
        SELECT key, everything, labels FROM {counted["everything"]} JOIN {counted["labels"]} USING (key)
    """


def pseudonym_owners_sql(person_table: str, link: Sequence[str]) -> str:
    """Return SQL that yields the person of each pseudonym, null where several people have it.

    Its columns are ``key`` and ``owner``.

    Args:
        person_table: What is read as ``person`` and what the pseudonyms are.
        link: Expressions of these.
    """
    there = " AND ".join(f"{column} IS NOT NULL" for column in link)
    return f"""
        SELECT md5_number_lower({text_sql(link)}) AS key, CASE WHEN count(DISTINCT person) = 1 THEN any_value(person) END AS owner
        FROM {person_table} WHERE {there} AND person <> 0 GROUP BY key
    """


def columns_together_sql(digest_tables: Mapping[str, str], owner_tables: Sequence[str]) -> tuple[str, str]:
    """Return SQL relations of the digests and the owners of several columns whose pseudonyms have one key.

    It is right because an attacker who finds one pseudonym in several columns sees in which of them it comes with what. So each digest is
    made one of its column before the digests of a pseudonym are added up, modulo 2^64. A pseudonym of which columns disagree, or which is
    that of several people in one, has no owner.

    Args:
        digest_tables: What is read as ``key``, ``everything`` and ``labels``, by the column's name as an SQL string.
        owner_tables: What is read as ``key`` and ``owner``, of the columns whose persons are known.

    Returns:
        As ``keyed_disclosures_sql`` takes them; owners are empty without any.
    """
    if len(digest_tables) == 1:
        return next(iter(digest_tables.values())), f"FROM {owner_tables[0]}" if owner_tables else ""
    names = ("everything", "labels")
    sums = ", ".join(f"(sum({name}::HUGEINT) % 18446744073709551616)::UBIGINT AS {name}" for name in names)
    each = {column: ", ".join(f"md5_number_lower({column} || ':' || {name}) AS {name}" for name in names) for column in digest_tables}
    digests = " UNION ALL ".join(f"SELECT key, {each[column]} FROM {table}" for column, table in digest_tables.items())
    owners = " UNION ALL ".join(f"SELECT key, owner FROM {table}" for table in owner_tables)
    one = "CASE WHEN count(DISTINCT owner) = 1 AND count(*) = count(owner) THEN any_value(owner) END"
    known = f"SELECT key, {one} AS owner FROM ({owners}) GROUP BY key" if owner_tables else ""
    return f"(SELECT key, {sums} FROM ({digests}) GROUP BY key)", known


def keyed_disclosures_sql(digest_table: str, owner_table: str, secret: str, release: str, person_columns: str) -> str:
    """Return SQL that makes ``published_now``: pseudonyms, owners and disclosures as keyed digests.

    Its columns are ``key``, ``owner``, ``everything`` and ``labels``.

    Args:
        digest_table: What is read as ``key``, ``everything`` and ``labels``.
        owner_table: What is read as ``key`` and ``owner``; empty where every pseudonym counts as a person.
        secret: What everything is keyed with, as an SQL string.
        release: The id of the release, as an SQL string: the same set in two releases is not the same.
        person_columns: What names persons, as an SQL string: another column names others.
    """
    owner = f"coalesce(md5_number_lower({secret} || {person_columns} || o.owner), 0)::UBIGINT" if owner_table else "0::UBIGINT"
    known = f"LEFT JOIN ({owner_table}) AS o ON o.key = d.key" if owner_table else ""
    keyed = ", ".join(f"md5_number_lower({secret} || {release} || d.{name}) AS {name}" for name in ("everything", "labels"))
    return f"""
        CREATE TEMP TABLE {NEW} AS
        SELECT md5_number_lower({secret} || d.key) AS key, {owner} AS owner, {keyed} FROM {digest_table} AS d {known}
    """


def all_releases_sql(*, is_published_again: bool) -> str:
    """Return SQL that makes ``known_now``: by pseudonym, digests of ``known_before``, ``published_now``.

    ``before`` and ``mine`` are the digests of the earlier releases and of this one, null where they have not the pseudonym.

    Args:
        is_published_again: Whether the earlier digests already include this release, which is published again. It is taken out first,
            as it was put in.
    """
    if is_published_again:
        return f"""
            CREATE TEMP TABLE {FOLDED} AS SELECT
                o.key, o.owner, o.everything, o.labels, CASE WHEN n.key IS NULL THEN o.everything
                ELSE nullif(xor(o.everything, n.everything), 0::UBIGINT) END AS before, n.everything AS mine
            FROM {OLD} AS o LEFT JOIN {NEW} AS n ON o.key = n.key
        """
    return f"""
        CREATE TEMP TABLE {FOLDED} AS SELECT
            coalesce(o.key, n.key) AS key, coalesce(nullif(n.owner, 0), nullif(o.owner, 0), 0)::UBIGINT AS owner,
            xor(coalesce(o.everything, 0), coalesce(n.everything, 0))::UBIGINT AS everything,
            xor(coalesce(o.labels, 0), coalesce(n.labels, 0))::UBIGINT AS labels, o.everything AS before, n.everything AS mine
        FROM {OLD} AS o FULL JOIN {NEW} AS n ON o.key = n.key
    """


def remaining_pseudonyms_sql() -> str:
    """Return SQL that yields key, owner and digests of every pseudonym in ``known_now``, by key."""
    return f"SELECT key, owner, everything, labels FROM {FOLDED} ORDER BY key"


def joined_people_sql(k: int) -> str:
    """Return SQL that counts persons in this and an earlier release, those below k, and the smallest set.

    ``people`` are in this release and in an earlier one. ``below_k`` share all that is disclosed with fewer than k, or came to do so
    because this release has them or has not. ``by_labels`` share with fewer than k what is disclosed in labels alone. ``smallest`` is how
    many share the set that fewest share.

    It is right because equal digests are equal sets, and a person's pseudonyms in several releases have the person's sets in all of them.
    Persons in a group of equal sets cannot be distinguished by them. That a person is missing from a release discloses something too.

    Args:
        k: Fewest people that are safe.
    """
    unit = "CASE WHEN owner = 0 THEN key ELSE owner END"
    sizes = {
        name: f"(SELECT {name} AS digest, count(DISTINCT {unit}) AS size FROM {FOLDED} WHERE {name} IS NOT NULL GROUP BY ALL)"
        for name in ("everything", "labels", "before", "mine")
    }
    joins = " ".join(f"LEFT JOIN {sizes[name]} AS {name}_of ON f.{name} = {name}_of.digest" for name in sizes)
    both = "before IS NOT NULL AND mine IS NOT NULL"
    return f"""
        WITH sized AS (
            SELECT {unit} AS unit, {both} AS joins, everything_of.size AS size, labels_of.size AS by_labels,
                   coalesce(before_of.size, mine_of.size) AS alone
            FROM {FOLDED} AS f {joins})
        SELECT count(DISTINCT unit) FILTER (joins), count(DISTINCT unit) FILTER (size < {k:d} AND (joins OR alone > size)),
               count(DISTINCT unit) FILTER (by_labels < {k:d} AND joins), coalesce(min(size) FILTER (joins), 0)
        FROM sized
    """


class ShownTable(NamedTuple):
    """A table of a release as an attacker joins it; all names are quoted.

    Attributes:
        name: Plain, of the table.
        relation: What its files are read as.
        labels: Published quasi-identifiers.
        others: Everything else that is published, but for key and references.
        key: Columns of its key.
        references: The tables that it refers to, the nearest last, each with the columns that refer to it.
    """

    name: str
    relation: str
    labels: tuple[str, ...]
    others: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[tuple[str, tuple[str, ...]], ...]


KINDS = ("labels", "everything")


def digest_table(table: ShownTable) -> str:
    """Return the quoted name of the temporary table with the digests of a table's rows."""
    return f'"shown {table.name}"'


def row_digests_sql(
    table: ShownTable, below: Sequence[ShownTable], salt: str, kinds: Sequence[str] = KINDS, digest: str = "md5_number_lower"
) -> str:
    """Return SQL that makes ``digest_table(table)``, rows below included; reads the tables of those below.

    Its columns are ``k0`` … and ``r0`` …, a row's key and reference, ``nearest``, ``labels`` and ``everything``. It is right because each
    row below is counted with the one row that its nearest whole reference finds.

    Args:
        below: Those that refer to it, of which the same is made already.
        salt: Text that enters every digest, as an SQL string.
        kinds: Which digests are made, of labels alone or of everything.
        digest: DuckDB's function; ``hash`` is quicker where digests are not kept.
    """
    of_kind = {"labels": table.labels, "everything": (*table.labels, *table.others)}
    joins, texts = [], {kind: text_sql(of_kind[kind]) for kind in kinds}
    for place, child in enumerate(below):
        number = [name for name, _ in child.references].index(table.name)
        columns = [f"r{part}" for part in range(len(table.key))]
        sums = ", ".join(f"sum({kind}::HUGEINT) AS {kind}" for kind in kinds)
        mine = f"SELECT {', '.join(columns)}, count(*) AS many, {sums} FROM {digest_table(child)} WHERE nearest = {number} GROUP BY ALL"
        same = " AND ".join(f"b{place}.{column} = m.{key}::VARCHAR" for column, key in zip(columns, table.key, strict=True))
        joins.append(f"LEFT JOIN ({mine}) AS b{place} ON {same}")
        for kind in kinds:
            texts[kind] += f" || '/' || coalesce(b{place}.many, 0) || ':' || coalesce(b{place}.{kind}, 0)"
    made = ", ".join(f"{digest}({salt} || {kind!r} || {text}) AS {kind}" for kind, text in texts.items())
    columns = [f"m.{column} AS k{place}" for place, column in enumerate(table.key)]
    if table.references:
        cases = [" AND ".join(f"m.{column} IS NOT NULL" for column in referring) for _, referring in table.references]
        nearest = " ".join(f"WHEN {whole} THEN {number}" for number, whole in reversed(list(enumerate(cases))))
        columns.append(f"CASE {nearest} END AS nearest")
        for part in range(max(len(referring) for _, referring in table.references)):
            # The nearer decides; a key that has fewer columns has no further part.
            parts = [f"m.{referring[part]}::VARCHAR" if part < len(referring) else "NULL" for _, referring in table.references]
            own = " ".join(f"WHEN {whole} THEN {one}" for whole, one in reversed(list(zip(cases, parts, strict=True))))
            columns.append(f"CASE {own} END AS r{part}")
    statement = f"SELECT {', '.join([*columns, made])} FROM {table.relation} AS m {' '.join(joins)}"
    return f"CREATE OR REPLACE TEMP TABLE {digest_table(table)} AS {statement}"


def disclosed_persons_sql(unit: ShownTable, link: Sequence[str]) -> str:
    """Return SQL on the unit's ``digest_table``: digests of each person's disclosed rows, by pseudonym.

    Its columns are ``key``, ``everything`` and ``labels``, as ``disclosed_sql`` has them of one table.

    Args:
        unit: The table with a row for each person, of which the digests are made.
        link: Expressions of the key, over ``k0`` ….
    """
    return f"SELECT md5_number_lower({text_sql(link)}) AS key, everything, labels FROM {digest_table(unit)}"
