"""The lattice drawn, as an SVG: how many nodes of each height pass, fail or were cut, and the nodes around the chosen one."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from core.lattice import Node
from core.lattice_map import STATUSES, LatticeMap

# Okabe and Ito's colours; border and fill differ too, so that the picture can be read in grey.
FILL = {"fails": "#D9D9D9", "passes": "#009E73", "cut": "#B3DDF2", "unexamined": "#FFFFFF"}
INK = {"fails": "#555555", "passes": "#FFFFFF", "cut": "#0B4F76", "unexamined": "#333333"}
DASH = {"fails": "none", "passes": "none", "cut": "4 2", "unexamined": "1 2"}
SAYS = {
    "fails": "fails the privacy model",
    "passes": "passes, and was counted",
    "cut": "cannot be better: cut by the bound",
    "unexamined": "not examined: memory",
}
CHOSEN = "#D55E00"
FONT = "font-family='Helvetica, Arial, sans-serif'"
BAR, TOP, MARGIN, ROW = 250, 118, 24, 20
BOX_HEIGHT, ROW_GAP = 24, 62


def lattice_svg(drawn: LatticeMap) -> str:
    """Returns the picture: on the left all heights as bars, coarse at the top; on the right single nodes, levels in job order.

    Args:
        drawn: What is shown.
    """
    box = 14 + 9 * max(len(_levels(one.node)) for one in drawn.drawn)
    rows = _rows(drawn)
    abreast = max(len(row) for row in rows)
    left = MARGIN + 40 + BAR + 110
    width = max(left + abreast * (box + 12) + MARGIN, 900)
    height = TOP + max(len(drawn.heights) * ROW, len(rows) * ROW_GAP) + 50 + MARGIN + 16 * _legend_lines(drawn)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img'>",
        f"<title>The lattice of {escape(drawn.name)}</title>",
        f"<rect width='{width}' height='{height}' fill='#FFFFFF'/>",
        *_heading(drawn, left),
        *_bars(drawn),
        *_nodes(drawn, rows, left, width - left - MARGIN, box),
        *_legend(drawn, height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _levels(node: Node) -> str:
    return " ".join(map(str, node))


def _text(x: float, y: float, text: str, size: int = 12, ink: str = "#222222", anchor: str = "start", weight: str = "normal") -> str:
    style = f"{FONT} font-size='{size}' fill='{ink}' text-anchor='{anchor}' font-weight='{weight}'"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(text)}</text>"


def _heading(drawn: LatticeMap, left: float) -> Iterator[str]:
    total = sum(sum(row.values()) for row in drawn.heights)
    chosen = ", ".join(f"{qid} {level}" for qid, level in zip(drawn.qids, drawn.node, strict=True))
    yield _text(MARGIN, 34, f"The lattice of {drawn.name}: {total:,} nodes", 18, weight="bold")
    yield _text(MARGIN, 56, f"Chosen levels: {chosen}", 13, CHOSEN, weight="bold")
    yield _text(MARGIN, TOP - 28, "Nodes of each height, coarse at the top", 13, weight="bold")
    yield _text(MARGIN + 34, TOP - 12, "height", 10, "#555555", "end")
    around = "All nodes" if drawn.whole else "Around the chosen node"
    yield _text(left, TOP - 28, f"{around}: levels of {', '.join(drawn.qids)}", 13, weight="bold")


def _bars(drawn: LatticeMap) -> Iterator[str]:
    widest = max(sum(row.values()) for row in drawn.heights)
    for height, row in enumerate(drawn.heights):
        y = TOP + (len(drawn.heights) - 1 - height) * ROW
        here = height == sum(drawn.node)
        ink, weight = (CHOSEN, "bold") if here else ("#222222", "normal")
        yield _text(MARGIN + 34, y + 13, str(height), 12, ink, "end", weight)
        x = MARGIN + 40.0
        for status in STATUSES:
            size = BAR * row[status] / widest
            if size:
                look = f"fill='{FILL[status]}' stroke='#777777' stroke-width='0.5' stroke-dasharray='{DASH[status]}'"
                yield (
                    f"<rect x='{x:.2f}' y='{y}' width='{size:.2f}' height='{ROW - 4}' {look}>"
                    f"<title>height {height}: {row[status]:,} {SAYS[status]}</title></rect>"
                )
            x += size
        if here:
            yield _text(x + 6, y + 13, f"{sum(row.values()):,}, the chosen", 11, CHOSEN, weight="bold")
        else:
            yield _text(x + 6, y + 13, f"{sum(row.values()):,}", 11, "#777777")


def _rows(drawn: LatticeMap) -> list[list[tuple[Node, str]]]:
    """Returns the drawn nodes, one row per height, the coarsest first."""
    heights = sorted({sum(one.node) for one in drawn.drawn}, reverse=True)
    return [[(one.node, one.status) for one in drawn.drawn if sum(one.node) == height] for height in heights]


def _nodes(drawn: LatticeMap, rows: list[list[tuple[Node, str]]], left: float, width: float, box: float) -> Iterator[str]:
    places: dict[Node, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        for place, (node, _) in enumerate(row):
            places[node] = (left + width * (place + 0.5) / len(row), TOP + 12 + number * ROW_GAP)
    for node, (x, y) in places.items():
        for above in (tuple(level + (one == axis) for one, level in enumerate(node)) for axis in range(len(node))):
            if above in places:
                over, up = places[above]
                strong = drawn.node in (node, above)
                ink, thick = (CHOSEN, 1.2) if strong else ("#AAAAAA", 0.8)
                yield f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{over:.1f}' y2='{up:.1f}' stroke='{ink}' stroke-width='{thick}'/>"
    for row in rows:
        for node, status in row:
            yield from _node(drawn, node, status, places[node], box)


def _node(drawn: LatticeMap, node: Node, status: str, place: tuple[float, float], box: float) -> Iterator[str]:
    x, y = place
    chosen = node == drawn.node
    border, thick = (CHOSEN, 3) if chosen else ("#555555", 0.8)
    dash = "none" if chosen else DASH[status]
    levels = ", ".join(f"{qid} {level}" for qid, level in zip(drawn.qids, node, strict=True))
    yield (
        f"<rect x='{x - box / 2:.1f}' y='{y - BOX_HEIGHT / 2:.1f}' width='{box:.1f}' height='{BOX_HEIGHT}' rx='5' fill='{FILL[status]}' "
        f"stroke='{border}' stroke-width='{thick}' stroke-dasharray='{dash}'><title>{escape(levels)}: {SAYS[status]}</title></rect>"
    )
    yield _text(x, y + 4.5, _levels(node), 12, INK[status], "middle", "bold" if chosen else "normal")
    moved = [(qid, one - other) for qid, one, other in zip(drawn.qids, node, drawn.node, strict=True) if one != other]
    if len(moved) == 1 and not drawn.whole:
        label = _text(x, y + BOX_HEIGHT / 2 + 11, f"{moved[0][0]} {moved[0][1]:+d}", 9, "#555555", "middle")
        yield label.replace("<text ", "<text paint-order='stroke' stroke='#FFFFFF' stroke-width='3' ")


def _legend_lines(drawn: LatticeMap) -> int:
    return sum(any(row[status] for row in drawn.heights) for status in STATUSES) + 1


def _legend(drawn: LatticeMap, height: float) -> Iterator[str]:
    y = height - MARGIN - 16 * _legend_lines(drawn) + 6
    yield f"<rect x='{MARGIN}' y='{y}' width='16' height='11' rx='2' fill='none' stroke='{CHOSEN}' stroke-width='3'/>"
    yield _text(MARGIN + 24, y + 10, "the chosen node", 11)
    for status in STATUSES:
        count = sum(row[status] for row in drawn.heights)
        if not count:
            continue
        y += 16
        look = f"fill='{FILL[status]}' stroke='#777777' stroke-width='0.8' stroke-dasharray='{DASH[status]}'"
        yield f"<rect x='{MARGIN}' y='{y}' width='16' height='11' rx='2' {look}/>"
        yield _text(MARGIN + 24, y + 10, f"{SAYS[status]}: {count:,}", 11)
