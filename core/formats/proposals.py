"""Proposals for a first job: roles of columns from their names, values, types and counts.

Unsure roles become questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Literal, TypeAlias

from core.formats.concept_names import NUMBERED, NameReading, Role, concept_of, word_set, words

Kind = Literal["integer", "double", "text", "boolean", "date", "timestamp", "other"]
Question = Literal["names", "outside", "text"]
"""Questions about a column: whether it identifies people, whether others can know it, whether its texts name people."""
Judged: TypeAlias = tuple[Role, float, str]
"""A role, how sure it is, and why."""

NEARLY_UNIQUE = 0.7
"""Different values for each record above which a column identifies people, whatever it is called."""
UNSURE = 0.7
"""How sure a role must be not to be asked about."""
FEW_VALUES, MANY_RECORDS = 50, 20.0
"""Values at most, and records of each at least, for a column to identify no person, whatever it is called."""
FLAG = 3
"""Values at most of a column that says whether a person has a name, a telephone or a number, and not which."""
FREE_TEXT = 40
MOST_WIDTHS = 6
LONGEST_CODE = 12
FEWER = 0.75
NEARLY_CONSTANT, SURE = 0.97, 0.9
"""Share of the records with one value from which a column distinguishes no persons, and how sure a name must be to outweigh that."""
WEIGHTS_SPAN = 1_000.0
"""What the weights of people do not span, and those of a survey do."""
FREQUENT, EVEN = 0.02, 0.38
"""Share of the records that no number of a person or record has, and of their span in which the middle half of such numbers lies."""
CODES = word_set("zip zipcode postcode postal pin pincode plz cap cep")
NAMING = frozenset(["a person's name", "a contact", "a street address", "a government number", "an account", "biometrics or a picture"])
"""Concepts of identifiers that stay what they are if their values are few: names of few people are names."""
NUMERIC = frozenset(["integer", "double"])
COORDINATES = "coordinates"
TEXT_LOOK, UNIQUE_LOOK, BIRTH_LOOK, PLACE_LOOK = "free text", "nearly unique", "dates of birth", "coordinates"
PHONE_LOOK = "telephone numbers"


@dataclass(frozen=True)
class ColumnProfile:
    """Counts and patterns of a column's values; it holds no value itself.

    Attributes:
        name: Of the column.
        kind: Of its values.
        values: Records that have one.
        distinct: How many are different, about.
        longest: Characters of a text.
        mean_length: Characters of a text on average.
        span: What all but a hundredth of the numbers at either end lie in; 0 for other kinds.
        digits: Whether every text is of digits.
        coded: Whether texts are codes: short, of letters and digits without spaces, and most with a digit.
        even: Which part of that the middle half of the numbers lies in: half where they are numbered through, less where they are measures.
        negative: Whether a number is less than zero.
        top: Share of the records with the most frequent value, about.
        value_patterns: Patterns of the values that may identify a person.
        zoned: Whether texts of moments give their offset, so that they are of type ``timestamptz``; they are looked at in UTC.
        obstacle: Why values cannot be coarsened; those of kind ``other`` cannot be shared either. Empty if they can.
    """

    name: str
    kind: Kind
    values: int
    distinct: int
    longest: int = 0
    mean_length: float = 0.0
    span: float = 0.0
    digits: bool = False
    coded: bool = False
    even: float = 0.0
    negative: bool = False
    top: float = 0.0
    value_patterns: tuple[str, ...] = ()
    obstacle: str = ""
    zoned: bool = False

    @property
    def uniqueness(self) -> float:
        """Share of distinct values among all values, at most 1."""
        return min(self.distinct / self.values, 1.0) if self.values else 0.0

    @property
    def mean_records(self) -> float:
        """Records per distinct value on average."""
        return max(self.values / self.distinct, 1.0) if self.distinct else 0.0

    @property
    def looks_measured(self) -> bool:
        """Whether the numbers look like measures and not like identifiers.

        They do if one is negative, one is far more frequent than others, or most are near each other.
        """
        return self.kind in NUMERIC and (self.negative or self.top >= FREQUENT or 0 < self.even < EVEN)

    @property
    def has_few_values(self) -> bool:
        """Whether values are so few and so frequent that they identify no person."""
        return self.distinct <= FEW_VALUES and self.mean_records >= MANY_RECORDS


@dataclass(frozen=True)
class Proposal:
    """Proposed role of a column, with its reason, confidence and question.

    Attributes:
        profile: What was counted.
        role: What becomes of it.
        reason: Why.
        hierarchy: The one that it would have as a quasi-identifier, in YAML; None if it cannot be one.
        hint: What the user can do better about that.
        confidence: From 0 to 1.
        concept: What it seems to be; empty where neither name nor values suggest a concept.
        question: What is asked of it.
        normalise: How its texts are read as a quasi-identifier, where spellings differ in case or blanks alone.
    """

    profile: ColumnProfile
    role: Role
    reason: str
    hierarchy: str | None
    hint: str = ""
    confidence: float = 0.0
    concept: str = ""
    question: Question | None = None
    normalise: tuple[str, ...] = ()

    @property
    def publish_setting(self) -> str | None:
        """The job's word for ``publish``: ``shared`` for sensitive, insensitive and weight columns, else None."""
        return "shared" if self.role in {"sensitive", "insensitive", "weight"} else None


def propose_role(profile: ColumnProfile) -> Proposal:
    """Propose a column's role, with reason, hierarchy, confidence and question, from its profile.

    No column is published whose values name people, and no other column is thrown away.
    """
    hierarchy, hint = (None, "") if profile.obstacle else hierarchy_of(profile)
    named = concept_of(profile.name)
    question: Question | None = None
    if not profile.values:
        judged: Judged = "withheld", 1.0, "holds nothing"
    elif profile.kind == "other":
        judged = _unfit(profile, named)
    else:
        judged = _by_values(profile, named) or _by_name(profile, named) or _by_counts(profile)
    role, sure, reason = judged
    if role == "quasi_identifier" and hierarchy is None:
        role, reason = (
            ("withheld", profile.obstacle) if profile.obstacle else ("identifier", f"its values cannot be generalised ({reason})")
        )
    if sure < UNSURE and profile.values and profile.kind != "other":
        question = "names" if role in {"identifier", "key"} else "text" if role == "withheld" else "outside"
    return Proposal(profile, role, reason, hierarchy, hint, round(sure, 2), named.concept.name if named else "", question)


def _unfit(profile: ColumnProfile, named: NameReading | None) -> Judged:
    """Return the role of a column whose values can be neither coarsened nor shared: it is not published."""
    obstacle = profile.obstacle or "of a type that can be neither coarsened nor shared"
    if named is not None and named.concept.role in {"identifier", "key"}:
        return named.concept.role, named.confidence, f"{named.concept.name}, by its name; {obstacle}"
    return "withheld", 0.8, obstacle


def _by_values(profile: ColumnProfile, named: NameReading | None) -> Judged | None:
    """Return the role that the patterns of values suggest, whatever the column's name; None if none."""
    looks, role = profile.value_patterns, named.concept.role if named else None
    # Postal codes and dates are written like telephone numbers. A sure name tells them apart, and they are coarsened.
    known = role == "quasi_identifier" and named is not None and named.confidence >= SURE
    telling = [look for look in looks if look not in {UNIQUE_LOOK, TEXT_LOOK, BIRTH_LOOK, PLACE_LOOK, PHONE_LOOK if known else ""}]
    if telling and profile.distinct > FLAG and profile.kind != "timestamp":
        return "identifier", 0.95, f"its values look like {', '.join(telling)}"
    if profile.kind == "text" and (TEXT_LOOK in looks or (profile.mean_length > FREE_TEXT and not profile.has_few_values)):
        if role in {"identifier", "key"}:
            return None
        return "withheld", (0.9 if role in {None, "withheld"} else 0.75), "free text, which may name people"
    if BIRTH_LOOK in looks and (role is None or profile.kind == "text") and role not in {"identifier", "key", "quasi_identifier"}:
        return "quasi_identifier", 0.8, "its values look like dates of birth"
    if PLACE_LOOK in looks and profile.kind == "text":
        return "identifier", 0.9, "its values look like points on a map"
    return None


def _by_name(profile: ColumnProfile, named: NameReading | None) -> Judged | None:
    """Return the role that the column's name suggests, unless the values contradict it; None if none."""
    if named is None:
        # A column of such a name and no other word says who.
        said = set(words(profile.name)) if not profile.has_few_values else set[str]()
        return ("identifier", 0.7, "named after people") if said and said <= NUMBERED["person"] else None
    concept, role, sure = named.concept.name, named.concept.role, named.confidence
    called = f"{concept}, by its name"
    if role in {"identifier", "key"}:
        return _numbers_or_names(profile, named)
    if role == "quasi_identifier":
        return _known_outside(profile, named)
    found: Judged = role, sure, called
    if role == "withheld" and (profile.kind != "text" or profile.has_few_values):
        found = "sensitive", 0.6, f"{called}, of few values"
    elif role == "sensitive" and profile.kind == "text" and profile.uniqueness >= NEARLY_UNIQUE and profile.mean_length > FREE_TEXT / 2:
        found = "withheld", 0.75, f"{called}, in words of nearly every record's own"
    elif role != "insensitive" and profile.kind in {"date", "timestamp"}:
        found = "quasi_identifier", 0.8, "a date, which others may know"
    return found


def _numbers_or_names(profile: ColumnProfile, named: NameReading) -> Judged:
    """Return the role of a column named as an identifier or key, corrected by its values."""
    concept, role, sure = named.concept.name, named.concept.role, named.confidence
    called = f"{concept}, by its name"
    if profile.kind in {"date", "timestamp"}:
        return "quasi_identifier", 0.7, "a date, which others may know"
    if profile.kind == "boolean" or (profile.distinct <= FLAG and profile.mean_records >= MANY_RECORDS):
        return "sensitive", 0.6, f"{called}, of so few values that it only says whether there is one"
    # Of few values a number is that of a ward or a kind, and a name is a name.
    if concept not in NAMING and profile.has_few_values:
        if concept == "a person's number" and sure >= SURE:
            return "identifier", 0.65, f"{called}, though of few values"
        return "sensitive", 0.6, f"{called}, but its values are few and frequent"
    if profile.kind == "double" and concept not in NAMING and profile.uniqueness < NEARLY_UNIQUE and sure < SURE:
        return "sensitive", 0.5, "numbers with fractions"
    return role, sure, called


def _known_outside(profile: ColumnProfile, named: NameReading) -> Judged:
    """Return the role of a column named as a quasi-identifier, corrected by its values."""
    concept, sure = named.concept.name, named.confidence
    called = f"{concept}, by its name"
    if profile.distinct <= 1:
        return "insensitive", 0.8, f"{called}, with one value only"
    if profile.top >= NEARLY_CONSTANT and sure < SURE:
        return "sensitive", 0.7, f"{called}, but nearly all records have one value"
    if profile.kind == "text" and profile.uniqueness >= NEARLY_UNIQUE and concept not in DATED and profile.values >= MANY_RECORDS:
        return "identifier", 0.7, f"{called}, and nearly every record has a value of its own"
    if concept == "body" and "weight" in words(profile.name) and profile.span > WEIGHTS_SPAN:
        return "weight", 0.8, "a weight that no body has"
    if profile.kind == "double" and concept in CATEGORIES and not profile.has_few_values:
        return "sensitive", 0.5, "numbers with fractions"
    return "quasi_identifier", sure, called


DATED = {"when something happened", "date of birth", "date of death"}
CATEGORIES = {"sex or gender", "race or ethnicity", "marital status", "religion"}


def _by_counts(profile: ColumnProfile) -> Judged:
    """Return the role that type and counts suggest."""
    if profile.kind in {"date", "timestamp"}:
        return "quasi_identifier", 0.7, "a date, which others may know"
    if profile.kind in {"text", "integer"} and profile.values > 1 and profile.uniqueness >= NEARLY_UNIQUE:
        if profile.looks_measured:
            return "sensitive", 0.6, "measures by their shape, though nearly every record has a value of its own"
        return "identifier", 0.6, "nearly every record has a value of its own"
    if profile.distinct <= 1:
        return "insensitive", 0.8, "one value only"
    if profile.kind == "double":
        return "sensitive", 0.7, "measures, which nobody outside is likely to know"
    return "sensitive", 0.5, "nothing tells what it is"


def hierarchy_of(profile: ColumnProfile) -> tuple[str | None, str]:
    """Return a YAML hierarchy for a column's type, None if none fits, and a hint, empty if none is needed."""
    match profile.kind:
        case "boolean":
            return '{tree: {"*": ["true", "false"]}}', ""
        case "date" | "timestamp":
            return "{date: [day, month, quarter, year, decade]}", ""
        case "integer" if _is_code(profile):
            return f"{{widths: [{', '.join(code_bin_sizes(profile.distinct))}], encode: true}}", "bins of neighbouring codes"
        case "integer" | "double":
            return f"{{widths: [{', '.join(bin_widths(profile.span, integers=profile.kind == 'integer', distinct=profile.distinct))}]}}", ""
        case "text":
            code = (profile.digits or profile.coded or _is_code(profile)) and 1 < profile.longest <= LONGEST_CODE
            kept = range(profile.longest, 0, -1) if code else [max(profile.longest, 1)]
            return f"{{prefix: [{', '.join(map(str, kept))}]}}", "" if code else "kept or withheld; groups by: skald hierarchy draft"
    return None, ""


def _is_code(profile: ColumnProfile) -> bool:
    """Return whether a column is named as a postal code."""
    return bool(set(words(profile.name)) & CODES)


def code_bin_sizes(distinct_values: int) -> list[str]:
    """Return the numbers of neighbouring values per bin by level: 1, 4, 16, … below half the values."""
    return ["1", *(str(4**power) for power in range(1, MOST_WIDTHS) if 4**power * 2 <= distinct_values)]


def bin_widths(span: float, *, integers: bool, distinct: int = 0) -> list[str]:
    """Return nesting bin widths (…, 1, 5, 10, 50, …) up to the span, at most six.

    The coarsest are kept. Whole numbers begin with 1, which keeps the values. Other numbers begin with about a hundredth of the span. Their
    bins are fewer than the distinct values where these are known: narrower ones would hold a value each.
    """
    # An exact decimal has 18 digits at most.
    top = min(max(floor(log10(span)), -12), 17) if span > 0 else 0
    steps = [(digit, power) for power in range(top - 3, top + 1) for digit in (1, 5)]
    if integers:
        steps = [(1, 0), *((digit, power) for digit, power in steps if (digit, power) > (1, 0) and power >= 0)]
        steps = sorted(set(steps), key=lambda step: step[0] * 10.0 ** step[1])
    fitting = [step for step in steps if step[0] * 10.0 ** step[1] < max(span, 1)] or [(1, 0)]
    fewer = [step for step in fitting if not distinct or span / (step[0] * 10.0 ** step[1]) < FEWER * distinct]
    kept = [fitting[0], *fitting[1:][-(MOST_WIDTHS - 1) :]] if integers else (fewer or fitting[-1:])[-MOST_WIDTHS:]
    return [_decimal(digit, power) for digit, power in kept]


def _decimal(digit: int, power: int) -> str:
    """Write a digit times a power of ten as a decimal."""
    return str(digit * 10**power) if power >= 0 else "0." + "0" * (-power - 1) + str(digit)
