"""``python -m benchmarks.mutants``: put single faults into the code and count those a test notices.

A sample of places in the recount, the writing, privacy, persons, composition and the search, as many of each kind of fault.
First the tests run once, and it is noted which reach which functions. This takes some minutes, is kept in ``.cache/mutants``, and is
done again where functions came or went, and for files of tests that changed. A process then imports everything, and forks for each
fault: the child gives the function its code with the fault in memory, and runs the tests that reach it, nearest and cheapest first, up to
the first that fails. Two children run at a time. Faults in compiled loops are tried in a second session, in which these are plain Python.

Laws draw the same examples each time, so that a sample gives the same figures again. A test that fails without the fault too does not
count, nor does one that only reads source text. A test that takes more than ten times its CPU seconds, and ten more, counts as failed.
Verdicts are kept beside: a run that was stopped goes on. That a test kills a fault holds until the module or the file of the test changes;
that none does holds until anything changes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from benchmarks.mutants.copied import Copy
from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.mutations import Mutant, mutants_of
from benchmarks.mutants.nearest import NEAREST, nearest, room_of
from benchmarks.mutants.reach import files_of_tests, reached, state_of
from benchmarks.mutants.trial import Asked, Verdict, tried, verdicts_of

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "mutants"
PROCESSES = 2
"""Processes that measure what tests reach."""


def all_mutants() -> list[Mutant]:
    """Return every mutant of the code that is looked at, equivalent ones excepted."""
    found = list[Mutant]()
    for begin in NEAREST:
        found += [one for path in _modules(begin) for one in mutants_of(str(path.relative_to(ROOT)), path.read_text("utf-8"))]
    if stale := sorted(set(EQUIVALENT) - {one.name for one in found}):
        sys.exit("\n".join(["These faults of benchmarks/mutants/equivalent.py are no longer there. Rename or remove them:", *stale]))
    return [one for one in found if one.name not in EQUIVALENT]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return so many of them, of each kind in turn, the same for the same seed."""
    ranked, numbers = sorted(mutants, key=lambda one: one.rank(seed)), Counter[str]()
    turns = list[tuple[int, Mutant]]()
    for one in ranked:
        turns.append((numbers[one.kind], one))
        numbers[one.kind] += 1
    return sorted((one for _, one in sorted(turns, key=lambda turn: turn[0])[:count]), key=lambda one: (one.path, one.begin))


def tried_as_marked(mutants: Sequence[Mutant], marks: str, limit: int, within: Sequence[str]) -> Mapping[Mutant, Verdict]:
    """Try each mutant by the tests of some files and folders that have marks."""
    name = marks.replace(" ", "-")
    asked = Asked(ROOT, reached(ROOT, KEPT / f"reach-{name}.json", marks, PROCESSES, within), limit)
    state = f"{state_of(ROOT, files_of_tests(ROOT))} {name} {limit}"
    return play(mutants, asked, marks, KEPT / f"verdicts-{name}.jsonl", state)


def play(mutants: Sequence[Mutant], asked: Asked, marks: str, kept: Path, state: str) -> Mapping[Mutant, Verdict]:
    """Try each mutant; what was tried before and written to ``kept`` is taken from there."""
    paths = {one.name: one.path for one in mutants}
    known = verdicts_of(kept, ROOT, paths, state)
    plan = [(asked.is_compiled(one), planned) for one in mutants if one.name not in known and (planned := asked.planned(one)).tests]
    if plan:
        with TemporaryDirectory() as folder:
            copy = Copy(ROOT, Path(folder))
            for is_kernel in {is_kernel for is_kernel, _ in plan}:
                tried(copy, [one for kind, one in plan if kind == is_kernel], marks, not is_kernel, kept, state)
        known = verdicts_of(kept, ROOT, paths, state)
        if missing := [one.name for _, one in plan if one.name not in known]:
            sys.exit(f"{len(missing)} faults were not tried, such as {missing[0]}.")
    return {one: known.get(one.name, Verdict("", 0.0)) for one in mutants}


def _modules(begin: str) -> list[Path]:
    return [ROOT / begin] if begin.endswith(".py") else sorted((ROOT / begin).rglob("*.py"))


def printed(verdicts: Mapping[Mutant, Verdict]) -> None:
    """Print how many were killed by subject, and every one that lives."""
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
            how = (
                f"{verdict.tests} tests" + (", not all that reach it" if verdict.is_cut else "") if verdict.tests else "reached by no test"
            )
            console.print(f"lives ({how}): {one.path}:{one.line} {one.name}", highlight=False, markup=False)


def main(given: Sequence[str] | None = None) -> None:
    """Try a sample and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="faults of the sample")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument(
        "--marks", default="not slow and not ci and not house", help="which tests are asked, as pytest's -m; `make test` by default"
    )
    parser.add_argument("--limit", type=int, default=4, help="CPU seconds of the tests of a fault, by what they cost without it")
    parser.add_argument(
        "--then", default="", help="marks of further tests, such as 'ci and not slow': what lives is tried by the nearest of them"
    )
    parser.add_argument("--then-limit", type=int, default=20, help="as --limit, for these")
    parser.add_argument("--list", action="store_true", help="print the sample only")
    options = parser.parse_args(given)
    chosen = sample([one for one in all_mutants() if options.only in one.name], options.count, options.seed)
    if options.list:
        for one in chosen:
            print(f"{one.path}:{one.line} {one.name}")
        return
    # What is not compiled before would be in each child anew, and its first test would seem to have no end.
    subprocess.run([sys.executable, "-m", "flows.compilation"], cwd=ROOT, check=True)
    found = dict(tried_as_marked(chosen, options.marks, options.limit, ["tests"]))
    printed(found)
    living = [one for one, verdict in found.items() if not verdict.killed]
    if options.then and living:
        near = sorted({test for one in living for test in nearest(one.path)})
        found |= tried_as_marked(living, options.then, options.then_limit, near)
        printed(found)


if __name__ == "__main__":
    main()
