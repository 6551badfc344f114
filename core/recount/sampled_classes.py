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


def sample_sql(release: str, columns: Sequence[Sequence[str]], parts: int, beside: Sequence[Part], table: str) -> str:
    """Returns the statement that makes the table of the ``MOST`` classes of least digest, apart by what is beside their labels.

    It has ``label_0_0`` … (the columns of each quasi-identifier), ``part``, ``records``, and a number of its own for each ``row``. Two
    classes of the same digest are taken both or neither, and so there may be one more.

    Args:
        release: What is read.
        columns: By quasi-identifier, the quoted names of the columns under which it is published.
        parts: How many parts there are.
        beside: What is published beside the labels.
        table: Name of the table.
    """
    names = [(f"label_{qid}_{number}", column) for qid, those in enumerate(columns) for number, column in enumerate(those)]
    taken = ", ".join(f"r.{column} AS {name}" for name, column in names)
    digest = f"hash({', '.join(f'r.{column}' for _, column in names)})"
    part = part_of([one.released for one in beside], parts)
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT *, row_number() OVER () - 1 AS row FROM (
            SELECT {taken}, {part} AS part, count(*) AS records FROM {release} AS r
            WHERE {digest} <= (SELECT max(digest) FROM (SELECT DISTINCT {digest} AS digest FROM {release} AS r ORDER BY 1 LIMIT {MOST}))
            GROUP BY ALL
        )
    """


def numbers_sql(sampled: str, qid: int, columns: int, labels: str) -> str:
    """Returns the statement that yields the ``number`` of a quasi-identifier's label in each row of a sample, in the order of the rows.

    One statement for each: a join wants memory of its own, and there may be hundreds of quasi-identifiers.

    Args:
        sampled: As ``sample_sql`` makes it.
        qid: Position of the quasi-identifier.
        columns: How many columns it is published under.
        labels: The table of its labels, as ``labels_sql`` makes it.
    """
    same = " AND ".join(f"g.label_{qid}_{number} IS NOT DISTINCT FROM l.label_{number}" for number in range(columns))
    return f"SELECT l.number FROM {sampled} AS g JOIN {labels} AS l ON {same} ORDER BY g.row"


def masks_sql(masks: str, values: str, table: str) -> str:
    """Returns the statement that makes the table of values with the mask of the classes whose label covers them, of those with any.

    Args:
        masks: The table ``place``, ``mask``.
        values: As ``values_sql`` makes it.
        table: Name of the table.
    """
    return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT v.value, m.mask FROM {masks} AS m JOIN {values} AS v USING (place)"


def masked_sql(source: str, columns: Sequence[str], masks: Sequence[str], known: Sequence[str], later: Sequence[str], table: str) -> str:
    """Returns the statement that makes the table of the records that some class may cover, as far as some quasi-identifiers tell.

    Args:
        source: What is read.
        columns: Quoted names of these quasi-identifiers.
        masks: The table of the masks of each, as ``masks_sql`` makes it.
        known: Expressions for a record's part and, if other quasi-identifiers were looked at before, for the mask that they left.
        later: Quoted names of the quasi-identifiers that are looked at after these; they become ``later_0`` ….
        table: Name of the table.
    """
    part, *before = known
    joins = " ".join(f"JOIN {one} ON s.{column} IS NOT DISTINCT FROM {one}.value" for column, one in zip(columns, masks, strict=True))
    kept = "".join(f", s.{column} AS later_{number}" for number, column in enumerate(later))
    mask = " & ".join([*before, *(f"{one}.mask" for one in masks)])
    return f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT * FROM (SELECT {mask} AS mask, {part} AS part{kept} FROM {source} AS s {joins}) WHERE mask <> 0
    """


def covered_sql(masked: str) -> str:
    """Returns the statement that counts the records of the source by the classes whose labels cover all their values, and by part.

    It is right because a record is under all labels of a class exactly if the bit of the class is set in the masks of all its values.

    Args:
        masked: As ``masked_sql`` makes it of all quasi-identifiers.
    """
    return f"SELECT mask, part, count(*) AS records FROM {masked} GROUP BY ALL"


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
