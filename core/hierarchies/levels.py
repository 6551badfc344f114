"""Levels of hierarchies: listed in CSV files and trees; the text of values and labels.

The CSV format is that of ARX: no header, the value in column 0, then ever coarser labels.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from schemas.errors.hierarchies import HierarchyError
from schemas.reading.regular_files import MOST_BYTES
from schemas.registry.hierarchies import CsvHierarchy, HierarchySpec
from schemas.registry.hierarchy_kinds import TreeHierarchy, hierarchy_kind

Bounds = tuple[pa.Array, pa.Array]


Extent: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Level:
    """One level of a hierarchy over the non-null values of a domain.

    Attributes:
        groups: Shape ``(m,)``, uint32: the group of each value, dense, numbered by first appearance in the domain.
        labels: Length ``g``: what is published for each group.
        axis: Bins of the level in the paper's eq. 1; at least ``g``.
        bounds: Low and high of each group, each of length ``g``, where the level has numeric bounds.
        extent: From where to where what is published reaches, each of shape ``(g,)``, float64 in the unit of
            ``core.columns.numbers.as_numbers``, infinite at an open end; where that is not what ``bounds`` say.
    """

    groups: NDArray[np.uint32]
    labels: pa.Array
    axis: int
    bounds: Bounds | None = None
    extent: Extent | None = None


@dataclass(frozen=True, eq=False)
class DraftLevels:
    """Levels of a hierarchy between the values themselves and ``*``.

    Attributes:
        levels: From fine to coarse, neither the values themselves nor ``*``.
        axis: Bins of level 0 in the paper's eq. 1.
        numeric: Whether the levels have numeric bounds.
    """

    levels: tuple[Level, ...]
    axis: int
    numeric: bool = False


def group_numbers(keys: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the group number of each key, by first appearance, and where each group first appears.

    Args:
        keys: Shape ``(m,)``, int64 or Python integers: equal where two values share a group.

    Returns:
        The group of each value, shape ``(m,)``, and the position at which each group first appears, shape ``(g,)``.
    """
    if not len(keys):
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    # Bins and dates ascend with their domain, which saves the sort.
    if np.all(keys[1:] >= keys[:-1]):
        starts = np.concatenate([[True], keys[1:] != keys[:-1]])
        return (np.cumsum(starts) - 1).astype(np.uint32), np.flatnonzero(starts)
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    number = np.empty(len(order), np.uint32)
    number[order] = np.arange(len(order), dtype=np.uint32)
    return number[inverse], firsts[order]


def level_of_labels(published: pa.Array) -> Level:
    """Build a level in which values with equal labels share a group.

    Args:
        published: Shape ``(m,)``, strings without null: the label of each value.
    """
    encoded = published.dictionary_encode()
    groups = np.asarray(encoded.indices).astype(np.uint32)
    return Level(groups, encoded.dictionary.cast(pa.string()), len(encoded.dictionary))


_ISO = {"s": r"", "ms": r"\.000", "us": r"\.000000", "ns": r"\.000000000"}


def spellings(values: pa.Array) -> list[pa.Array]:
    """Return the values of a domain as text, in each spelling that files may use, preferred first.

    Integers are decimal text, booleans ``true`` and ``false``. Dates and timestamps are ISO, with ``T`` or a space; the
    fraction of a second only where it is not zero. Floats and decimals are the shortest exact text, with or without ``.0``.

    Args:
        values: Shape ``(m,)``, without null.

    Returns:
        One or two string arrays of shape ``(m,)``, or none where the type cannot be written as text.
    """
    kind = values.type
    if is_text(kind):
        return [values]
    if pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind):
        return [(values.cast(pa.date32()) if pt.is_date(kind) else values).cast(pa.string())]
    if pt.is_floating(kind):
        return [_numpy_text(values), _trimmed(plain_decimals(values))]
    if pt.is_decimal(kind):
        written = plain_decimals(values)
        return [written, _trimmed(written)]
    if pt.is_timestamp(kind):
        spaced = _stamped(values)
        return [pc.replace_substring(spaced, " ", "T"), spaced]
    return []


def as_text(values: pa.Array) -> pa.Array:
    """Convert values to the text that releases publish in text columns, shape (m,); nulls stay null.

    Whatever the method, one value has one text. It is the preferred spelling, but a timestamp has a space between date and time, as in CSV
    files. Nulls stay null.
    """
    known = spellings(values.drop_null())[-1 if pt.is_timestamp(values.type) else 0].cast(pa.string())
    if not values.null_count:
        return known
    valid = np.asarray(values.is_valid())
    return known.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def plain_decimals(values: pa.Array) -> pa.Array:
    """Convert floats and decimals to text without exponent; a float to its shortest exact text.

    Args:
        values: Shape ``(m,)``, floating or decimal, without null.

    Returns:
        Shape ``(m,)``, strings such as ``23``, ``23.8`` and ``-0.05``.
    """
    half = pt.is_float16(values.type)
    written = _numpy_text(values) if half else values.cast(pa.string())
    scientific = np.asarray(pc.match_substring_regex(written, r"[0-9][eE]"))
    if not scientific.any():
        return written
    expanded = [format(Decimal(text), "f") for text in written.filter(pa.array(scientific)).to_pylist()]
    return pc.replace_with_mask(written, pa.array(scientific), pa.array(expanded, pa.string()))


def _numpy_text(floats: pa.Array) -> pa.Array:
    """Write floats as NumPy does: the shortest text that gives the same float."""
    return pa.array(floats.to_numpy(zero_copy_only=False).astype(str), pa.string())


def _trimmed(decimals: pa.Array) -> pa.Array:
    """Remove trailing zeros of decimals, and a point without digits after it."""
    whole = pc.replace_substring_regex(decimals, r"\.0+$", "")
    return pc.replace_substring_regex(whole, r"(\.[0-9]*[1-9])0+$", r"\1")


def _stamped(values: pa.Array) -> pa.Array:
    """Write timestamps in ISO format with a space; the fraction of a second only where not zero."""
    written = pc.strftime(values, "%Y-%m-%d %H:%M:%S%z" if values.type.tz else "%Y-%m-%d %H:%M:%S")
    zone = r"([+-]\d\d)(\d\d)$"
    written = pc.replace_substring_regex(written, zone, r"\1:\2") if values.type.tz else written
    whole = _ISO[values.type.unit]
    return pc.replace_substring_regex(written, rf"{whole}([+-]\d\d:\d\d)?$", r"\1") if whole else written


# int64, or Python integers where a number needs more bits.
ScaledIntegers = NDArray[np.int64]

_ROOM = 2**62
# Any number of 18 characters fits int64; of 19 some do not.
_DIGITS = 18


def scaled_integers(values: pa.Array) -> tuple[ScaledIntegers, int]:
    """Return numbers as exact integers and their common decimal places: ``value = integer / 10**places``.

    A float stands for its shortest decimal text.

    Args:
        values: Shape ``(m,)``, integer, finite float or decimal, without null.

    Returns:
        The integers, shape ``(m,)``, and the number of decimal places that the values use (0 for integers).
    """
    if pt.is_integer(values.type):
        fits = not pt.is_uint64(values.type) or (pc.max(values).as_py() or 0) < _ROOM
        return np.asarray(values).astype(np.int64 if fits else object), 0
    text = plain_decimals(values)
    head = pc.replace_substring_regex(text, r"\..*$", "")
    tail = pc.utf8_rtrim(pc.replace_substring_regex(text, r"^[^.]*\.?", ""), "0")
    places = pc.max(pc.binary_length(tail)).as_py() or 0
    digits = pc.binary_join_element_wise(head, pc.utf8_rpad(tail, places, "0"), "")
    if (pc.max(pc.binary_length(digits)).as_py() or 0) <= _DIGITS:
        return np.asarray(digits.cast(pa.int64())).astype(np.int64), places
    return _objects(int(text) for text in digits.to_pylist()), places


def scaled_integer(number: Decimal, decimals: int) -> int:
    """Return ``number * 10**decimals`` as an integer; raise ValueError if it has more decimal places."""
    whole = Fraction(number) * 10**decimals
    if whole.denominator != 1:
        msg = f"a number with more than {decimals} decimal places"
        raise ValueError(msg)
    return int(whole)


def multiplied_without_overflow(integers: ScaledIntegers, factor: int, shift: int) -> ScaledIntegers:
    """Multiply ascending integers, as Python integers if results plus ``shift`` could overflow 64 bits."""
    ends = [abs(int(end)) for end in (integers[:1].tolist() + integers[-1:].tolist())]
    if integers.dtype != object and factor < _ROOM and max(ends, default=0) * factor + shift < _ROOM:
        return integers * factor
    return integers.astype(object) * factor


def decimal_text(scaled: ScaledIntegers, decimals: int) -> pa.Array:
    """Return ``scaled / 10**decimals`` as text with exactly ``decimals`` decimal places.

    Args:
        scaled: Shape ``(g,)``.
        decimals: Digits after the point; no point for 0.

    Returns:
        Shape ``(g,)``, strings such as ``23``, ``22.5`` and ``-0.5``.
    """
    if not decimals:
        return _digits(scaled)
    unit = 10**decimals
    size = abs(scaled)
    sign = pc.if_else(pa.array((scaled < 0).astype(bool)), "-", "")
    tail = pc.utf8_lpad(_digits(size % unit), decimals, "0")
    return pc.binary_join_element_wise(sign, _digits(size // unit), pa.scalar("."), tail, "")


def _digits(whole: ScaledIntegers) -> pa.Array:
    """Write integers as decimal text."""
    if whole.dtype == object:
        return pa.array([str(number) for number in whole], pa.string())
    return pa.array(whole).cast(pa.string())


def _objects(numbers: Iterable[int]) -> ScaledIntegers:
    """Return Python integers as an array of objects."""
    listed = list(numbers)
    # NumPy left to choose makes floats of integers of which one needs 64 unsigned bits and another is negative.
    whole = np.empty(len(listed), object)
    whole[:] = listed
    return whole


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Rows of a listed hierarchy: one column per level, values first.

    Attributes:
        where: What an error calls it, such as ``'sex.csv'`` or ``its tree``.
        columns: One string array per level, each of one entry per row, values first; never empty.
    """

    where: str
    columns: tuple[pa.Array, ...]


def read_table(qid: str, spec: CsvHierarchy, folder: Path) -> LabelTable:
    """Read a CSV hierarchy, its path relative to ``folder``; raise HierarchyError if it is faulty."""
    path = str(spec.csv)
    try:
        with spec.text(folder) as file:
            rows = [row for row in csv.reader(file, delimiter=spec.delimiter, strict=True) if row]
    except UnicodeDecodeError:
        # From None, here and below: the errors of codecs and csv quote what they stumbled over.
        raise HierarchyError.unreadable(qid, path, "is not UTF-8 text; save it in that encoding") from None
    except (csv.Error, ValueError):
        raise HierarchyError.unreadable(qid, path, "is not CSV; check its quotes and the delimiter that the job gives") from None
    except FileNotFoundError:
        raise HierarchyError.unreadable(qid, path, "does not exist; its path is taken relative to the job file") from None
    except OSError:
        reason = f"cannot be opened; check that it is a regular file of at most {MOST_BYTES // 1_000_000:,} MB that may be read"
        raise HierarchyError.unreadable(qid, path, reason) from None
    if not rows:
        raise HierarchyError.unreadable(qid, path, "is empty; write a line for each value, from the value to its coarsest label")
    return checked_table(qid, f"the file '{path}'", rows)


def checked_table(qid: str, where: str, rows: Sequence[Sequence[str]]) -> LabelTable:
    """Return rows of labels as a label table; raise HierarchyError if ragged or not nested.

    Each row goes from the value to its coarsest label.
    """
    depth = len(rows[0])
    ragged = sum(len(row) != depth for row in rows)
    if ragged:
        raise HierarchyError.ragged(qid, where, ragged, len(rows), depth)
    columns = tuple(pa.array(column, pa.large_string()) for column in zip(*rows, strict=True))
    encoded = [column.dictionary_encode() for column in columns]
    for level, (fine, coarse) in enumerate(pairwise(encoded)):
        pairs = np.asarray(fine.indices).astype(np.int64) * len(coarse.dictionary) + np.asarray(coarse.indices)
        parents = np.bincount(np.unique(pairs) // len(coarse.dictionary))
        astray = int(np.count_nonzero(parents > 1))
        if astray:
            raise HierarchyError.not_nested(qid, level, astray) if level else HierarchyError.ambiguous(qid, where, astray)
    return LabelTable(where, columns)


def csv_levels(qid: str, domain: Domain, spec: CsvHierarchy, folder: Path) -> DraftLevels:
    """Build the levels of a domain from a CSV hierarchy file; raise HierarchyError if faulty."""
    return table_levels(qid, domain, read_table(qid, spec, folder))


def table_levels(qid: str, domain: Domain, table: LabelTable) -> DraftLevels:
    """Build the levels of a domain from a label table; raise HierarchyError for unlisted values.

    A last column with a single label is the ``*`` of the hierarchy.
    """
    rows = listed_rows(qid, domain.values, table)
    inner = table.columns[1:]
    if inner and len(inner[-1].unique()) == 1:
        # Else the last but one level would be one group as well, and a search would count a whole face of the lattice twice.
        inner = inner[:-1]
    return DraftLevels(tuple(level_of_labels(column.take(rows)) for column in inner), len(domain.values))


def null_route(qid: str, spec: HierarchySpec, folder: Path) -> tuple[str, ...]:
    """Return the labels of a null's groups, finest first, or none; raise HierarchyError if unlisted."""
    leaf, read = getattr(spec, "nulls", None), hierarchy_kind(spec).table
    if leaf is None or read is None:
        return ()
    table: LabelTable = read(qid, spec, folder)
    row = pc.index(table.columns[0], pa.scalar(leaf, table.columns[0].type)).as_py()
    if row < 0:
        raise HierarchyError.no_null_leaf(qid, table.where)
    return tuple(column[row].as_py() for column in table.columns[1:])


def listed_rows(qid: str, values: pa.Array, table: LabelTable) -> pa.Array:
    """Return the number of the table row for each value; raise HierarchyError for unlisted values."""
    try:
        texts = spellings(values)
    except pa.ArrowInvalid:
        # The one thing that writing can stumble over; integers, floats and dates always have a text.
        raise HierarchyError.unknown_zone(qid, getattr(values.type, "tz", None) or "") from None
    if not texts:
        remedy = "convert it to text in the source, or leave it out of the quasi-identifiers"
        raise HierarchyError.wrong_type(qid, "listed values", "text, numbers, booleans or dates", str(values.type), remedy)
    rows = pc.coalesce(*(pc.index_in(text.cast(pa.large_string()), value_set=table.columns[0]) for text in texts))
    if rows.null_count:
        raise HierarchyError.not_covered(qid, table.where, rows.null_count, len(values))
    return rows


def tree_table(qid: str, spec: TreeHierarchy, _folder: Path | None = None) -> LabelTable:
    """Return a tree's label table, a row per leaf; raise HierarchyError for a name with two parents.

    A group is its complete path. Two groups of one name would be published alike, so a name under two parents is refused.
    """
    return checked_table(qid, "its tree", spec.routes)


def tree_levels(qid: str, domain: Domain, spec: TreeHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Build the levels of a domain from a tree hierarchy; raise HierarchyError for unlisted values."""
    return table_levels(qid, domain, tree_table(qid, spec))
