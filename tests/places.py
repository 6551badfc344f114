"""Where things lie: this checkout, and the real data that may lie beside it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
ADULT = DATA / "adult"


@cache
def tree(path: Path) -> ast.Module:
    """Parse a file of Python once for all laws that look at it."""
    return ast.parse(path.read_text("utf-8"))
