"""papers/distributed-mondrian.txt: Fig. 10 and Fig. 11."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.mondrian import DATA, Losses, Table, asked, costs, fragments, longest_queue, made, whole
from benchmarks.papers.page import Block, picture, table

SHARES = (0.001, 0.0001, 0.00001)
WAYS = {"quantile": "quantile", "multidimensional": "multi-dimensional"}
WORKERS = (1, 2, 4, 6, 8, 10, 12)
PAPER = {
    5: (1e6, [7.14, 7.10, 7.22, 7.22, 7.14, 7.10, 7.17, 7.15, 7.14, 7.13, 7.20, 7.20, 7.23],
        [1.83, 1.97, 1.80, 1.80, 1.83, 1.96, 1.79, 1.80, 1.83, 1.91, 1.80, 1.80, 1.50]),
    10: (1e7, [1.42, 1.41, 1.42, 1.43, 1.42, 1.41, 1.42, 1.42, 1.42, 1.41, 1.43, 1.47, 1.43],
        [2.20, 2.34, 2.17, 2.17, 2.20, 2.34, 2.17, 2.17, 2.20, 2.24, 2.17, 2.17, 1.82]),
    20: (1e7, [2.88, 2.86, 2.88, 2.88, 2.88, 2.85, 2.88, 2.88, 2.88, 2.86, 2.88, 2.88, 2.88],
        [2.50, 2.66, 2.47, 2.46, 2.50, 2.65, 2.47, 2.46, 2.50, 2.63, 2.47, 2.46, 2.07]),
}  # fmt: skip
"""By k: the unit of DP, then DP and NCP (in millions) of Fig. 11 by sample, fragments and workers, and last of its centralised row."""


def chapter(given: argparse.Namespace) -> Iterator[Block]:
    """Cut poker hands and yield what is measured."""
    plain = made("poker", argparse.Namespace(rows=[given.hands], data=DATA), "hand")
    # Compiled before the clock runs.
    costs(asked(plain, 5, 2, mode="median"), np.arange(1_000))
    yield _fig10(plain)
    for k, (unit, dp, ncp) in PAPER.items():
        yield Block(f"mondrian-fig11-{k}", _fig11(plain, k, [(one * unit, other * 1e6) for one, other in zip(dp, ncp, strict=True)]))


def _fig10(plain: Table) -> Block:
    series: dict[str, list[float | None]] = {}
    rows = []
    for way, spelt in WAYS.items():
        for k in (5, 20):
            busiest = [_busiest(asked(plain, k, 2, mode="median"), way, workers) for workers in WORKERS]
            series[f"{spelt}, k = {k}"] = [*busiest]
            rows.append([f"{spelt}, k = {k}", *(f"{seconds:.2f}" for seconds in busiest), f"{1 - min(busiest) / busiest[0]:.0%}"])
    told = table(["fragments", *(f"{workers} workers" for workers in WORKERS), "saved, at most"], rows)
    note = "seconds; sharing out, cuts and labels; l = 2"
    drawn = picture("mondrian-fig10", "CPU time of the busiest worker", note, series, [str(one) for one in WORKERS], "workers", zero=True)
    return Block("mondrian-fig10", f"{len(plain.codes):,} hands.\n\n{told}\n\n{drawn}")


def _busiest(cut: Table, way: str, workers: int) -> float:
    start = time.process_time()
    parts = fragments(cut, workers, way, 0.001, 0) if workers > 1 else [np.arange(len(cut.codes))]
    sharing, alone = time.process_time() - start, []
    for part in parts:
        start = time.process_time()
        costs(cut, part)
        alone.append(time.process_time() - start)
    return sharing + longest_queue(alone, workers)


def _fig11(plain: Table, k: int, paper: Sequence[tuple[float, float]]) -> str:
    cut = asked(plain, k, 2, mode="median")
    told = iter(paper)
    rows = []
    for share in SHARES:
        for way, spelt in WAYS.items():
            for workers in (5, 10):
                found = whole(cut, fragments(cut, workers, way, share, 0))
                rows.append(_row(f"{share:.3%}, {spelt}, {workers} workers", next(told), found))
    rows.append(_row("centralised", next(told), whole(cut, [np.arange(len(cut.codes))])))
    return table(["sample, fragments", "DP, paper", "DP, here", "NCP, paper", "NCP, here", "over the number of values"], rows)


def _row(name: str, paper: tuple[float, float], found: Losses) -> list[str]:
    here = [f"{found[name]:.3g}" for name in ("dm_partitions", "ncp", "ncp_over_values")]
    return [name, f"{paper[0]:.3g}", here[0], f"{paper[1]:.3g}", *here[1:]]
