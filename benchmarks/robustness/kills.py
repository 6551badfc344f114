"""Runs that are killed at random moments, and run again.

The release must be, to the byte, that of an undisturbed run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, content, drawn, left_behind, releases
from benchmarks.robustness.commands import Commands, Ended
from benchmarks.robustness.tally import Tally
from tests.jobs import people, write_parquet

SIGKILLED = -9
TIMES = 3
"""How often a run is killed before it may end."""
ROUNDS = 4
"""How often a case is tried in a row, so that its undisturbed run serves several times."""


def wrong_end(ended: Ended, *codes: int) -> str:
    """Return what is wrong with how a command ended, if anything is."""
    if ended.code in codes and "Traceback" not in ended.said:
        return ""
    return f"ended with {ended.code}: {' '.join(ended.said.split())[-300:]}"


def kills(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Kill runs of all cases in turn; yield after each trial."""
    for number, case in enumerate(drawn(random)):
        base = folder / f"case-{number}"
        case.write(base / "job")
        shutil.copytree(base / "job", base / "undisturbed")
        first = commands(base / "undisturbed", "run", "job.yaml", *SETTINGS)
        if fault := wrong_end(first, 0):
            tally.add("kills", case.method, f"{case}: undisturbed {fault}")
            continue
        wanted = content(releases(base / "undisturbed")[0])
        for trial in range(ROUNDS):
            here = base / f"trial-{trial}"
            shutil.copytree(base / "job", here)
            crashes, fault = killed(commands, here, random, first.seconds, wanted)
            tally.add("kills", case.method, f"{case}, trial {trial}: {fault}" if fault else "", crashes)
            yield
        shutil.rmtree(base)


def killed(commands: Commands, folder: Path, random: Random, seconds: float, wanted: list[str]) -> tuple[int, str]:
    """Kill a run some times, then let it end and check what there is.

    Return the kills that came in time, and what is wrong.
    """
    crashes = 0
    for _ in range(random.randint(1, TIMES)):
        ended = commands.start(folder, "run", "job.yaml", *SETTINGS).kill_after(random.random() * seconds)
        crashes += ended.code == SIGKILLED
        if ended.code not in {0, SIGKILLED}:
            return crashes, wrong_end(ended, 0)
    return crashes, wrong_end(commands(folder, "run", "job.yaml", *SETTINGS), 0) or looked_at(commands, folder, wanted)


def looked_at(commands: Commands, folder: Path, wanted: list[str]) -> str:
    """Return what is wrong with the last release of a folder, if anything is."""
    release = folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()
    if content(release) != wanted:
        return "another release than that of the undisturbed run"
    if left := left_behind(folder):
        return f"left behind: {', '.join(left)}"
    return wrong_end(commands(folder, "verify", release, "--job", "job.yaml", *SETTINGS), 0)


def nights(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Let a source grow night by night under runs that are killed; yield after each night."""
    number = 0
    while True:
        number += 1
        here, seconds = folder / f"nights-{number}", 1.0
        case = Case(random.choice(["skald", "mondrian", "clustering"]), "parquet", random.choice(["parquet", "csv"]))
        case.write(here)
        for night in range(4):
            write_parquet(here / "people" / f"night-{night}", people(120, seed=night + 1))
            (here / "people" / f"night-{night}" / "000.parquet").rename(here / "people" / f"night-{night}.parquet")
            fresh = folder / f"fresh-{number}-{night}"
            shutil.copytree(here, fresh, ignore=shutil.ignore_patterns(".skald", "releases"))
            undisturbed = commands(fresh, "run", "job.yaml", *SETTINGS)
            fault = wrong_end(undisturbed, 0)
            crashes = 0
            if not fault:
                crashes, fault = killed(commands, here, random, seconds, content(releases(fresh)[0]))
            if not fault and len(releases(here)) != night + 1:
                fault = f"{len(releases(here))} releases after {night + 1} nights"
            seconds = max(undisturbed.seconds, 0.1)
            tally.add("nights", case.method, f"{case}, night {night}: {fault}" if fault else "", max(crashes, 1))
            shutil.rmtree(fresh)
            yield
        shutil.rmtree(here)
