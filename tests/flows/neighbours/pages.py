"""The programs that a how-to includes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.places import ROOT

PROGRAMS = ROOT / "docs" / "programs"


def programs(page: str, folder: Path) -> list[str]:
    """Copy every program that a page includes into a folder; return their names."""
    source = PROGRAMS / Path(page).stem
    names = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.is_file())
    text = (ROOT / "docs" / "howto" / page).read_text("utf-8")
    assert all(f"```{{literalinclude}} ../programs/{source.name}/{name}" in text for name in names)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return names
