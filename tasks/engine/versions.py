"""The versions of what makes a release."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("skald", "prefect", "duckdb", "polars", "pyarrow", "numpy", "pandera", "pydantic")


def versions() -> dict[str, str]:
    """Returns the version of Python and of each package, by name."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
