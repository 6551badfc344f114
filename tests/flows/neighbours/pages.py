"""The programs that a how-to shows, as files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.places import ROOT

BLOCK = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.M | re.S)


def programs(page: str, folder: Path) -> list[str]:
    """Writes every program of a page that has a caption into a folder; returns their names."""
    found = BLOCK.findall((ROOT / "docs" / "howto" / page).read_text("utf-8"))
    for name, text in found:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [name for name, _ in found]
