"""Releases that somebody changed: ``skald verify`` must notice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, releases
from benchmarks.robustness.commands import Commands
from benchmarks.robustness.kills import wrong_end
from benchmarks.robustness.tally import Tally


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
    """Makes releases of each kind of output, and changes copies of them; yields after each trial."""
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
