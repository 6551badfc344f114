"""Proposals for a first job: what a column may be, from its name, its type and how many values it has; whatever is unsure is left open."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Literal

from core.formats.names import NUMBERED, words

Kind = Literal["integer", "double", "text", "boolean", "date", "timestamp", "other"]
ProposedRole = Literal["identifiers", "withheld", "quasi_identifiers", "sensitive", "open"]

NEARLY_UNIQUE = 0.7
"""Different values for each record above which a column tells who people are, whatever it is called."""
FEW_VALUES, MANY_RECORDS = 50, 20.0
"""Values at most, and records of each at least, for a column to name nobody, whatever it is called."""
FREE_TEXT = 40
MOST_WIDTHS = 6
LONGEST_CODE = 12
FEWER = 0.75

IDENTIFIERS = (
    "id ids ssn ip iban uuid guid url uri mrn nhs vin imei mac name names surname firstname lastname fullname username filename nickname "
    "email mail phone telephone mobile fax address street account passport licence license login signature "
    "key number no nr"
)
QUASI_IDENTIFIERS = (
    "age sex gender birth dob born birthday birthdate zip zipcode postcode postal pin pincode plz city town village county state region "
    "district province country nationality citizenship race ethnicity ethnic religion language marital education school degree occupation "
    "profession job workclass employer industry height weight bmi blood household children family relationship veteran admitted admission "
    "discharge visited hired date day month year hispanic hisp kids worker origin residence"
)
NOTES = "photo image comment comments note notes text description remark remarks"
SENSITIVE = (
    "disease diagnosis condition icd illness medication drug drugs treatment therapy procedure hiv symptom symptoms salary income wage "
    "wages earnings balance debt score crime offence conviction outcome disability pregnancy party vote"
)
WORDS: dict[ProposedRole, frozenset[str]] = {
    "identifiers": frozenset(IDENTIFIERS.split()),
    "withheld": frozenset(NOTES.split()),
    "quasi_identifiers": frozenset(QUASI_IDENTIFIERS.split()),
    "sensitive": frozenset(SENSITIVE.split()),
}
CODES = frozenset(["zip", "zipcode", "postcode", "postal", "pin", "pincode", "plz"])


@dataclass(frozen=True)
class Profile:
    """What was counted of a column; no value of it.

    Attributes:
        name: Of the column.
        kind: Of its values.
        values: Records that have one.
        distinct: How many are different, about.
        shortest, longest: Characters of a text.
        mean_length: Characters of a text on average.
        span: What all but a hundredth of the numbers at either end lie in; 0 for other kinds.
        digits: Whether every text is of digits.
        coded: Whether texts are codes: short, of letters and digits without spaces, and most with a digit.
    """

    name: str
    kind: Kind
    values: int
    distinct: int
    shortest: int = 0
    longest: int = 0
    mean_length: float = 0.0
    span: float = 0.0
    digits: bool = False
    coded: bool = False

    @property
    def uniqueness(self) -> float:
        """Distinct values per value, at most 1."""
        return min(self.distinct / self.values, 1.0) if self.values else 0.0

    @property
    def mean_records(self) -> float:
        """Records of a value on average."""
        return max(self.values / self.distinct, 1.0) if self.distinct else 0.0


@dataclass(frozen=True)
class Proposal:
    """A role for a column with its reason, and the hierarchy it would have as a quasi-identifier, in YAML; None if it cannot be one."""

    profile: Profile
    role: ProposedRole
    reason: str
    hierarchy: str | None
    hint: str = ""


def propose(profile: Profile) -> Proposal:
    """Returns a proposal. Nothing is ever proposed to be insensitive: what neither name nor values tell is left open."""
    role, reason = _role(profile) if profile.kind != "other" else ("identifiers", "of a type that cannot be published")
    if not profile.values:
        role, reason = "withheld", "holds nothing"
    hierarchy, hint = hierarchy_of(profile)
    if role == "quasi_identifiers" and hierarchy is None:
        role, reason = "identifiers", f"values of this type cannot be generalised ({reason})"
    return Proposal(profile, role, reason, hierarchy, hint)


def _role(profile: Profile) -> tuple[ProposedRole, str]:
    named = set(words(profile.name))
    # Identifiers come first: of two words in a name the one that withholds more decides.
    for role, known in WORDS.items():
        if named & known:
            if role in {"identifiers", "withheld"} and profile.distinct <= FEW_VALUES and profile.mean_records >= MANY_RECORDS:
                return "open", ""
            return role, "by its name"
    # A column of such a name and no other word says who.
    if named and named <= NUMBERED["person"]:
        return "identifiers", "by its name"
    return _role_by_values(profile)


def _role_by_values(profile: Profile) -> tuple[ProposedRole, str]:
    if profile.kind == "text" and profile.mean_length > FREE_TEXT:
        return "identifiers", "looks like free text, which may name people"
    if profile.kind in {"text", "integer"} and profile.values > 1 and profile.uniqueness >= NEARLY_UNIQUE:
        return "identifiers", "nearly every record has a value of its own"
    if profile.kind in {"date", "timestamp"}:
        return "quasi_identifiers", "a date, which others may know"
    return "open", ""


def hierarchy_of(profile: Profile) -> tuple[str | None, str]:
    """Returns a hierarchy that fits the type, in YAML, and a hint where the user can do better; None where there is none."""
    match profile.kind:
        case "boolean":
            return '{tree: {"*": ["true", "false"]}}', ""
        case "date" | "timestamp":
            return "{date: [day, month, quarter, year, decade]}", ""
        case "integer" if _is_code(profile):
            return f"{{widths: [{', '.join(ranks(profile.distinct))}], encode: true}}", "bins of neighbouring codes"
        case "integer" | "double":
            return f"{{widths: [{', '.join(widths(profile.span, whole=profile.kind == 'integer', distinct=profile.distinct))}]}}", ""
        case "text":
            code = (profile.digits or profile.coded or _is_code(profile)) and 1 < profile.longest <= LONGEST_CODE
            kept = range(profile.longest, 0, -1) if code else [max(profile.longest, 1)]
            return f"{{prefix: [{', '.join(map(str, kept))}]}}", "" if code else "kept or withheld; groups by: skald hierarchy draft"
    return None, ""


def _is_code(profile: Profile) -> bool:
    return bool(set(words(profile.name)) & CODES)


def ranks(distinct: int) -> list[str]:
    """Returns how many neighbouring values share a bin, level by level: 1, 4, 16, … below half the values."""
    return ["1", *(str(4**power) for power in range(1, MOST_WIDTHS) if 4**power * 2 <= distinct)]


def widths(span: float, *, whole: bool, distinct: int = 0) -> list[str]:
    """Returns bin widths that nest (…, 1, 5, 10, 50, …) up to the span, at most six and the coarsest ones.

    Whole numbers begin with 1, which keeps the values; other numbers with about a hundredth of the span, and with bins that are fewer
    than the distinct values where these are known: narrower ones would hold a value each.
    """
    # An exact decimal has 18 digits at most.
    top = min(max(floor(log10(span)), -12), 17) if span > 0 else 0
    steps = [(digit, power) for power in range(top - 3, top + 1) for digit in (1, 5)]
    if whole:
        steps = [(1, 0), *((digit, power) for digit, power in steps if (digit, power) > (1, 0) and power >= 0)]
        steps = sorted(set(steps), key=lambda step: step[0] * 10.0 ** step[1])
    fitting = [step for step in steps if step[0] * 10.0 ** step[1] < max(span, 1)] or [(1, 0)]
    fewer = [step for step in fitting if not distinct or span / (step[0] * 10.0 ** step[1]) < FEWER * distinct]
    kept = [fitting[0], *fitting[1:][-(MOST_WIDTHS - 1) :]] if whole else (fewer or fitting[-1:])[-MOST_WIDTHS:]
    return [_decimal(digit, power) for digit, power in kept]


def _decimal(digit: int, power: int) -> str:
    return str(digit * 10**power) if power >= 0 else "0." + "0" * (-power - 1) + str(digit)
