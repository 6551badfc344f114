"""Pictures of the lattice: bars of nodes by height and status, and boxes around the chosen node.

Those for a page of paper, a screen or a phone keep to a given width, so that nothing has to be scrolled sideways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.charts.chart import Picture, paint, svg_words, text, width_of
from core.columns.domains import Node
from core.lattice.search import STATUSES, LatticeMap
from schemas.errors.base import counted

# Border and fill differ beside the colour, so that the picture can be read in grey.
DASH = {"fails": "none", "passes": "none", "cut": "4 2", "unexamined": "1 2"}
NODE_STATES = {
    "fails": "fails the privacy model",
    "passes": "passes, and was counted",
    "cut": "cannot be better: cut by the bound",
    "unexamined": "not examined: memory",
}
BAR, TOP, MARGIN, ROW = 250, 118, 24, 20
BOX_HEIGHT, BOX_GAP, ROW_GAP, LEGEND_GAP = 24, 12, 62, 18


@dataclass(frozen=True)
class Frame:
    """The layout of a lattice picture.

    Attributes:
        left_edge, top: Of the nodes.
        legend: Upper left corner of the legend.
        box: Width of a node.
    """

    width: float
    height: float
    left_edge: float
    top: float
    legend: tuple[float, float]
    box: float

    @classmethod
    def of(cls, drawn: LatticeMap) -> Frame:
        """Return the layout of a lattice picture: bars on the left and nodes on the right."""
        rows, box = rows_of_nodes(drawn), _box_width(drawn)
        at_a_time = max(len(row) for row in rows) * (box + BOX_GAP)
        bars, nodes, legend = len(drawn.heights) * ROW, len(rows) * ROW_GAP, LEGEND_GAP * (_used(drawn) + 1)
        beside = MARGIN + 40 + BAR + 110
        height = TOP + max(bars, nodes) + 50 + MARGIN + legend
        return cls(max(beside + at_a_time + MARGIN, 900), height, beside, TOP, (MARGIN, height - MARGIN - legend + 8), box)


def lattice_picture(drawn: LatticeMap) -> Picture:
    """Return a picture of a lattice: all heights as bars, coarse on top, and single nodes with levels."""
    frame = Frame.of(drawn)
    total = sum(sum(row.values()) for row in drawn.heights)
    says = lattice_sentence(drawn)
    body = "\n".join([*_heading(drawn, frame, total), *_bars(drawn), *_nodes(drawn, frame), *_legend(drawn, frame)])
    return Picture(f"The lattice of {drawn.name}", says, frame.width, frame.height, body)


def lattice_sentence(drawn: LatticeMap) -> str:
    """Return the text alternative of a lattice picture, for readers who cannot see it."""
    total = sum(sum(row.values()) for row in drawn.heights)
    counts = (f"{sum(row[status] for row in drawn.heights):,} {NODE_STATES[status]}" for status in STATUSES)
    return f"{counted(total, 'node')}: {'; '.join(counts)}. Chosen: {_named_levels(drawn, drawn.node)}."


def _named_levels(drawn: LatticeMap, node: Node) -> str:
    return ", ".join(f"{qid} {level}" for qid, level in zip(drawn.qids, node, strict=True))


def _levels(node: Node) -> str:
    return " ".join(map(str, node))


def _box_width(drawn: LatticeMap) -> int:
    """Return the width of a box with room for the levels of every drawn node."""
    return 14 + 9 * max(len(_levels(one.node)) for one in drawn.drawn)


def _heading(drawn: LatticeMap, frame: Frame, total: int) -> Iterator[str]:
    yield text(MARGIN, 34, f"The lattice of {drawn.name}: {counted(total, 'node')}", size=18, bold=True)
    yield text(MARGIN, 56, f"Chosen levels: {_named_levels(drawn, drawn.node)}", "chosen", size=13, bold=True)
    yield text(MARGIN, TOP - 28, "Nodes of each height, coarse at the top", size=13, bold=True)
    yield text(MARGIN + 34, TOP - 12, "height", "soft", "end", 10)
    around = "All nodes" if drawn.whole else "Around the chosen node"
    yield text(frame.left_edge, frame.top - 28, f"{around}, levels in this order:", size=13, bold=True)
    yield text(frame.left_edge, frame.top - 12, ", ".join(drawn.qids), "soft", size=11)


def _bars(drawn: LatticeMap) -> Iterator[str]:
    widest = max(sum(row.values()) for row in drawn.heights)
    for height, row in enumerate(drawn.heights):
        y = TOP + (len(drawn.heights) - 1 - height) * ROW
        here = height == sum(drawn.node)
        yield text(MARGIN + 34, y + 13, str(height), "chosen" if here else "ink", "end", bold=here)
        x = MARGIN + 40.0
        for status in STATUSES:
            size = BAR * row[status] / widest
            if size:
                look = f"{paint(status, 'edge')} stroke-width='0.5' stroke-dasharray='{DASH[status]}'"
                yield (
                    f"<rect x='{x:.2f}' y='{y}' width='{size:.2f}' height='{ROW - 4}' {look}>"
                    f"<title>height {height}: {row[status]:,} {NODE_STATES[status]}</title></rect>"
                )
            x += size
        if here:
            yield text(x + 6, y + 13, f"{sum(row.values()):,}, the chosen", "chosen", size=11, bold=True)
        else:
            yield text(x + 6, y + 13, f"{sum(row.values()):,}", "soft", size=11)


def rows_of_nodes(drawn: LatticeMap) -> list[list[tuple[Node, str]]]:
    """Return the drawn nodes, one row per height, the coarsest first."""
    heights = sorted({sum(one.node) for one in drawn.drawn}, reverse=True)
    return [[(one.node, one.status) for one in drawn.drawn if sum(one.node) == height] for height in heights]


def _nodes(drawn: LatticeMap, frame: Frame) -> Iterator[str]:
    rows, width = rows_of_nodes(drawn), frame.width - frame.left_edge - MARGIN
    places: dict[Node, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        for place, (node, _) in enumerate(row):
            places[node] = (frame.left_edge + width * (place + 0.5) / len(row), frame.top + 12 + number * ROW_GAP)
    # Lines before boxes: what is drawn later lies on top and covers their ends.
    yield from draw_lines_between_nodes(drawn, places)
    yield from _boxes(drawn, rows, places, frame.box)


def draw_lines_between_nodes(drawn: LatticeMap, places: Mapping[Node, tuple[float, float]]) -> Iterator[str]:
    """Yield an SVG line for each two nodes that are one level of one QID apart."""
    for node, (x, y) in places.items():
        for above in (tuple(level + (one == axis) for one, level in enumerate(node)) for axis in range(len(node))):
            if above in places:
                over, up = places[above]
                strong = drawn.node in (node, above)
                ink, thick = ("chosen", 1.2) if strong else ("quiet", 0.8)
                yield f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{over:.1f}' y2='{up:.1f}' {paint(stroke=ink)} stroke-width='{thick}'/>"


def node_box(drawn: LatticeMap, node: Node, status: str, place: tuple[float, float], box: float) -> Iterator[str]:
    """Yield the SVG of a node: a box with its levels, or else its differences from the chosen node.

    The box is centred at ``place`` and ``box`` pixels wide.
    """
    x, y = place
    chosen = node == drawn.node
    border, thick = ("chosen", 3) if chosen else ("edge", 0.8)
    dash = "none" if chosen else DASH[status]
    shape = f"x='{x - box / 2:.1f}' y='{y - BOX_HEIGHT / 2:.1f}' width='{box:.1f}' height='{BOX_HEIGHT}' rx='5'"
    look = f"{paint(status, border)} stroke-width='{thick}' stroke-dasharray='{dash}'"
    yield f"<rect {shape} {look}><title>{svg_words(_named_levels(drawn, node))}: {NODE_STATES[status]}</title></rect>"
    moved = [(qid, one - other) for qid, one, other in zip(drawn.qids, node, drawn.node, strict=True) if one != other]
    if width_of(_levels(node)) > box:
        told = ", ".join(f"{qid} {step:+d}" for qid, step in moved) or "chosen"
        yield text(x, y + 4.5, _end_of(told, box, 11), f"on-{status}", "middle", 11, bold=chosen)
        return
    yield text(x, y + 4.5, _levels(node), f"on-{status}", "middle", bold=chosen)
    if len(moved) == 1 and not drawn.whole:
        told = _end_of(f"{moved[0][0]} {moved[0][1]:+d}", box + BOX_GAP, 10)
        yield text(x, y + BOX_HEIGHT / 2 + 11, told, "soft", "middle", 10, halo=True)


def _end_of(words: str, width: float, size: int) -> str:
    """Return a text, or the end of it where it does not fit the width."""
    fits = int(width / width_of("m", size))
    return words if len(words) <= fits else "…" + words[1 - fits :]


def _used(drawn: LatticeMap) -> int:
    """Return the number of statuses that any node has."""
    return sum(any(row[status] for row in drawn.heights) for status in STATUSES)


def _legend(drawn: LatticeMap, frame: Frame) -> Iterator[str]:
    x, y = frame.legend
    yield f"<rect x='{x}' y='{y}' width='16' height='11' rx='2' {paint(stroke='chosen')} stroke-width='3'/>"
    yield text(x + 24, y + 10, "the chosen node", size=11)
    for status in STATUSES:
        count = sum(row[status] for row in drawn.heights)
        if not count:
            continue
        y += LEGEND_GAP
        look = f"{paint(status, 'edge')} stroke-width='0.8' stroke-dasharray='{DASH[status]}'"
        yield f"<rect x='{x}' y='{y}' width='16' height='11' rx='2' {look}/>"
        yield text(x + 24, y + 10, f"{NODE_STATES[status]}: {count:,}", size=11)


LEFT, RIGHT, HEAD = 34, 78, 26
PAGE_ROW, LEAST_ROW, MOST_BARS = 18, 6, 400
LINE, GAP, WIDEST_BOX = 16, 62, 150
"""Height of a line of words, between rows of nodes, and what a box may be wide before it tells differences only."""


def heights_picture(drawn: LatticeMap, width: float) -> Picture:
    """Return a bar chart of the nodes of each height by status, with a legend, ``width`` pixels wide."""
    bars, y = _page_bars(drawn, width)
    signs, y = _signs(drawn, width, y + 14)
    return Picture(f"The lattice of {drawn.name}", lattice_sentence(drawn), width, y, "".join([*bars, *signs]))


def nodes_picture(drawn: LatticeMap, width: float) -> Picture:
    """Return a picture of the nodes around the chosen node (all if few), ``width`` pixels wide."""
    nodes, y = _page_nodes(drawn, width)
    return Picture(f"Nodes of the lattice of {drawn.name}", lattice_sentence(drawn), width, y, "".join(nodes))


def _page_bars(drawn: LatticeMap, width: float) -> tuple[list[str], float]:
    """Draw the number of nodes of each height as bars; return the SVG elements and their lower end."""
    parts = [text(0, 12, "Combinations by height, coarse at the top", bold=True)]
    # Many heights take no more room than some do: a page of paper holds the whole.
    row = max(min(PAGE_ROW, MOST_BARS / len(drawn.heights)), LEAST_ROW)
    widest, each = max(sum(one.values()) for one in drawn.heights), -(-11 // int(row))
    for height, counts in enumerate(drawn.heights):
        y = HEAD + (len(drawn.heights) - 1 - height) * row
        here = height == sum(drawn.node)
        x = float(LEFT)
        for status in STATUSES:
            size = (width - LEFT - RIGHT) * counts[status] / widest
            if size:
                look = f"{paint(status, 'edge')} stroke-width='0.5' stroke-dasharray='{DASH[status]}'"
                says = f"<title>height {height}: {counts[status]:,} {NODE_STATES[status]}</title>"
                parts.append(f"<rect x='{x:.2f}' y='{y:.1f}' width='{size:.2f}' height='{row - min(4, row / 4):.1f}' {look}>{says}</rect>")
            x += size
        # The chosen height is always named; its neighbours give way where rows are narrow.
        if here or (height % each == 0 and abs(height - sum(drawn.node)) >= each):
            colour = "chosen" if here else "soft"
            parts.append(text(LEFT - 6, y + row / 2 + 3, str(height), colour, "end", 10, bold=here))
            words = f"{sum(counts.values()):,}{', chosen' if here else ''}"
            parts.append(text(x + 5, y + row / 2 + 3, words, colour, size=10, bold=here))
    return parts, HEAD + len(drawn.heights) * row


def _signs(drawn: LatticeMap, width: float, y: float) -> tuple[list[str], float]:
    """Draw the legend of colours in as many lines as needed; return the SVG elements and their lower end."""
    known = [(status, sum(row[status] for row in drawn.heights)) for status in STATUSES]
    signs = [("the chosen one", f"{paint(stroke='chosen')} stroke-width='3'")]
    signs += [
        (f"{NODE_STATES[status]}: {count:,}", f"{paint(status, 'edge')} stroke-width='0.8' stroke-dasharray='{DASH[status]}'")
        for status, count in known
        if count
    ]
    parts, x = [], 2.0
    for words, look in signs:
        long = 24 + width_of(words, 11)
        if x > 2 and x + long > width:
            x, y = 2.0, y + LINE + 2
        parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='16' height='11' rx='2' {look}/>")
        parts.append(text(x + 22, y + 10, words, size=11))
        x += long + 14
    return parts, y + LINE


def _page_nodes(drawn: LatticeMap, width: float) -> tuple[list[str], float]:
    """Draw nodes as boxes, row by row, with connecting lines if each row fits on one line."""
    box = min(_box_width(drawn), WIDEST_BOX, width)
    at_a_time = max(int((width + BOX_GAP) // (box + BOX_GAP)), 1)
    rows = [row for row in rows_of_nodes(drawn) if drawn.whole or len(row) <= at_a_time or _away(drawn, row) <= 1]
    around = "All combinations" if drawn.whole else "Around the chosen one"
    parts = [text(0, 12, f"{around}: levels of", bold=True), *_wrapped(drawn.qids, width, 12 + LINE)]
    y = 12 + LINE * (len(parts) - 1) + 30
    places: dict[Node, tuple[float, float]] = {}
    for row in rows:
        for start in range(0, len(row), at_a_time):
            line = row[start : start + at_a_time]
            for place, (node, _) in enumerate(line):
                places[node] = (width * (place + 0.5) / len(line), y)
            y += GAP if start + at_a_time >= len(row) else GAP - 14
    # Lines that lead past a second row of boxes would look as if they ended there.
    lines = draw_lines_between_nodes(drawn, places) if all(len(row) <= at_a_time for row in rows) else iter(())
    return [*parts, *lines, *_boxes(drawn, rows, places, box)], y - GAP + 40


def _boxes(
    drawn: LatticeMap, rows: Sequence[Sequence[tuple[Node, str]]], places: dict[Node, tuple[float, float]], box: float
) -> Iterator[str]:
    for row in rows:
        for node, status in row:
            yield from node_box(drawn, node, status, places[node], box)


def _away(drawn: LatticeMap, row: Sequence[tuple[Node, str]]) -> int:
    return abs(sum(row[0][0]) - sum(drawn.node))


def _wrapped(names: Sequence[str], width: float, y: float) -> list[str]:
    """Draw names in lines no wider than ``width`` pixels."""
    lines: list[str] = []
    for place, name in enumerate(names):
        said = name + ("," if place < len(names) - 1 else "")
        if lines and width_of(f"{lines[-1]} {said}", 11) <= width:
            lines[-1] += f" {said}"
        else:
            lines.append(said)
    return [text(0, y + number * LINE, line, "soft", size=11) for number, line in enumerate(lines)]
