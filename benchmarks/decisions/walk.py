"""How much of the code a job of method skald runs.

Counted are functions, files, packages, and frames above the statement that decides.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from flows.demo import make_patients

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("flows", "tasks", "core", "schemas")
DECIDES = "Promise.too_few"
"""The comparison of a class's size with k."""


class Trace:
    """What a profiled process calls of the product.

    Attributes:
        called: By code object, how often it was called.
        deciding: The stacks of files and functions above the deciding statement, outermost first.
    """

    def __init__(self) -> None:
        self.called: dict[CodeType, int] = defaultdict(int)
        self.deciding: set[tuple[str, ...]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and part(code):
            self.called[code] += 1
            if code.co_qualname == DECIDES:
                self.deciding.add(stack(frame))

    @property
    def files(self) -> dict[str, int]:
        """How many functions of each file were called."""
        found: dict[str, int] = defaultdict(int)
        for code in self.called:
            found[part(code)] += 1
        return dict(found)


def part(code: CodeType) -> str:
    """Return the file of a code object below the project's folder; empty if it is not the product's."""
    return _below(code.co_filename)


@cache
def _below(name: str) -> str:
    path = Path(name)
    if path.suffix != ".py" or not path.is_relative_to(ROOT):
        return ""
    below = path.relative_to(ROOT)
    return str(below) if below.parts[0] in LAYERS else ""


def stack(frame: FrameType | None) -> tuple[str, ...]:
    """Return the functions of the product that wait for a frame, and the frame's own, outermost first."""
    found = []
    while frame is not None:
        if file := part(frame.f_code):
            found.append(f"{file}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return tuple(reversed(found))


def traced(job: Path) -> Trace:
    """Run a job in this process without Prefect, and return what it called."""
    os.environ["SKALD_DIRECT"] = "1"
    from flows.skald import skald

    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        skald(job)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


def walk(given: argparse.Namespace) -> None:
    """Print the functions, files and packages of a traced job.

    Print also its deepest stack above the deciding statement.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = traced(make_patients(Path(folder), min(given.rows[0], 20_000)))
    files = trace.files
    packages = {str(Path(file).parent) for file in files}
    deepest = max(trace.deciding, key=len)
    lines = sum(len(path.read_text().splitlines()) for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    print(f"{len(trace.called):,} functions in {len(files)} files and {len(packages)} packages; {len(deepest) - 1} frames above {DECIDES}")
    print(f"the product has {lines:,} lines in {sum(1 for layer in LAYERS for _ in (ROOT / layer).rglob('*.py')):,} files\n")
    print("\n".join(f"  {frame}" for frame in deepest))
    for package in sorted(packages):
        inside = {Path(file).name: count for file, count in sorted(files.items()) if str(Path(file).parent) == package}
        print(f"\n{package}: " + ", ".join(f"{name} {count}" for name, count in inside.items()))
