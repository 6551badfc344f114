"""What a column is called: its name in words, and the concept of the table that these words name."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from core.formats.concepts import Concept, concept_names
from core.formats.names import NUMBERED

Words = tuple[str, ...]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


WHOLE, ENDED, HELD, PARTED = 0.95, 0.9, 0.8, 0.7
"""How sure a name makes: the whole of it, all but words that say nothing, a part of it, and one that had to be cut into words."""
BESIDE = _set(
    "code codes cd coded value values source concept coding display recode detailed the of raw orig original std standard var "
    "column field col new old current curr cur primary main v num n my fake dummy masked anon synthetic d p a all other in at on "
    "for to by per us is has was der die das von de du des la le les el los del do da dos di della il lo subject person patient "
    "customer client employee member user student pupil participant respondent individual respondents patients persons record row "
    "data info c s b h gr grp group class cat category major minor"
)
"""Words that say little of what a column holds: whose it is, or how it is written."""
NUMBERS = _set("id ids no nr number num key uuid guid identifier nbr nummer numero numer codigo reference ref index")
COUNTS = _set("count counts total sum avg average mean median min max share rate ratio percent pct anzahl nombre cantidad")
MOMENTS = _set("date dt dtc time datetime timestamp day at datum fecha data ts start end begin since until")
HEADS = _set("of de du des del von di da do dos della")
FEWEST_LETTERS = 3
PERSONS, EVENTS = (NUMBERED["person"] | {"holder"}, NUMBERED["event"])
WEAK = _set(
    "source system version meta file unit units testing flag flags active valid batch currency study time total page reading items "
    "text note notes mark marks response label target class event events change risk form area period index result results valor "
    "value date day month year hour start stop state land ort card cards contract contact mobile team position rank office major "
    "title single partner parents male female bad complete default status stage reason route dose points item question survey party "
    "device channel cell image picture building line via number id key name nom nome nombre score category product service cost "
    "rate"
)
"""Words that decide only where no other one of a name does."""
PROCESSED = _set("created updated modified loaded load etl ingested ingestion imported import exported extract inserted changed")


class Named(NamedTuple):
    """What a name says.

    Attributes:
        concept: What the column may be.
        confidence: From 0 to 1.
    """

    concept: Concept
    confidence: float


def _folded(name: str) -> str:
    """Returns a name with accents apart from their letters, and umlauts in two letters."""
    return unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue"))


def name_words(name: str) -> Words:
    """Returns the words of a column's name, in lower case and without accents; numbers are none."""
    plain = "".join(letter for letter in _folded(name) if not unicodedata.combining(letter))
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return tuple(word for word in re.split(r"[^a-z]+", parted.lower()) if word)


def _squashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _folded(name).lower())


class _Table(NamedTuple):
    whole: dict[str, Concept]
    exact: frozenset[str]
    words: dict[Words, Concept]
    known: frozenset[str]


@cache
def _table() -> _Table:
    whole: dict[str, Concept] = {}
    exact: set[str] = set()
    held: dict[Words, Concept] = {}
    for concept, name, only_whole in concept_names():
        # The first line that has a name keeps it: lines are in the order of what is withheld.
        whole.setdefault(_squashed(name), concept)
        if only_whole:
            exact.add(_squashed(name))
        else:
            held.setdefault(name_words(name), concept)
            whole.setdefault("".join(name_words(name)), concept)
    vocabulary = {word for words in held for word in words} | BESIDE | NUMBERS | COUNTS | MOMENTS | PERSONS | EVENTS
    return _Table(whole, frozenset(exact), held, frozenset(word for word in vocabulary if len(word) >= FEWEST_LETTERS))


def concept_of(name: str) -> Named | None:
    """Returns what a column of that name may be; None where the table has nothing of it."""
    table, words = _table(), name_words(name)
    squashed = _squashed(name)
    for text in (squashed, squashed.rstrip("0123456789"), "".join(words)):
        # A short name with a number behind it is another name.
        if text in table.whole and (text == squashed or text not in table.exact):
            return Named(table.whole[text], WHOLE)
    if not words:
        return None
    parted = tuple(part for word in words for part in _parts(word))
    sure = HELD if parted == words else PARTED
    ruled = _by_rule(parted)
    if ruled is not None:
        return Named(ruled, sure)
    short = tuple(word for word in parted if word not in BESIDE)
    for some in (_without_ends(parted), short):
        if (found := table.whole.get("".join(some))) and "".join(some) not in table.exact:
            return Named(found, ENDED if parted == words else PARTED)
    found = _longest(parted)
    return None if found is None else Named(found, sure)


def _without_ends(words: Words) -> Words:
    """Returns words without those at either end that say little."""
    first, after = 0, len(words)
    while after - first > 1 and words[after - 1] in BESIDE:
        after -= 1
    while after - first > 1 and words[first] in BESIDE:
        first += 1
    return words[first:after]


def _longest(words: Words) -> Concept | None:
    """Returns the concept of the longest name among some words: before a word such as `of`, else as near to the end as it can be."""
    table = _table()
    ends = [place for place, word in enumerate(words) if word in HEADS]
    best: tuple[tuple[int, int, int, int], Concept] | None = None
    for first in range(len(words)):
        for after in range(len(words), first, -1):
            concept = table.words.get(words[first:after])
            if concept is None or (after - first == 1 and len(words[first]) < FEWEST_LETTERS):
                continue
            strong = int(after - first > 1 or words[first] not in WEAK)
            rank = (strong, after - first, int(bool(ends) and after <= ends[0]), after)
            if best is None or rank > best[0]:
                best = rank, concept
            break
    return best[1] if best else None


def _by_rule(words: Words) -> Concept | None:
    """Returns what words say together that say it in any language of the table: a number of persons or of events, a count, a moment."""
    last, before = words[-1], set(words[:-1])
    if len(words) > 1 and last in NUMBERS:
        if words in _table().words:
            return None
        whose = [word for word in words[:-1] if word.removesuffix("s") in PERSONS | EVENTS]
        if whose:
            person = whose[-1].removesuffix("s") in PERSONS
            return Concept("a person's number", "identifier") if person else Concept("a number of a record", "key")
    if len(words) > 1 and last in {"name", "label"} and words not in _table().words:
        rest = _longest(words[:-1])
        if rest is not None and rest.role not in {"identifier", "key"}:
            return rest
    if len(words) > 1 and last in MOMENTS and before & PROCESSED:
        return Concept("a date of processing", "insensitive")
    if len(words) > 1 and last in MOMENTS and words not in _table().words and not before & {"birth", "death", "deceased", "born"}:
        rest = _longest(words[:-1])
        if rest is None or rest.role in {"sensitive", "key", "quasi_identifier"}:
            return Concept("when something happened", "quasi_identifier")
    return None


@cache
def _parts(word: str) -> Words:
    """Returns the fewest known words that a word is written of; itself where it is none or known."""
    known = _table().known
    if word in known or len(word) < 2 * FEWEST_LETTERS:
        return (word,)
    best: list[Words | None] = [(), *([None] * len(word))]
    for end in range(1, len(word) + 1):
        for start in range(max(end - 20, 0), end):
            before = best[start]
            if before is not None and word[start:end] in known and (best[end] is None or len(before) + 1 < len(best[end] or ())):
                best[end] = (*before, word[start:end])
    return best[-1] or (word,)
