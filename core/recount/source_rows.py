"""The source as the recount reads it: without spellings that say the same, and without records that a release withholds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from core.recount.people import somebody_sql

_BLANKS = r"[\s\x{85}\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]+"
_NOTHING = "'', 'na', 'n/a', 'n.a.', 'nan', 'null', '#n/a', '<na>', '-', '--', '.', '?'"
NUMBER = "file_row_number"
"""What DuckDB calls the number of a row in its Parquet file, from 0."""


def normalised_sql(column: str, steps: Collection[str]) -> str:
    """Return the SQL of a text column without case, blanks around it, or texts that say that nothing is known.

    Args:
        column: A quoted name.
        steps: Among ``case``, ``space`` and ``empty``.
    """
    spaced = f"trim(regexp_replace({column}, '{_BLANKS}', ' ', 'g'), ' ')"
    made = spaced if "space" in steps else column
    made = f"lower({made})" if "case" in steps else made
    return f"CASE WHEN lower({spaced}) NOT IN ({_NOTHING}) THEN {made} END" if "empty" in steps else made


def without_spellings_sql(relation: str, columns: Mapping[str, Collection[str]]) -> str:
    """Return what is read as a source whose texts are without what matters to nobody.

    Args:
        relation: What is read as the source.
        columns: By quoted name of a column of text, what it is read without; see ``normalised_sql``.
    """
    if not columns:
        return relation
    made = ", ".join(f"{normalised_sql(name, steps)} AS {name}" for name, steps in columns.items())
    return f"(SELECT * REPLACE ({made}) FROM {relation})"


def with_replaced_values_sql(source: str, columns: Sequence[str], joins: Sequence[str]) -> str:
    """Returns what is read as a source with other values in the place of its own.

    Args:
        source: What is read.
        columns: What stands for columns of its records ``s``, each with its name.
        joins: What is joined to these for it.
    """
    return f"(SELECT s.* REPLACE ({', '.join(columns)}) FROM {source} AS s {' '.join(joins)})"


def bounded_sql(files: Sequence[tuple[str, str]], persons: Mapping[str, bool], key: str, most: int) -> str:
    """Returns what is read as the source without the records that a release withholds.

    Of each person those records stay whose keyed digests are least: SHA-256 of the key, the digest of the file and the number of the row,
    with colons between. Records of nobody all stay.

    Args:
        files: What each file is read as, with its ``file_row_number``, and its digest in hex.
        persons: As for ``core.recount.people.somebody_sql``.
        key: Digest of the whole source, in hex.
        most: Records of a person at most.
    """
    numbered = " UNION ALL BY NAME ".join(f"SELECT *, '{digest}' AS skald_digest FROM {read}" for read, digest in files)
    drawn = f"sha256(concat_ws(':', '{key}', skald_digest, {NUMBER}))"
    return f"""(
        SELECT * EXCLUDE ({NUMBER}, skald_digest) FROM ({numbered})
        QUALIFY NOT ({somebody_sql(persons)}) OR row_number() OVER (PARTITION BY {", ".join(persons)} ORDER BY {drawn}) <= {most:d}
    )"""


def withheld_sql(given: str, bounded: str, persons: Sequence[str]) -> str:
    """Returns the statement that counts the records that are withheld, and the persons who lose them.

    Args:
        given: What is read as the source.
        bounded: What is read as the same without the records that are withheld.
        persons: Quoted names of what names a person.
    """
    names = ", ".join(persons)
    same = " AND ".join(f"g.{name} IS NOT DISTINCT FROM b.{name}" for name in persons)
    return f"""
        WITH g AS (SELECT {names}, count(*) AS records FROM {given} GROUP BY ALL),
        b AS (SELECT {names}, count(*) AS records FROM {bounded} GROUP BY ALL)
        SELECT coalesce(sum(g.records - b.records), 0)::BIGINT, count(*) FILTER (g.records > b.records) FROM g JOIN b ON {same}
    """
