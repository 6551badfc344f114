"""The recount of column combinations: how many records or persons share each combination of values.

An attacker may know whatever a release publishes of a person. A record that is one of k by its quasi-identifiers is unique where its
other columns together are like no other's. So the combinations of these columns are counted as classes are, alone and with the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.recount.groups import Groups, RecordRelation
from core.recount.people import NOBODY
from schemas.release.figures import KINDS, Kind, Together
from schemas.release.manifest import Manifest


@dataclass(frozen=True)
class TogetherCount:
    """Counts of records or persons that are unique or rare by a combination of columns, in the unit of k.

    Attributes:
        unique: Records or persons alone with their combination.
        below_k: Records or persons who share it with fewer than k.
        with_classes: The same for the combination together with the labels of the quasi-identifiers.
        shape: A digest of the numbers of records that share each combination, with labels and without: equal for equal releases.
    """

    unique: int
    below_k: int
    with_classes: int
    shape: str

    @property
    def counts(self) -> tuple[int, int, int]:
        """The three counts ``unique``, ``below_k`` and ``with_classes``."""
        return self.unique, self.below_k, self.with_classes


def combined_groups(release: RecordRelation, columns: Sequence[str], qids: Sequence[str]) -> Groups:
    """Return the GROUP BY query that counts records by combination of columns, with and without labels.

    Its columns are ``alone``, a digest of the columns, ``labelled``, one with the labels, and ``records``. It is right because equal values
    have equal digests, nulls too, and two that differ have equal ones with a chance of 1 in 2^64. So only 16 bytes are held for a
    combination, however wide it is.

    Args:
        release: What is read.
        columns: Quoted names of the columns.
        qids: Quoted names of the published quasi-identifiers.
    """

    alone, labelled = (record_digest_sql([f"r.{name}" for name in names]) for names in (columns, [*columns, *qids]))
    keys = (alone, "alone"), (labelled, "labelled")
    return Groups(f"{release.relation} AS r", keys, ((release.count_expression, "records"),), wide=True)


def record_digest_sql(values: Sequence[str]) -> str:
    """Return the SQL expression for a digest of 64 bits of values of a row, of which there may be none."""
    return f"hash({', '.join(values) or '0'})"


def combination_counts_sql(combinations: str, k: int) -> str:
    """Return SQL that counts the records with a unique or rare combination of columns.

    It yields the fields of ``TogetherCount`` in their order.

    Args:
        combinations: The combinations, counted.
        k: What a class must reach.
    """
    return f"""
        WITH cells AS MATERIALIZED (FROM {combinations}),
        whole AS MATERIALIZED (SELECT sum(records)::BIGINT AS records FROM cells GROUP BY alone)
        SELECT (SELECT count(*) FILTER (records = 1) FROM whole),
            (SELECT coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT FROM whole),
            (SELECT coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT FROM cells),
            {_shape("whole", "cells")}
    """


def contents_sql(combinations: str, class_table: str, person_table: str, qid_count: int, kind: Kind, table: str) -> str:
    """Return SQL that makes the table of persons, their classes and their column contents.

    Its columns are ``combination``, ``person``, ``content``, ``records``.

    Args:
        combinations: The table of the published combinations of labels.
        class_table: What is read as ``class`` and ``label_0`` …
        person_table: What is read as ``class``, ``person``, ``records`` and, by kind of column, the digest of what is published there.
        qid_count: How many published quasi-identifiers there are.
        kind: Of the columns.
        table: Name of the table.
    """
    same = " AND ".join(f"k.label_{number}::VARCHAR IS NOT DISTINCT FROM c.label_{number}" for number in range(qid_count))
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT n.combination, p.person, p.{kind} AS content, sum(p.records)::BIGINT AS records FROM {person_table} AS p LEFT JOIN (
            SELECT k.class, c.combination FROM {class_table} AS k JOIN {combinations} AS c ON {same}
        ) AS n ON n.class = p.class
        GROUP BY ALL
    """


def person_combination_counts_sql(contents: str, k: int) -> str:
    """Return SQL that counts the persons with a unique or rare combination of columns.

    A person with several combinations is below k if any of them is. It is right because each person counts once for a combination,
    however many of its records are theirs, and once in each figure. A row of the table is a person of a class and a content; grouped
    without the class, it is a person of a content.

    Args:
        contents: The table that ``contents_sql`` makes.
        k: What a class must reach.
    """
    records = "sum(records)::BIGINT AS records"
    persons = f"count(*) FILTER (person <> {NOBODY}) AS persons, {records}"

    def who(shared: str, keys: str) -> str:
        return f"(SELECT count(DISTINCT person) FROM {contents} SEMI JOIN (FROM {shared}) USING ({keys}) WHERE person <> {NOBODY})"

    return f"""
        WITH cells AS MATERIALIZED (SELECT combination, content, {persons} FROM {contents} GROUP BY combination, content),
        people AS (SELECT content, person, {records} FROM {contents} GROUP BY content, person),
        whole AS MATERIALIZED (SELECT content, {persons} FROM people GROUP BY content)
        SELECT {who("whole WHERE persons = 1", "content")}, {who(f"whole WHERE persons < {k:d}", "content")},
            {who(f"cells WHERE persons < {k:d}", "combination, content")}, {_shape("whole", "cells")}
    """


def _shape(*tables: str) -> str:
    sums = (f"(SELECT coalesce(sum(hash(records)::HUGEINT), 0)::VARCHAR FROM {table})" for table in tables)
    return f"concat_ws(' ', {', '.join(sums)})"


def combination_claims(manifest: Manifest, counts: Mapping[Kind, TogetherCount], unit: str, unit_count: int) -> list[str]:
    """Return messages on a manifest's counts of column combinations that differ from the recount.

    Manifests of older versions have no such counts.

    Args:
        manifest: The manifest.
        counts: The counts, by kind of column.
        unit: The unit of the counts.
        unit_count: How many units the files have.
    """
    faults = []
    for kind, words in KINDS.items():
        said, found = manifest.together(kind), counts.get(kind)
        # Persons that are not at hand cannot be counted, and neither records nor what the source tells of classes say it.
        if said is None or said.unit != unit or (found is None and unit == "person"):
            continue
        if found is None or said != Together.from_counts(found.counts, manifest.privacy["k"], said.unit, unit_count):
            faults.append(f"the manifest does not say truly how many stand out by the {words} together")
    return faults
