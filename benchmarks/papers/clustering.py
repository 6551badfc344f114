"""papers/semantic-clustering.txt: its three losses, and its growth."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from math import log2

from benchmarks.papers.page import Block, picture, table
from benchmarks.rayden import Table, adult
from core.charts.chart import short_figure
from core.clustering.merged_classes import ClassPublication, recode_records
from core.clustering.semantic import Clustering, Start

KS, SIZES = (2, 5, 10, 25, 50, 100), (1_000, 3_000, 10_000, 20_000, 30_000)


STARTS: tuple[Start, ...] = ("values", "parents")
LOSSES = ("numerical", "categorical", "total")


def chapter(given: argparse.Namespace) -> Iterator[Block]:
    """Cluster records of Adult and yield what is measured."""
    whole = adult(given.adult)
    _clustered(whole, 50, "values")
    found = {start: [_clustered(whole, k, start)[0] for k in KS] for start in STARTS}
    each = [(f"{name}, from {start}", [loss[name] for loss in found[start]]) for start in found for name in LOSSES]
    told = table(["loss", *(f"k = {k}" for k in KS)], [[name, *(f"{loss:.4f}" for loss in losses)] for name, losses in each])
    drawn = picture("clustering-losses", "The three losses, Adult", "less is better", dict(each), [str(k) for k in KS], "k")
    yield Block("clustering-losses", f"{len(whole.codes):,} records.\n\n{told}\n\n{drawn}")
    times = [_clustered(whole.first(size), 10, "values")[1] for size in SIZES]
    ideal = [times[-1] * size * log2(size) / (SIZES[-1] * log2(SIZES[-1])) for size in SIZES]
    rows = [["CPU s", *(f"{seconds:.3f}" for seconds in times)], ["n log n through the last", *(f"{seconds:.3f}" for seconds in ideal)]]
    told = table(["records", *(f"{size:,}" for size in SIZES)], rows)
    series = {"measured": times, "n log n": ideal}
    places = [short_figure(size) for size in SIZES]
    drawn = picture("clustering-growth", "CPU time of semantic clustering", "seconds; k = 10", series, places, "records", zero=True)
    yield Block("clustering-growth", f"{told}\n\n{drawn}")


def _clustered(records: Table, k: int, start: Start) -> tuple[dict[str, float], float]:
    begun = time.process_time()
    classes = Clustering(k, start=start).blocks(records.codes, records.domains, records.hierarchies).classes
    spent = time.process_time() - begun
    loss = recode_records(records.codes, classes, records.domains, records.hierarchies, ClassPublication(k)).loss
    return {name: float(loss[f"{name}_loss"]) for name in LOSSES}, spent
