"""The loop over the bytes of a CSV file, compiled by numba: a file of a gigabyte has a billion of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("formats.record_kernels")

FIELD, WITHIN, QUOTED, CLOSED, ENDED, RETURNED, PASSED = range(7)
"""States after a byte: at the beginning of a field, within a plain one, within quotes, after a quote there; after LF at the end of a line,
after CR, and after LF that follows CR."""
OTHER, DELIMITER, QUOTE, SPACE, NEWLINE, RETURN = range(6)
"""Kinds of bytes."""
KINDS = 8
STATE, RECORDS, LENGTH, LONGEST = range(4)
"""What is known between two blocks: the state after the last byte, records that have ended, bytes of the open one, and of the longest."""


def transitions() -> NDArray[np.uint8]:
    """Returns the state that a byte leads to, by the state before it times ``KINDS`` plus its kind; shape (states * KINDS,)."""
    begun = [WITHIN, FIELD, QUOTED, FIELD, ENDED, RETURNED]
    rows = {
        **dict.fromkeys((FIELD, ENDED, RETURNED, PASSED), begun),
        # A quote in the midst of a plain field is a letter of it.
        WITHIN: [WITHIN, FIELD, WITHIN, WITHIN, ENDED, RETURNED],
        QUOTED: [QUOTED, QUOTED, CLOSED, QUOTED, QUOTED, QUOTED],
        CLOSED: [WITHIN, FIELD, QUOTED, CLOSED, ENDED, RETURNED],
    }
    table = np.zeros((len(rows), KINDS), np.uint8)
    for state, row in rows.items():
        table[state, : len(row)] = row
    table[RETURNED, NEWLINE] = PASSED
    return table.ravel()


@kernel
def count_block(block: NDArray[np.uint8], kinds: NDArray[np.uint8], table: NDArray[np.uint8], least: int, known: NDArray[np.int64]) -> None:
    """Counts the records that end in a block.

    Args:
        block: Shape (bytes,).
        kinds: Shape (256,), the kind of each byte.
        table: As ``transitions`` returns it.
        least: Bytes that a line must have to be a record.
        known: Shape (4,), what was known before the block, which becomes what is known after it.
    """
    state, records, begun, longest = int(known[STATE]), known[RECORDS], -known[LENGTH], known[LONGEST]
    for place in range(block.shape[0]):
        state = int(table[state * KINDS + kinds[block[place]]])
        if state >= ENDED:
            if state != PASSED:
                length = place - begun
                records += int(length >= least)
                longest = max(longest, length)
            begun = place + 1
    known[STATE], known[RECORDS], known[LENGTH], known[LONGEST] = state, records, block.shape[0] - begun, longest
