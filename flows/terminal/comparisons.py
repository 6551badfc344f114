"""What the command line shows of a comparison: Table III and Fig. 3 of the paper as Rich tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from core.columns.node import Node
from flows.terminal.screen import NameTable
from schemas.errors.base import counted
from tasks.comparison.chunk_results import Alone, Case, ComparedQid, Comparison


def comparison_summary(comparison: Comparison, folder: str) -> RenderableType:
    """Returns a comparison as tables that fit 80 columns.

    Args:
        comparison: The figures.
        folder: Where they lie.
    """
    names = ", ".join(qid.name for qid in comparison.qids)
    most = max(comparison.cases, key=lambda case: case.chunks)
    size = "the same records in more chunks" if comparison.data == "cut" else f"chunks of {most.records // most.chunks:,} records"
    whose = ", k of persons" if comparison.unit == "person" else ""
    return Group(
        f"One node for all chunks (SKALD) against a node for each chunk alone: {size}, limit {comparison.limit}{whose}.",
        "",
        _headed("Nodes", " (the paper's Table III): bin widths, or levels L0, L1, …; * is one group"),
        Text(f"QIDs: {names}"),
        _nodes(comparison),
        "",
        _headed("DM* ratio", " (eq. 5, Fig. 3): the chunks' releases concatenated and counted as one table, as in the paper"),
        _ratios(comparison),
        "",
        _headed("DM* per record", ": how many records are in the class of a record, on average; 'own chunk': in its own chunk"),
        _losses(comparison),
        "",
        _headed("Whatever the way of counting", ": GCP, records suppressed, and finer nodes that memory left unexamined (0: optima)"),
        _releases(comparison),
        "",
        Text(f"Figures: {folder}."),
    )


def _headed(head: str, said: str) -> Text:
    return Text.assemble((head, "bold"), said)


def _nodes(comparison: Comparison) -> Table:
    table = NameTable("k", "chunks", box=None, header_style="bold", pad_edge=False)
    for name in ("SKALD", "alone: most common"):
        table.add_column(name, no_wrap=True)
    table.add_column("of chunks", justify="right")
    table.add_column("range", overflow="fold")
    for case in _by_k(comparison):
        alone, first = case.alone, case.alone.nodes[0] if case.alone.nodes else None
        table.add_row(
            f"{case.k:,}", f"{case.chunks:,}", _spelt(comparison.qids, case.skald.node),
            _spelt(comparison.qids, first.node if first else None), f"{first.chunks if first else 0:,}", _span(comparison.qids, alone),
        )  # fmt: skip
    return table


def _ratios(comparison: Comparison) -> Table:
    counts = sorted({case.chunks for case in comparison.cases})
    table = _figures([counted(chunks, "chunk") for chunks in counts], "k")
    found = {(case.k, case.chunks): case.ratio for case in comparison.cases}
    for k in sorted({case.k for case in comparison.cases}):
        table.add_row(f"{k:,}", *(f"{found[k, chunks]:,.2f}" for chunks in counts))
    return table


def _losses(comparison: Comparison) -> Table:
    table = _figures(["SKALD", "alone", "ratio", "own chunk", "ratio"])
    for case in _by_k(comparison):
        together, alone, own = (loss / case.records for loss in (case.skald.dm_star, case.alone.dm_star, case.alone.dm_star_summed))
        ratios = f"{case.ratio:,.2f}", f"{case.ratio_summed:,.2f}"
        table.add_row(f"{case.k:,}", f"{case.chunks:,}", f"{together:,.0f}", f"{alone:,.0f}", ratios[0], f"{own:,.0f}", ratios[1])
    return table


def _releases(comparison: Comparison) -> Table:
    table = _figures(["GCP SKALD", "alone", "suppressed SKALD", "alone", "unexamined SKALD", "alone"])
    for case in _by_k(comparison):
        sides = case.skald, case.alone
        penalties = (f"{side.gcp:.3f}" for side in sides)
        shares = (f"{side.suppressed / case.records:.2%}" for side in sides)
        table.add_row(f"{case.k:,}", f"{case.chunks:,}", *penalties, *shares, *(f"{side.unexamined:,}" for side in sides))
    return table


def _figures(names: Sequence[str], *heads: str) -> Table:
    table = NameTable(*(heads or ("k", "chunks")), box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _by_k(comparison: Comparison) -> Sequence[Case]:
    return sorted(comparison.cases, key=lambda case: (case.k, case.chunks))


def _spelt(qids: Sequence[ComparedQid], node: Node | None) -> str:
    return "nothing released" if node is None else " ".join(qid.levels[level] for qid, level in zip(qids, node, strict=True))


def _span(qids: Sequence[ComparedQid], alone: Alone) -> str:
    spans = []
    if len(alone.nodes) > 1 and alone.lowest and alone.highest:
        pairs = zip(qids, alone.lowest, alone.highest, strict=True)
        spans = [qid.levels[low] if low == high else f"{qid.levels[low]}…{qid.levels[high]}" for qid, low, high in pairs]
    lost = f"{counted(alone.lost_chunks, 'chunk')} not released" if alone.lost_chunks else ""
    return ", ".join(filter(None, [" ".join(spans), lost]))
