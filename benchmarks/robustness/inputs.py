"""Wrong jobs, hierarchies and sources: a fixed corpus, and random variants of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.robustness.commands import Commands, Ended
from benchmarks.robustness.tally import Tally
from tests.corpus.entries import CANARY, Entry, corpus

ODD = (
    "null", "~", "true", "-1", "0", "1", "1.5", "1e400", ".nan", "-.inf", "18446744073709551616", "9" * 400, "''", '"\\0"', "[]", "{}",
    "[[]]", "*", "&a [*a]", "*a", "!!python/name:os.system x", "!!binary AAAA", "2020-01-01", "0x7f", "1_0", "~/x", "..", "é", "😀",
    "'{x}'", "[red]", "|", ">", "- ", "skald", "mondrian", "rest", "none", "k", "[a, a]", "{a: 1, a: 2}", "s3://x/y", "x" * 5000,
    "\u202e", "%", "@", "`",
)  # fmt: skip
"""Scalars that a job might have in the place of what it should."""


def known_inputs(commands: Commands, folder: Path, tally: Tally) -> Iterator[None]:
    """Try what is in the corpus; yield after each entry."""
    for entry in corpus():
        entry.write(folder / entry.name)
        ended = commands(folder / entry.name, "run", "job.yaml")
        tally.add("inputs", "known", _named(entry, entry.fault(ended.code, ended.out + ended.said, folder / entry.name)))
        yield


def made_inputs(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Try what comes of known inputs when pieces of them are changed; yield after each."""
    entries, number = corpus(), 0
    while True:
        number += 1
        entry, here = random.choice(entries), folder / f"made-{number}"
        entry.write(here)
        files = sorted(path for path in here.rglob("*") if path.is_file())
        changed = random.choice([here / "job.yaml", here / "job.yaml", *files])
        for _ in range(random.randint(1, 3)):
            changed.write_bytes(mutated(changed.read_bytes(), random, text=changed.suffix in {".yaml", ".csv"}))
        ended = commands(here, "run", "job.yaml")
        kind = {"job.yaml": "jobs made by chance"}.get(changed.name, "hierarchies and sources made by chance")
        tally.add("inputs", kind, _named(entry, wrong(ended, here), changed))
        yield


def wrong(ended: Ended, folder: Path) -> str:
    """Return what is wrong with how a command took its input.

    Wrong are an exit code that is not one of input, a value in a message, and half a release.
    """
    said = ended.out + ended.said
    if ended.code not in {0, 2, 3}:
        return f"ended with {ended.code}: {' '.join(ended.said.split())[-300:]}"
    if "Traceback" in said or CANARY in said:
        return "a traceback" if "Traceback" in said else "a value of the input is told"
    if ended.code and list(folder.glob("releases/*-????????????????")):
        return f"a release in spite of exit code {ended.code}"
    return ""


def mutated(content: bytes, random: Random, *, text: bool) -> bytes:
    """Return some bytes with a piece of them changed: a word, a line, an order, or a byte."""
    way = random.choice(["scalar", "drop", "double", "swap", "indent", "byte", "cut"]) if text else random.choice(["byte", "cut", "zero"])
    lines = content.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    if way == "scalar":
        lines[one] = re.sub(rb"(:|-|;|,)\s*[^:;,]*$", lambda found: found[1] + b" " + random.choice(ODD).encode(), lines[one], count=1)
    elif way == "drop":
        del lines[one]
    elif way == "double":
        lines.insert(other, lines[one])
    elif way == "swap":
        lines[one], lines[other] = lines[other], lines[one]
    elif way == "indent":
        lines[one] = b"  " + lines[one]
    if way in {"scalar", "drop", "double", "swap", "indent"} or not content:
        return b"\n".join(lines)
    place = random.randrange(len(content))
    if way == "cut":
        return content[:place]
    return content[:place] + (b"\0" * 8 if way == "zero" else bytes([random.randrange(256)])) + content[place + 1 :]


def _named(entry: Entry, fault: str, changed: Path | None = None) -> str:
    where = f" with {changed.parent.name}/{changed.name} changed" if changed else ""
    return f"{entry.name}{where}: {fault}" if fault else ""
