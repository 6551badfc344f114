"""Draws the floors and rooms of the house, with the way of a job through them.

``python -m docs.house_picture`` writes docs/images/house.svg. Where a room stands is said below; which rooms know which is read from the
imports. A test draws the picture again and compares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from core.charts.chart import Picture, paint, text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "house.svg"
Places = Mapping[str, tuple[int, int]]

FLOORS: Mapping[str, tuple[str, Places]] = {
    "flows": (
        "What people start: the command line, and a flow for each method that reads like its paper's figure",
        {"server": (0, 0), "terminal": (0, 1), "studio": (0, 2), "commands": (1, 1), "python": (1, 0)},
    ),
    "tasks": (
        "One step each: reads artefacts, calls core, writes artefacts. The numbers are the way of a job",
        {
            "store": (0, 1),
            "engine": (1, 1),
            "source": (2, 1),
            "counting": (3, 0),
            "release": (3, 2),
            "lattice": (4, 0),
            "recount": (4, 2),
            "writing": (5, 0),
            "report": (5, 2),
            "attacks": (5, 3),
            "records": (6, 0),
            "composition": (6, 1),
            "publication": (7, 3),
            "mondrian": (8, 2),
            "relational": (10, 0),
            "verification": (6, 4),
            "planning": (9, 0),
            "utility": (7, 4),
            "studio": (10, 1),
        },
    ),
    "core": (
        "The algorithms: pure functions on arrays. No Prefect, no paths, no clock, no randomness without a seed",
        {
            "compiling": (0, 1),
            "columns": (1, 1),
            "hierarchies": (2, 2),
            "histograms": (3, 1),
            "privacy": (4, 0),
            "charts": (5, 0),
            "units": (5, 2),
            "lattice": (6, 0),
            "formats": (6, 2),
            "recoding": (7, 1),
            "relational": (7, 3),
            "local_suppression": (8, 0),
            "evaluation": (8, 1),
            "mondrian": (8, 2),
            "composition": (8, 3),
            "recount": (9, 0),
            "clustering": (9, 2),
            "kmember": (9, 1),
            "attacks": (10, 0),
        },
    ),
    "schemas": (
        "The job, the manifest and every table that crosses a step; all error messages",
        {
            "errors": (1, 0),
            "reading": (2, 0),
            "registry": (3, 0),
            "job": (4, 0),
            "release": (5, 0),
            "relational": (6, 0),
        },
    ),
}
"""From the top: what each floor is, and the column and row of each of its rooms."""
STEPS = {"source": "1", "counting": "2", "lattice": "3", "writing": "4", "recount": "5", "publication": "6"}
"""The way of a job through the rooms of ``tasks``."""

LEFT, RIGHT, WIDE, HIGH, ROW, HEAD, GAP = 24, 24, 88, 32, 46, 48, 34
WIDTH = 1200
LONGEST, BEND = 12, 14


def rooms_of(floor: str) -> list[str]:
    """Return the folders of a floor that hold Python files."""
    return sorted(path.name for path in (ROOT / floor).iterdir() if path.is_dir() and any(path.glob("*.py")))


def arrows_of(floor: str) -> dict[str, set[str]]:
    """Return which rooms of a floor each of its rooms imports from."""
    found: dict[str, set[str]] = {room: set() for room in rooms_of(floor)}
    for room, used in found.items():
        for path in (ROOT / floor / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
                if len(parts) > 1 and parts[0] == floor and parts[1] in found and parts[1] != room:
                    used.add(parts[1])
    return found


def needed(arrows: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that no way over other rooms stands for."""

    def reached(room: str) -> set[str]:
        return arrows[room].union(*(reached(other) for other in arrows[room]))

    return sorted(
        (room, used) for room, direct in arrows.items() for used in direct if not any(used in reached(other) for other in direct - {used})
    )


def house() -> Picture:
    """Return the picture."""
    parts: list[str] = []
    top = 12.0
    for floor, (says, places) in FLOORS.items():
        rows = 1 + max(row for _, row in places.values())
        high = HEAD + rows * ROW
        parts += _floor(floor, says, places, top, high)
        top += high
        if floor != "schemas":
            parts += _down(top)
            top += GAP
    says = "Each floor may use those below it; on a floor a room may use rooms further left, never the other way round."
    return Picture("The floors and rooms of the house", says, WIDTH, top + 12, "\n".join(parts))


def _floor(floor: str, says: str, places: Places, top: float, high: float) -> Iterator[str]:
    yield f"<rect x='8' y='{top:g}' width='{WIDTH - 16}' height='{high:g}' rx='8' {paint('paper', 'edge')}/>"
    yield text(LEFT, top + 27, floor, size=20, bold=True)
    yield text(LEFT + 112, top + 26, says, "soft", size=15)
    step = (WIDTH - LEFT - RIGHT - WIDE) / 10
    spots = {room: (LEFT + column * step, top + HEAD + row * ROW) for room, (column, row) in places.items()}
    for room, used in needed(arrows_of(floor)):
        (x, y), (to_x, to_y) = spots[room], spots[used]
        yield from _arrow(x, y + HIGH / 2, to_x + WIDE, to_y + HIGH / 2)
    for room, (x, y) in spots.items():
        yield from _room(room, x, y, STEPS.get(room) if floor == "tasks" else None)


def _room(room: str, x: float, y: float, step: str | None) -> Iterator[str]:
    edge, thick = ("series-0", 2) if step else ("edge", 1)
    yield f"<rect x='{x:.1f}' y='{y:.1f}' width='{WIDE}' height='{HIGH}' rx='5' {paint('paper', edge)} stroke-width='{thick}'/>"
    # The one long name is broken at its underscore.
    words = room.replace("_", "_ ").split(" ") if len(room) > LONGEST else [room]
    for number, word in enumerate(words):
        yield text(x + WIDE / 2, y + 20 + 12 * (number - (len(words) - 1) / 2), word, anchor="middle", size=12 if len(words) > 1 else 13)
    if step:
        yield f"<circle cx='{x + 2:.1f}' cy='{y + 1:.1f}' r='9' {paint('series-0')}/>"
        yield text(x + 2, y + 5, step, "paper", "middle", 12, bold=True)


def _arrow(x: float, y: float, to_x: float, to_y: float) -> Iterator[str]:
    # Up or down in the gap beside the room, then along the row, where no other room stands.
    path = f"M{x:.1f} {y:.1f}C{x - BEND:.1f} {y:.1f} {x - 4:.1f} {to_y:.1f} {x - BEND:.1f} {to_y:.1f}H{to_x + 6:.1f}"
    yield f"<path d='{path if y != to_y else f'M{x:.1f} {y:.1f}H{to_x + 6:.1f}'}' {paint(stroke='edge')} stroke-width='1.2'/>"
    yield f"<path d='M{to_x + 1:.1f} {to_y:.1f}l7 -3.5v7z' {paint('edge')}/>"


def _down(top: float) -> Iterator[str]:
    for x in (WIDTH / 2 - 60, WIDTH / 2, WIDTH / 2 + 60):
        yield f"<line x1='{x:g}' x2='{x:g}' y1='{top + 4:g}' y2='{top + GAP - 12:g}' {paint(stroke='edge')} stroke-width='2'/>"
        yield f"<path d='M{x:g} {top + GAP - 3:g}l-6 -10h12z' {paint('edge')}/>"


if __name__ == "__main__":
    PICTURE.write_text(house().alone(), "utf-8")
