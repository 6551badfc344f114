"""Memory: a million records stay below one gigabyte, Prefect and its API included; few stay few whatever the lattice is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.compiling.compiled import compiled_kernels
from flows.demo import make_patients
from tests.jobs import people_job
from tests.patience import SECONDS
from tests.places import ROOT

CEILING = 1_000_000_000
BESIDE = 400_000_000
"""What the program and its libraries take, without Prefect."""
CHILD = """
import sys
from flows.loading import prepare_quick_start
prepare_quick_start()
from flows import cli
from tasks.engine.progress import peak_rss
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code
finally:
    print("peak", peak_rss(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_patients(tmp_path_factory.mktemp("million"), 1_000_000)


def peak_of(tmp_path: Path, job: Path, *options: str) -> int:
    """Bytes that a run of a job has held at most, in which nothing was compiled."""
    compiled = compiled_kernels()
    peak = peak_of_one(tmp_path / "first", job, *options)
    return peak if compiled_kernels() == compiled else peak_of_one(tmp_path / "second", job, *options)


def peak_of_one(tmp_path: Path, job: Path, *options: str) -> int:
    """Bytes that one run of a job has held at most."""
    inherited = {name: value for name, value in os.environ.items() if name != "SKALD_DIRECT" and not name.startswith("PREFECT")}
    settings = ["--set", f"work={tmp_path / 'work'}", "--set", f"target={tmp_path / 'target'}"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "run", str(job), *settings, *options],
        env=inherited | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target" / "CURRENT").exists()
    return int(done.stderr.split("peak")[-1])


@pytest.mark.slow
def test_a_million_records_need_at_most_one_gigabyte(job: Path, tmp_path: Path) -> None:
    """With Prefect, which takes more than a run without it."""
    assert peak_of(tmp_path, job) < CEILING


@pytest.mark.ci
def test_few_records_take_no_memory_for_the_cells_that_there_could_be(tmp_path: Path) -> None:
    """A part of the lattice begins at 250 million possible cells, of which two thousand records occupy two thousand at most."""
    columns = {name: np.random.default_rng(place).integers(0, 150, 2_000) for place, name in enumerate("abcd")}
    qids = [{"name": name, "hierarchy": {"widths": [2, 50]}} | ({"exact": False} if name == "a" else {}) for name in columns]
    path = people_job(tmp_path, pa.table(columns), columns={"quasi_identifiers": qids}, memory="100MB", suppression={"limit": 0.05})
    assert peak_of(tmp_path, path, "--direct") < 500_000_000


@pytest.mark.slow
def test_long_texts_in_one_row_group_are_not_held_all_at_once(tmp_path: Path) -> None:
    """They take three hundred megabytes, of which each thread would hold copies."""
    random, rows = np.random.default_rng(0), 150_000
    letters = pa.py_buffer(random.integers(97, 123, rows * 2_000, np.uint8))
    essays = pa.StringArray.from_buffers(rows, pa.py_buffer(np.arange(0, rows * 2_000 + 1, 2_000, np.int32)), letters)
    table = pa.table({"age": random.integers(0, 90, rows), "essay": essays})
    qids = [{"name": "age", "hierarchy": {"widths": [5, 20]}}]
    columns = {"quasi_identifiers": qids, "insensitive": ["essay"]}
    path = people_job(tmp_path, table, row_group=rows, columns=columns, memory="256MB", privacy={"k": 10})
    assert peak_of(tmp_path, path, "--direct") < 256_000_000 + BESIDE


def test_arrow_and_python_share_the_heaps_of_the_c_library() -> None:
    code = "from flows.loading import prepare_quick_start as p; p(); import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    inherited = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "system\n"
