"""What the values of a column look like that may tell who somebody is: patterns over a sample of its distinct values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from ipaddress import ip_address

from core.formats.names import words
from core.passthrough.numbers import number_kinds

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
_PHONES = frozenset(["phone", "telephone", "tel", "mobile", "cell", "fax", "cellphone", "handy", "telefon"])
_BIRTHS = frozenset(
    [
        "birth",
        "born",
        "dob",
        "birthday",
        "birthdate",
        "yob",
        "birthyear",
        "geburtsdatum",
        "geboren",
        "geburtstag",
        "naissance",
        "nacimiento",
        "nascita",
    ]
)
_PLACES: Mapping[str, float] = {
    **dict.fromkeys(("lat", "latitude", "breite", "northing"), 90.0),
    **dict.fromkeys(("lon", "lng", "long", "longitude", "laenge", "easting"), 180.0),
}
_FEWEST_DATES, _SPAN_OF_BIRTHS = 8, 30
_FEWEST_TEXTS, _WORDS_OF_TEXT, _LENGTH_OF_TEXT, _OWN_TEXTS = 5, 5, 60, 0.1


def nearly_unique(distinct: int, unique: int, values: int, persons: int | None) -> bool:
    """Tells whether a column's values come near to naming records or people.

    Args:
        distinct: Different values.
        unique: Records alone with theirs.
        values: Records that have one.
        persons: Different persons, where that is known: a number that each of them keeps is no record's own.
    """
    most = values if persons is None else min(values, persons)
    return values > 1 and (2 * unique > values or 10 * distinct > 9 * most > 9)


def reasons(name: str, texts: Sequence[str], distinct: int, unique: int, values: int, persons: int | None) -> list[str]:
    """Returns what a column looks like that may tell who somebody is; nothing where nothing was found.

    Args:
        name: Of the column.
        texts: Distinct values, or those of them that are looked at.
        distinct: Different values.
        unique: Records alone with theirs.
        values: Records that have a value.
        persons: Different persons, where that is known.
    """
    found = [NEARLY_UNIQUE] if nearly_unique(distinct, unique, values, persons) else []
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
    births = is_birth(named, texts)
    if not births and is_phone(named, texts):
        found.append(PHONE)
    found += number_kinds(name, texts)
    if births:
        found.append(BIRTH)
    if is_place(named, texts):
        found.append(PLACE)
    if is_free_text(texts, unique, values):
        found.append(TEXT)
    return found


def _mostly(count: int, texts: Sequence[str]) -> bool:
    return count > 0 and count >= MOSTLY * len(texts)


def is_ip(text: str) -> bool:
    """Tells whether a value is the address of a machine, of version 4 or 6."""
    if text.count(".") < 3 and ":" not in text:
        return False
    try:
        ip_address(text.strip())
    except ValueError:
        return False
    return True


def is_phone(named: set[str], texts: Sequence[str]) -> bool:
    """Tells whether most values are written like telephone numbers; any digits are where the column's name says so."""
    pattern = _DIGITS if named & _PHONES else _PHONE
    return _mostly(sum(bool(pattern.fullmatch(text.strip())) for text in texts), texts)


def is_birth(named: set[str], texts: Sequence[str]) -> bool:
    """Tells whether most values are dates that lie as far apart as births of people do, or dates or years in a column so called."""
    years = [year for year in map(_year_of, texts) if year is not None]
    if named & _BIRTHS:
        return _mostly(len(years) or sum(bool(_YEAR.fullmatch(text)) for text in texts), texts)
    if len(years) < _FEWEST_DATES or not _mostly(len(years), texts):
        return False
    # The outermost are left out: one slip of a pen makes no dates of birth.
    years.sort()
    cut = len(years) // 20
    return years[-1 - cut] - years[cut] >= _SPAN_OF_BIRTHS


def _year_of(text: str) -> int | None:
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


def is_place(named: set[str], texts: Sequence[str]) -> bool:
    """Tells whether most values are points on the earth, or degrees in a column so called."""
    pairs = [found for text in texts if (found := _POINT.fullmatch(text.strip()))]
    if _mostly(sum(abs(float(pair[1])) <= 180 and abs(float(pair[2])) <= 180 for pair in pairs), texts):
        return True
    bounds = [_PLACES[word] for word in named & _PLACES.keys()]
    degrees = [text for text in texts if "." in text and _NUMBER.fullmatch(text.strip())]
    return bool(bounds) and _mostly(sum(abs(float(text)) <= max(bounds) for text in degrees), texts)


def is_free_text(texts: Sequence[str], unique: int, values: int) -> bool:
    """Tells whether many values are sentences, and many records have one of their own; long names of categories are shared."""
    long = sum(len(text.split()) >= _WORDS_OF_TEXT or len(text) >= _LENGTH_OF_TEXT for text in texts)
    return len(texts) >= _FEWEST_TEXTS and long >= 0.3 * len(texts) and unique >= _OWN_TEXTS * values
