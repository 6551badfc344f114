"""Example records that a report shows, limited to values that k records share.

A report has more readers than the files. So no more is shown of a record than k records of the files share together. That is the
combination of its quasi-identifiers, which every class promises, and as many values of other columns as still leave k records. The
choice follows from the files alone, whose order discloses nothing of the source's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import duckdb
import pyarrow.parquet as pq

from schemas.release.manifest import Manifest
from schemas.release.report import Example
from tasks.release.files import file_error, layout_of, relation_of
from tasks.store.database import database, quote

File = TypeVar("File")
EXAMPLES, MOST_COLUMNS, LONGEST = 3, 30, 60
"""Records that are shown, columns beside the quasi-identifiers of which values are looked for, and letters of a value."""
LONG = 256
"""Bytes that a value of a column takes on average where none is looked for: records of 10 KB are two thousand at a time to DuckDB."""


def examples_of(release_name: str, files: Sequence[Path], manifest: Manifest) -> tuple[Example, ...]:
    """Return up to three example records, one from each third of the classes, in label order.

    Only the first, the middle and the last file are read. The records are the same whatever the order of the source.

    Args:
        release_name: How the release is called in a message.
        files: Its data files, in order.
        manifest: Gives k, its unit, the format of CSV files, and the columns under which the quasi-identifiers are published.
    """
    qids = [column for qid in manifest.asked.quasi_identifiers for column in qid.columns]
    some = example_files(files)
    with (
        TemporaryDirectory(prefix="skald-examples-") as spill,
        database(manifest.asked.memory, Path(spill), threads=1) as connection,
        file_error(release_name),
    ):
        source = relation_of(connection, some, layout_of(files, manifest.columns))
        named = [name for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        # Whose records are whose is not in the files: k records of a further value may be those of one person, whom a pseudonym names.
        several = manifest.persons or manifest.repeats or manifest.pseudonyms
        others = [] if several else [name for name in _short(connection, source, some, named) if name not in qids][:MOST_COLUMNS]
        return _examples(connection, source, qids, others, manifest)


def example_files(files: Sequence[File]) -> list[File]:
    """Return the first, middle and last of some files, each once.

    k records in them are k records of all files.
    """
    return list({place: files[place] for place in (0, len(files) // 2, len(files) - 1)}.values())


def _short(connection: duckdb.DuckDBPyConnection, source: str, files: Sequence[Path], names: Sequence[str]) -> Sequence[str]:
    """Return the columns whose values are short, by the files alone, so that rebuilt reports agree."""
    if files[0].suffix != ".parquet":
        [(records,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()
        return names if sum(path.stat().st_size for path in files) <= LONG * MOST_COLUMNS * int(records) else ()
    sizes: Counter[str] = Counter()
    records = 0
    for path in files:
        footer = pq.read_metadata(path)
        records += footer.num_rows
        for group in range(footer.num_row_groups):
            for place in range(footer.num_columns):
                column = footer.row_group(group).column(place)
                # Of a nested column each leaf is one, called by all the names on the way to it.
                for name in {column.path_in_schema, column.path_in_schema.partition(".")[0]}:
                    sizes[name] += column.total_uncompressed_size
    return [name for name in names if sizes[name] <= LONG * records]


def _examples(
    connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], others: Sequence[str], manifest: Manifest
) -> tuple[Example, ...]:
    k = manifest.privacy["k"]
    connection.execute(f"CREATE TEMP TABLE chosen AS {chosen_sql(source, qids, k, masks_suppressed=manifest.masked > 0)}")
    connection.execute(f"CREATE TEMP TABLE examples AS {members_sql(source, qids, others)}")
    shown = connection.execute(f"SELECT third, {', '.join(f'q{place}::VARCHAR' for place in range(len(qids)))} FROM chosen").fetchall()
    found = []
    for third, *labels in sorted(shown, key=lambda row: int(row[0])):
        values: dict[str, str | None] = dict(zip(qids, map(_cut, labels), strict=True))
        for place, name in enumerate(others):
            [(value, records)] = connection.execute(most_shared_sql(place), [third]).fetchall()
            if records >= k:
                connection.execute(f"DELETE FROM examples WHERE third = ? AND o{place} IS DISTINCT FROM ?", [third, value])
                values[name] = _cut(value)
        found.append(Example(values=values))
    return tuple(found)


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST else value[: LONGEST - 1] + "…"


def chosen_sql(source: str, qids: Sequence[str], k: int, *, masks_suppressed: bool) -> str:
    """Return SQL for the largest class of each third of the classes in label order: ``third``, ``q0`` ….

    It is right because GROUP BY takes nulls as equal, so that a class is exactly the records that share one combination; and because ties
    are broken by the labels, which no two classes share.

    Args:
        source: The relation of the files.
        qids: The published columns of quasi-identifiers.
        k: Least records of a class in these files.
        masks_suppressed: Whether ``*`` in all of them is the mark of suppressed records.
    """
    own = ", ".join(f"{quote(name)} AS q{place}" for place, name in enumerate(qids))
    names = ", ".join(f"q{place}" for place in range(len(qids)))
    starred = " AND ".join(f"{quote(name)}::VARCHAR IS NOT DISTINCT FROM '*'" for name in qids)
    kept = f"WHERE NOT ({starred})" if masks_suppressed else ""
    return f"""
        WITH own AS (SELECT {own} FROM {source} {kept}),
        classes AS (SELECT {names}, count(*) AS records FROM own GROUP BY {names} HAVING count(*) >= {k:d}),
        thirds AS (SELECT *, ntile({EXAMPLES}) OVER (ORDER BY {names}) AS third FROM classes)
        SELECT third, {names} FROM thirds QUALIFY row_number() OVER (PARTITION BY third ORDER BY records DESC, {names}) = 1
    """


def members_sql(source: str, qids: Sequence[str], others: Sequence[str]) -> str:
    """Return SQL that reads other columns, as text, of the records in the classes of table ``chosen``.

    Nulls count as equal.
    """
    same = " AND ".join(f"files.{quote(name)} IS NOT DISTINCT FROM chosen.q{place}" for place, name in enumerate(qids))
    own = "".join(f", files.{quote(name)}::VARCHAR AS o{place}" for place, name in enumerate(others))
    return f"SELECT chosen.third{own} FROM {source} AS files JOIN chosen ON {same}"


def most_shared_sql(place: int) -> str:
    """Return SQL for the value most shared in a given third of table ``examples``, and its count."""
    return f"SELECT o{place}, count(*) FROM examples WHERE third = ? GROUP BY ALL ORDER BY count(*) DESC, o{place} NULLS LAST LIMIT 1"
