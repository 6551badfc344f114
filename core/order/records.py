"""A canonical order of coded records, so that algorithms depend on the set of records alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.coding import Packing
from core.columns.column_types import in_utc
from core.order.sorting import order_of, tied_positions

_BITS = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def record_hashes(columns: Sequence[pa.Array], rows: int) -> NDArray[np.uint64]:
    """Return a hash of each record's published values other than QIDs, shape (rows,).

    Equal records have equal hashes. The hash orders records of equal QIDs that come into different classes, without a trace of their
    position in the source. Different records share one by chance in about one pair of 2^64; nothing but the order of their payloads
    depends on it.

    Args:
        columns: Arrays of shape (rows,), possibly none.
        rows: Number of records.
    """
    if not columns:
        return np.zeros(rows, np.uint64)
    import polars as pl  # noqa: PLC0415 - a tenth of a second, which a release without payload does without

    frame = pl.DataFrame({str(number): pl.Series(_comparable(column)) for number, column in enumerate(columns)})
    return frame.hash_rows(seed=0).to_numpy()


def _comparable(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    column = column.cast(in_utc(column.type))
    # By their bits, as the release orders them: -0.0 is not 0.0.
    return column.view(_BITS[column.type.bit_width]) if pa.types.is_floating(column.type) else column


def combination_numbers(codes: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the number of each record's combination of QID values, from 0, shape (n,).

    Args:
        codes: Shape (n, QIDs), n ≥ 1, equal rows beside one another, as ``canonical_record_order`` puts them.
    """
    new = (codes[1:] != codes[:-1]).any(axis=1)
    return np.concatenate([[0], np.cumsum(new)]).astype(np.int32)


def canonical_record_order(
    codes: Sequence[NDArray[np.integer]], sizes: Sequence[int], marked: NDArray[np.uint64], digests: NDArray[np.uint64] | None = None
) -> NDArray[np.intp]:
    """Return the permutation that sorts records by QIDs in job order, then hash, then person.

    Args:
        codes: One array of shape (n,) per QID.
        sizes: Number of codes per QID.
        marked: Shape (n,), from ``record_hashes``.
        digests: Shape (n,), the digest of each record's person; None where no person is named.

    Returns:
        Shape (n,).
    """
    packing = Packing(tuple(sizes))
    words = packing.pack(codes)
    # lexsort sorts by its last key first.
    keys = (*([] if digests is None else [digests]), marked, *reversed(words))
    if len(words) > 1:
        return np.lexsort(keys)
    order = order_of(words[0], packing.product)
    same = words[0][order[1:]] == words[0][order[:-1]]
    # All that equal QIDs leave open is decided by the rest.
    places = tied_positions(same) if len(order) else order
    alike = order[places]
    order[places] = alike[np.lexsort(tuple(key[alike] for key in keys))]
    return order
