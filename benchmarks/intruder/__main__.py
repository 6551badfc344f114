"""``python -m benchmarks.intruder``: play attacks on releases of synthetic data.

It prints what the attacker gets.

Each attack knows what it may: the release with manifest and report, the job, how the methods choose, earlier releases, and, where it says
so, the quasi-identifiers of people. It prints what it got from version 0.1.0 and what it gets now.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from benchmarks.intruder.attack import Attack

FRAME = {"__main__", "attack"}
"""Modules of this package that are no attacks; every other one has a list ``ATTACKS``."""


def attacks() -> list[Attack]:
    """Return the attacks of all modules beside this one, in the order of the modules' names."""
    names = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.name not in FRAME)
    return [attack for name in names for attack in import_module(f"benchmarks.intruder.{name}").ATTACKS]


def main(given: Sequence[str] | None = None) -> None:
    """Play the attacks and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intruder", description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose part or name has this in it")
    wanted = parser.parse_args(given).only.lower()
    table = Table("promise", "the attacker", "got from 0.1.0", "gets now", title="What an intruder gets")
    for attack in attacks():
        if wanted in f"{attack.part} {attack.name}".lower():
            with TemporaryDirectory() as folder:
                table.add_row(attack.part, attack.name, attack.before, attack.play(Path(folder)))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
