"""What tells who people are is seen in the values, and ordinary columns are left alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import date, timedelta

import pytest
from stdnum import iban, luhn
from stdnum.de import idnr
from stdnum.fr import nir
from stdnum.gb import nhs

from core.formats.rules import RULES
from core.formats.value_patterns import NUMBERS, identifying_patterns

RANDOM = random.Random(7)
Draw = Callable[[], str]


def digits(count: int) -> str:
    return str(RANDOM.randrange(10 ** (count - 1), 10**count))


def card() -> str:
    number = f"4{digits(14)}"
    return number + str(luhn.calc_check_digit(number))


def account() -> str:
    number = digits(18)
    return f"DE{iban.calc_check_digits('DE00' + number)}{number}"


def french(body: str) -> str:
    return body + str(nir.calc_check_digits(body))


def kept_by(valid: Callable[[str], bool], draw: Draw) -> str:
    return next(number for number in iter(draw, None) if valid(number))


def day(first: int, years: int) -> date:
    return date(first, 1, 1) + timedelta(days=RANDOM.randrange(365 * years))


def found(name: str, draw: Draw, values: int = 40) -> list[str]:
    """Return what 40 values of a column look like that ten records have each."""
    texts = sorted({draw() for _ in range(values)})
    return identifying_patterns(name, texts, len(texts), 0, 10 * len(texts), None)


TOLD: dict[str, tuple[str, Draw, str]] = {
    "e-mail": ("contact", lambda: f"{digits(5)}@example.org", "e-mail addresses"),
    "e-mail in a text": ("remark", lambda: f"write to {digits(5)}@example.org please", "e-mail addresses"),
    "web address": ("a", lambda: f"https://example.org/{digits(6)}", "web addresses"),
    "IPv4": ("a", lambda: f"192.168.{RANDOM.randrange(256)}.{RANDOM.randrange(256)}", "IP addresses"),
    "IPv6": ("a", lambda: f"2001:db8::{digits(4)}", "IP addresses"),
    "international telephone": ("a", lambda: f"+49 {digits(3)} {digits(7)}", "telephone numbers"),
    "American telephone": ("a", lambda: f"(555) {digits(3)}-{digits(4)}", "telephone numbers"),
    "telephone by name": ("home_phone", lambda: digits(9), "telephone numbers"),
    "card": ("a", card, "payment cards"),
    "card in groups": ("a", lambda: " ".join(re.findall("....", card())), "payment cards"),
    "IBAN": ("a", account, "bank accounts"),
    "IBAN in groups": ("a", lambda: iban.format(account()), "bank accounts"),
    "US social security": ("a", lambda: f"{RANDOM.randrange(100, 600)}-{RANDOM.randrange(10, 99)}-{digits(4)}", "social-security numbers"),
    "US social security by name": ("ssn", lambda: f"{RANDOM.randrange(100, 600)}{digits(6)}", "social-security numbers"),
    "French social security": (
        "a",
        lambda: french(f"1{RANDOM.randrange(40, 99)}0575{digits(6)}"),
        "social-security numbers",
    ),
    "German tax number": ("a", lambda: kept_by(idnr.is_valid, lambda: digits(11)), "tax numbers"),
    "NHS number": ("a", lambda: kept_by(nhs.is_valid, lambda: digits(10)), "health numbers"),
    "date of birth": ("a", lambda: str(day(1925, 85)), "dates of birth"),
    "date of birth as a timestamp": ("a", lambda: f"{day(1925, 85)} 00:00:00", "dates of birth"),
    "date of birth in Europe": ("a", lambda: f"{day(1925, 85):%d.%m.%Y}", "dates of birth"),
    "year of birth": ("birth_year", lambda: str(RANDOM.randrange(1930, 2000)), "dates of birth"),
    "point": ("a", lambda: f"{RANDOM.uniform(-80, 80):.5f}, {RANDOM.uniform(-180, 180):.5f}", "coordinates"),
    "latitude": ("lat", lambda: f"{RANDOM.uniform(-80, 80):.5f}", "coordinates"),
}
LEFT_ALONE: dict[str, tuple[str, Draw]] = {
    **{f"{count} digits": ("a", lambda count=count: digits(count)) for count in range(1, 20)},
    "measure": ("score", lambda: f"{RANDOM.uniform(-80, 80):.5f}"),
    "recent date": ("admitted", lambda: str(day(2015, 5))),
    "American day": ("admitted", lambda: f"{day(2019, 5):%m/%d/%Y}"),
    "category": ("work", lambda: RANDOM.choice(["Private", "Self-emp-not-inc", "Never worked for pay", "State-gov"])),
    "time of day": ("at", lambda: f"{RANDOM.randrange(24):02}:{RANDOM.randrange(60):02}:00"),
    "code": ("icd", lambda: f"{RANDOM.choice('ABCDEFGH')}{RANDOM.randrange(100)}.{RANDOM.randrange(10)}"),
    "year": ("year", lambda: str(RANDOM.randrange(1930, 2000))),
}


@pytest.mark.parametrize("kind", TOLD)
def test_what_tells_people_is_seen(kind: str) -> None:
    name, draw, reason = TOLD[kind]
    assert reason in found(name, draw)


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_what_is_ordinary_is_left_alone(kind: str) -> None:
    name, draw = LEFT_ALONE[kind]
    assert found(name, draw, 2000) == []


def test_one_address_among_many_values_is_enough() -> None:
    texts = [f"category {number}" for number in range(1999)]
    assert identifying_patterns("a", [*texts, "x@example.org"], 2000, 0, 10**6, None) == ["e-mail addresses"]


def test_sentences_are_free_text_if_records_have_their_own() -> None:
    texts = [f"was seen on the ward by doctor {number}" for number in range(50)]
    assert identifying_patterns("a", texts, 50, 20, 100, None) == ["free text"]
    assert identifying_patterns("a", texts, 50, 0, 10_000, None) == []


@pytest.mark.parametrize(
    ("distinct", "unique", "values", "persons", "nearly"),
    [(100, 100, 100, None, True), (60, 51, 100, None, True), (60, 50, 100, None, False), (91, 0, 1000, None, False),
     (91, 0, 1000, 100, True), (90, 0, 1000, 100, False), (1, 1, 1, None, False), (0, 0, 0, None, False)],
)  # fmt: skip
def test_nearly_unique_is_of_records_or_of_persons(distinct: int, unique: int, values: int, persons: int | None, nearly: bool) -> None:
    assert (identifying_patterns("a", [], distinct, unique, values, persons) == ["nearly unique"]) is nearly


def test_every_rule_is_used_and_there() -> None:
    assert {number.rule for number in NUMBERS if number.rule} == RULES.keys()
