"""papers/rayden.txt: Figs. 2 to 5 (and the sixth, which is called the fifth too), and Table 3."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.papers.page import Block, picture, table
from benchmarks.rayden import METHODS, Table, adult, rayden_step
from core.charts.chart import short_figure
from core.clustering.gower import gower_points
from core.clustering.outlier_step import OutlierResult, OutlierStep, separate_outliers
from core.clustering.vptree import VantageTree

KS, SIZES = (5, 10, 20, 50, 100), (1_000, 1_500, 10_000, 20_000, 30_000)
SHOWN = {
    "mondrian, strict": "Mondrian",
    "mondrian + cof": "Mondrian + COF",
    "canon": "CANON",
    "rayden, the paper's": "RAYDEN, the letter",
    "rayden": "RAYDEN, as shipped",
}
TABLE_3 = {
    5: ("3.1 / 98.7", "4.2 / 97.1"),
    10: ("2.9 / 95.4", "3.9 / 96.7"),
    15: ("2.6 / 90.5", "3.7 / 95.9"),
    20: ("2.4 / 86.3", "3.5 / 94.5"),
    25: ("2.2 / 79.8", "3.1 / 90.7"),
}
"""By k: Mondrian + COF and RAYDEN in the paper, detected of the records and recovered of the outliers, in per cent."""
FIGURES = (
    (5, "rayden-fig2", "CPU time", "seconds; without start-up, reading and writing"),
    (0, "rayden-fig3", "DM", "sum of squared partition sizes, and s·N"),
    (1, "rayden-fig4", "C_avg", "records per partition in units of k; 1 is the least that k allows"),
    (2, "rayden-fig5", "GCP", "of what is published: ranges and common ancestors"),
)
"""The place of a figure in the rows of `METHODS`, its block, and what it is."""


def chapter(given: argparse.Namespace) -> Iterator[Block]:
    """Partition records of Adult and yield what is measured."""
    whole = adult(given.adult)
    sample = whole.first(2_000)
    for name in SHOWN:
        METHODS[name](sample, 50)
    measured = {spelt: [METHODS[name](sample, k) for k in KS] for name, spelt in SHOWN.items()}
    for place, name, title, note in FIGURES:
        series: dict[str, list[float | None]] = {spelt: [row[place] for row in rows] for spelt, rows in measured.items()}
        told = table(["method", *(f"k = {k}" for k in KS)], [[spelt, *map(_figure, row)] for spelt, row in series.items()])
        drawn = picture(name, f"{title}, 2,000 records of Adult", note, series, [str(k) for k in KS], "k")
        yield Block(name, f"{told}\n\n{drawn}")
    yield _growth(whole)
    yield Block("rayden-table3", _outliers(whole.first(10_000)))


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _growth(whole: Table) -> Block:
    sizes = [min(size, len(whole.codes)) for size in SIZES]
    found = {spelt: [METHODS[name](whole.first(size), 10)[5] for size in sizes] for name, spelt in SHOWN.items()}
    told = table(["method", *(f"{size:,}" for size in sizes)], [[spelt, *(f"{one:.3f}" for one in row)] for spelt, row in found.items()])
    drawn = picture("rayden-fig6", "CPU time, Adult", "seconds; k = 10", found, [short_figure(size) for size in sizes], "records")
    return Block("rayden-fig6", f"{told}\n\n{drawn}")


def _outliers(sample: Table) -> str:
    rows = []
    for k, (cof, own) in TABLE_3.items():
        points, cut = gower_points(sample.codes, sample.domains), sample.mondrian(k)
        found = [
            separate_outliers(points, cut.partition(), OutlierStep(k, pool="suppress"), cut),
            rayden_step(sample, k, OutlierStep(k, pool="suppress"), VantageTree(k, "median"), by_hierarchy=False),
            rayden_step(sample, k, OutlierStep(k, leave="bounded"), VantageTree(k), by_hierarchy=True),
        ]
        shares = [f"{100 * one.detected / len(sample.codes):.1f} / {_recovered(one)}" for one in found]
        rows.append([str(k), cof, shares[0], own, *shares[1:]])
    return table(["k", "Mondrian + COF, paper", "here", "RAYDEN, paper", "here, the letter", "here, as shipped"], rows)


def _recovered(found: OutlierResult) -> str:
    return f"{100 * found.recovered / found.records_left:.1f}" if found.records_left else "–"
