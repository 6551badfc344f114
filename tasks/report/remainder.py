"""What a report says of the records that fail at the levels of the columns: further rounds, stars, and what was left of them."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.errors.base import counted
from schemas.release.manifest import Manifest


def remainder_words(manifest: Manifest) -> tuple[str, ...]:
    """Returns what became of the records that fail at the levels of the columns, a sentence each."""
    remainder = manifest.remainder
    if remainder is None:
        return ()
    if not remainder.records:
        return ("No record failed at the levels of the columns, so that nothing was starred or anonymised again.",)
    return (
        f"{counted(remainder.records, 'record')} had combinations that fail at the levels of the columns. All others are published at "
        "these levels, as they would be without them.",
        *_rounds(manifest),
        *_stars(manifest),
    )


def _rounds(manifest: Manifest) -> Iterator[str]:
    assert manifest.remainder is not None
    names = list(manifest.levels or {})
    for number, one in enumerate(manifest.remainder.rounds, start=1):
        levels = ", ".join(f"{name} {level}" for name, level in zip(names, one.node, strict=False))
        yield (
            f"Round {number} published {counted(one.records, 'record')} of them in {one.classes:,} "
            f"{'class' if one.classes == 1 else 'classes'}, at the best levels for what was left: {levels}."
        )


def _stars(manifest: Manifest) -> Iterator[str]:
    remainder = manifest.remainder
    assert remainder is not None
    if remainder.starred:
        bound = f"; fewer than {remainder.least:,} were not possible there" if remainder.least is not None else ""
        if remainder.least == remainder.stars:
            bound = ", the fewest possible there"
        yield (
            f"{counted(remainder.starred, 'record')} are published with some values starred, {counted(remainder.stars, 'value')} in all"
            f"{' with those of masked records' if manifest.masked else ''}{bound}."
        )
