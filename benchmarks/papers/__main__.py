"""Every table and figure of the four papers next to what is measured here.

It writes the parts that docs/papers.md includes.

    python -m benchmarks.papers [skald] [mondrian] [rayden] [clustering] [--adult DIR] [--chunk-rows 20000] [--hands 1000000]

Chapters that are named are measured anew, the others stay as they are in the page. DIR holds adult.csv and hierarchy_<qid>.csv, as the ARX
project has them. ``--chunk-rows`` and ``--hands`` scale down what takes long; the page says what was used. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.papers import clustering, mondrian, rayden, skald
from benchmarks.papers.page import ROOT, Block, write

CHAPTERS: dict[str, Callable[[argparse.Namespace], Iterator[Block]]] = {
    "skald": skald.chapter,
    "mondrian": mondrian.chapter,
    "rayden": rayden.chapter,
    "clustering": clustering.chapter,
}


def main() -> None:
    """Measure chapters and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", help=f"of {', '.join(CHAPTERS)}; all of them if left out")
    parser.add_argument("--adult", type=Path, default=ROOT.parent / "shared" / "data" / "adult")
    parser.add_argument("--chunk-rows", type=int, default=20_000)
    parser.add_argument("--hands", type=int, default=1_000_000)
    given = parser.parse_args()
    if unexpected := set(given.chapters) - CHAPTERS.keys():
        parser.error(f"no chapter {', '.join(sorted(unexpected))}")
    for name in given.chapters or CHAPTERS:
        print(f"{name} …", flush=True)
        for block in CHAPTERS[name](given):
            write(block)


if __name__ == "__main__":
    main()
