"""Patterns of identifying values, such as e-mail addresses or card numbers.

They are looked for in a sample of a column's distinct values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from ipaddress import ip_address

from core.formats.concept_names import word_set, words

CARD, BANK, TAX, SOCIAL, HEALTH = "payment cards", "bank accounts", "tax numbers", "social-security numbers", "health numbers"


@dataclass(frozen=True)
class NumberKind:
    """Kind of identifying number, such as a payment card: its shape and its validation rule.

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
        """Return whether a text has the shape of this number and passes its check digits, if it has any.

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
    """Compile a regular expression, once per pattern."""
    return re.compile(pattern)


def _valid(rule: str, spelt: str) -> bool:
    """Return whether a text passes a validation rule; a rule that raises an error does not pass."""
    try:
        return _rules()[rule](spelt)
    except Exception:
        # A few rules stumble over numbers that they do not know; what they say then would hold the number.
        return False


@cache
def _rules() -> Mapping[str, Callable[[str], bool]]:
    """Import and return the validation rules."""
    # Most columns hold nothing of the kind, and forty modules are not imported for them.
    from core.formats.rules import RULES  # noqa: PLC0415

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
    CARD: word_set("card cards pan creditcard"),
    BANK: word_set("iban bank konto"),
    TAX: word_set("tax tin itin nif cpf pan tfn utr"),
    SOCIAL: word_set("ssn sin nino nir avs ahv bsn insee pesel personnummer cpr curp aadhaar rrn"),
    HEALTH: word_set("nhs medicare mbi phn"),
}
SHORTEST, LONGEST = 8, 34
LIKELY = 0.5
"""Share of the values that must be such numbers: a check digit is right by chance in one of ten."""
FEWEST, FEWEST_BARE = 3, 8
"""So many at least: by chance alone a few bare digits pass one rule or another."""

Spelt = tuple[str, str]
"""A value as it is written, and without blanks, dots, dashes and slashes, in capitals."""


def _compact(text: str) -> str:
    """Remove blanks, dots, dashes and slashes from a text and write it in capitals."""
    return _compiled("[ ./-]").sub("", text).upper()


def number_kinds(name: str, texts: Sequence[str]) -> list[str]:
    """Return the kinds of number that a column's values look like, in the order of the rules.

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
    """Return the values that fit, or none as soon as fewer than ``least`` can fit.

    They are checked one after the other.
    """
    found, left = [], len(numbers)
    for number, fit in zip(numbers, fits, strict=True):
        if fit:
            found.append(number)
        else:
            left -= 1
        if left < least:
            return []
    return found


NEARLY_UNIQUE, EMAIL, WEB, IP, PHONE, BIRTH, PLACE, TEXT = (
    "nearly unique", "e-mail addresses", "web addresses", "IP addresses", "telephone numbers", "dates of birth", "coordinates", "free text",
)  # fmt: skip
MOSTLY = 0.5
"""Share of the values that must look alike."""
_EMAIL = re.compile(r"[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
# Written with a plus, an opening zero, brackets or separators; a run of digits alone is any number.
_PHONE = re.compile(
    r"(?:(?:\+|00)[1-9][0-9 ()./-]{6,18}"
    r"|\(?0[0-9]{1,5}\)?[ ./-][0-9 ./-]{4,14}"
    r"|(?:\+?1[ .-]?)?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[0-9]{3}[ .-][0-9]{4})"
    r"(?: ?(?:x|ext\.?) ?[0-9]{1,6})?"
)
_DIGITS = re.compile(r"[+0-9 ()./-]{6,20}")
_POINT = re.compile(r"(?:POINT ?)?\(?\s*(-?[0-9]{1,3}\.[0-9]{2,})\s*[,; ]\s*(-?[0-9]{1,3}\.[0-9]{2,})\s*\)?")
_URL = re.compile(r"(?:https?|ftp)://|www\.")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T].*)?|([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})|([0-9]{4})([0-9]{2})([0-9]{2})"
)
_YEAR = re.compile(r"(?:18|19|20)[0-9]{2}")
_NUMBER = re.compile(r"-?[0-9]{1,3}(?:\.[0-9]+)?")
_PHONES = word_set("phone telephone tel mobile cell fax cellphone handy telefon")
_BIRTHS = word_set("birth born dob birthday birthdate yob birthyear geburtsdatum geboren geburtstag naissance nacimiento nascita")
_PLACES: Mapping[str, float] = {
    **dict.fromkeys(("lat", "latitude", "breite", "northing"), 90.0),
    **dict.fromkeys(("lon", "lng", "long", "longitude", "laenge", "easting"), 180.0),
}
_FEWEST_DATES, _SPAN_OF_BIRTHS = 8, 30
_FEWEST_TEXTS, _WORDS_OF_TEXT, _LENGTH_OF_TEXT, _OWN_TEXTS = 5, 5, 60, 0.1


def nearly_unique(distinct_values: int, unique_records: int, records_with_value: int, person_count: int | None) -> bool:
    """Return whether a column's values almost identify records or persons.

    Args:
        unique_records: Records alone with theirs.
        person_count: Different persons, where that is known: a number that each of them keeps is no record's own.
    """
    most = records_with_value if person_count is None else min(records_with_value, person_count)
    return records_with_value > 1 and (2 * unique_records > records_with_value or 10 * distinct_values > 9 * most > 9)


def identifying_patterns(
    name: str, texts: Sequence[str], distinct_values: int, unique_records: int, records_with_value: int, person_count: int | None
) -> list[str]:
    """Return the identifying patterns that a column's values look like; empty if none was found.

    Args:
        name: Of the column.
        texts: Distinct values, or those of them that are looked at.
        unique_records: Records alone with theirs.
        person_count: Different persons, where that is known.
    """
    found = [NEARLY_UNIQUE] if nearly_unique(distinct_values, unique_records, records_with_value, person_count) else []
    if not texts:
        return found
    named = set(words(name))
    # An address inside a text is as good as one alone, and nothing else looks like one.
    if any("@" in text and _EMAIL.search(text) for text in texts):
        found.append(EMAIL)
    if _mostly(sum(bool(_URL.match(text)) for text in texts), texts):
        found.append(WEB)
    if _mostly(sum(map(is_ip, texts)), texts):
        found.append(IP)
    births = are_birth_dates(named, texts)
    if not births and are_phone_numbers(named, texts):
        found.append(PHONE)
    found += number_kinds(name, texts)
    if births:
        found.append(BIRTH)
    if are_locations(named, texts):
        found.append(PLACE)
    if are_free_texts(texts, unique_records, records_with_value):
        found.append(TEXT)
    return found


def _mostly(count: int, texts: Sequence[str]) -> bool:
    """Return whether a count of texts is at least half of all texts."""
    return count > 0 and count >= MOSTLY * len(texts)


def is_ip(text: str) -> bool:
    """Return whether a text is an IP address, version 4 or 6, spaces around it aside."""
    if text.count(".") < 3 and ":" not in text:
        return False
    try:
        ip_address(text.strip())
    except ValueError:
        return False
    return True


def are_phone_numbers(column_words: set[str], texts: Sequence[str]) -> bool:
    """Return whether most values are written like telephone numbers, or are digits in a column so named.

    Any digits are, where the column's name says so. Elsewhere days such as 01/31/2024 are not.
    """
    if column_words & _PHONES:
        return _mostly(sum(bool(_DIGITS.fullmatch(text.strip())) for text in texts), texts)
    return _mostly(sum(bool(_PHONE.fullmatch(text.strip())) and _year_of(text) is None for text in texts), texts)


def are_birth_dates(column_words: set[str], texts: Sequence[str]) -> bool:
    """Return whether most values are dates as far apart as births of people are.

    In a column named after births, dates and years at any distance count.
    """
    years = [year for year in map(_year_of, texts) if year is not None]
    if column_words & _BIRTHS:
        return _mostly(len(years) or sum(bool(_YEAR.fullmatch(text)) for text in texts), texts)
    if len(years) < _FEWEST_DATES or not _mostly(len(years), texts):
        return False
    # The outermost are left out: one slip of a pen makes no dates of birth.
    years.sort()
    cut = len(years) // 20
    return years[-1 - cut] - years[cut] >= _SPAN_OF_BIRTHS


def _year_of(text: str) -> int | None:
    """Return the year of a text that is a date from 1880 to 2100; None if it is not."""
    found = _DATE.fullmatch(text.strip())
    if not found:
        return None
    year, month, day, first, second, after, *solid = (int(part) if part else 0 for part in found.groups())
    if after:
        # Day and month stand in either order.
        year, month, day = after, min(first, second), max(first, second)
    elif not year:
        year, month, day = solid
    try:
        date(year, month, day)
    except ValueError:
        return None
    return year if 1880 <= year <= 2100 else None


def are_locations(column_words: set[str], texts: Sequence[str]) -> bool:
    """Return whether most values are geographic points, or degrees in a column named so."""
    pairs = [found for text in texts if (found := _POINT.fullmatch(text.strip()))]
    if _mostly(sum(abs(float(pair[1])) <= 180 and abs(float(pair[2])) <= 180 for pair in pairs), texts):
        return True
    bounds = [_PLACES[word] for word in column_words & _PLACES.keys()]
    degrees = [text for text in texts if "." in text and _NUMBER.fullmatch(text.strip())]
    return bool(bounds) and _mostly(sum(abs(float(text)) <= max(bounds) for text in degrees), texts)


def are_free_texts(texts: Sequence[str], unique_records: int, records_with_value: int) -> bool:
    """Return whether many values are sentences, and many records have a sentence of their own.

    Long names of categories are shared by records.
    """
    long = sum(len(text.split()) >= _WORDS_OF_TEXT or len(text) >= _LENGTH_OF_TEXT for text in texts)
    return len(texts) >= _FEWEST_TEXTS and long >= 0.3 * len(texts) and unique_records >= _OWN_TEXTS * records_with_value
