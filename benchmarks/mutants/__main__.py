"""``python -m benchmarks.mutants``: puts faults into the code, one at a time, and counts those that a test notices.

A sample of places in the recount, the writing, privacy, persons, composition and the search, as many of each kind of fault. It takes hours:
a trial runs the tests nearest to the fault, up to the first that fails. ``--only`` takes a part of a mutant's name, ``--list``
runs nothing. The tests of slow marks are asked with ``--slow`` alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import Mutant, mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest, room_of
from benchmarks.mutants.trial import Copy, Verdict

ROOT = Path(__file__).resolve().parents[2]


def all_mutants() -> list[Mutant]:
    """Returns every mutant of the code that is looked at, equivalent ones excepted."""
    found = list[Mutant]()
    for begin in NEAREST:
        paths = [ROOT / begin] if begin.endswith(".py") else sorted((ROOT / begin).rglob("*.py"))
        found += [one for path in paths for one in mutants_of(str(path.relative_to(ROOT)), path.read_text("utf-8"))]
    return [one for one in found if one.name not in EQUIVALENT]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Returns so many of them, of each kind in turn, the same for the same seed."""
    ranked, numbers = sorted(mutants, key=lambda one: one.rank(seed)), Counter[str]()
    turns = list[tuple[int, Mutant]]()
    for one in ranked:
        turns.append((numbers[one.kind], one))
        numbers[one.kind] += 1
    return sorted((one for _, one in sorted(turns, key=lambda turn: turn[0])[:count]), key=lambda one: (one.path, one.begin))


def play(mutants: Sequence[Mutant], marks: str, limit: int, kept: Path | None) -> Mapping[Mutant, Verdict]:
    """Tries each mutant; what was tried before and written to ``kept`` is taken from there."""
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    known: dict[str, list[object]] = dict(json.loads(line) for line in lines)
    verdicts: dict[Mutant, Verdict] = {}
    with TemporaryDirectory() as folder:
        copy = Copy(ROOT, Path(folder))
        # A test that fails without a fault would notice every one.
        for tests in dict.fromkeys(tuple(nearest(one.path)) for one in mutants if one.name not in known):
            if failed := copy.tried(None, tests, marks, limit).killed:
                sys.exit(f"Without any fault {failed} fails in the copy.")
        for number, one in enumerate(mutants, start=1):
            if one.name in known:
                killed, seconds = known[one.name]
                verdicts[one] = Verdict(str(killed), float(str(seconds)))
                continue
            verdicts[one] = found = copy.tried(one, nearest(one.path), marks, limit)
            print(f"{number}/{len(mutants)} {found.seconds:6.1f} s  {found.killed or 'LIVES'}  {one.name}", flush=True)
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps([one.name, list(found)]) + "\n")
    return verdicts


def printed(verdicts: Mapping[Mutant, Verdict]) -> None:
    """Prints how many were killed by subject, and every one that lives."""
    console, table = Console(width=180), Table("code", "faults", "noticed", "CPU s", title="Faults that the nearest tests notice")
    rooms = Counter(room_of(one.path) for one in verdicts)
    for room, count in sorted(rooms.items()):
        mine = [verdict for one, verdict in verdicts.items() if room_of(one.path) == room]
        table.add_row(room, f"{count:,}", f"{sum(bool(one.killed) for one in mine):,}", f"{sum(one.seconds for one in mine):,.0f}")
    killed = sum(bool(one.killed) for one in verdicts.values())
    table.add_section()
    table.add_row(
        "all",
        f"{len(verdicts):,}",
        f"{killed:,} ({killed / max(len(verdicts), 1):.0%})",
        f"{sum(one.seconds for one in verdicts.values()):,.0f}",
    )
    console.print(table)
    for one, verdict in verdicts.items():
        if not verdict.killed:
            console.print(f"lives: {one.path}:{one.line} {one.name}", highlight=False, markup=False)


def main(given: Sequence[str] | None = None) -> None:
    """Tries a sample and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults of the sample")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--slow", action="store_true", help="slow tests too")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds of a trial")
    parser.add_argument("--kept", type=Path, help="a file to which each verdict is added, and from which those of an earlier run are taken")
    parser.add_argument("--list", action="store_true", help="print the sample only")
    asked = parser.parse_args(given)
    chosen = sample([one for one in all_mutants() if asked.only in one.name], asked.count, asked.seed)
    if asked.list:
        for one in chosen:
            print(f"{one.path}:{one.line} {one.name}")
        return
    printed(play(chosen, "slow or not slow" if asked.slow else "not slow", asked.limit, asked.kept))


if __name__ == "__main__":
    main()
