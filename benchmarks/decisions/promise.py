"""What it costs to ask a promise in compiled loops for the first time, and in arrays."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

ASKED = """
import time
import numpy as np
from core.privacy.kernels import demands_of, keeps
from core.privacy.models import EntropyDiversity, Spread
from core.privacy.promise import Promise
promise, whole, counts = Promise(5, (EntropyDiversity("s", 2.0),)), np.ones(3, np.int64), np.array([3, 2, 0])
spread = Spread(np.zeros(2, np.int64), np.arange(2), counts[:2], whole)
start = time.process_time()
failing = promise.fails(np.array([5]), {"s": spread})[0]
arrays = time.process_time() - start
kept = keeps(5, 5, counts, np.arange(3), 2, 0, demands_of(promise, ("s",), (whole,)))
assert kept != failing
print(f"first asked in arrays: {arrays:.3f} s of CPU; in loops, compiled for it: {time.process_time() - start - arrays:.1f} s")
"""


def promise(_: argparse.Namespace) -> None:
    """Print what it costs to ask for the first time, with nothing compiled before."""
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", ASKED], env=os.environ | {"NUMBA_CACHE_DIR": folder}, check=True)
