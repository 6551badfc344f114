"""papers/skald.txt: Tables I to III and Fig. 3."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from benchmarks.compare import Case, chunks_of_patients, compared, node_of, spelt
from benchmarks.papers.page import Block, picture, table

CHUNKS, KS = (1, 5, 25, 125), (10, 50, 250, 1000)
PAPER_NODES = {5: "(3, 1), (1, 24, 128)", 25: "(3, 1), (1, 24, 32)", 125: "(2, 1), (1, 24, 32)"}
ARX_NODE = "(3, 4), (4, 24, 4)"
LEAST = {1: None, 5: None, 25: 4.0, 125: 9.0}
"""The DM* ratio that the paper states in words: its figure has no numbers."""


def chapter(given: argparse.Namespace) -> Iterator[Block]:
    """Anonymise chunks of patients, alone and together, and yield what is measured."""
    folder = chunks_of_patients(max(CHUNKS), given.chunk_rows)
    cases = {(case.k, case.chunks): case for case in compared(folder, CHUNKS, KS, "0.01")}
    yield Block("skald-table1", _sample(folder))
    yield Block("skald-table2", _released(cases[50, max(CHUNKS)]))
    yield Block("skald-table3", f"Chunks of {given.chunk_rows:,} patients.\n\n{_nodes(cases)}")
    yield Block("skald-fig3", f"Chunks of {given.chunk_rows:,} patients.\n\n{_ratios(cases)}\n\n{_picture(cases)}")


def _sample(folder: Any) -> str:
    first = pq.read_table(sorted((folder / "medical").glob("*.parquet"))[0]).slice(0, 5)
    names = ["blood_group", "profession", "age", "bmi", "pin_code", "health_condition"]
    return table(names, [[str(row[name]) for name in names] for row in first.to_pylist()])


def _released(case: Case) -> str:
    levels = case.together["levels"] if case.together else {}
    return table(["column", "level"], [[name, str(level)] for name, level in levels.items()])


def _nodes(cases: dict[tuple[int, int], Case]) -> str:
    rows = []
    for chunks, paper in PAPER_NODES.items():
        case = cases[50, chunks]
        rows.append([str(chunks), paper, ARX_NODE, spelt(node_of(case.together)), spelt(case.nodes[0][0])])
    return table(["chunks", "the paper's SKALD", "the paper's ARX", "here", "here, most chunks alone"], rows)


def _ratios(cases: dict[tuple[int, int], Case]) -> str:
    rows = []
    for chunks in CHUNKS:
        paper = f"at least {LEAST[chunks]:g}" if LEAST[chunks] else "no figure"
        rows.append([str(chunks), paper, *(f"{cases[k, chunks].ratio:.2f}" for k in KS)])
    return table(["chunks", "the paper, any k", *(f"here, k = {k:,}" for k in KS)], rows)


def _picture(cases: dict[tuple[int, int], Case]) -> str:
    series = {f"{chunks} chunks": [cases[k, chunks].ratio for k in KS] for chunks in CHUNKS}
    note = "chunks alone over one node for all; 1 is no difference"
    return picture("skald-fig3", "DM* ratio", note, series, [f"{k:,}" for k in KS], "k")
