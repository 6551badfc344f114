"""The versions of what makes a release."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("skald", "prefect", "duckdb", "polars", "pyarrow", "numpy", "pandera", "pydantic")


def versions() -> dict[str, str]:
    """Returns the version of Python and of each package, by name."""
    return {"python": sys.version.split()[0]} | {package: _version(package) for package in PACKAGES}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
