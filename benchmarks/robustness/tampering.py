"""Releases that somebody changed: ``skald verify`` must notice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, releases
from benchmarks.robustness.commands import Commands
from benchmarks.robustness.kills import wrong_end
from benchmarks.robustness.tally import Tally

REGISTRY = "tests.tampering"
"""Kinds of tampering that the tests know by name, where they are."""


def _flip(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _cut(path: Path, random: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content))])


def _grow(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(random.randint(1, 50)))


def _remove(path: Path, _random: Random) -> None:
    path.unlink()


def _add(path: Path, random: Random) -> None:
    shutil.copy(path, path.with_name(f"part-{random.randrange(90000, 99999)}{path.suffix}"))


def _empty(path: Path, _random: Random) -> None:
    path.write_bytes(b"")


def _link(path: Path, _random: Random) -> None:
    moved = path.parent.parent.parent.parent / path.name
    shutil.move(path, moved)
    path.symlink_to(moved)


WAYS: dict[str, Callable[[Path, Random], None]] = {
    "a bit of a data file": _flip,
    "a data file cut short": _cut,
    "bytes after a data file": _grow,
    "a data file gone": _remove,
    "a data file more": _add,
    "a data file without a byte": _empty,
    "a link in the place of a data file": _link,
}


def tampered(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Play the named kinds of tampering and random damage in turn; yield after each trial."""
    named = known_kinds(commands, folder / "kinds", random, tally) if find_spec(REGISTRY) else iter(())
    for _ in damaged(commands, folder, random, tally):
        next(named, None)
        yield


def known_kinds(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Play every kind of the tests' registry once, in an order by chance; yield after each."""
    kinds, play = import_module(f"{REGISTRY}.kinds"), import_module(f"{REGISTRY}.play")

    def publish(job: Path, *settings: str) -> Path:
        signing = {name: value for name, value in os.environ.items() if name in {"SKALD_SIGNING_KEY", "SKALD_SECRET"}}
        commands(job.parent, "run", "job.yaml", *(part for one in settings for part in ("--set", one)), limits=None, **signing)
        return job.parent / "releases" / (job.parent / "releases" / "CURRENT").read_text().strip()

    # Copies have no work folder, whose secret tells that a manifest is of the job.
    os.environ.setdefault("SKALD_SECRET", f"{random.getrandbits(256):064x}")
    made, known = play.finished(folder, publish), list(kinds.all_kinds())
    random.shuffle(known)
    for number, one in enumerate(known):
        told = play.played(one, made, folder / f"played-{number}")
        tally.add("tampering", "kinds known by name", f"{one.name}: {told}" if told.startswith(play.MISSED) else "")
        yield


def damaged(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Make releases of each kind of output, and changes copies of them; yield after each trial."""
    made = []
    for target in ("parquet", "csv", "duckdb", "hive"):
        case = Case("skald", "parquet", target)
        case.write(folder / target)
        if fault := wrong_end(commands(folder / target, "run", "job.yaml", *SETTINGS), 0):
            tally.add("tampering", "undisturbed", f"{case}: {fault}")
            continue
        made.append(folder / target)
    number = 0
    while made:
        for way, change in WAYS.items():
            number += 1
            base, here = random.choice(made), folder / f"changed-{number}"
            shutil.copytree(base, here)
            [release] = releases(here)
            change(random.choice([path for path in sorted((release / "data").rglob("*")) if path.is_file()]), random)
            ended = commands(here, "verify", release, "--job", "job.yaml", *SETTINGS)
            fault = wrong_end(ended, 4)
            tally.add("tampering", way, f"{base.name}: {fault}" if fault else "")
            shutil.rmtree(here)
            yield
