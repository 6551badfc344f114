"""Data files as attacks read them: whole classes of them, coded, as many as a bounded reading holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.attacks.attacked_tables import AttackedRelease, Codes, joint_codes, release_of_codes
from schemas.job.job import Job
from schemas.release.manifest import published_columns, published_qids
from tasks.store.database import quote

MOST_CELLS, MOST_ROWS, LEAST_ROWS = 1_000_000, 60_000, 2_000
"""Cells and records of a release that are read, and records that are read of the widest."""
LONG = 200
"""Letters of a text that are read as they are; behind them stands a digest of all of it."""
COMPARED = ("VARCHAR", "BLOB")


@dataclass(frozen=True, eq=False)
class CodedRelease:
    """A release in codes, and what they stand for.

    Attributes:
        release: The codes.
        labels: By quasi-identifier, the columns that publish it: the label of each code.
        values: By other column, its values, ascending: the value of each code.
        records: Records of all files.
    """

    release: AttackedRelease
    labels: list[list[pa.Array]]
    values: dict[str, pa.Array]
    records: int


def read_release(connection: duckdb.DuckDBPyConnection, relation: str, job: Job, seed: int) -> CodedRelease:
    """Reads a release, or of a large one whole classes that a digest of their labels draws.

    Args:
        connection: The database; from here on it keeps the order of rows.
        relation: What it reads the files as.
        job: Says which columns publish quasi-identifiers.
        seed: Draws classes.

    Raises:
        duckdb.Error: the files cannot be read.
    """
    connection.execute("SET preserve_insertion_order = true")
    columns = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
    [(records,)] = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
    most = max(min(MOST_CELLS // max(len(columns), 1), MOST_ROWS), LEAST_ROWS)
    parts = -(-int(records) // most)
    qids = [name for name in published_qids(job) if name in columns]
    where = f"WHERE hash({', '.join(map(quote, qids))}) % {parts:d} = {seed % parts:d}" if parts > 1 and qids else ""
    table = connection.sql(f"SELECT {compared_columns(columns)} FROM {relation} {where}").to_arrow_table()
    labels, coded = list[list[pa.Array]](), list[Codes]()
    for qid in job.columns.quasi_identifiers:
        codes, shown = _label_codes([table[name] for name in published_columns(job, qid) if name in columns], len(table))
        coded.append(codes)
        labels.append(shown)
    values = {name: value_codes(table[name]) for name in columns if name not in qids}
    release = release_of_codes(
        np.stack(coded, axis=1) if coded else np.empty((len(table), 0), np.int64),
        {name: codes for name, (codes, _) in values.items()},
        is_whole=parts <= 1,
    )
    return CodedRelease(release, labels, {name: held for name, (_, held) in values.items()}, int(records))


def compared_columns(columns: dict[str, str]) -> str:
    """Returns what is selected of columns: a long text is its beginning with a digest, so that no value takes much."""
    return ", ".join(
        quote(name)
        if kind not in COMPARED
        else f"CASE WHEN length({_text(name, kind)}) > {LONG} THEN left({_text(name, kind)}, {LONG}) || md5({_text(name, kind)}) "
        f"ELSE {_text(name, kind)} END AS {quote(name)}"
        for name, kind in columns.items()
    )


def _text(name: str, kind: str) -> str:
    return quote(name) if kind == "VARCHAR" else f"hex({quote(name)})"


def value_codes(column: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Returns the place of each value among all different ones, -1 for a null, and these, ascending."""
    flat = column.combine_chunks()
    if pt.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    coded = pc.dictionary_encode(flat)
    values = coded.dictionary
    keys = values.cast(pa.int8()) if pt.is_boolean(values.type) else values
    order = np.asarray(pc.sort_indices(keys)).astype(np.int64)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    places = np.asarray(coded.indices.fill_null(0)).astype(np.int64)
    found = np.where(np.asarray(flat.is_null()), -1, ranks[places] if len(ranks) else -1)
    return found, values.take(pa.array(order))


def _label_codes(columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[Codes, list[pa.Array]]:
    """Returns the code of each record's label in one or two columns, and the labels; a null is a label too."""
    if not columns:
        return np.zeros(rows, np.int64), []
    joint = joint_codes(np.stack([value_codes(column)[0] for column in columns], axis=1))
    firsts = pa.array(np.unique(joint, return_index=True)[1])
    return joint, [_plain(column).take(firsts) for column in columns]


def _plain(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return flat.dictionary_decode() if pt.is_dictionary(flat.type) else flat
