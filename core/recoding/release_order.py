"""The order of a release's records, and of coded records before an algorithm runs.

It makes the written files a function of the set of released records alone. Chunks, files, threads and the order of the source leave
no trace in them, neither as a join key nor as a difference of bytes.

A release is ordered by class, then by all other columns, never by source position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import Packing
from core.columns.column_types import in_utc
from core.columns.numbers import dictionary_positions
from core.columns.sorting import order_of, sort_numbers, tied_positions

_BITS = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def record_hashes(columns: Sequence[pa.Array], row_count: int) -> NDArray[np.uint64]:
    """Return a hash of each record's published values other than QIDs, shape (rows,).

    Equal records have equal hashes. The hash orders records of equal QIDs that come into different classes, without a trace of their
    position in the source. Different records share one by chance in about one pair of 2^64; nothing but the order of their payloads
    depends on it.

    Args:
        columns: Arrays of shape (rows,), possibly none.
    """
    if not columns:
        return np.zeros(row_count, np.uint64)
    import polars as pl  # noqa: PLC0415 - a tenth of a second, which a release without payload does without

    frame = pl.DataFrame({str(number): pl.Series(_comparable(column)) for number, column in enumerate(columns)})
    return frame.hash_rows(seed=0).to_numpy()


def _comparable(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    column = column.cast(in_utc(column.type))
    # By their bits, as the release orders them: -0.0 is not 0.0.
    return column.view(_BITS[column.type.bit_width]) if pa.types.is_floating(column.type) else column


def number_combinations(codes: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the number, from 0, of each sorted record's QID combination, shape (n,); n is at least 1.

    Args:
        codes: Shape (n, QIDs), n ≥ 1, equal rows beside one another, as ``canonical_record_order`` puts them.
    """
    new = (codes[1:] != codes[:-1]).any(axis=1)
    return np.concatenate([[0], np.cumsum(new)]).astype(np.int32)


def canonical_record_order(
    codes: Sequence[NDArray[np.integer]], sizes: Sequence[int], value_hashes: NDArray[np.uint64], digests: NDArray[np.uint64] | None = None
) -> NDArray[np.intp]:
    """Return the permutation that sorts records by QIDs in job order, then hash, then person.

    Args:
        codes: One array of shape (n,) per QID.
        sizes: Number of codes per QID.
        value_hashes: Shape (n,), from ``record_hashes``.
        digests: Shape (n,), the digest of each record's person; None where the job has no person column.

    Returns:
        Shape (n,).
    """
    packing = Packing(tuple(sizes))
    words = packing.pack(codes)
    # lexsort sorts by its last key first.
    keys = (*([] if digests is None else [digests]), value_hashes, *reversed(words))
    if len(words) > 1:
        return np.lexsort(keys)
    order = order_of(words[0], packing.product)
    same = words[0][order[1:]] == words[0][order[:-1]]
    # All that equal QIDs leave open is decided by the rest.
    places = tied_positions(same) if len(order) else order
    alike = order[places]
    order[places] = alike[np.lexsort(tuple(key[alike] for key in keys))]
    return order


FEW = 1024
"""Texts that are sorted as they are."""
WORD = 8


def text_order(texts: pa.StringArray) -> tuple[NDArray[np.intp], bool]:
    """Return the permutation that sorts texts by their bytes, and whether all texts are distinct.

    The permutation has shape (n,). No text is null; equal texts come in any order.
    """
    if len(texts) < FEW:
        order = _arrow_order([texts])
        return order, _distinct(texts.take(pa.array(order)))
    words = _words(texts, _shared_bytes(texts))
    first = words.min()
    order = order_of(words - first, int(words.max() - first))
    words = words[order]
    same = words[1:] == words[:-1]
    alike = tied_positions(same)
    if not len(alike):
        return order, True
    # Alike in these bytes, which come after what all have in common; texts of hardly any column are.
    groups = np.cumsum(~np.append(False, same))[alike]
    rows = order[alike]
    among = texts.take(pa.array(rows))
    within = _arrow_order([pa.array(groups), among])
    order[alike] = rows[within]
    return order, _distinct(among.take(pa.array(within)))


def _distinct(ascending: pa.StringArray) -> bool:
    return not pc.any(pc.equal(ascending[1:], ascending[:-1])).as_py()


def _arrow_order(columns: list[pa.Array]) -> NDArray[np.intp]:
    table = pa.table(columns, [str(place) for place in range(len(columns))])
    order: NDArray[np.intp] = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy().astype(np.intp)
    return order


def _shared_bytes(texts: pa.StringArray) -> int:
    """Return the number of bytes with which all texts begin alike, from the first and the last text."""
    ends = pc.min_max(texts)
    first, last = (np.frombuffer(ends[end].as_buffer(), np.uint8) for end in ("min", "max"))
    most = min(len(first), len(last))
    unlike = first[:most] != last[:most]
    return int(np.argmax(unlike)) if unlike.any() else most


def _words(texts: pa.StringArray, skipped: int) -> NDArray[np.uint64]:
    """Return eight bytes of each text after ``skipped`` bytes as a number of the same order, shape (n,).

    Zeros follow the end of a text.
    """
    _, bounds, data = texts.buffers()
    ends = np.frombuffer(bounds, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    starts = ends[:-1] + skipped
    given = np.frombuffer(data, np.uint8) if data is not None and data.size >= WORD else np.zeros(WORD, np.uint8)
    if data is not None and data.size < WORD:
        given[: data.size] = np.frombuffer(data, np.uint8)
    # Of a text near the end of all, what stands before it is read too, and shifted out.
    at = np.minimum(starts, len(given) - WORD)
    found = np.lib.stride_tricks.sliding_window_view(given, WORD)[at].view(">u8").ravel().astype(np.uint64)
    before, beyond = (starts - at) * WORD, np.maximum(WORD - (ends[1:] - starts), 0) * WORD
    there = beyond < 64
    left, right = (np.where(there, bits, 0).astype(np.uint64) for bits in (before, beyond))
    return np.where(there, found << left >> right << right, np.uint64(0))


def canonical_order(classes: NDArray[np.int32], columns: Sequence[pa.Array]) -> NDArray[np.intp]:
    """Return the permutation that sorts records by class and then by each column, nulls last.

    Args:
        classes: Shape (n,), int32, none negative.
        columns: Arrays of shape (n,).

    Returns:
        Shape (n,). Records that compare equal are equal in every column, so their order does not matter.
    """
    order = np.arange(len(classes))
    if not len(classes):
        return order
    # Places in the order of records that are not told apart yet, and a number for each that those alike have in common.
    tied, key = order.copy(), classes.astype(np.int64)
    span = int(key.max()) + 1
    for number, column in enumerate(columns, start=1):
        ranks, size = _ranks_of(column, order[tied])
        key, span = key * size + ranks, span * size
        if span >= len(tied) and number < len(columns):
            # Most columns never come to be compared: in a wide table the first few tell nearly all records apart.
            tied, key, span = _told_apart(order, tied, key)
            if not len(tied):
                return order
    order[tied] = order[tied[order_of(key, span)]]
    return order


def in_canonical_order(classes: NDArray[np.int32], columns: Sequence[pa.Array]) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Return the classes and columns of records sorted by class and columns.

    Classes have shape (n,). Order and arguments as for ``canonical_order``.
    """
    if (found := _sorted_as_numbers(classes, columns)) is not None:
        return found
    order = canonical_order(classes, columns)
    rows = pa.array(order)
    return classes[order], [column.take(rows) for column in columns]


def _sorted_as_numbers(classes: NDArray[np.int32], columns: Sequence[pa.Array]) -> tuple[NDArray[np.int32], list[pa.Array]] | None:
    """Sort records of dictionary columns as one number each; None if a record does not fit in a number.

    Numbers are sorted and unpacked in a fraction of the time that it takes to find an order and to follow it in every column. A record is
    nothing but its class and its entries, so that no column has to be moved.
    """
    if not len(classes) or not all(isinstance(column, pa.DictionaryArray) for column in columns):
        return None
    ranks = [entry_ranks(column.dictionary) for column in columns]
    # Of entries that are alike, or are null, a rank does not tell which one it was.
    if any(size != len(column.dictionary) + 1 for (_, size), column in zip(ranks, columns, strict=True)):
        return None
    low, span = int(classes.min()), int(classes.max()) - int(classes.min()) + 1
    for _, size in ranks:
        span *= size
    if span > 1 << 62:
        return None
    keys: NDArray[Any] = (classes - low).astype(np.uint32 if span <= 1 << 32 else np.uint64)
    for (places, size), column in zip(ranks, columns, strict=True):
        keys *= size
        keys += np.append(places, size - 1).astype(keys.dtype)[dictionary_positions(column)]
    keys = sort_numbers(keys, span, keeps_input=False)
    found: list[pa.Array] = []
    for (places, size), column in zip(reversed(ranks), reversed(columns), strict=True):
        coarser = keys // size
        found.append(_entries_at(column, places, keys - coarser * size))
        keys = coarser
    return (keys.astype(np.int32) + np.int32(low)), found[::-1]


def _entries_at(column: pa.DictionaryArray, ranks: NDArray[np.int64], wanted: NDArray[np.unsignedinteger[Any]]) -> pa.DictionaryArray:
    """Return the dictionary entries of the wanted ranks, shape (n,); null for the rank after the last.

    Args:
        ranks: Shape (entries,), the rank of each.
        wanted: Shape (n,).
    """
    entries = np.zeros(len(ranks) + 1, column.indices.type.to_pandas_dtype())
    entries[ranks] = np.arange(len(ranks))
    missing = wanted == len(ranks) if column.indices.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(entries[wanted], mask=missing), column.dictionary)


def _told_apart(order: NDArray[np.intp], tied: NDArray[np.intp], key: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64], int]:
    """Sort tied records by their keys; return the positions of records still tied, and their groups."""
    by = order_of(key, int(key.max()))
    order[tied], key = order[tied[by]], key[by]
    same = key[1:] == key[:-1]
    alike = np.append(same, False) | np.append(False, same)
    groups = np.cumsum(~np.append(False, same)[alike]) - 1
    return tied[alike], groups, int(groups.max(initial=0)) + 1


def _ranks_of(column: pa.Array, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], int]:
    """Return the ranks of some records' values, shape (rows,), and the number of ranks."""
    if len(rows) == len(column):
        ranks, size = ranks_with_null(column)
        return ranks[rows], size
    taken = column.take(pa.array(rows))
    # Of a few records the values are fewer than the entries.
    few = isinstance(taken, pa.DictionaryArray) and len(rows) < len(taken.dictionary)
    return ranks_with_null(taken.dictionary_decode() if few else taken)


def ranks_with_null(column: pa.Array) -> tuple[NDArray[np.int64], int]:
    """Return each value's rank, shape (n,), floats by their bits, and how many ranks, with one for null.

    A null ranks last. Floats rank by their bits, which distinguishes -0.0 from 0.0 and one NaN from another.
    """
    if isinstance(column, pa.DictionaryArray):
        # Entries may repeat or be unused; ranks of the entries are ranks of the values all the same.
        entries, size = entry_ranks(column.dictionary)
        return np.append(entries, size - 1)[dictionary_positions(column)], size
    if pa.types.is_floating(column.type):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
        column = column.view(bits)
    coded = pc.dictionary_encode(column)
    is_text = pa.types.is_string(coded.dictionary.type)
    order = text_order(coded.dictionary)[0] if is_text else pc.array_sort_indices(coded.dictionary).to_numpy()
    return _ranks_in(order)[dictionary_positions(coded)], len(order) + 1


def entry_ranks(entries: pa.Array) -> tuple[NDArray[np.int64], int]:
    """Return each dictionary entry's rank, shape (entries,), and how many ranks, with one for null.

    It is fast where all entries are distinct.
    """
    if pa.types.is_string(entries.type) and not entries.null_count:
        order, distinct = text_order(entries)
        if distinct:
            return _ranks_in(order)[:-1], len(order) + 1
    return ranks_with_null(entries)


def _ranks_in(order: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the rank of each of n values, and n for a null, shape (n + 1,)."""
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = len(order)
    return ranks


def first_files(sizes: NDArray[np.int64], rows_per_file: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each class's first output file of about ``rows_per_file``, and over how many it is spread.

    Args:
        sizes: Shape (classes,), records per class.
        rows_per_file: At least 1.

    Returns:
        The first file of each class and over how many it is spread, both of shape (classes,): 1 but for classes larger than a file.
    """
    before = np.cumsum(sizes) - sizes
    return before // rows_per_file, -(-sizes // rows_per_file)


def assign_files(
    classes: NDArray[np.int32], first: NDArray[np.int64], spread: NDArray[np.int64], columns: Sequence[pa.Array]
) -> NDArray[np.int64]:
    """Return the number of each record's output file, shape (n,); large classes are spread by a hash.

    A class larger than a file is spread by a hash of the record's published values, so that equal records stay together and the outcome
    depends on nothing else.
    """
    files = first[classes]
    wide = np.flatnonzero(spread[classes] > 1)
    if len(wide) and columns:
        import polars as pl  # noqa: PLC0415 - a tenth of a second, and classes larger than a file are rare

        rows = pa.array(wide)
        frame = pl.DataFrame({str(number): pl.Series(_plain(column.take(rows))) for number, column in enumerate(columns)})
        # A fixed seed: with a random one a resumed run would put records elsewhere than the run that was killed.
        files[wide] += (frame.hash_rows(seed=0).to_numpy() % spread[classes[wide]].astype(np.uint64)).astype(np.int64)
    return files


def _plain(column: pa.Array) -> pa.Array:
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    return plain.cast(in_utc(plain.type))
