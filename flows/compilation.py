"""``python -m flows.compilation``: compile the loops of all methods once, before any run needs them.

Loops are compiled for the types that they are called with. So small jobs of every method are run, of records and of persons, in a folder
that is removed; what is compiled is kept where every run looks for it (:mod:`core.compiling.compiled`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from core.columns.sorting import FEW, order_of, order_of_digests, sort_numbers
from core.compiling.compiled import compiled_loops_only
from core.formats.record_counts import count_records
from data.tables import JOBS, maker
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.engine.flows import SWITCH
from tasks.planning.plan import make_plan

ROWS = 2_000
MORE = {"skald": 30_000}
"""Records without which a method has no use for some of its loops, beside few of which most cells are alone, for which it has others."""
CHUNK = 20_000
"""Records of a chunk, so that there are several of many records, and what is done with several is compiled too."""
PROMISES = ("privacy.k=5", "privacy.l={health_condition: {distinct: 2}}", "privacy.t={health_condition: {t: 0.5}}")
"""What is promised, each by itself: l and t have loops of their own."""
LONGEST_FIRST = ("kmember", "mondrian")
OF_TABLES = ("skald", "mondrian")
"""Methods that jobs of several tables take."""


def compile_loops(methods: Sequence[str] = tuple(METHODS)) -> None:
    """Run small jobs of methods in two processes, so that their loops are compiled and cached on disk.

    The compiled code is kept in numba's cache.

    Raises:
        SkaldError: a folder for them cannot be written.
    """
    ordered = sorted(methods, key=lambda name: (name not in LONGEST_FIRST, name))
    with TemporaryDirectory() as folder, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name in ("medical", "visits"):
            maker(name)(Path(folder, name), ROWS)
            shutil.copy(JOBS / f"{name}.yaml", folder)
        for name in MORE.keys() & methods:
            maker("medical")(Path(folder, f"many-{name}"), MORE[name])
        shutil.copytree(JOBS / "hierarchies", Path(folder, "hierarchies"))
        sorting, planning = pool.submit(_sort), pool.submit(_plan, folder)
        of_tables = [pool.submit(_run_tables, folder)] if set(OF_TABLES) <= set(methods) else []
        for _ in pool.map(_run, [folder] * len(ordered), ordered):
            pass
        for one in (sorting, planning, *of_tables):
            one.result()


@compiled_loops_only()
def _sort() -> None:
    """Run sorting of all integer types and a CSV count, so that their loops are compiled.

    Small jobs sort few records by comparing them, and read Parquet.
    """
    for dtype in (np.uint32, np.uint64):
        sort_numbers(np.zeros(FEW, dtype), 1)
    order_of(np.zeros(FEW, np.int64), np.iinfo(np.int64).max)
    order_of_digests(np.zeros(FEW, np.uint64))
    count_records([b'a,"b"\n'], ",", 2)


@compiled_loops_only()
def _plan(folder: str) -> None:
    """Plan the small jobs, of records and of persons, so that the loops of a plan are compiled."""
    os.environ[SWITCH] = "1"
    for name in ("medical", "visits"):
        settings = "privacy.k=5", "memory=256MB", f"work=plan-{name}", f"source.path={name}/*.parquet"
        make_plan(load_job(Path(folder, f"{name}.yaml"), settings))


@compiled_loops_only()
def _run(folder: str, method: str) -> None:
    """Run the small jobs of a method in this process, without Prefect."""
    os.environ[SWITCH] = "1"
    flow = METHODS[method].flow.load()
    runs = [(job, job, promise) for job in ("medical", "visits") for promise in PROMISES]
    runs += [("medical", f"many-{method}", PROMISES[0])] if method in MORE else []
    for job, source, promise in runs:
        places = f"work={source}-{method}", f"target={source}-{method}.releases", f"source.path={source}/*.parquet"
        settings = "privacy.k=5", promise, "memory=256MB", f"chunk_rows={CHUNK}"
        flow(Path(folder, f"{job}.yaml"), (f"method={{name: {method}}}", *settings, *places))


@compiled_loops_only()
def _run_tables(folder: str) -> None:
    """Run a small job of several tables by each method that takes them."""
    os.environ[SWITCH] = "1"
    from flows.tables import tables  # noqa: PLC0415 - what it is made of is decided when it is loaded

    maker("hospital")(Path(folder, "hospital"), ROWS)
    shutil.copy(JOBS / "hospital.yaml", folder)
    for method in OF_TABLES:
        places = f"work=tables-{method}", f"target=tables-{method}.releases"
        # A small table has few persons of one history.
        settings = "privacy.k=5", "suppression={limit: 0.5, rows: 0.9}", f"method={{name: {method}}}", "memory=256MB"
        tables(Path(folder, "hospital.yaml"), (*settings, *places))


if __name__ == "__main__":
    sys.stdout.write("Compiling the loops of all methods, once: a minute or two on two cores.\n")
    compile_loops()
