"""The cost of a small job: warm, at first, and through Prefect.

The job is Adult: 30,162 records, eight quasi-identifiers, k = 10, limit 0.

    python -m benchmarks.start [--data FOLDER] [--arx JAR] [--repeats 3] [--first METHOD ...]

``--data`` holds ``adult/adult.csv`` with its hierarchies, as the ARX project has them; without them as many synthetic patients are taken.
The floor is a process that imports what reads and counts records. A first run finds no compiled loop, all others find them all; each
runs in a folder of its own, so that none finds what another has counted. Machines differ, and one machine is faster at one minute than at
the next: so the floor is measured beside each run, the ratio is the median of some pairs, and limits are ratios.
``--arx`` names ARX's library (libarx-*.jar), which anonymises the same table in the same run. Ends with 1 if a figure is over its limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from socket import socket
from typing import NamedTuple

from benchmarks.local_suppression import DATA, ROOT, adult
from benchmarks.measure import Cost, measure, skald
from flows.demo import make_patients

FLOOR = [sys.executable, "-c", "import polars, duckdb, pyarrow"]
RECORDS = 30_162
HELP, PLAN, WARM, SERVER, PREFECT = 0.8, 2.7, 3.2, 5.4, 8.1
"""Floors of CPU that the help, a plan, a warm run, a configured server on top of that, and a run through Prefect without one may cost."""
FIRST = {"skald": 5.4, "mondrian": 10.8, "kmember": 16.2, "rayden": 10.8, "canon": 10.8, "mondrian_cof": 10.8, "clustering": 10.8}
"""Floors that a first run of a method may cost on top of a warm one."""
PATIENCE = 180
ARX = Path(__file__).parent / "Adult.java"
Environment = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--arx", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first", nargs="*", choices=tuple(FIRST), default=["skald", "mondrian", "kmember"], metavar="METHOD")
    given = parser.parse_args()
    # As users have it: where the environment forbids to keep bytecode, each process compiles all of Python's modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        folder, repeats = Path(temporary), given.repeats
        median = partial(median_of, folder)
        warm = median(anonymised(folder, given.data) for _ in range(repeats + 1))
        runs = {
            "skald --help": median(measure(skald("--help"), ROOT) for _ in range(repeats)),
            "skald plan": median(planned(folder, given.data) for _ in range(repeats)),
            "skald run --direct": warm,
            "skald run, no server configured": median(through_prefect(folder, given.data) for _ in range(repeats + 1)),
            "skald run, through a Prefect server": through_server(folder, given.data, repeats),
        }
        limits = dict(zip(runs, (HELP, PLAN, WARM, PREFECT, warm.ratio + SERVER), strict=True))
        for method in given.first:
            once = partial(anonymised, folder, given.data, method, NUMBA_CACHE_DIR=str(folder / f"loops-{method}"))
            first, again = median(once() for _ in range(1)), median(once() for _ in range(repeats))
            name = f"first run of {method} over a warm one"
            runs[name] = Run(Cost(first.cost.cpu - again.cost.cpu, first.cost.wall - again.cost.wall, first.cost.peak), first.floor)
            limits[name] = FIRST[method]
        if given.arx:
            runs["ARX"] = median(arx(folder, given.data / "adult", given.arx) for _ in range(repeats))
    print_runs(runs, limits, without_arx=not given.arx)
    if over := [name for name, most in limits.items() if runs[name].ratio > most]:
        sys.exit(f"Over their limits: {', '.join(over)}.")


class Run(NamedTuple):
    """What a run costs, and the floor beside it."""

    cost: Cost
    floor: Cost

    @property
    def ratio(self) -> float:
        """CPU in floors."""
        return self.cost.cpu / self.floor.cpu


def print_runs(runs: Mapping[str, Run], limits: Mapping[str, float], *, without_arx: bool) -> None:
    """Print a line for each run, with its ratio to the floor and the limit of that."""
    print(f"{'':<44}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'floor':>8}{'× floor':>9}{'at most':>9}")
    for name, run in runs.items():
        most, cost = f"{limits[name]:>9.1f}" if name in limits else "", run.cost
        print(f"{name:<44}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak / 1e6:>9.0f}{run.floor.cpu:>8.2f}{run.ratio:>9.1f}{most}")
    if without_arx:
        print(f"{'ARX':<44}{'no jar of it was named (--arx)':>34}")


def median_of(folder: Path, costs: Iterator[Cost]) -> Run:
    """Return the median of some runs by their ratio to the floor, which is measured after each of them."""
    runs = sorted((Run(cost, measure(FLOOR, folder)) for cost in costs), key=lambda run: run.ratio)
    return runs[len(runs) // 2]


def job_in(folder: Path, data: Path) -> Path:
    """Write the job into a folder of its own, in which nothing has been counted before."""
    place = Path(tempfile.mkdtemp(dir=folder))
    known = (data / "adult" / "adult.csv").is_file()
    return adult(place, data / "adult") if known else make_patients(place / "patients", RECORDS)


def anonymised(folder: Path, data: Path, method: str = "skald", *options: str, **environment: str) -> Cost:
    """Measure a run; it is ``--direct`` unless options say otherwise."""
    settings = ["--set", "privacy.k=10", "--set", "suppression.limit=0", "--set", f"method.name={method}"]
    return measure(skald("run", str(job_in(folder, data)), *settings, *(options or ("--direct",))), ROOT, **environment)


def planned(folder: Path, data: Path) -> Cost:
    """Measure a plan."""
    return measure(skald("plan", str(job_in(folder, data))), ROOT)


def through_prefect(folder: Path, data: Path) -> Cost:
    """Measure a run through Prefect where no server is configured.

    A first run makes the database of Prefect's home.
    """
    return anonymised(folder, data, "skald", "--runner", "threads", PREFECT_HOME=str(folder / "home"))


def through_server(folder: Path, data: Path, repeats: int) -> Run:
    """What the command costs that hands its run to a server; the server's own work is not in it."""
    with server(folder / "prefect") as environment:
        return median_of(folder, (anonymised(folder, data, "skald", "--runner", "threads", **environment) for _ in range(repeats + 1)))


@contextmanager
def server(home: Path) -> Iterator[Environment]:
    """A Prefect server of its own, with a database of its own."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    quiet = {
        "PREFECT_HOME": str(home),
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, env=os.environ | quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/api/health")
            yield quiet | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        finally:
            process.terminate()


def wait_for(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # an address of this machine
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit("Prefect's server did not start.")


def arx(folder: Path, data: Path, jar: Path) -> Cost:
    """The same table, k and limit by ARX, its start and its compiler included, as ours are."""
    classes = folder / "classes"
    if not classes.exists():
        subprocess.run(["javac", "-cp", str(jar), "-d", str(classes), str(ARX)], check=True)
    written = folder / "arx.csv"
    cost = measure(["java", "-cp", f"{jar}{os.pathsep}{classes}", "Adult", str(data), str(written)], folder)
    shutil.rmtree(written, ignore_errors=True)
    return cost


if __name__ == "__main__":
    main()
