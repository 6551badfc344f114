"""People of the source: their values, the labels that match them, and their records in the release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.attacks.attacked_tables import (
    ELSEWHERE,
    NO_VALUE,
    NOBODY,
    AttackedPeople,
    AttackedRelease,
    Codes,
    fitting_classes,
    joint_codes,
    label_fits,
    release_of_codes,
)
from core.recount.labels.label_readers import LabelAxis, label_axis
from core.recount.labels.label_spans import NOTHING, Spans, read_labels
from schemas.job.job import Job
from schemas.release.manifest import has_class_ranges, published_columns, published_qids
from tasks.recount.original import Original, with_source_types
from tasks.recount.published_labels import label_texts, way_of
from tasks.store.database import quote

MOST_CELLS, MOST_ROWS, LEAST_ROWS = 1_000_000, 60_000, 2_000
"""Cells and records of a release that are read, and records that are read of the widest."""
LONG = 200
"""Letters of a text that are read as they are; behind them stands a digest of all of it."""
COMPARED = ("VARCHAR", "BLOB")


@dataclass(frozen=True, eq=False)
class CodedRelease:
    """A release in codes, with the labels and values of the codes.

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
    """Read a release, or a sample of its classes if large, as codes; make the connection keep row order.

    Args:
        connection: The database; from here on it keeps the order of rows.
        relation: The relation of the files.
        job: Says which columns publish quasi-identifiers.
        seed: Draws classes.
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
    """Return the SQL select list for columns by type, long texts shortened to beginning and MD5 digest."""
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
    """Return each value's rank among the distinct values, -1 for null, and these values, ascending."""
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
    """Return the code of each record's label in one or two columns, and the labels; a null is a label."""
    if not columns:
        return np.zeros(rows, np.int64), []
    joint = joint_codes(np.stack([value_codes(column)[0] for column in columns], axis=1))
    firsts = pa.array(np.unique(joint, return_index=True)[1])
    return joint, [_plain(column).take(firsts) for column in columns]


def _plain(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return flat.dictionary_decode() if pt.is_dictionary(flat.type) else flat


_RANGE = re.compile(r"\[(.+?) - (.+)[\])]")


@dataclass(frozen=True, eq=False)
class SourceAxis:
    """A quasi-identifier's values in the source, and the values that each label covers.

    Attributes:
        positions: Shape (n,), the position of each record's value.
        values: Its distinct values, ascending, and ``order`` their positions.
        order: See ``values``.
        spans: The positions that each label covers.
        ends: The positions of the values at which ranges end; -1 for ends that no record has.
    """

    positions: Codes
    values: pa.Array
    order: Codes
    spans: Spans
    ends: Codes


@dataclass(frozen=True, eq=False)
class SourcePeople:
    """Records of the source, whole or a sample, as codes: QIDs, other columns, persons and identifiers.

    Attributes:
        axes: By quasi-identifier.
        values: By other column that both have and that is published as it is, shape (n,), the codes of the release.
        persons: Shape (n,), the person of each record, -1 for none; None where each record is a person of its own.
        identifiers: By identifying column, shape (n,), as text.
        is_complete: Whether these are all records.
    """

    axes: list[SourceAxis]
    values: dict[str, Codes]
    persons: Codes | None
    identifiers: dict[str, pa.Array]
    is_complete: bool

    def __len__(self) -> int:
        """Return the number of records that were read."""
        return len(self.axes[0].positions) if self.axes else 0


def read_source_people(
    connection: duckdb.DuckDBPyConnection, job: Job, original: Original, coded: CodedRelease, seed: int, *, with_identifiers: bool
) -> SourcePeople:
    """Read the source, or a sample, as codes in record order; the connection must keep row order.

    Args:
        job: Says which columns have which role.
        seed: Draws the sample.
        with_identifiers: Whether identifiers are read too.
    """
    types = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {original.relation}").fetchall()}
    qids = [qid.name for qid in job.columns.quasi_identifiers]
    others = {*job.columns.ways, *(one.name for one in job.columns.pseudonyms)}
    same = [name for name in coded.values if name in types and name not in others]
    naming = [entry if isinstance(entry, str) else entry.name for entry in job.columns.identifiers] if with_identifiers else []
    identifying = [name for name in naming if name in types]
    wanted = list(dict.fromkeys([*same, *identifying, *job.columns.person]))
    columns = ", ".join([*map(quote, qids), *_selected(wanted, types)])
    [(records,)] = connection.execute(f"SELECT count(*) FROM {original.relation}").fetchall()
    most = min(MOST_CELLS // max(len(qids) + len(wanted), 1), MOST_ROWS)
    # Of each record by itself: a reservoir holds records back, and costs several times as much.
    sample = f" USING SAMPLE {100 * most / records:.6f} PERCENT (bernoulli, {seed:d})" if records > most else ""
    table = connection.sql(f"SELECT {columns} FROM {original.relation}{sample}").to_arrow_table()
    axes = [_axis(job, original, place, table.column(place), coded.labels[place]) for place in range(len(qids))]
    # By place: the source may have columns of any name.
    others_read = table.select(list(range(len(qids), table.num_columns)))
    values = {}
    for name in same:
        if (codes := _codes_in(others_read[name], coded.values[name])) is not None:
            values[name] = codes
    identifiers = {name: others_read[name].combine_chunks().cast(pa.string()) for name in identifying}
    return SourcePeople(axes, values, _persons(job, others_read), identifiers, is_complete=records <= most)


def _selected(names: list[str], types: dict[str, str]) -> list[str]:
    return [compared_columns({name: types[name]}) for name in names if name in types]


def _persons(job: Job, table: pa.Table) -> Codes | None:
    """Return the person of each record; -1 where any of the columns is null."""
    if not job.columns.person:
        return None
    columns = np.stack([value_codes(table[name])[0] for name in job.columns.person], axis=1)
    return np.where((columns < 0).any(axis=1), NOBODY, joint_codes(columns))


def _axis(job: Job, original: Original, place: int, column: pa.ChunkedArray, labels: list[pa.Array]) -> SourceAxis:
    qid = job.columns.quasi_identifiers[place]
    codes, values = value_codes(column)
    held = with_source_types(values, original, qid.name)
    shown = [with_source_types(one, original, qid.name) for one in labels]
    texts = label_texts(job, qid, held.type, shown)
    axis = label_axis(qid, held, job.folder, ranges=has_class_ranges(job, qid), prefixes=way_of(job, qid) == "prefix")
    spans = read_labels(axis, texts)
    positions = np.append(axis.positions, spans.null)[codes]
    return SourceAxis(positions, held, axis.positions, spans, _ends(axis, texts))


def _ends(axis: LabelAxis, texts: Sequence[str | None]) -> Codes:
    """Return the positions of values that ranges have as ends, each once, -1 for one that no record has."""
    named = {end for text in texts if text and (found := _RANGE.fullmatch(text)) for end in found.groups()}
    spans = [axis.exact(end) or NOTHING for end in sorted(named)]
    return np.array([first if after == first + 1 else -1 for first, after in spans], np.int64)


def _codes_in(column: pa.ChunkedArray, published: pa.Array) -> Codes | None:
    """Return the release's codes for values of the source; None where types differ.

    Values that the release does not have are -2.
    """
    codes, values = value_codes(column)
    try:
        places = pc.index_in(values.cast(published.type), value_set=published)
    except pa.ArrowException:
        return None
    known = np.asarray(places.fill_null(ELSEWHERE)).astype(np.int64)
    return np.where(codes < 0, NO_VALUE, known[codes] if len(known) else NO_VALUE)


@dataclass(frozen=True, eq=False)
class MatchedPeople:
    """People of the source to attack, divided by whether the release has their record.

    Attributes:
        inside: People with a record in the release.
        outside: People who were left out of the release.
        rows: Shape (inside,), their rows in the source.
        certain: Shape (inside,), whether no other record could be theirs.
    """

    inside: AttackedPeople
    outside: AttackedPeople
    rows: Codes
    certain: NDArray[np.bool_]


def matched_people(release: AttackedRelease, source: SourcePeople, chosen: Codes) -> MatchedPeople:
    """Divide chosen source people by whether the release has a matching record; return both groups.

    Where classes were left unread, a person who fits no read class is in neither group.
    """
    fits = tuple(label_fits(axis.spans, axis.positions[chosen]) for axis in source.axes)
    values = {name: codes[chosen] for name, codes in source.values.items()}
    people = AttackedPeople(fits, np.full(len(chosen), NOBODY), values)
    who, classes = np.nonzero(fitting_classes(release, people))
    columns = [np.concatenate([release.values[name], values[name]]) for name in values]
    joint = joint_codes(np.stack(columns, axis=1)) if columns else np.zeros(release.records + len(chosen), np.int64)
    width = int(joint.max(initial=0)) + 1
    mine = release.owners * width + joint[: release.records]
    known, firsts, counts = np.unique(mine, return_index=True, return_counts=True)
    sought = classes * width + joint[release.records :][who]
    places = np.minimum(np.searchsorted(known, sought), max(len(known) - 1, 0))
    matching = known[places] == sought if len(known) else np.zeros(len(sought), np.bool_)
    records, pairs = np.full(len(chosen), NOBODY), np.bincount(who[matching], minlength=len(chosen))
    records[who[matching]] = firsts[places[matching]]
    alone = np.zeros(len(chosen), np.bool_)
    alone[who[matching]] = counts[places[matching]] == 1
    inside = np.flatnonzero(records >= 0)
    fitting = np.bincount(who, minlength=len(chosen)) > 0
    outside = np.flatnonzero((records < 0) & (fitting | release.is_complete))
    found = AttackedPeople(fits, records, values)
    return MatchedPeople(found.chosen_people(inside), found.chosen_people(outside), chosen[inside], (alone & (pairs == 1))[inside])
