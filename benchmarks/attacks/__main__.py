"""What it costs to attack a release before it is published: runs with and without attacks, in turn.

    python -m benchmarks.attacks [--rows 1000 100000 1000000] [--methods skald mondrian] [--times 3]

Prints the least CPU seconds of a run without attacks and of one with the default sample, which share of the latter attacks are, and how
many were played. The data are made in ``benchmarks/.data`` and kept. Ends with 1 if attacks are more than a fifth of a run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import measure, skald
from flows.demo import make_patients

DATA = Path(__file__).parent.parent / ".data"
ROOT = Path(__file__).parent.parent.parent
MOST = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="*", default=["skald", "mondrian"])
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'records':>10} {'method':<10}{'without':>9}{'with':>8}{'share':>8}{'attacks':>9}")
    over = False
    for rows in asked.rows:
        folder = DATA / f"medical-{rows}"
        if not (folder / "medical").exists():
            folder.mkdir(parents=True)
            make_patients(folder, rows)
        for method in asked.methods:
            without, attacked, played = least(folder, method, asked.times)
            share = 1 - without / attacked
            over |= share > MOST
            print(f"{rows:>10,} {method:<10}{without:>9.2f}{attacked:>8.2f}{share:>8.1%}{played:>9}", flush=True)
    if over:
        sys.exit("Attacks are more than a fifth of a run.")


def least(folder: Path, method: str, times: int) -> tuple[float, float, int]:
    """Return the least CPU seconds of runs without and with attacks, and how many attacks were played."""
    found: dict[str, list[float]] = {"off": [], "sample": []}
    played = 0
    with tempfile.TemporaryDirectory() as cache:
        # The first one compiles.
        for number in range(times + 1):
            for word, costs in found.items():
                for name in (".skald", "releases"):
                    shutil.rmtree(folder / name, ignore_errors=True)
                settings = ("--set", f"method={{name: {method}}}", "--set", f"attacks={word}")
                cost = measure(skald("run", "medical.yaml", "--direct", *settings), folder, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=cache)
                if number:
                    costs.append(cost.cpu)
                played = max(played, attacks_in(folder))
    return min(found["off"]), min(found["sample"]), played


def attacks_in(folder: Path) -> int:
    """Return how many attacks a run played: those of the release, and those that stay in the work folder."""
    written = [*folder.glob("releases/medical/*/manifest.json"), *folder.glob(".skald/*/untold.json")]
    return sum(len(json.loads(path.read_text())["attacks"]) for path in written)


if __name__ == "__main__":
    main()
