"""Whether the labels of a class stand together as the values of the source do, looked at in some classes where labels overlap.

Each quasi-identifier by itself says nothing of a label that stands beside those of other records. Whole records decide that where labels
are disjoint; where they overlap, a value may have any of several, and the records of the source that are under all labels of a class are
counted for a few classes instead, each a bit of a mask that every value has. Which ones is decided by a digest of their labels, so that
neither the order of the records nor whoever wrote them has a say in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.recount.truth import Part, part_of
from schemas.errors.base import counted

MOST = 64
"""Classes that are looked at: the bits of a mask."""


def sample_sql(release: str, columns: Sequence[Sequence[str]], labels: Sequence[str], parts: int, beside: Sequence[Part]) -> str:
    """Returns the statement that counts the records of the ``MOST`` classes of least digest, apart by what is beside their labels.

    It yields ``number_0`` … (the label of each quasi-identifier), ``part`` and ``records``. Two classes of the same digest are taken both
    or neither, and so there may be one more.

    Args:
        release: What is read.
        columns: By quasi-identifier, the quoted names of the columns under which it is published.
        labels: The table of its labels, as ``labels_sql`` makes it.
        parts: How many parts there are.
        beside: What is published beside the labels.
    """
    names = [[f"label_{qid}_{number}" for number in range(len(those))] for qid, those in enumerate(columns)]
    taken = ", ".join(f"r.{column} AS {name}" for pair in zip(columns, names, strict=True) for column, name in zip(*pair, strict=True))
    digest = f"hash({', '.join(f'r.{column}' for those in columns for column in those)})"
    joins = [
        f"JOIN {table} AS l_{qid} ON "
        + " AND ".join(f"g.{name} IS NOT DISTINCT FROM l_{qid}.label_{number}" for number, name in enumerate(names[qid]))
        for qid, table in enumerate(labels)
    ]
    part = part_of([one.released for one in beside], parts)
    return f"""
        SELECT {", ".join(f"l_{qid}.number AS number_{qid}" for qid in range(len(labels)))}, g.part, g.records
        FROM (
            SELECT {taken}, {part} AS part, count(*) AS records FROM {release} AS r
            WHERE {digest} <= (SELECT max(digest) FROM (SELECT DISTINCT {digest} AS digest FROM {release} AS r ORDER BY 1 LIMIT {MOST}))
            GROUP BY ALL
        ) AS g {" ".join(joins)}
    """


def masks_sql(masks: str, values: str, table: str) -> str:
    """Returns the statement that makes the table of values with the mask of the classes whose label covers them, of those with any.

    Args:
        masks: The table ``place``, ``mask``.
        values: As ``values_sql`` makes it.
        table: Name of the table.
    """
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT v.value, m.mask FROM {masks} AS m JOIN {values} AS v USING (place)"


def covered_sql(source: str, columns: Sequence[str], masks: Sequence[str], parts: int, beside: Sequence[Part]) -> str:
    """Returns the statement that counts the records of the source by the classes whose labels cover all their values, and by part.

    It is right because a record is under all labels of a class exactly if the bit of the class is set in the masks of all its values.

    Args:
        source: What is read.
        columns: Quoted names of the quasi-identifiers.
        masks: The table of the masks of each, as ``masks_sql`` makes it.
        parts: How many parts there are.
        beside: What is published beside the labels.
    """
    joins = " ".join(f"JOIN {table} ON s.{column} IS NOT DISTINCT FROM {table}.value" for column, table in zip(columns, masks, strict=True))
    part = part_of([one.source for one in beside], parts)
    return f"""
        SELECT mask, part, count(*) AS records
        FROM (SELECT {" & ".join(f"{table}.mask" for table in masks)} AS mask, {part} AS part FROM {source} AS s {joins})
        WHERE mask <> 0 GROUP BY ALL
    """


def sample_faults(records: int, wrong: int, classes: int) -> list[str]:
    """Returns what is wrong with the sampled classes.

    Args:
        records: Records without one of the source, at least.
        wrong: Classes that hold them.
        classes: Classes that were looked at.
    """
    if not records:
        return []
    where = f"in {wrong:,} of the {classes:,} classes that were looked at"
    return [f"at least {counted(records, 'record')} {where} with labels that together cover too few records of the source"]
