"""The minimality attack on every treatment and method of a release.

The attacker has all quasi-identifiers and the rules by which SKALD chooses.

    python -m benchmarks.minimality [--tables 10] [--people 6] [--seed 0] [--adult [--data FOLDER]]

Small tables are made at random and published. The intruder tries every way to give the values of each class to its people, and any value
to whoever was left out, runs the algorithm on each, and keeps what makes the release that he has (``tests.oracles.minimality``). ``told``
is how many of the published people have the same value in all of these, or fewer values than the model asks for, though their class holds
more. ``left out`` is how many are not published, for they are too rare, or as a class or a pool that breaks l or t: that much is told of
them, and ``by that`` counts those of them whom it leaves one value only, or fewer than the model asks for. ``levels told`` counts where
the levels themselves are searched for, in the place of being known: which levels are best depends on how many records of the whole table
fail. ``--adult`` prints what l costs on Adult in the place of the attack; its folder is expected as ``benchmarks.local_suppression`` does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.local_suppression import DATA, ROOT, adult
from benchmarks.measure import measure, skald
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from tests.oracles.attacked import People, Together, Values, by_cuts, by_levels, by_records
from tests.oracles.minimality import told

DOMAIN = [0, 1, 2]
LIMIT = 0.4


class Asked(NamedTuple):
    """What a column is promised: its name, the model, and how many values everybody is to be left with."""

    name: str
    model: Callable[[int | None], PrivacyModel]
    least: int


MODELS = [
    Asked("distinct 2", lambda null: DistinctDiversity("x", 2, null), 2),
    Asked("distinct 3", lambda null: DistinctDiversity("x", 3, null), 3),
    Asked("entropy 1.6", lambda null: EntropyDiversity("x", 1.6, null), 2),
    Asked("recursive 2, 2", lambda null: RecursiveDiversity("x", Fraction(2), 2, null), 2),
    Asked("t 0.4", lambda _: Closeness("x", 0.4), 2),
]
Play = Callable[[People, Values], Together]
PLAYS: dict[str, Play] = {
    "mondrian strict": partial(by_cuts, mode="strict"),
    "mondrian median": partial(by_cuts, mode="median"),
    "mondrian relaxed": partial(by_cuts, mode="relaxed"),
    "mondrian ncp": partial(by_cuts, score="ncp"),
    "mondrian, refused: next": partial(by_cuts, refused="next"),
    **{method: partial(by_records, method=method) for method in ("rayden", "canon", "mondrian_cof", "clustering", "kmember")},
    "rayden, merged with the nearest": partial(by_records, method="rayden", nearest=True),
}
OLD = ("mondrian, refused: next", "rayden, merged with the nearest")
"""What others do, and SKALD did before: not counted, but printed to show that the attack works."""
RUNS = [
    *(("{name: skald}", f"{{limit: 0.05, treatment: {treatment}}}") for treatment in ("drop", "mask", "cell")),
    *((f"{{name: {method}}}", "{limit: 0}") for method in ("mondrian", "rayden", "clustering", "kmember", "mondrian, refused: next")),
]
TREATMENTS = [("drop", 0), ("mask", 0), ("cell", 0), ("drop", 2), ("mask", 2), ("cell", 2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10, help="for each line")
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adult", action="store_true", help="what l costs on Adult")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    if asked.adult:
        return costs(asked.data / "adult")
    print(f"{'':<36}{'model':<16}{'of':<9}{'people':>8}{'published':>11}{'told':>6}{'left out':>10}{'by that':>9}{'levels told':>13}")
    total = out = 0
    for name, model, persons, found in lines(asked.tables, asked.people, asked.seed):
        levels = "" if found.levels is None else f"{found.levels:,}"
        kind = "persons" if persons else "records"
        print(
            f"{name:<36}{model:<16}{kind:<9}{found.people:>8,}{found.published:>11,}{found.told:>6,}"
            f"{found.people - found.published:>10,}{found.out:>9,}{levels:>13}",
            flush=True,
        )
        if name not in OLD:
            total, out = total + found.told, out + found.out
    print(f"\n{total:,} of those who are published are told, and {out:,} of those who are not, '{OLD[0]}' and '{OLD[1]}' apart.")


def costs(data: Path) -> None:
    """Print the cost of two different values in every class on Adult.

    Each is a run from the source to the verified release.
    """
    print(f"{'':<44}{'classes':>9}{'suppressed':>12}{'for l':>8}{'GCP':>8}")
    with tempfile.TemporaryDirectory() as folder:
        job = adult(Path(folder), data)
        for method, suppression in RUNS:
            for asked, name in (("{}", ""), ("{salary-class: {distinct: 2}}", ", l = 2")):
                for kept in ("releases", ".skald"):
                    shutil.rmtree(job.parent / kept, ignore_errors=True)
                settings = f"method={method}", f"suppression={suppression}", f"privacy.l={asked}"
                command = skald("run", job.name, "--direct", *(part for setting in settings for part in ("--set", setting)))
                measure(command, job.parent, PYTHONPATH=str(ROOT))
                release = (job.parent / "releases" / "CURRENT").read_text().strip()
                made = json.loads((job.parent / "releases" / release / "manifest.json").read_text())
                untold = json.loads((job.parent / ".skald" / made["name"] / "untold.json").read_text())
                title = f"{method[7:-1]}, {suppression[1:-1]}{name}"
                counts = f"{made['classes']:>9,}{made['suppressed']:>12,}{untold['suppressed_for'].get('spread', 0):>8,}"
                print(f"{title:<44}{counts}{made['loss']['gcp']:>8.3f}", flush=True)


@dataclass(frozen=True)
class Found:
    """Sums over tables of how many people there are.

    Attributes:
        people: All.
        published: In a class.
        told: Published, and told.
        out: Not published, and told.
        levels: Told where levels are searched for, published or not; None where there are none.
    """

    people: int = 0
    published: int = 0
    told: int = 0
    out: int = 0
    levels: int | None = None

    @classmethod
    def of(cls, classes: Together, size: int, known: AbstractSet[int], searched: AbstractSet[int] | None = None) -> Found:
        """Count what is told of one table."""
        published = {person for members in classes for person in members}
        return cls(size, len(published), len(known & published), len(known - published), None if searched is None else len(searched))

    def __add__(self, other: Found) -> Found:
        levels = None if self.levels is None else self.levels + (other.levels or 0)
        return Found(self.people + other.people, self.published + other.published, self.told + other.told, self.out + other.out, levels)


def lines(tables: int, size: int, seed: int) -> Iterator[tuple[str, str, bool, Found]]:
    """Yield what was found, by way, model, and whether persons count."""
    for asked in MODELS:
        for treatment, rounds in TREATMENTS:
            name = f"skald {treatment}{f', {rounds} rounds' if rounds else ''}"
            yield name, asked.name, False, levelled(asked, tables, size, seed, treatment, rounds)
        for name, play in PLAYS.items():
            for persons in (False, True):
                yield name, asked.name, persons, played(asked, tables, size, seed, play, persons=persons)


def drawn(asked: Asked, size: int, seed: int, *, persons: bool) -> tuple[People, list[Any]]:
    """Make a table: people with two numbers that are known and a value that is not, sometimes none."""
    random = np.random.default_rng(seed)
    rows = sorted((int(first), int(second)) for first, second in random.integers(0, [6, 3], (size, 2)))
    values = [[*DOMAIN, None][code] for code in random.choice(4, size, p=[0.45, 0.3, 0.15, 0.1])]
    whose = random.integers(0, size - 1, size).tolist() if persons else None
    return People(rows, whose, 2, asked.model), values


def played(asked: Asked, tables: int, size: int, seed: int, play: Play, *, persons: bool) -> Found:
    """Play the attack against a method without levels."""
    found = Found()
    for number in range(tables):
        people, values = drawn(asked, size, seed + number, persons=persons)
        classes = play(people, values)
        found += Found.of(classes, size, told(classes, values, DOMAIN, partial(play, people), asked.least))
    return found


def levelled(asked: Asked, tables: int, size: int, seed: int, treatment: Any, rounds: int) -> Found:
    """Play the attack against method skald, with fixed levels and with searched ones."""
    found = Found(levels=0)
    for number in range(tables):
        people, values = drawn(asked, size, seed + number, persons=False)
        classes, node = by_levels(people, values, treatment, rounds, LIMIT)
        if not node:
            continue
        play = partial(by_levels, people, treatment=treatment, rounds=rounds, limit=LIMIT)
        known, searched = (told(classes, values, DOMAIN, partial(play, node=at), asked.least) for at in (node, None))
        found += Found.of(classes, size, known, searched)
    return found


if __name__ == "__main__":
    main()
