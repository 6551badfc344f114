"""Made values of labelled columns: nothing of them is anybody's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from benchmarks.roles.schemas import Labelled

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "xa", "du", "fe")
ROWS_OF_A_PERSON = 4
WORDS = (
    "patient",
    "was",
    "seen",
    "again",
    "and",
    "asked",
    "for",
    "help",
    "with",
    "the",
    "stairs",
    "after",
    "lunch",
    "today",
    "because",
    "of",
)


def _word(number: int, capital: bool = False) -> str:
    parts = []
    number += 12
    while number:
        number, place = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[place])
    word = "".join(parts)
    return word.capitalize() if capital else word


def _checked(digits: str) -> str:
    """Return digits with Luhn's check digit."""
    doubled = [int(one) * (2 - place % 2) for place, one in enumerate(reversed(digits))]
    return digits + str(-sum(one - 9 * (one > 9) for one in doubled) % 10)


def _iban(number: int) -> str:
    account = f"{number:018d}"
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def made_table(columns: Sequence[Labelled], rows: int, seed: int) -> pa.Table:
    """Return a table with values for labelled columns."""
    random = np.random.default_rng(seed)
    made: dict[str, pa.Array] = {}
    for column in columns:
        kind, *numbers = column.values.split()
        if kind == "twin":
            of = made[numbers[0]]
            made[column.name] = pa.array(of.dictionary_encode().indices.to_numpy() + 1)
        else:
            made[column.name] = pa.array(_values(column.values, rows, random))
    return pa.table(made)


class _Making(NamedTuple):
    """The means to make values: their number, a generator, and numbers for them.

    Different numbers have the shape (rows,).
    """

    rows: int
    random: np.random.Generator
    numbers: Sequence[float]
    ids: Any

    def skewed(self, most: float) -> list[int]:
        """Return numbers below a bound, the first ones most frequent."""
        drawn: list[int] = np.minimum(self.random.geometric(min(3 / most, 0.9), self.rows) - 1, int(most) - 1).tolist()
        return drawn

    def whole(self, low: float, after: float) -> list[int]:
        """Return whole numbers from a lowest one to below another."""
        drawn: list[int] = self.random.integers(int(low), int(after), self.rows).tolist()
        return drawn

    def money(self) -> Any:
        """Return amounts of which few are large."""
        return np.round(np.exp(self.random.normal(8, 1, self.rows)), 2)

    def uuids(self, count: int) -> list[str]:
        """Return different long numbers."""
        return [str(UUID(bytes=self.random.bytes(16))) for _ in range(count)]

    def repeated(self, count: int) -> list[str]:
        """Return such numbers, of which there are a few."""
        pool = self.uuids(count)
        return [pool[one] for one in self.whole(0, count)]


MAKERS: dict[str, Callable[[_Making], list[Any]]] = {
    "int": lambda of: of.whole(of.numbers[0], of.numbers[1] + 1),
    "float": lambda of: np.round(of.random.uniform(of.numbers[0], of.numbers[1], of.rows), 2).tolist(),
    "words": lambda of: [_word(one) for one in of.skewed(of.numbers[0])],
    "money": lambda of: of.money().tolist(),
    "rare money": lambda of: np.where(of.random.random(of.rows) < 0.1, np.round(of.money()), 0).astype(int).tolist(),
    "flag": lambda of: (of.random.random(of.rows) < 0.2).tolist(),
    "number": lambda of: of.ids.tolist(),
    "person": lambda of: [500_000 + one for one in of.whole(0, of.rows // ROWS_OF_A_PERSON)],
    "uuid": lambda of: of.uuids(of.rows),
    "person uuid": lambda of: of.repeated(of.rows // ROWS_OF_A_PERSON),
    "repeated uuid": lambda of: of.repeated(80),
    "code": lambda of: [f"{7 * one:0{int(of.numbers[0])}d}" for one in of.whole(1, min(10 ** of.numbers[0] / 7, 400))],
    "icd": lambda of: [f"{'ABCEIJ'[one % 6]}{one % 60 + 10}.{one % 7}" for one in of.skewed(60)],
    "surname": lambda of: [_word(one, True) for one in of.whole(0, 900)],
    "forename": lambda of: [_word(one, True) for one in of.whole(0, 70)],
    "full name": lambda of: [f"{_word(one % 70, True)} {_word(one, True)}" for one in of.whole(0, 5000)],
    "email": lambda of: [f"{_word(int(one))}@example.org" for one in of.ids],
    "phone": lambda of: [f"+49 30 {one:07d}" for one in of.ids],
    "street": lambda of: [f"{_word(int(one) % 400, True)} Street {one % 90 + 1}" for one in of.ids],
    "ssn": lambda of: [f"{one % 600 + 100}-{one % 89 + 10:02d}-{one % 9000 + 1000:04d}" for one in of.ids],
    "iban": lambda of: [_iban(int(one)) for one in of.ids],
    "card": lambda of: [_checked(f"4{int(one):014d}") for one in of.ids],
    "ip": lambda of: [f"10.{one % 200}.{one % 251}.{one % 97}" for one in of.ids],
    "sentence": lambda of: [" ".join(WORDS[one] for one in of.random.integers(0, len(WORDS), 12)) + f" {number}" for number in of.ids],
    "date": lambda of: [date(int(of.numbers[0]), 1, 1) + timedelta(days=one) for one in of.whole(0, 900)],
    "birth": lambda of: [date(1935, 1, 1) + timedelta(days=one) for one in of.whole(0, 25_000)],
    "moment": lambda of: [datetime(int(of.numbers[0]), 1, 1) + timedelta(seconds=one) for one in of.whole(0, of.numbers[1] * 365 * 86_400)],
}
"""What makes values of each kind."""


def _values(values: str, rows: int, random: np.random.Generator) -> list[Any]:
    words = [one for one in values.split() if not one.isdecimal()]
    numbers = [float(one) for one in values.split() if one.isdecimal()]
    return MAKERS[" ".join(words)](_Making(rows, random, numbers, random.permutation(rows * 10)[:rows] + 100_000))
