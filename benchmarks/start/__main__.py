"""What a small job costs: Adult (30,162 records, eight quasi-identifiers, k = 10, limit 0), warm, at first, and through a Prefect server.

    python -m benchmarks.start [--data FOLDER] [--arx JAR] [--repeats 3]

``--data`` holds ``adult/adult.csv`` with its hierarchies, as the ARX project has them; without them as many synthetic patients are taken.
The floor is a process that imports what reads and counts records. The first run finds no compiled loop, all others find them all; each
runs in a folder of its own, so that none finds what another has counted. The least of some repeats is told, because a busy machine only
adds. ``--arx`` names ARX's library (libarx-*.jar), which anonymises the same table in the same run. Ends with 1 if a figure is over its
limit.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

from benchmarks.local_suppression import DATA, ROOT, adult
from benchmarks.measure import Cost, measure, skald
from flows.demo import make_patients

FLOOR = [sys.executable, "-c", "import polars, duckdb, pyarrow"]
RECORDS = 30_162
WARM, FIRST, SERVER = 1.2, 5.0, 2.0
"""CPU seconds that a warm run may take, that a first one may, and that a server may add."""
PATIENCE = 180
ARX = Path(__file__).parent / "Adult.java"
Environment = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--arx", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs = {
            "the floor: import polars, duckdb, pyarrow": least(measure(FLOOR, folder) for _ in range(given.repeats)),
            "first run, which compiles": least([anonymised(folder, given.data, NUMBA_CACHE_DIR=str(folder / "loops"))]),
            "warm": least(anonymised(folder, given.data) for _ in range(given.repeats + 1)),
            "through a Prefect server": through_server(folder, given.data, given.repeats),
        }
        if given.arx:
            costs["ARX"] = least(arx(folder, given.data / "adult", given.arx) for _ in range(given.repeats))
    print_costs(costs, without_arx=not given.arx)
    limits = {"warm": WARM, "first run, which compiles": FIRST, "through a Prefect server": costs["warm"].cpu + SERVER}
    over = [
        f"{name} takes {costs[name].cpu:.2f} CPU s where {most:.2f} were allowed" for name, most in limits.items() if costs[name].cpu > most
    ]
    if over:
        sys.exit("\n".join(over))


def print_costs(costs: dict[str, Cost], *, without_arx: bool) -> None:
    floor = next(iter(costs.values()))
    print(f"{'':<44}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'× floor':>9}")
    for name, cost in costs.items():
        print(f"{name:<44}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak / 1e6:>9.0f}{cost.cpu / floor.cpu:>9.1f}")
    if without_arx:
        print(f"{'ARX':<44}{'no jar of it was named (--arx)':>34}")


def least(costs: list[Cost] | Iterator[Cost]) -> Cost:
    """The cheapest of some runs."""
    return min(costs, key=lambda cost: cost.cpu)


def anonymised(folder: Path, data: Path, *options: str, **environment: str) -> Cost:
    """A run of its own, in which nothing has been counted before; ``--direct`` unless the environment names a server."""
    place = Path(tempfile.mkdtemp(dir=folder))
    known = (data / "adult" / "adult.csv").is_file()
    job = adult(place, data / "adult") if known else make_patients(place / "patients", RECORDS)
    direct = [] if "PREFECT_API_URL" in environment else ["--direct"]
    settings = ["--set", "privacy.k=10", "--set", "suppression.limit=0"]
    # As users have it: where the environment forbids to keep bytecode, each process compiles all of Python's modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return measure(skald("run", str(job), *settings, *direct, *options), ROOT, **environment)


def through_server(folder: Path, data: Path, repeats: int) -> Cost:
    """What the command costs that hands its run to a server; the server's own work is not in it."""
    with server(folder / "prefect") as environment:
        return least(anonymised(folder, data, **environment) for _ in range(repeats + 1))


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
