"""Proposals for a first job: what a column may be, from its name, its values, its type and how many there are; what is unsure is asked."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Literal, TypeAlias

from core.formats.concept_names import NameReading, Role, concept_of
from core.formats.names import NUMBERED, words

Kind = Literal["integer", "double", "text", "boolean", "date", "timestamp", "other"]
Question = Literal["names", "outside", "text"]
"""What is asked of a column: whether it says who somebody is, whether others can know it, whether its texts name people."""
Judged: TypeAlias = tuple[Role, float, str]
"""A role, how sure it is, and why."""

NEARLY_UNIQUE = 0.7
"""Different values for each record above which a column tells who people are, whatever it is called."""
UNSURE = 0.7
"""How sure a role must be not to be asked about."""
FEW_VALUES, MANY_RECORDS = 50, 20.0
"""Values at most, and records of each at least, for a column to name nobody, whatever it is called."""
FLAG = 3
"""Values at most of a column that says whether somebody has a name, a telephone or a number, and not which."""
FREE_TEXT = 40
MOST_WIDTHS = 6
LONGEST_CODE = 12
FEWER = 0.75
NEARLY_CONSTANT, SURE = 0.97, 0.9
"""Share of the records with one value from which a column tells nobody apart, and how sure a name must be to outweigh that."""
WEIGHTS_SPAN = 1_000.0
"""What the weights of people do not span, and those of a survey do."""
FREQUENT, EVEN = 0.02, 0.38
"""Share of the records that no number of a person or record has, and of their span in which the middle half of such numbers lies."""
CODES = frozenset(["zip", "zipcode", "postcode", "postal", "pin", "pincode", "plz", "cap", "cep"])
NAMING = frozenset(["a person's name", "a contact", "a street address", "a government number", "an account", "biometrics or a picture"])
"""Concepts of identifiers that stay what they are if their values are few: names of few people are names."""
NUMERIC = frozenset(["integer", "double"])
COORDINATES = "coordinates"
TEXT_LOOK, UNIQUE_LOOK, BIRTH_LOOK, PLACE_LOOK = "free text", "nearly unique", "dates of birth", "coordinates"


@dataclass(frozen=True)
class ColumnProfile:
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
        even: Which part of that the middle half of the numbers lies in: half where they are numbered through, less where they are measures.
        negative: Whether a number is less than zero.
        top: Share of the records with the most frequent value, about.
        value_patterns: What values look like that may tell who somebody is.
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
    even: float = 0.0
    negative: bool = False
    top: float = 0.0
    value_patterns: tuple[str, ...] = ()

    @property
    def uniqueness(self) -> float:
        """Distinct values per value, at most 1."""
        return min(self.distinct / self.values, 1.0) if self.values else 0.0

    @property
    def mean_records(self) -> float:
        """Records of a value on average."""
        return max(self.values / self.distinct, 1.0) if self.distinct else 0.0

    @property
    def measures(self) -> bool:
        """Whether numbers are measures by their shape: less than zero, one far more frequent than others, or most near each other."""
        return self.kind in NUMERIC and (self.negative or self.top >= FREQUENT or 0 < self.even < EVEN)

    @property
    def few(self) -> bool:
        """Whether values are so few, and so frequent, that they name nobody."""
        return self.distinct <= FEW_VALUES and self.mean_records >= MANY_RECORDS


@dataclass(frozen=True)
class Proposal:
    """A role for a column.

    Attributes:
        profile: What was counted.
        role: What becomes of it.
        reason: Why.
        hierarchy: The one that it would have as a quasi-identifier, in YAML; None if it cannot be one.
        hint: What the user can do better about that.
        confidence: From 0 to 1.
        concept: What it seems to be; empty where neither name nor values tell.
        question: What is asked of it.
    """

    profile: ColumnProfile
    role: Role
    reason: str
    hierarchy: str | None
    hint: str = ""
    confidence: float = 0.0
    concept: str = ""
    question: Question | None = None

    @property
    def publish(self) -> str | None:
        """How its values are published, of columns that are published as values."""
        return "shared" if self.role in {"sensitive", "insensitive", "weight"} else None


def propose(profile: ColumnProfile) -> Proposal:
    """Return a proposal: nothing whose values name people is published, and nothing that does not is thrown away."""
    hierarchy, hint = hierarchy_of(profile)
    named = concept_of(profile.name)
    question: Question | None = None
    if profile.kind == "other":
        role, sure, reason = _judged("identifier", 0.8, "of a type that cannot be published")
    elif not profile.values:
        role, sure, reason = _judged("withheld", 1.0, "holds nothing")
    else:
        role, sure, reason = _by_values(profile, named) or _by_name(profile, named) or _by_counts(profile)
    if role == "quasi_identifier" and hierarchy is None:
        role, reason = "identifier", f"values of this type cannot be generalised ({reason})"
    if sure < UNSURE and profile.values and profile.kind != "other":
        question = "names" if role in {"identifier", "key"} else "text" if role == "withheld" else "outside"
    return Proposal(profile, role, reason, hierarchy, hint, round(sure, 2), named.concept.name if named else "", question)


def _judged(role: Role, sure: float, reason: str) -> Judged:
    return role, sure, reason


def _by_values(profile: ColumnProfile, named: NameReading | None) -> Judged | None:
    """Return what values tell, whatever the column is called."""
    telling = [look for look in profile.value_patterns if look not in {UNIQUE_LOOK, TEXT_LOOK, BIRTH_LOOK, PLACE_LOOK}]
    role = named.concept.role if named else None
    if telling and profile.distinct > FLAG and profile.kind != "timestamp":
        return _judged("identifier", 0.95, f"its values look like {', '.join(telling)}")
    if profile.kind == "text" and (TEXT_LOOK in profile.value_patterns or (profile.mean_length > FREE_TEXT and not profile.few)):
        if role in {"identifier", "key"}:
            return None
        return _judged("withheld", 0.9 if role in {None, "withheld"} else 0.75, "free text, which may name people")
    if (
        BIRTH_LOOK in profile.value_patterns
        and (role is None or profile.kind == "text")
        and role not in {"identifier", "key", "quasi_identifier"}
    ):
        return _judged("quasi_identifier", 0.8, "its values look like dates of birth")
    if PLACE_LOOK in profile.value_patterns and profile.kind == "text":
        return _judged("identifier", 0.9, "its values look like points on a map")
    return None


def _by_name(profile: ColumnProfile, named: NameReading | None) -> Judged | None:
    """Return what the name tells, as far as values do not speak against it."""
    if named is None:
        # A column of such a name and no other word says who.
        said = set(words(profile.name))
        return _judged("identifier", 0.7, "named after people") if said and said <= NUMBERED["person"] and not profile.few else None
    concept, role, sure = named.concept.name, named.concept.role, named.confidence
    called = f"{concept}, by its name"
    if role in {"identifier", "key"}:
        return _numbers_or_names(profile, named)
    if role == "quasi_identifier":
        return _known_outside(profile, named)
    found = _judged(role, sure, called)
    if role == "withheld" and (profile.kind != "text" or profile.few):
        found = _judged("sensitive", 0.6, f"{called}, of few values")
    elif role == "sensitive" and profile.kind == "text" and profile.uniqueness >= NEARLY_UNIQUE and profile.mean_length > FREE_TEXT / 2:
        found = _judged("withheld", 0.75, f"{called}, in words of nearly every record's own")
    elif role != "insensitive" and profile.kind in {"date", "timestamp"}:
        found = _judged("quasi_identifier", 0.8, "a date, which others may know")
    return found


def _numbers_or_names(profile: ColumnProfile, named: NameReading) -> Judged:
    concept, role, sure = named.concept.name, named.concept.role, named.confidence
    called = f"{concept}, by its name"
    if profile.kind in {"date", "timestamp"}:
        return _judged("quasi_identifier", 0.7, "a date, which others may know")
    if profile.kind == "boolean" or (profile.distinct <= FLAG and profile.mean_records >= MANY_RECORDS):
        return _judged("sensitive", 0.6, f"{called}, of so few values that it only says whether there is one")
    # Of few values a number is that of a ward or a kind, and a name is a name.
    if concept not in NAMING and profile.few:
        if concept == "a person's number" and sure >= SURE:
            return _judged("identifier", 0.65, f"{called}, though of few values")
        return _judged("sensitive", 0.6, f"{called}, but its values are few and frequent")
    if profile.kind == "double" and concept not in NAMING and profile.uniqueness < NEARLY_UNIQUE and sure < SURE:
        return _judged("sensitive", 0.5, "numbers with fractions")
    return _judged(role, sure, called)


def _known_outside(profile: ColumnProfile, named: NameReading) -> Judged:
    concept, sure = named.concept.name, named.confidence
    called = f"{concept}, by its name"
    if profile.distinct <= 1:
        return _judged("insensitive", 0.8, f"{called}, with one value only")
    if profile.top >= NEARLY_CONSTANT and sure < SURE:
        return _judged("sensitive", 0.7, f"{called}, but nearly all records have one value")
    if profile.kind == "text" and profile.uniqueness >= NEARLY_UNIQUE and not _dated(concept) and profile.values >= MANY_RECORDS:
        return _judged("identifier", 0.7, f"{called}, and nearly every record has a value of its own")
    if concept == "body" and "weight" in words(profile.name) and profile.span > WEIGHTS_SPAN:
        return _judged("weight", 0.8, "a weight that no body has")
    if profile.kind == "double" and concept in {"sex or gender", "race or ethnicity", "marital status", "religion"} and not profile.few:
        return _judged("sensitive", 0.5, "numbers with fractions")
    return _judged("quasi_identifier", sure, called)


def _dated(concept: str) -> bool:
    return concept in {"when something happened", "date of birth", "date of death"}


def _by_counts(profile: ColumnProfile) -> Judged:
    if profile.kind in {"date", "timestamp"}:
        return _judged("quasi_identifier", 0.7, "a date, which others may know")
    if profile.kind in {"text", "integer"} and profile.values > 1 and profile.uniqueness >= NEARLY_UNIQUE:
        if profile.measures:
            return _judged("sensitive", 0.6, "measures by their shape, though nearly every record has a value of its own")
        return _judged("identifier", 0.6, "nearly every record has a value of its own")
    if profile.distinct <= 1:
        return _judged("insensitive", 0.8, "one value only")
    if profile.kind == "double":
        return _judged("sensitive", 0.7, "measures, which nobody outside is likely to know")
    return _judged("sensitive", 0.5, "nothing tells what it is")


def hierarchy_of(profile: ColumnProfile) -> tuple[str | None, str]:
    """Return a hierarchy that fits the type, in YAML, and a hint where the user can do better; None where there is none."""
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


def _is_code(profile: ColumnProfile) -> bool:
    return bool(set(words(profile.name)) & CODES)


def ranks(distinct: int) -> list[str]:
    """Return how many neighbouring values share a bin, level by level: 1, 4, 16, … below half the values."""
    return ["1", *(str(4**power) for power in range(1, MOST_WIDTHS) if 4**power * 2 <= distinct)]


def widths(span: float, *, whole: bool, distinct: int = 0) -> list[str]:
    """Return bin widths that nest (…, 1, 5, 10, 50, …) up to the span, at most six and the coarsest ones.

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
