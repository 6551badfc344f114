"""At which of their records persons count, person by person with Python's MD5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import md5
from typing import Any


def drawn_place(texts: Sequence[str], records: int) -> int:
    """The place of the drawn record among those of a person, by what the person is called."""
    return int.from_bytes(md5("\x1f".join(texts).encode()).digest()[8:], "little") % records


def drawn_values(held: Iterable[tuple[Sequence[str], Any]]) -> Mapping[Sequence[str], Any]:
    """By person the value of the drawn record, of pairs of a person and a value."""
    values: dict[Sequence[str], list[Any]] = {}
    for person, value in held:
        values.setdefault(person, []).append(value)
    return {person: sorted(mine)[drawn_place(person, len(mine))] for person, mine in values.items()}


def counted_at(held: Iterable[tuple[Sequence[str], Any]]) -> Counter[Any]:
    """How many persons count at each value."""
    return Counter(drawn_values(held).values())
