"""Small files that exhaust the machine: archives that unpack to gigabytes, and endless entries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.intruder.attack import ROOT, Attack, run

PART = "small files that take the machine"
MEGABYTE, SECONDS = 1_000_000, 60
JOB: Mapping[str, Any] = {
    "version": 1,
    "name": "job",
    "memory": "512MB",
    "target": "releases/job",
    "source": {"path": "in.parquet"},
    "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5, 10]}}], "insensitive": ["text"]},
    "privacy": {"k": 5},
    "method": {"name": "skald"},
}


def _write(folder: Path, size: int, rows: int = 3_000) -> int:
    """Write records with the same text in each; return the bytes of the file."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * size])
    table = pa.table({"age": 30 + np.arange(rows) % 3, "text": text})
    pq.write_table(table, folder / "in.parquet", compression="zstd", store_schema=False)
    return (folder / "in.parquet").stat().st_size


def _ended(folder: Path, *arguments: object) -> str:
    """Run a command; return how it ended and what it took at most."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "SKALD_DIRECT": "1"}
    with (folder / "printed").open("wb") as printed:
        command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
        # The system's own limit of CPU time: a command that reads for hours is ended.
        limited = ["bash", "-c", f'ulimit -t {SECONDS}; exec timeout {SECONDS} "$@"', "limited", *command]
        process = subprocess.Popen(limited, cwd=folder, env=variables, stdout=printed, stderr=printed)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = (folder / "printed").read_text().strip().splitlines() or [""]
    return f"exit code {process.returncode}, {used.ru_maxrss * 1024 / 1e6:,.0f} MB: {said[-1][:120]}"


def _long_value(folder: Path, size: int, role: str) -> str:
    written = _write(folder, size)
    columns = {name: listed for name, listed in JOB["columns"].items() if name != "insensitive"} | {role: ["text"]}
    (folder / "job.yaml").write_text(yaml.safe_dump({**JOB, "columns": columns}))
    return f"{written / 1000:.1f} kB: {_ended(folder, 'run', 'job.yaml', '--direct')}"


def _released(folder: Path, size: int = 1) -> Path:
    _write(folder, size)
    run(folder, JOB)
    target = folder / "releases/job"
    return target / (target / "CURRENT").read_text().strip()


def _verified(folder: Path, lay: Callable[[Path], object]) -> str:
    release = _released(folder)
    lay(release)
    return _ended(folder, "verify", release)


def _link(release: Path) -> None:
    (release / "manifest.json").unlink()
    (release / "manifest.json").symlink_to("/dev/zero")


def _pipe(release: Path) -> None:
    (release / "manifest.json").unlink()
    os.mkfifo(release / "manifest.json")


def _grown(release: Path) -> None:
    os.truncate(next((release / "data").iterdir()), 1 << 40)


def _put_back(folder: Path) -> str:
    old = _released(folder)
    _released(folder, 2)
    (old.parent / "CURRENT").write_text(f"{old.name}\n")
    ended = _ended(folder, "verify", old)
    printed = (folder / "printed").read_text()
    return f"{ended.partition(',')[0]}, {'a newer release is named' if 'not the newest' in printed else 'and nothing of a newer one'}"


ATTACKS = [
    Attack(
        PART,
        "a value of 1 MB in 3,000 records, left out of the release",
        "0.6 kB: more than 3,000 MB, ended from outside",
        partial(_long_value, size=MEGABYTE, role="identifiers"),
    ),
    Attack(
        PART,
        "a value of 64 MB in 3,000 records",
        "2.5 kB: more than 3,000 MB, ended from outside",
        partial(_long_value, size=64 * MEGABYTE, role="insensitive"),
    ),
    Attack(PART, "manifest.json is a link to /dev/zero", "more than 3,000 MB, ended from outside", partial(_verified, lay=_link)),
    Attack(PART, "manifest.json is a pipe", "waits without end", partial(_verified, lay=_pipe)),
    Attack(PART, "a data file of 1 TB without content", "is read for hours", partial(_verified, lay=_grown)),
    Attack(PART, "an old release is put back under CURRENT", "exit code 0, and nothing of a newer one", _put_back),
]
