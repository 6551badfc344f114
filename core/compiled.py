"""Kernels whose code is spread over several files, compiled by numba and kept for the next process.

numba keeps a compiled function until the file that *defines* it changes; code of other files that went into it would stay as it was. So
what is kept lies in a folder named by the digest of all files of the kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., Any])
HERE = Path(__file__).parent
SETTINGS: Any = config


def compiler(*modules: str) -> Callable[[Function], Function]:
    """Returns a decorator that compiles kernels which call each other across modules of this package.

    Args:
        *modules: Their names, as in ``mondrian_rows``.
    """
    sources = b"".join((HERE / f"{module}.py").read_bytes() for module in modules)
    folder = Path(SETTINGS.CACHE_DIR or HERE / "__pycache__") / hashlib.sha256(sources).hexdigest()[:16]

    def compiled(function: Function) -> Function:
        elsewhere, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(folder)
        try:
            made = njit(cache=True, nogil=True)(function)
        finally:
            SETTINGS.CACHE_DIR = elsewhere
        return cast("Function", made)

    return compiled
