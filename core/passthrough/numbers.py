"""Numbers that authorities, banks and health services give to people, told by their shape and their check digits (python-stdnum).

A number is put to a rule of python-stdnum only if its shape is that of the rule, so that a column of words costs next to nothing, and a
rule that has no check digit only if the number is written as people write it, or the column's name says what it is: any nine digits are
a valid number of the US Social Security Administration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from core.formats.names import words

CARD, BANK, TAX, SOCIAL, HEALTH = "payment cards", "bank accounts", "tax numbers", "social-security numbers", "health numbers"


@dataclass(frozen=True)
class NumberKind:
    """A kind of number.

    Attributes:
        kind: What it is called.
        shape: What it looks like without blanks, dots, dashes and slashes, in capitals.
        rule: The rule of python-stdnum that judges it; empty where the shape is all there is.
        written: What it looks like as people write it, where the number alone proves nothing.
    """

    kind: str
    shape: str
    rule: str = ""
    written: str = ""

    def fits(self, text: str, compact: str, hinted: bool) -> bool:
        """Tells whether a value is such a number.

        Args:
            text: As it is written.
            compact: Without blanks, dots, dashes and slashes, in capitals.
            hinted: Whether the column's name says that it holds such numbers.
        """
        if not _compiled(self.shape).fullmatch(compact):
            return False
        if self.written and not hinted and not _compiled(self.written).fullmatch(text.strip()):
            return False
        return not self.rule or any(_valid(self.rule, spelt) for spelt in dict.fromkeys((text.strip(), compact)))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _valid(rule: str, spelt: str) -> bool:
    try:
        return _rules()[rule](spelt)
    except Exception:
        # A few rules stumble over numbers that they do not know; what they say then would hold the number.
        return False


@cache
def _rules() -> Mapping[str, Callable[[str], bool]]:
    # Most columns hold nothing of the kind, and forty modules are not imported for them.
    from core.passthrough.rules import RULES  # noqa: PLC0415

    return RULES


NUMBERS = (
    NumberKind(CARD, r"(?:4|5[1-5]|2[2-7]|3[4-7]|6)[0-9]{11,17}", "luhn"),
    NumberKind(BANK, r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "iban"),
    NumberKind(BANK, r"[0-9]{20}", "es.ccc"),
    NumberKind(BANK, r"[0-9]{15,16}", "nz.bankaccount", r"[0-9]{2}-[0-9]{4}-[0-9]{7}-[0-9]{2,3}"),
    NumberKind(BANK, r"[0-9]{11}", "no.kontonr", r"[0-9]{4}[ .][0-9]{2}[ .][0-9]{5}"),
    NumberKind(SOCIAL, r"[0-9]{9}", "us.ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}"),
    NumberKind(SOCIAL, r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][0-9]{6}[A-D]"),
    NumberKind(SOCIAL, r"[0-9]{9}", "ca.sin"),
    NumberKind(SOCIAL, r"[0-9]{5}[0-9AB][0-9AB][0-9]{8}", "fr.nir"),
    NumberKind(SOCIAL, r"756[0-9]{10}", "ch.ssn"),
    NumberKind(SOCIAL, r"[0-9]{10}", "at.vnr"),
    NumberKind(SOCIAL, r"[0-9]{11}", "be.nn"),
    NumberKind(SOCIAL, r"[A-Z]{6}[0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{3}[A-Z]", "it.codicefiscale"),
    NumberKind(SOCIAL, r"[0-9]{11}", "pl.pesel"),
    NumberKind(SOCIAL, r"[0-9]{9,10}", "cz.rc", r"[0-9]{6}/[0-9]{3,4}"),
    NumberKind(SOCIAL, r"[0-9]{10}(?:[0-9]{2})?", "se.personnummer"),
    NumberKind(SOCIAL, r"[0-9]{11}", "no.fodselsnummer"),
    NumberKind(SOCIAL, r"[0-9]{10}", "dk.cpr", r"[0-9]{6}-[0-9]{4}"),
    NumberKind(SOCIAL, r"[0-9]{6}A?[0-9]{3}[0-9A-Y]", "fi.hetu"),
    NumberKind(SOCIAL, r"[0-9]{9}", "nl.bsn"),
    NumberKind(SOCIAL, r"[0-9]{13}", "kr.rrn"),
    NumberKind(SOCIAL, r"[0-9]{12}", "in_.aadhaar"),
    NumberKind(SOCIAL, r"[0-9]{17}[0-9X]", "cn.ric"),
    NumberKind(SOCIAL, r"[0-9]{13}", "za.idnr"),
    NumberKind(SOCIAL, r"[0-9]{13}", "ro.cnp"),
    NumberKind(SOCIAL, r"[A-Z]{4}[0-9]{6}[A-Z]{6}[A-Z0-9]{2}", "mx.curp"),
    NumberKind(TAX, r"[0-9]{11}", "de.idnr"),
    NumberKind(TAX, r"[0-9]{11}", "br.cpf"),
    NumberKind(TAX, r"[0-9XYZKLM][0-9]{7}[A-Z]", "es.nif"),
    NumberKind(TAX, r"[0-9]{13}", "fr.nif"),
    NumberKind(TAX, r"[0-9]{7}[A-W][A-IW]?", "ie.pps"),
    NumberKind(TAX, r"[0-9]{8,9}", "au.tfn"),
    NumberKind(TAX, r"[A-Z]{5}[0-9]{4}[A-Z]", "in_.pan"),
    NumberKind(TAX, r"[0-9]{11}", "tr.tckimlik"),
    NumberKind(TAX, r"9[0-9]{8}", "us.itin", r"9[0-9]{2}-[0-9]{2}-[0-9]{4}"),
    NumberKind(HEALTH, r"[0-9]{10}", "gb.nhs"),
    NumberKind(HEALTH, r"9[0-9]{9}", "ca.bc_phn"),
    NumberKind(HEALTH, r"[2-6][0-9]{9,10}", "", r"[0-9]{4} [0-9]{5} [0-9](?:[-/ ]?[0-9])?"),
    NumberKind(HEALTH, r"[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9][AC-HJKMNP-RT-Y]{2}[0-9]{2}"),
)
HINTS = {
    CARD: frozenset(["card", "cards", "pan", "creditcard"]),
    BANK: frozenset(["iban", "bank", "konto"]),
    TAX: frozenset(["tax", "tin", "itin", "nif", "cpf", "pan", "tfn", "utr"]),
    SOCIAL: frozenset(
        ["ssn", "sin", "nino", "nir", "avs", "ahv", "bsn", "insee", "pesel", "personnummer", "cpr", "curp", "aadhaar", "rrn"]
    ),
    HEALTH: frozenset(["nhs", "medicare", "mbi", "phn"]),
}
SHORTEST, LONGEST = 8, 34
LIKELY = 0.5
"""Share of the values that must be such numbers: a check digit is right by chance in one of ten."""
FEWEST, FEWEST_BARE = 3, 8
"""So many at least: by chance alone a few bare digits pass one rule or another."""

Spelt = tuple[str, str]
"""A value as it is written, and without blanks, dots, dashes and slashes, in capitals."""


def _compact(text: str) -> str:
    return _compiled("[ ./-]").sub("", text).upper()


def number_kinds(name: str, texts: Sequence[str]) -> list[str]:
    """Returns what kinds of number a column's values look like, in the order of the rules.

    Args:
        name: Of the column; what it says lowers what is needed.
        texts: Distinct values.
    """
    named = set(words(name))
    spelt = [(text, _compact(text)) for text in texts]
    # No such number is shorter or longer, and most columns hold nothing but words.
    numbers = [(text, compact) for text, compact in spelt if SHORTEST <= len(compact) <= LONGEST and _compiled("[0-9]").search(compact)]
    found: list[str] = []
    if len(numbers) < LIKELY * len(texts):
        return found
    # Several kinds have one shape, and of most columns too few values have it for a rule to be asked.
    shaped: dict[str, list[Spelt]] = {}
    for number in NUMBERS:
        hinted = bool(named & HINTS[number.kind])
        if number.kind in found:
            continue
        if number.shape not in shaped:
            shape = _compiled(number.shape)
            shaped[number.shape] = _those(numbers, (shape.fullmatch(compact) for _, compact in numbers), LIKELY * len(texts))
        least = max(1 if hinted else FEWEST, LIKELY * len(texts))
        if len(shaped[number.shape]) < least:
            continue
        alike = shaped[number.shape]
        fitting = [text for text, _ in _those(alike, (number.fits(*spelt, hinted) for spelt in alike), least)]
        if len(fitting) >= least and (hinted or len(fitting) >= FEWEST_BARE or not all(text.isdecimal() for text in fitting)):
            found.append(number.kind)
    return found


def _those(numbers: Sequence[Spelt], fits: Iterable[object], least: float) -> list[Spelt]:
    """Returns the values that fit, asked one after the other; none as soon as it is certain that they are fewer than so many."""
    found, left = [], len(numbers)
    for number, fit in zip(numbers, fits, strict=True):
        if fit:
            found.append(number)
        else:
            left -= 1
        if left < least:
            return []
    return found
