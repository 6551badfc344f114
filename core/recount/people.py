"""The recount of people: how many different ones are in each class of the written files.

The files do not say whose a record is. A private file beside them does, by class: which persons have how many records in it, and what the
class publishes. It is believed only as far as it agrees with the files: every combination of published values must be a class of it, with
as many records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NOBODY = 0
"""The person of records that belong to nobody."""


@dataclass(frozen=True)
class PersonCount:
    """The persons of the written files.

    Attributes:
        released: Different persons.
        most_records: Records of the one who has most.
        masked: Persons with ``*`` in every quasi-identifier.
        smallest: Persons of the smallest class; 0 if there is none.
        failing: Classes of fewer than k persons.
        exposed: Records in these.
        strange: Classes of the files that the private file does not know, or with other numbers of records.
        sizes: Number of classes by persons.
    """

    released: int
    most_records: int
    masked: int
    smallest: int
    failing: int
    exposed: int
    strange: int
    sizes: Mapping[int, int] = field(default_factory=dict)


def combinations_sql(source: str, qids: Sequence[str], table: str) -> str:
    """Returns the statement that makes the table of the published combinations: ``combination``, ``records``, ``masked``, ``label_0`` ….

    Args:
        source: What is read, such as ``read_parquet([…])``.
        qids: Quoted names of the published quasi-identifiers.
        table: Name of the table.
    """
    labels = ", ".join(f"{qid}::VARCHAR AS label_{number}" for number, qid in enumerate(qids))
    starred = " AND ".join(f"{qid}::VARCHAR IS NOT DISTINCT FROM '*'" for qid in qids)
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT row_number() OVER () AS combination, count(*) AS records, bool_and({starred}) AS masked, {labels}
        FROM {source} GROUP BY {", ".join(qids)}
    """


def people_sql(combinations: str, classes: str, people: str, labels: int, k: int) -> str:
    """Returns the statement that counts the persons of the combinations, in the order of the fields of ``PersonCount``.

    It is right because classes that publish the same are one combination, in which a person counts once however many classes, chunks and
    records of it are theirs.

    Args:
        combinations: The table of the published combinations.
        classes: What is read as ``class`` and ``label_0`` …
        people: What is read as ``class``, ``person`` and ``records``.
        labels: How many published quasi-identifiers there are.
        k: What a class must reach.
    """
    same = " AND ".join(f"k.label_{number}::VARCHAR IS NOT DISTINCT FROM c.label_{number}" for number in range(labels))
    return f"""
        WITH pairs AS (
            SELECT n.combination, p.person, sum(p.records) AS records
            FROM {people} AS p LEFT JOIN (
                SELECT k.class, c.combination FROM {classes} AS k JOIN {combinations} AS c ON {same}
            ) AS n ON n.class = p.class
            GROUP BY ALL
        ),
        counted AS (
            SELECT combination, count(*) FILTER (person <> {NOBODY}) AS persons, sum(records) AS records FROM pairs GROUP BY ALL
        ),
        held AS (
            SELECT c.records, c.masked, coalesce(d.persons, 0) AS persons,
                d.records IS DISTINCT FROM c.records OR c.combination IS NULL AS strange
            FROM {combinations} AS c FULL JOIN counted AS d ON d.combination = c.combination
        ),
        everybody AS (SELECT sum(records) AS records FROM pairs WHERE person <> {NOBODY} GROUP BY person)
        SELECT (SELECT count(*) FROM everybody), (SELECT coalesce(max(records), 0)::BIGINT FROM everybody),
            coalesce(sum(persons) FILTER (masked), 0)::BIGINT, coalesce(min(persons), 0), count(*) FILTER (persons < {k:d}),
            coalesce(sum(records) FILTER (persons < {k:d}), 0)::BIGINT, count(*) FILTER (strange), coalesce(histogram(persons), MAP {{}})
        FROM held
    """
