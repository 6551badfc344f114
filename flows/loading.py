"""What a process that is there for one command leaves out as it loads libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

UNUSED = ("pandas", "hypothesis")
"""Packages that Arrow, DuckDB and Pandera load wherever they are installed, and that no command makes use of."""


class _NotInstalled(MetaPathFinder):
    """Finds that a package is not installed, though it may be."""

    def find_spec(self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns None, for others to look, or raises what an import of a missing package raises.

        Raises:
            ModuleNotFoundError: it is one of those.
        """
        if fullname in UNUSED:
            msg = f"No module named '{fullname}'"
            raise ModuleNotFoundError(msg, name=fullname)
        return None


def load_less() -> None:
    """Lets this process do without packages that its libraries would load and nothing here uses, and without threads that only wait."""
    sys.meta_path.insert(0, _NotInstalled())
    # NumPy's linear algebra, of which only learners of `skald utility` make use, else starts a thread for every core, and these spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
