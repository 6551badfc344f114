"""Where things lie: this checkout, and the real data that may lie beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
ADULT = DATA / "adult"
