"""Pictures of the lattice within a given width, for a page of paper, a screen or a phone.

Nothing has to be scrolled sideways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.charts.chart import Picture, paint, text, width_of
from core.columns.domains import Node
from core.lattice.map import STATUSES, LatticeMap
from core.lattice.picture import BOX_GAP, DASH, NODE_STATES, draw_lines_between_nodes, lattice_sentence, node_box, rows_of_nodes

LEFT, RIGHT, HEAD = 34, 78, 26
ROW, LEAST_ROW, MOST_BARS = 18, 6, 400
LINE, GAP, WIDEST_BOX = 16, 62, 150
"""Height of a line of words, between rows of nodes, and what a box may be wide before it tells differences only."""


def heights_picture(drawn: LatticeMap, width: float) -> Picture:
    """Draw a bar chart of the nodes of each height by status, with a legend, ``width`` pixels wide."""
    bars, y = _bars(drawn, width)
    signs, y = _signs(drawn, width, y + 14)
    return Picture(f"The lattice of {drawn.name}", lattice_sentence(drawn), width, y, "".join([*bars, *signs]))


def nodes_picture(drawn: LatticeMap, width: float) -> Picture:
    """Draw the nodes around the chosen node (all if few), ``width`` pixels wide."""
    nodes, y = _nodes(drawn, width)
    return Picture(f"Nodes of the lattice of {drawn.name}", lattice_sentence(drawn), width, y, "".join(nodes))


def _bars(drawn: LatticeMap, width: float) -> tuple[list[str], float]:
    """Draw the number of nodes of each height as bars; return the SVG elements and their lower end."""
    parts = [text(0, 12, "Combinations by height, coarse at the top", bold=True)]
    # Many heights take no more room than some do: a page of paper holds the whole.
    row = max(min(ROW, MOST_BARS / len(drawn.heights)), LEAST_ROW)
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


def _nodes(drawn: LatticeMap, width: float) -> tuple[list[str], float]:
    """Draw nodes as boxes, row by row, with connecting lines if each row fits on one line."""
    box = min(14 + 9 * max(len(" ".join(map(str, one.node))) for one in drawn.drawn), WIDEST_BOX, width)
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
