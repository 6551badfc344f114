"""The picture of a comparison: the paper's Fig. 3, and beside it the losses per record that it is made of."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.comparison.chunk_results import Comparison, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every kind of colour blindness; marks tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "skald",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(folder: Path, comparison: Comparison) -> list[Path]:
    """Writes ``comparison.svg`` and ``comparison.png``; nothing where matplotlib, the extra ``plots``, is not installed.

    Raises:
        StorageError: the folder cannot be written.
    """
    if find_spec("matplotlib") is None:
        return []
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = _figure(comparison)
        return [write_figure(folder / f"comparison.{kind}", partial(_save, figure, kind)) for kind in ("svg", "png")]


def _save(figure: Figure, kind: str, path: Path) -> int:
    figure.savefig(path, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return 1


def _figure(comparison: Comparison) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    figure = Figure(figsize=(15, 5.6), layout=ConstrainedLayoutEngine(w_pad=0.12))
    ratios, losses, penalties = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    _bars(ratios, comparison)
    _lines(losses, comparison, [(case.skald.dm_star / case.records, case.alone.dm_star / case.records) for case in comparison.cases])
    losses.set_yscale("log")
    losses.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    losses.set_title("Loss per record: DM* / N")
    losses.set_ylabel("records in a record's class, on average (log scale)")
    _lines(penalties, comparison, [(case.skald.gcp, case.alone.gcp) for case in comparison.cases])
    penalties.set_ylim(0, 1)
    penalties.set_title("Coarsening: GCP")
    penalties.set_ylabel("GCP (0: values as they are, 1: all generalised to *)")
    # One legend for both: they show the same series.
    handles, labels = losses.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels) // 2, frameon=False)
    figure.suptitle(f"One node for all chunks (SKALD) against a node for each chunk alone: {_data(comparison)}")
    return figure


def _data(comparison: Comparison) -> str:
    most = max(comparison.cases, key=lambda case: case.chunks)
    if comparison.data == "cut":
        size = f"{comparison.records:,} records, cut into more and more chunks"
    else:
        size = f"chunks of {most.records // most.chunks:,} records"
    return f"{comparison.name}, {size}, at most {float(comparison.limit):.1%} suppressed"


def _bars(axes: Axes, comparison: Comparison) -> None:
    """Draws the DM* ratio as the paper does: a group of bars per k, a bar per number of chunks; from 1, where both lose the same."""
    from matplotlib import colormaps  # noqa: PLC0415

    counts, ks = _counts(comparison), _ks(comparison)
    ratios = {(case.chunks, case.k): case.ratio for case in comparison.cases}
    width = 0.8 / len(counts)
    for number, chunks in enumerate(counts):
        places = [group + (number - (len(counts) - 1) / 2) * width for group in range(len(ks))]
        heights = [ratios[chunks, k] for k in ks]
        shade = colormaps["cividis"](number / max(len(counts) - 1, 1) * 0.9)
        label = f"{chunks:,} chunk" + ("" if chunks == 1 else "s")
        bars = axes.bar(places, [height - 1 for height in heights], width * 0.92, 1, color=shade, label=label)
        axes.bar_label(bars, [f"{height:.3g}" for height in heights], padding=2, fontsize=8)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylim(min(0.8, *ratios.values()) * 0.9, max(2.0, *ratios.values()) * 1.9)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xticks(range(len(ks)), [f"{k:,}" for k in ks])
    axes.set_xlabel("k")
    axes.set_ylabel("DM* ratio: each chunk alone / SKALD (log scale)")
    axes.set_title("DM* ratio (the paper's Fig. 3)")
    axes.legend(ncols=len(counts), frameon=False, loc="upper center", fontsize=9)


def _lines(axes: Axes, comparison: Comparison, values: list[tuple[float, float]]) -> None:
    """Draws a loss of both against the number of chunks, a colour per k."""
    counts, ks = _counts(comparison), _ks(comparison)
    found = {(case.chunks, case.k): pair for case, pair in zip(comparison.cases, values, strict=True)}
    for number, k in enumerate(ks):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        for side, (line, name) in enumerate((("-", "SKALD"), ("--", "alone"))):
            series = [found[chunks, k][side] for chunks in counts]
            fill = colour if side == 0 else "white"
            axes.plot(range(len(counts)), series, line, color=colour, marker=mark, markerfacecolor=fill, label=f"{name}, k = {k:,}")
    axes.set_xticks(range(len(counts)), [f"{chunks:,}" for chunks in counts])
    axes.set_xlabel("chunks")


def _counts(comparison: Comparison) -> list[int]:
    return sorted({case.chunks for case in comparison.cases})


def _ks(comparison: Comparison) -> list[int]:
    return sorted({case.k for case in comparison.cases})
