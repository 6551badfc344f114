"""How the documentation is built: Sphinx, pages in Markdown (MyST), the reference made from the code at every build."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from reference_pages import write_pages  # noqa: E402 - the path is set just above
from sphinx.application import Sphinx  # noqa: E402

project = "SKALD"
author = "The SKALD authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
html_theme = "furo"
html_title = "SKALD"
html_copy_source = False
html_show_sphinx = False
exclude_patterns = ["_build", "images/README.md"]


def setup(app: Sphinx) -> None:
    """Make the reference before anything is read."""
    app.connect("builder-inited", lambda _: write_pages(HERE / "reference"), priority=100)
