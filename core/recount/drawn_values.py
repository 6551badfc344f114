"""The value at which a person of several records counts, for the recount.

The rule: a person's n records stand in the order of their values, with places from 0. The place of the drawn one is a number of the person,
modulo n. It is made of the columns that name the person, and of no value, so that neither order nor file nor how high the highest values
are changes it. At the least of their values nearly all persons of many records would lie in one step.

The writer of releases puts records in order. Here a person's values are counted, and the counts added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt

SEPARATOR = "chr(31)"
"""What stands between the texts of several columns."""


def drawn_number_sql(names: Sequence[str], types: Sequence[pa.DataType]) -> str:
    """Return the SQL of the number below 2^64 by which a person's record is drawn.

    It is the last eight bytes of the MD5 of what names the person, the lowest first, with byte 31 between columns. Moments are
    written as microseconds since 1970, floating-point numbers as double, and zero without a sign.

    Args:
        names: Quoted names of the columns that name a person.
        types: Types of these, whether or not encoded by a dictionary.
    """
    texts = [f"CAST({_written_sql(name, kind)} AS VARCHAR)" for name, kind in zip(names, types, strict=True)]
    return f"md5_number_lower({f' || {SEPARATOR} || '.join(texts)})"


def _written_sql(name: str, given: pa.DataType) -> str:
    kind = given.value_type if pt.is_dictionary(given) else given
    if pt.is_timestamp(kind):
        return f"epoch_us(CAST({name} AS {'TIMESTAMPTZ' if kind.tz is not None else 'TIMESTAMP'}))"
    return f"CASE WHEN {name} = 0 THEN 0 ELSE CAST({name} AS DOUBLE) END" if pt.is_floating(kind) else name


def counted_at_sql(records: str, persons: Mapping[str, pa.DataType]) -> str:
    """Return SQL that counts by ``value`` the ``people`` who have it in the one record drawn of each.

    It is right because a person's n records, ascending by value, have the places from 0 to n - 1, and those with one value have as many
    places in a row as they are: from the number of records of lesser values on. The number of the person modulo n is one of the places.

    Args:
        records: What is read as ``value``, which is not null, and the persons.
        persons: By name of a column of it that names a person, its type.
    """
    names = ", ".join(persons)
    return f"""
        WITH values_of_persons AS MATERIALIZED (SELECT {names}, value, count(*) AS records FROM {records} GROUP BY ALL),
        places AS (
            SELECT {names}, {drawn_number_sql([*persons], [*persons.values()])} % sum(records)::UBIGINT AS place
            FROM values_of_persons GROUP BY {names}
        )
        SELECT value, count(*) AS people FROM (
            SELECT value, place, records, sum(records) OVER (PARTITION BY {names} ORDER BY value)::UBIGINT AS until
            FROM values_of_persons JOIN places USING ({names})
        ) WHERE place < until AND place + records >= until GROUP BY value
    """
