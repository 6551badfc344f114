"""The recount of persons: how many different persons are in each class of the written files.

The files do not say which person a record belongs to. A private file does, by class: which persons have how many records in it, with
which sensitive values, and what the class publishes. The recount trusts it only as far as it agrees with the files. Every combination
of published values must be a class of it, with as many records, and as many of each sensitive value that a promise is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NOBODY = 0
"""The person of records that belong to nobody."""
COMBINATIONS, HELD = "combinations", "held"
"""The tables of the published combinations of labels, and of the persons in each of them with their records and sensitive values."""
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""What the largest share of a class's records that one person holds is rounded up to."""


@dataclass(frozen=True)
class PersonCount:
    """Counts of the persons in the classes of the written files.

    Attributes:
        released: Different persons.
        most_records: Records that k of them have, or more: the k-th largest number of records of a person; 0 of fewer persons.
        masked: Persons with ``*`` in every quasi-identifier.
        smallest: Persons of the smallest class; 0 if there is none.
        failing: Classes of fewer than k persons.
        exposed: Records in these.
        unexpected: Classes of the files that the private file does not know, or with other numbers of records.
        sizes: Number of classes by persons.
        largest_share: The largest share of a class's records that one person holds.
        records_of_one: Records of the person who has most; never published.
    """

    released: int
    most_records: int
    masked: int
    smallest: int
    failing: int
    exposed: int
    unexpected: int
    sizes: Mapping[int, int] = field(default_factory=dict)
    largest_share: float = 0.0
    records_of_one: int = 0


def share_at_most(share: float) -> float:
    """Round a person's share of a class's records up to one of ``SHARES``, as it may be reported.

    The steps are so coarse that no person's number of records can be worked out.
    """
    return next(most for most in SHARES if share <= most)


def combinations_sql(source: str, qids: Sequence[str]) -> str:
    """Return SQL that makes the table ``combinations`` of published labels with their record counts.

    Its columns are ``combination``, ``records``, ``masked``, ``label_0`` ….

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published quasi-identifiers.
    """
    labels = ", ".join(f"{qid}::VARCHAR AS label_{number}" for number, qid in enumerate(qids))
    starred = " AND ".join(f"{qid}::VARCHAR IS NOT DISTINCT FROM '*'" for qid in qids)
    return f"""
        CREATE OR REPLACE TEMP TABLE {COMBINATIONS} AS
        SELECT (row_number() OVER ())::UINTEGER AS combination, count(*) AS records, bool_and({starred}) AS masked, {labels}
        FROM {source} GROUP BY {", ".join(qids)}
    """


def classed_persons_sql(class_table: str, person_table: str, qid_count: int) -> str:
    """Return the FROM clause of persons ``p`` with the published combination ``n`` of their class.

    Classes with the same labels are one combination; a class whose labels are not published has a null there.

    Args:
        class_table: What is read as ``class`` and ``label_0`` …
        person_table: What is read as ``class``, ``person``, ``records`` and other columns.
    """
    same = " AND ".join(f"k.label_{number}::VARCHAR IS NOT DISTINCT FROM c.label_{number}" for number in range(qid_count))
    of_classes = f"SELECT k.class, c.combination FROM {class_table} AS k JOIN {COMBINATIONS} AS c ON {same}"
    return f"{person_table} AS p LEFT JOIN ({of_classes}) AS n ON n.class = p.class"


def holders_sql(classed_persons: str, columns: Sequence[str], table: str) -> str:
    """Return SQL that makes the table of each combination's persons, other columns and ``records``.

    Args:
        classed_persons: As ``classed_persons_sql`` returns them.
    """
    selected = ", ".join(["n.combination", "p.person", *columns, "sum(p.records)::BIGINT AS records"])
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {selected} FROM {classed_persons} GROUP BY ALL"


def people_sql(sensitive_count: int, k: int) -> str:
    """Return SQL that counts persons and classes of the published combinations: ``PersonCount``'s fields.

    It is right because a person counts once in a combination, however many classes, chunks, values and records of it are theirs.
    """
    # Without values a row is a person of a combination already.
    summed = f"SELECT combination, person, sum(records)::BIGINT AS records FROM {HELD} GROUP BY ALL"
    pairs = summed if sensitive_count else f"FROM {HELD}"
    return f"""
        WITH pairs AS ({pairs}),
        counted AS (
            SELECT combination, count(*) FILTER (person <> {NOBODY}) AS persons, sum(records)::BIGINT AS records,
                coalesce(max(records) FILTER (person <> {NOBODY}), 0) AS largest
            FROM pairs GROUP BY combination
        ),
        classes AS (
            SELECT c.records, c.masked, coalesce(d.persons, 0) AS persons, coalesce(d.largest / c.records, 0)::DOUBLE AS share,
                d.records IS DISTINCT FROM c.records OR c.combination IS NULL AS unexpected
            FROM {COMBINATIONS} AS c FULL JOIN counted AS d ON d.combination = c.combination
        ),
        everybody AS (SELECT sum(records)::BIGINT AS records FROM pairs WHERE person <> {NOBODY} GROUP BY person),
        ranked AS (SELECT records FROM everybody ORDER BY records DESC LIMIT 1 OFFSET {k - 1:d})
        SELECT (SELECT count(*) FROM everybody), (SELECT coalesce(min(records), 0)::BIGINT FROM ranked),
            coalesce(sum(persons) FILTER (masked), 0)::BIGINT, coalesce(min(persons), 0), count(*) FILTER (persons < {k:d}),
            coalesce(sum(records) FILTER (persons < {k:d}), 0)::BIGINT, count(*) FILTER (unexpected),
            coalesce(histogram(persons), MAP {{}}),
            coalesce(max(share), 0), (SELECT coalesce(max(records), 0)::BIGINT FROM everybody)
        FROM classes
    """


def unexpected_values_sql(source: str, quoted_qids: Sequence[str], quoted_column: str, held_column: str) -> str:
    """Return SQL that counts classes whose sensitive values differ from the private file's.

    Args:
        source: What is read, such as ``read_parquet([…])``.
        held_column: The column's name in ``held``.
    """
    labels = ", ".join(f"{qid}::VARCHAR AS label_{number}" for number, qid in enumerate(quoted_qids))
    same = " AND ".join(f"d.label_{number} IS NOT DISTINCT FROM c.label_{number}" for number in range(len(quoted_qids)))
    return f"""
        WITH read AS (SELECT {labels}, {quoted_column} AS value, count(*) AS records FROM {source} GROUP BY ALL),
        written AS (
            SELECT c.combination, d.value, sum(d.records) AS records FROM read AS d JOIN {COMBINATIONS} AS c ON {same} GROUP BY ALL
        ),
        kept AS (SELECT combination, {held_column} AS value, sum(records) AS records FROM {HELD} GROUP BY ALL)
        SELECT count(DISTINCT coalesce(w.combination, k.combination)) FROM written AS w
        FULL JOIN kept AS k ON k.combination = w.combination AND k.value IS NOT DISTINCT FROM w.value
        WHERE k.records IS DISTINCT FROM w.records
    """


def person_values_sql(held_column: str) -> str:
    """Return the SQL relation of each person and sensitive value of a combination, once each.

    A count of its rows counts each person once for each of their values. Records without a person are left out.
    """
    return f"(SELECT DISTINCT combination, person, {held_column} FROM {HELD} WHERE person <> {NOBODY})"


def source_pairs_sql(held_column: str) -> str:
    """Return the SQL relation of each person (``holder``) and ``value`` in all combinations, once each."""
    return f"(SELECT DISTINCT person AS holder, {held_column} AS value FROM {HELD} WHERE person <> {NOBODY})"


def one_value_sql(held_column: str) -> str:
    """Return SQL that counts classes, and their records, whose persons all share one value or have none.

    Only persons who have a value count; a class of none is counted too.

    Args:
        held_column: The sensitive column's name in ``held``.
    """
    return f"""
        WITH pairs AS (
            SELECT DISTINCT combination, person, {held_column} AS value FROM {HELD}
            WHERE person <> {NOBODY} AND {held_column} IS NOT NULL
        ),
        sizes AS (SELECT combination, count(DISTINCT person) AS persons FROM pairs GROUP BY combination),
        counted AS (SELECT combination, count(*) AS held FROM pairs GROUP BY combination, value),
        most AS (SELECT combination, max(held) AS held FROM counted GROUP BY combination)
        SELECT count(*), coalesce(sum(c.records), 0)::BIGINT
        FROM {COMBINATIONS} AS c LEFT JOIN sizes AS s ON s.combination = c.combination LEFT JOIN most AS h ON h.combination = c.combination
        WHERE s.persons IS NULL OR h.held = s.persons
    """


def person_condition_sql(persons: Mapping[str, bool]) -> str:
    """Return the SQL condition that a source record belongs to a person: its person columns are not null.

    Args:
        persons: By quoted name of a column that names a person, whether it may hold NaN, which names no person.
    """
    return " AND ".join(is_value_sql(name, floating=floating) for name, floating in persons.items())


def is_value_sql(expression: str, *, floating: bool) -> str:
    """Return the SQL condition that an expression is no null, nor NaN where it may be floating."""
    return f"{expression} IS NOT NULL{f' AND NOT isnan({expression})' if floating else ''}"


def persons_of_source_sql(source: str, persons: Mapping[str, bool], column: str) -> str:
    """Return the SQL relation of each person (``holder``) and ``value`` in the source, once each.

    Args:
        persons: As for ``person_condition_sql``.
        column: Quoted name of the sensitive column.
    """
    # A column of the source may have any name, ours included.
    holder = ", ".join(persons) if len(persons) == 1 else f"row({', '.join(persons)})"
    return f"(SELECT DISTINCT {holder} AS holder, {column} AS value FROM {source} WHERE {person_condition_sql(persons)})"


def source_counts_sql(person_table: str, source: str = "", column: str = "") -> str:
    """Return SQL that counts the persons of each sensitive value, and those of all values together.

    Its columns are ``value``, ``records`` (persons with the value) and ``persons`` (of all values together). A value that occurs only in
    records of no person has 0 persons. It keeps its position in the ordered distance, which does not depend on who has a value.

    Args:
        person_table: What is read as ``holder`` and ``value``.
        source: What is read of all records, if there are others.
        column: Quoted name of the sensitive column there.
    """
    everybody = f"SELECT count(DISTINCT holder) AS persons FROM {person_table}"
    others = f" UNION ALL SELECT DISTINCT {column}, 0 FROM {source}" if source else ""
    everything = f"SELECT value, 1 AS records FROM {person_table}{others}"
    return f"SELECT value, sum(records)::BIGINT AS records, ({everybody}) AS persons FROM ({everything}) GROUP BY value"


def persons_by_records_sql(person_table: str) -> str:
    """Return SQL that counts ``persons`` by their number of ``records`` in all classes of a table."""
    each = f"SELECT sum(records)::BIGINT AS records FROM {person_table} WHERE person <> {NOBODY} GROUP BY person"
    return f"SELECT records, count(*) AS persons FROM ({each}) GROUP BY ALL ORDER BY ALL"


def records_of_k(persons: Mapping[int, int], k: int) -> int:
    """Return the largest number of records that at least k persons reach; 0 with fewer persons."""
    found = 0
    for records in sorted(persons, reverse=True):
        found += persons[records]
        if found >= k:
            return records
    return 0


MASKED = -1
"""The class of records that publish ``*`` in every quasi-identifier because they were masked."""


def labelled_values_sql(label_of_value_table: str, value_table: str, number: int) -> str:
    """Return SQL that makes the table ``owner_<number>`` of a column's values with their label's number.

    Args:
        label_of_value_table: The table ``place``, ``number``.
        value_table: The table of the values, with their ``place``.
    """
    joined = f"{label_of_value_table} AS o JOIN {value_table} AS v USING (place)"
    return f"CREATE OR REPLACE TEMP TABLE owner_{number} AS SELECT v.value, o.number FROM {joined}"


def classes_sql(release: str, labels: Sequence[tuple[Sequence[str], str]], qids: Sequence[str], *, has_masked_records: bool) -> str:
    """Return SQL that makes the table ``classes`` of label numbers, label texts and record counts.

    Its columns are ``class``, ``number_0`` …, ``label_0`` … as text, and ``records``.

    Args:
        release: What is read, without masked records.
        labels: Of each quasi-identifier, the quoted columns that publish it, and the table of its labels.
        qids: All of these columns.
        has_masked_records: Whether there are masked records besides, which become a class without records here.
    """
    joins = " ".join(
        f"JOIN {table} AS l_{number} ON "
        + " AND ".join(f"r.{column} IS NOT DISTINCT FROM l_{number}.label_{place}" for place, column in enumerate(columns))
        for number, (columns, table) in enumerate(labels)
    )
    numbers = ", ".join(f"l_{number}.number AS number_{number}" for number in range(len(labels)))
    texts = ", ".join(f"r.{column}::VARCHAR AS label_{number}" for number, column in enumerate(qids))
    everywhere = ", ".join(["NULL"] * len(labels) + ["'*'"] * len(qids))
    stars = f"UNION ALL SELECT {MASKED}, {everywhere}, NULL" if has_masked_records else ""
    return f"""
        CREATE OR REPLACE TEMP TABLE classes AS
        SELECT row_number() OVER () - 1 AS class, * FROM (
            SELECT {numbers}, {texts}, count(*) AS records FROM {release} AS r {joins} GROUP BY ALL
        ) {stars}
    """


def persons_sql(source: str, persons: Mapping[str, bool]) -> str:
    """Return SQL that makes the table ``persons``: the name and number of each person.

    Numbers begin above ``NOBODY``.

    Args:
        persons: As for ``core.recount.people.person_condition_sql``.
    """
    names = ", ".join(f"{name} AS name_{number}" for number, name in enumerate(persons))
    each = f"SELECT DISTINCT {names} FROM {source} WHERE {person_condition_sql(persons)}"
    return f"CREATE OR REPLACE TEMP TABLE persons AS SELECT *, row_number() OVER () + {NOBODY} AS person FROM ({each})"


def source_persons_sql(source: str, qids: Sequence[str], persons: Sequence[str], values: Sequence[str], *, has_masked_records: bool) -> str:
    """Return SQL that makes table ``given``: the persons and values of source records, by class.

    Its columns are ``class``, ``person``, ``value_0`` … and ``records``.

    Args:
        qids: Quoted names of the quasi-identifiers.
        persons: Quoted names of the columns that name a person.
        values: Quoted names of the sensitive columns.
        has_masked_records: Whether records of no other class were masked; else they are left out.
    """
    owners = " ".join(
        f"LEFT JOIN owner_{number} AS o_{number} ON s.{name} IS NOT DISTINCT FROM o_{number}.value" for number, name in enumerate(qids)
    )
    alike = " AND ".join(f"o_{number}.number = c.number_{number}" for number in range(len(qids)))
    same = " AND ".join(f"s.{name} = p.name_{number}" for number, name in enumerate(persons))
    read = "".join(f", s.{name} AS value_{number}" for number, name in enumerate(values))
    kept = "" if has_masked_records else "WHERE c.class IS NOT NULL"
    return f"""
        CREATE OR REPLACE TEMP TABLE given AS
        SELECT coalesce(c.class, {MASKED}) AS class, coalesce(p.person, {NOBODY}) AS person{read}, count(*) AS records
        FROM {source} AS s {owners} LEFT JOIN classes AS c ON {alike} LEFT JOIN persons AS p ON {same} {kept} GROUP BY ALL
    """


def mismatching_classes_sql(release: str) -> str:
    """Return SQL that counts classes of another size than in the source; also whether masked ones agree.

    A second column says whether as many records were masked as the source has outside these classes.

    Args:
        release: What is read, masked records included.
    """
    masked = f"(SELECT count(*) FROM {release}) - (SELECT sum(records) FROM classes)"
    beside = f"(SELECT coalesce(sum(records), 0) FROM given WHERE class = {MASKED})"
    return f"""
        SELECT count(*), {masked} = {beside} FROM (FROM classes WHERE class <> {MASKED}) AS c
        FULL JOIN (SELECT class, sum(records)::BIGINT AS records FROM given WHERE class <> {MASKED} GROUP BY class) AS g USING (class)
        WHERE c.records IS DISTINCT FROM g.records
    """


def people_of_classes_sql(sensitive_count: int) -> str:
    """Return SQL that yields the persons and values of each class in ``given``, as a run folder has them."""
    read = "".join(f", value_{number}" for number in range(sensitive_count))
    return f"SELECT class, person{read}, records::BIGINT AS records FROM given"
