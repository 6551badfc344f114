"""SQL statements that count the persons who share each choice of at most m rows per table.

They read the written files as a reader would join them. A choice is written as the sorted numbers of its rows' texts. A text that occurs
several times is chosen from its first time on, so that a multiset is written in one way. Nothing here is used by the writer of a release.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.recount.relational.history_counts import ReadTable, below_view, owner_view, row_text


def items_sql(unit: ReadTable, children: Sequence[ReadTable]) -> str:
    """Return SQL that makes the table ``items`` of the rows directly below persons.

    Its columns are ``person``, ``place`` of the table, ``item``, ``time``, ``rank``.

    Args:
        unit: With the persons numbered already.
        children: Tables of which rows may hang from the unit's, with their texts.
    """
    parts = []
    for place, child in enumerate(children):
        number = list(child.references).index(unit.name)
        columns = child.references[unit.name]
        same = " AND ".join(f"o.{unit.at(key)} = c.{child.at(column)}" for key, column in zip(unit.key, columns, strict=True))
        parts.append(
            f"SELECT o.person, {place} AS place, c.text FROM {below_view(child)} AS c JOIN {owner_view(unit)} AS o ON {same} "
            f"WHERE c.nearest = {number}"
        )
    texts = " UNION ALL ".join(parts)
    return f"""
        CREATE TEMP TABLE items AS
        SELECT *, row_number() OVER (PARTITION BY person, place ORDER BY item, time) AS rank
        FROM (
            SELECT *, row_number() OVER (PARTITION BY person, place, item) AS time
            FROM (SELECT person, place, dense_rank() OVER (ORDER BY text) AS item FROM ({texts}))
        )
    """


def choices_sql(unit: ReadTable, table_count: int, most: int) -> str:
    """Return SQL that counts the choices of rows shared by fewer than ``k`` persons.

    It needs ``items``. Its columns are these choices, all choices, and the least number of persons who share one.

    It is right because every multiset of at most ``most`` rows of a table is written once for each person who has it, and GROUP BY counts
    these persons.

    Args:
        unit: The unit's table, with the persons numbered already and the text of each.
        table_count: How many tables have rows right below persons.
        most: Rows of a choice of each table.
    """
    same = " AND ".join(f"o.{unit.at(key)} = h.{key}" for key in unit.key)
    steps = [f"units AS (SELECT o.person, {row_text(unit, 'h')} AS unit FROM {owner_view(unit)} AS o JOIN {unit.relation} AS h ON {same})"]
    for place in range(table_count):
        steps.append(f"c{place}_0 AS (SELECT person, 0::BIGINT AS last, '' AS chosen FROM units)")
        for chosen in range(1, most + 1):
            steps.append(
                f"c{place}_{chosen} AS (SELECT c.person, i.rank AS last, c.chosen || ',' || i.item AS chosen "
                f"FROM c{place}_{chosen - 1} AS c JOIN (FROM items WHERE place = {place}) AS i "
                "ON i.person = c.person AND i.rank > c.last AND (i.time = 1 OR i.rank = c.last + 1))"
            )
        every = " UNION ALL ".join(f"SELECT person, chosen FROM c{place}_{chosen}" for chosen in range(most + 1))
        steps.append(f"t{place} AS ({every})")
    joins = "".join(f" JOIN t{place} ON t{place}.person = u.person" for place in range(table_count))
    names = "".join(f", t{place}.chosen AS t{place}" for place in range(table_count))
    group = "".join(f", t{place}" for place in range(table_count))
    return f"""
        WITH {", ".join(steps)}, everything AS (SELECT u.unit{names} FROM units AS u{joins}),
        shared AS (SELECT count(*) AS persons FROM everything GROUP BY unit{group})
        SELECT count(*) FILTER (persons < $k), count(*), coalesce(min(persons), 0) FROM shared
    """
