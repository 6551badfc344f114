"""Random poker hands: five cards and the class of the hand.

As in papers/distributed-mondrian.txt (section 8.1), each card has a suit and a rank. The paper's table is the one of the UCI repository
(Cattral and Oppacher 2007), which was drawn at random; so is this one, with the same columns and codes. Record i depends on the seed and
on i alone.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.errors.base import counted, listed

CARDS = 5
RANKS = 13
BLOCK = 1 << 16
FILE_ROWS = 1_000_000
MOST_ROWS = 999_999_999
QIDS = tuple(f"{part}_{card}" for card in range(1, CARDS + 1) for part in ("suit", "rank"))
SCHEMA = pa.schema([*((name, pa.int8()) for name in QIDS), ("hand", pa.int8())])


def make_poker(out: Path, rows: int, files: int | None = None, seed: int = 0) -> list[Path]:
    """Write random poker hands as Parquet files, and return their paths.

    The files are ``out/poker-00001.parquet`` and so on. Memory holds one block.

    Args:
        out: Folder for the files, made if it is not there.
        rows: Number of hands, 1 to 999,999,999.
        files: Number of files, of about equal length; by default one per million hands.
        seed: 0 or greater; the same seed gives the same bytes with the same versions of NumPy and PyArrow.

    Returns:
        The paths in the order of their records.

    Raises:
        ValueError: an argument is out of range, or ``out`` holds files of a data set of more files, which would mix with this one.
    """
    if not 1 <= rows <= MOST_ROWS or seed < 0:
        raise ValueError(f"{rows:,} hands with seed {seed} are asked for; give 1 to {MOST_ROWS:,} hands and a seed of 0 or more")
    count = files or -(-rows // FILE_ROWS)
    if not 1 <= count <= rows:
        raise ValueError(f"{counted(rows, 'hand')} cannot fill {counted(count, 'file')}; give 1 to {rows:,} files")
    paths = [out / f"poker-{number:05d}.parquet" for number in range(1, count + 1)]
    if strangers := sorted({path.name for path in out.glob("poker-*.parquet")} - {path.name for path in paths}):
        raise ValueError(f"{out} holds files of another data set ({listed(strangers)}); choose another folder or remove them")
    out.mkdir(parents=True, exist_ok=True)
    for path, (first, end) in zip(paths, pairwise(rows * number // count for number in range(count + 1)), strict=True):
        _write(path, seed, first, end)
    return paths


def _write(path: Path, seed: int, first: int, end: int) -> None:
    """Write a range of hands to one Parquet file, which gets its name when it is complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        with pq.ParquetWriter(part, SCHEMA, compression="zstd", store_schema=False) as writer:
            for number in range(first // BLOCK, (end - 1) // BLOCK + 1):
                start = max(first - number * BLOCK, 0)
                writer.write_table(draw_hands(seed, number).slice(start, min(end - number * BLOCK, BLOCK) - start))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def draw_hands(seed: int, block: int) -> pa.Table:
    """Return one block of random poker hands as an Arrow table.

    Columns ``suit_1`` (1 to 4), ``rank_1`` (1 to 13, the ace is 1), …, ``hand`` (0 to 9).
    """
    random = np.random.default_rng([seed, block])
    cards = np.zeros((BLOCK, CARDS), np.int64)
    # Floyd's way to draw five different cards out of 52 without shuffling the pack; then they are put into any order.
    for card in range(CARDS):
        last = 4 * RANKS - CARDS + card
        drawn = random.integers(0, last + 1, BLOCK)
        taken = (cards[:, :card] == drawn[:, None]).any(axis=1)
        cards[:, card] = np.where(taken, last, drawn)
    cards = random.permuted(cards, axis=1)
    suits, ranks = cards // RANKS + 1, cards % RANKS + 1
    columns = {f"suit_{card + 1}": suits[:, card] for card in range(CARDS)} | {f"rank_{card + 1}": ranks[:, card] for card in range(CARDS)}
    return pa.table({name: columns[name] for name in QIDS} | {"hand": hand_classes(suits, ranks)}).cast(SCHEMA)


def hand_classes(suits: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the class of each poker hand, from 0 (nothing) to 9 (royal flush).

    0 nothing, 1 a pair, 2 two pairs, 3 three of a kind, 4 straight, 5 flush, 6 full house, 7 four of a kind, 8 straight flush, 9 royal
    flush.

    Args:
        suits: Shape (hands, 5).
        ranks: Shape (hands, 5), the ace is 1; in a straight it may stand after the king too.
    """
    ordered = np.sort(ranks, axis=1)
    equal = (np.diff(ordered, axis=1) == 0).sum(axis=1)
    most = np.max([(ranks == ranks[:, [card]]).sum(axis=1) for card in range(CARDS)], axis=0)
    royal = (ordered == [1, 10, 11, 12, 13]).all(axis=1)
    straight = (np.diff(ordered, axis=1) == 1).all(axis=1) | royal
    flush = (suits == suits[:, [0]]).all(axis=1)
    kinds = [
        flush & royal, flush & straight, most == 4, (equal == 3) & (most == 3), flush, straight, (equal == 2) & (most == 3),
        (equal == 2) & (most == 2), equal == 1,
    ]  # fmt: skip
    return np.select(kinds, range(9, 0, -1), 0)
