"""``python -m benchmarks.mutants``: puts faults into the code, one at a time, and counts those that a test notices.

A sample of places in the recount, the writing, privacy, persons, composition and the search, as many of each kind of fault.
It takes an hour: first it is measured which tests reach which functions; a trial then runs those that reach the fault, cheapest first,
up to the first that fails. ``--only`` takes a part of a mutant's name, ``--list`` runs nothing.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import Mutant, mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest, room_of
from benchmarks.mutants.reach import Reach, callers, cheapest_of, kernels, measured, read, written
from benchmarks.mutants.trial import Copy, Stage, Verdict
from benchmarks.mutants.within import Planned

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("core", "tasks")
"""The modules of which it is measured what tests reach."""
PROCESSES = 2
"""Processes that measure what tests reach."""
FIRST, FIRST_SECONDS = 40, 4.0
"""At most so many tests are asked first, and for so many CPU seconds."""
STARTING, TIMES = 60, 4
"""CPU seconds that a process may take besides its tests, and how many times what these take without a fault they may take."""
COMPILING = 180
"""CPU seconds that loops with a fault take to be compiled anew."""


def all_mutants() -> list[Mutant]:
    """Returns every mutant of the code that is looked at, equivalent ones excepted."""
    found = list[Mutant]()
    for begin in NEAREST:
        found += [one for path in _modules(begin) for one in mutants_of(str(path.relative_to(ROOT)), path.read_text("utf-8"))]
    return [one for one in found if one.name not in EQUIVALENT]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Returns so many of them, of each kind in turn, the same for the same seed."""
    ranked, numbers = sorted(mutants, key=lambda one: one.rank(seed)), Counter[str]()
    turns = list[tuple[int, Mutant]]()
    for one in ranked:
        turns.append((numbers[one.kind], one))
        numbers[one.kind] += 1
    return sorted((one for _, one in sorted(turns, key=lambda turn: turn[0])[:count]), key=lambda one: (one.path, one.begin))


class Asked:
    """Which tests are asked about a fault: those that reach its function, for so many CPU seconds.

    Of a function that numba compiles it is known who calls it. Where no test is known, the nearest are asked.

    Args:
        reaches: What each test costs and reaches.
        marks: As pytest's ``-m``.
        limit: CPU seconds of the tests of a fault, by what they cost without it.
        then: Marks of those of the tests nearest to its module that are asked of a fault which the others do not notice.
    """

    def __init__(self, reaches: Sequence[Reach], marks: str, limit: int, then: str = "") -> None:
        self._reaches, self._tests = reaches, cheapest_of(reaches)
        self._marks, self._limit, self._then = marks, limit, then
        self._sources = {str(path.relative_to(ROOT)): path.read_text("utf-8") for layer in LAYERS for path in _modules(layer)}

    def is_compiled(self, mutant: Mutant) -> bool:
        """Tells whether numba compiles the function of a fault."""
        return mutant.function in kernels(ast.parse(self._sources[mutant.path]))

    def planned(self, mutant: Mutant) -> Planned | None:
        """Returns how a fault is tried within a process of many; None if it cannot be."""
        tests = self._reaching(mutant)
        if self.is_compiled(mutant) or not tests:
            return None
        sums = accumulate(one.seconds for one in tests)
        names = [one.test for one, total in zip(tests, sums, strict=True) if total <= self._limit] or [tests[0].test]
        source = mutant.applied(self._sources[mutant.path])
        return Planned(mutant.name, mutant.path, mutant.function, source, names, STARTING + TIMES * self._limit)

    def _reaching(self, mutant: Mutant) -> list[Reach]:
        """Returns the tests that are known to reach a fault: first those of files that import its module, and cheapest first."""
        noted = not kernels(ast.parse(self._sources[mutant.path]))
        at = {f"{mutant.path}:{mutant.function}"} if noted else callers(self._sources, mutant.path, mutant.function)
        found = {test for one in at for test in self._tests.get(one, ())}
        line = f"from {mutant.path.removesuffix('.py').replace('/', '.')} import"
        own = {test for test in self._reaches if line in _text(test.test.split("::")[0])}
        # What tests call themselves of a module with compiled loops is not noted.
        found |= own if not noted else set()
        return sorted(found, key=lambda test: (test not in own, test.seconds, test.test))

    def stages(self, mutant: Mutant) -> list[Stage]:
        """Returns the tests of a fault: a few first, which mostly suffice, so that the files of the others are not even read."""
        tests, starting = self._reaching(mutant), STARTING + COMPILING * self.is_compiled(mutant)
        sums = list(accumulate(one.seconds for one in tests))
        # The cheapest one is asked whatever it costs.
        affordable = max(sum(total <= self._limit for total in sums), 1)
        first = min(max(sum(total <= FIRST_SECONDS for total in sums), 1), FIRST, affordable)
        parts = [part for part in (tests[:first], tests[first:affordable]) if part]
        asked = [Stage([one.test for one in part], starting + ceil(TIMES * sum(one.seconds for one in part))) for part in parts]
        further = [marks for marks in (self._then, "" if tests else self._marks) if marks]
        near = [test for test in nearest(mutant.path) if (ROOT / test).exists()]
        return asked + [Stage((test,), TIMES * self._limit + starting, marks) for marks in reversed(further) for test in near]


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""


def play(mutants: Sequence[Mutant], copy: Copy, asked: Asked, marks: str, kept: Path | None) -> Mapping[Mutant, Verdict]:
    """Tries each mutant; what was tried before and written to ``kept`` is taken from there."""
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    known: dict[str, list[object]] = dict(json.loads(line) for line in lines)
    verdicts: dict[Mutant, Verdict] = {}
    plan = [planned for one in mutants if one.name not in known and (planned := asked.planned(one))]
    for name, verdict in copy.tried_within(plan, marks).items() if plan else ():
        known[name] = list(verdict)
        if kept:
            with kept.open("a") as file:
                file.write(json.dumps([name, list(verdict)]) + "\n")
    for number, one in enumerate(mutants, start=1):
        if one.name in known:
            killed, seconds = known[one.name]
            verdicts[one] = Verdict(str(killed), float(str(seconds)))
            continue
        verdicts[one] = found = copy.tried(one, asked.stages(one))
        print(f"{number}/{len(mutants)} {found.seconds:6.1f} s  {found.killed or 'LIVES'}  {one.name}", flush=True)
        if kept:
            with kept.open("a") as file:
                file.write(json.dumps([one.name, list(found)]) + "\n")
    return verdicts


def failing_without(copy: Copy, verdicts: Mapping[Mutant, Verdict]) -> set[str]:
    """Returns those of the tests that noticed a fault which fail without one too: they noticed nothing."""
    left = sorted({one.killed for one in verdicts.values() if "::" in one.killed})
    failing = set[str]()
    while left and (failed := copy.tried(None, [Stage(left, STARTING + 10 * len(left))]).killed):
        if failed not in left:
            sys.exit(f"Without any fault: {failed}.")
        failing.add(failed)
        left.remove(failed)
    return failing


def reached(file: Path | None, marks: str) -> list[Reach]:
    """Returns which tests reach which functions, from the file if it is there; else it is measured, and kept in the file."""
    if file and file.exists():
        return read(file)
    paths = [str(path.relative_to(ROOT)) for layer in LAYERS for path in _modules(layer)]
    with TemporaryDirectory() as folder:
        found = measured(Copy(ROOT, Path(folder)).folder, paths, ["tests"], marks, PROCESSES)
    if file:
        written(found, file)
    return found


def _modules(begin: str) -> list[Path]:
    return [ROOT / begin] if begin.endswith(".py") else sorted((ROOT / begin).rglob("*.py"))


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
    parser.add_argument("--marks", default="not slow and not ci", help="which tests are asked, as pytest's -m; `make test` by default")
    parser.add_argument("--then", default="", help="which further tests of those nearest to a fault are asked, such as 'ci and not slow'")
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds of the tests of a fault, by what they cost without it")
    parser.add_argument("--reach", type=Path, help="a file of which tests reach which functions; made, in minutes, if it is not there")
    parser.add_argument("--kept", type=Path, help="a file to which each verdict is added, and from which those of an earlier run are taken")
    parser.add_argument("--list", action="store_true", help="print the sample only")
    options = parser.parse_args(given)
    chosen = sample([one for one in all_mutants() if options.only in one.name], options.count, options.seed)
    if options.list:
        for one in chosen:
            print(f"{one.path}:{one.line} {one.name}")
        return
    asked = Asked(reached(options.reach, options.marks), options.marks, options.limit, options.then)
    with TemporaryDirectory() as folder:
        copy = Copy(ROOT, Path(folder))
        copy.make_ready(["tests"])
        verdicts = play(chosen, copy, asked, options.marks, options.kept)
        failing = failing_without(copy, verdicts)
    printed({one: verdict._replace(killed="") if verdict.killed in failing else verdict for one, verdict in verdicts.items()})


if __name__ == "__main__":
    main()
