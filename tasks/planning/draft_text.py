"""Questions of a draft, and its text: YAML with names, proposals and comments, but no cell values."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core.columns.column_types import ALL
from core.formats import proposals as proposed
from core.formats.concept_names import Role
from core.formats.person_proposals import PersonChoice
from core.formats.proposals import ColumnProfile, Proposal
from schemas.errors.base import counted
from schemas.reading.model import share_text
from tasks.planning.evidence import ExposedPeople, Exposures

WORDING: Mapping[proposed.Question, tuple[str, str]] = {
    "names": ("Do these name or number one person each?", "yes, so they are not published"),
    "outside": ("Could somebody outside know these of a person?", "no value of fewer than k people is published"),
    "text": ("May these texts name people?", "yes, so they are withheld"),
}
"""What is asked of columns, and what the safest answer means."""
COARSENED = "yes, so that no combination of them is that of fewer than k people"
"""What it means where columns that others may know are coarsened together."""


class Question(NamedTuple):
    """A question of a draft about some columns, with the safest answer and its meaning.

    Attributes:
        question: In words.
        safest: The role that the safest answer gives these columns; the draft has it already.
        meaning: What that answer means.
    """

    columns: tuple[str, ...]
    question: str
    safest: str
    meaning: str

    @property
    def safest_words(self) -> str:
        """The safest answer as people write it, such as ``quasi-identifier``."""
        return self.safest.replace("_", "-")


def questions_of(proposals: Sequence[proposed.Proposal]) -> tuple[Question, ...]:
    """Return the questions of a draft about roles, one per kind of question and role."""
    found: dict[tuple[proposed.Question, str], list[str]] = {}
    for one in proposals:
        if one.question is not None:
            found.setdefault((one.question, one.role), []).append(one.profile.name)
    asked = []
    for (question, role), names in found.items():
        words, meaning = WORDING[question]
        asked.append(Question(tuple(names), words, role, COARSENED if role == "quasi_identifier" else meaning))
    return tuple(asked)


def person_question(choice: PersonChoice) -> tuple[Question, ...]:
    """Return one question on which column names the person, or none if there is no doubt."""
    if choice.person is None or not (choice.rivals or choice.unsure):
        return ()
    name = choice.person.profile.name
    columns = (name, *(one.profile.name for one in choice.rivals))
    words = "Does this number the person of a record?" if len(columns) == 1 else "Which of these is the person of a record?"
    others = ", and not those of the others" if choice.rivals else ""
    return (Question(columns, words, "person", f"namely '{name}', and k counts its values{others}"),)


_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
# YAML 1.1, which other tools read, has these for truth values and nulls.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
PERSON = "many values, each of several records"
QUASI_IDENTIFIERS = (
    "  # Known to others, and telling together who somebody is: coarsened. Where two ways are equally good, those named first",
    "  # stay finer. A prefix as long as the longest text keeps a value or withholds it. Better: list groups in a file (lines",
    "  # of value;group;*; 'skald hierarchy draft' writes a first one) and say {csv: FILE.csv}, or write them out:",
    "  # {tree: {group: [value, value]}}.",
)
SENSITIVE = (
    "  # What nobody may learn about one person: published so that every value is that of at least k people (shared): rare numbers",
    "  # and moments go to a grid, rare texts to 'other'. What privacy.l names is guarded in every class too.",
)
INSENSITIVE = "  # Of processing, and weights: published in the same way, and never guarded."


class DraftContents(NamedTuple):
    """What a drafted job file says: name, source, proposals for all columns, person, k and l.

    Attributes:
        name: Of the job.
        source: What it says under ``source``, but for types.
        texts: Whether it has to give types.
        records: How many were read; the exposure is of ``sampled`` of them.
        has_more: Whether the source has more.
        proposals: For all columns.
        person: The column that says whose a record is, if any does.
        k: The least number that share a combination.
        values_kept: Sensitive columns, with how many different values every class can be asked for.
        accept: Whether questions are answered.
    """

    name: str
    source: Mapping[str, Any]
    texts: bool
    records: int
    has_more: bool
    sampled: int
    proposals: tuple[Proposal, ...]
    person: Proposal | None
    k: int
    values_kept: Mapping[str, int]
    accept: bool = False

    @property
    def promises(self) -> str:
        """The promises that pilot runs keep, in words: by k, or by k and l."""
        return "by k and l" if self.values_kept else "by k alone"

    @property
    def obstacle(self) -> str:
        """A sentence on why the job does not run yet; empty if it does."""
        coarsened = any(one.role == "quasi_identifier" for one in self.proposals)
        return obstacle_sentence(self.sampled, self.k, "person" if self.person else "record", coarsened=coarsened)


def obstacle_sentence(person_count: int, k: int, unit: str, *, coarsened: bool) -> str:
    """Return a sentence on why a draft does not run (no quasi-identifier, or below k); empty if it does.

    Args:
        person_count: How many there are, of the unit that k counts.
    """
    if not coarsened:
        return "It does not run yet: no column seems to be one that others may know. DECIDE which is: a job needs a quasi-identifier."
    return (
        f"It does not run yet: k = {k} cannot be met by {counted(person_count, unit)}. Add data, or lower privacy.k."
        if person_count < k
        else ""
    )


def next_commands_sentence(job: str) -> str:
    """Return a sentence with the ``plan`` and ``run`` commands after a draft, the file quoted for a shell."""
    return f"Then: skald plan {shlex.quote(job)}, skald run {shlex.quote(job)}"


def job_text(
    decided: DraftContents,
    out: Path,
    *,
    method: str,
    figures: Mapping[str, float] | None = None,
    exposed: Exposures | None = None,
    questions: Sequence[Question] = (),
) -> str:
    """Return the YAML text of a drafted job file, with comments.

    Args:
        method: The line that says by which method.
        figures: What each method that was tried loses on a sample.
        exposed: What the columns that are published give away.
    """
    looked = counted(decided.records, "record") + (" at the front" if decided.has_more else "")
    away = exposed.columns if exposed else {}
    parts = [
        f"# A first job, drafted from {counted(len(decided.proposals), 'column')} and {looked}.",
        f"# {decided.obstacle or 'It runs as it is.'} Read every line all the same: a proposal is a guess from names, values and counts.",
        *(_shares(exposed, decided) if exposed else []),
        *_asked(decided, out, questions),
        "",
        "version: 1",
        f"name: {yaml_name(decided.name)}",
        _source(decided),
        "",
        "columns:",
        *_person(decided.person),
        "  # Say who somebody is, or may do so, and numbers of records: never published.",
        *_listed("identifiers", ("identifier", "key"), decided, away),
        "",
        "  # Not published either, and nobody's name.",
        *_listed("withheld", ("withheld",), decided, away),
        "",
        *QUASI_IDENTIFIERS,
        *_listed("quasi_identifiers", ("quasi_identifier",), decided, away),
        "",
        *SENSITIVE,
        *_listed("sensitive", ("sensitive",), decided, away),
        "",
        INSENSITIVE,
        *_listed("insensitive", ("insensitive", "weight"), decided, away),
        "",
        *_rest(decided, method, figures or {}),
    ]
    return "\n".join(parts) + "\n"


def _asked(decided: DraftContents, out: Path, questions: Sequence[Question]) -> list[str]:
    """Return the comment lines on a draft's open questions, each with its current answer."""
    # A line end in the name would end the comment, and what follows it would be YAML.
    name = shlex.quote(" ".join(out.name.split()))
    lines = [f"# What it would cost: skald plan {name}. Then: skald run {name}"]
    if not questions:
        return lines
    lines += ["#", "# ACCEPTED, the safest answers:" if decided.accept else "# DECIDE; meanwhile each has its safest answer:"]
    for number, one in enumerate(questions, 1):
        names = ", ".join(map(yaml_name, one.columns))
        lines.append(f"# {number}. {one.question} Safest: {one.safest_words}, {one.meaning}. {names}")
    return lines


def _source(decided: DraftContents) -> str:
    said = {key: value[0] if key == "path" and len(value) == 1 else value for key, value in decided.source.items()}
    if set(said) == {"path"}:
        return f"source: {{path: {_yaml(said['path'])}}}"
    lines = ["source:", *(f"  {key}: {_yaml(value)}" for key, value in said.items())]
    typed = [one.profile for one in decided.proposals if one.profile.kind not in {"text", "other"}]
    if decided.texts and typed:
        lines += ["  types:  # all others are text", *(f"    {yaml_name(one.name)}: {type_of_texts(one)}" for one in typed)]
    return "\n".join(lines)


def type_of_texts(profile: ColumnProfile) -> str:
    """Return the type that a job gives the texts of a column."""
    return "timestamptz" if profile.zoned else profile.kind


def _listed(key: str, roles: Sequence[Role], decided: DraftContents, exposed: Mapping[str, ExposedPeople]) -> list[str]:
    mine = [one for one in decided.proposals if one.role in roles]
    if not mine:
        return [f"  {key}: []"]
    return [f"  {key}:", *(f"    - {_entry(one, decided)}  # {_why(one, exposed, decided)}" for one in mine)]


def _entry(proposal: Proposal, decided: DraftContents) -> str:
    name = yaml_name(proposal.profile.name)
    if proposal.role == "quasi_identifier":
        return f"{{name: {name}, hierarchy: {proposal.hierarchy}{normalise_words(proposal.normalise)}}}"
    if proposal.publish_setting is None:
        return name
    # Spellings of one value would be several to l.
    spelled = proposal.profile.name in decided.values_kept and proposal.profile.kind == "text"
    return f"{{name: {name}, publish: {proposal.publish_setting}{normalise_words(ALL if spelled else ())}}}"


def _spelling_words(steps: Sequence[str]) -> str:
    what = " or ".join({"case": "case", "space": "blanks"}[step] for step in steps)
    return f"texts that differ in {what} alone are read as one" if steps else ""


def normalise_words(steps: Sequence[str]) -> str:
    """Return the YAML of an entry's ``normalise`` setting, with a leading comma; empty without steps."""
    return f", normalise: [{', '.join(steps)}]" if steps else ""


def _person(person: Proposal | None) -> list[str]:
    if person is None:
        return []
    profile = person.profile
    about = counted(min(profile.distinct, profile.values), "different value")
    figures = f"about {about}, each of {profile.mean_records:,.1f} records on average"
    return [
        "  # Whose record it is: k counts different persons then. Say none if every record is a person of its own.",
        f"  person: {yaml_name(profile.name)}  # {figures}",
        "",
    ]


def _why(one: Proposal, exposed: Mapping[str, ExposedPeople], decided: DraftContents) -> str:
    """Return the comment on a column: the reason for its role, and the records it makes unique.

    It has counts and shares, but no value.
    """
    asked = "" if one.question is None else "accepted, " if decided.accept else "DECIDE, "
    parts = [f"{asked}{one.reason}", *((one.hint, _spelling_words(one.normalise)) if one.role == "quasi_identifier" else ())]
    if away := exposed.get(one.profile.name):
        parts.append(exposure_sentence(away, "people" if decided.person else "records"))
    # A line end in another column's name would end the comment, and what follows it would be YAML.
    return "".join(one if one.isprintable() else " " for one in "; ".join(part for part in parts if part))


def counted_among(exposed: Exposures, unit: str, records: int, *, has_more: bool) -> str:
    """Return a phrase on whom shares of unique people were counted among: all, the first, or a sample.

    Args:
        unit: What k counts, a record or a person.
        records: How many were looked at.
        has_more: Whether the source has more.
    """
    if exposed.sampled:
        return f"a sample of {counted(exposed.people, unit)}"
    return f"the first {records:,} records" if has_more else f"all {unit}s"


def _shares(exposed: Exposures, decided: DraftContents) -> list[str]:
    """Return the comment lines that say what the shares behind columns are of."""
    among = counted_among(exposed, "person" if decided.person else "record", decided.records, has_more=decided.has_more)
    return [
        f"# Percentages are of {among}: those unique by a column alone, by it with the other",
        "# quasi-identifiers, and by the others without it.",
    ]


def exposure_sentence(away: ExposedPeople, unit: str) -> str:
    """Return a phrase on the share of people unique by a column, alone, with and without others."""
    figures = f"alone by it {share_text(away.alone)} of the {unit}"
    if away.without or away.together > away.alone:
        figures += f", with the others {share_text(away.together)}, without it {share_text(away.without)}"
    return figures


def _rest(decided: DraftContents, method: str, figures: Mapping[str, float]) -> list[str]:
    unit = "person" if decided.person else "record"
    models = ", ".join(f"{yaml_name(name)}: {{distinct: {kept}}}" for name, kept in decided.values_kept.items())
    least = "; and at least so many different values of a sensitive column" if models else ""
    return [
        f"# Every published combination is shared by at least k {unit}s, so that the risk of each is at most 1 in {decided.k:,}{least}.",
        f"privacy: {{k: {decided.k}, l: {{{models}}}}}" if models else f"privacy: {{k: {decided.k}}}",
        "",
        "# The share of records that may be left out (drop), or published with * in every quasi-identifier (mask) or in as few as",
        "# make them safe (cell).",
        "suppression: {limit: 0.01, treatment: drop}",
        "",
        *_compared(figures, decided.promises),
        method,
        "memory: 1GB",
        f"target: {yaml_name('releases/' + decided.name)}",
    ]


def _compared(figures: Mapping[str, float], promises: str) -> list[str]:
    """Return the comment line on the loss of each method that was tried."""
    if not figures:
        return ["# No method could be tried on a sample."]
    # The way without its key: it is no line of the job.
    ways = "; ".join(f"{way.removeprefix('method: ')} {lost:.3f}" for way, lost in figures.items())
    return [f"# GCP of a sample as published, {promises} (0 loses nothing, 1 everything): {ways}."]


def _yaml(value: Any) -> str:
    """Return a value of the ``source`` section as YAML on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{yaml_name(key)}: {_yaml(one)}' for key, one in value.items())}}}"
    return yaml_name(value) if isinstance(value, str) else f"[{', '.join(map(yaml_name, value))}]"


def yaml_name(text: str) -> str:
    """Return a text as one YAML scalar on one line, quoted where needed.

    It is valid inside braces or not; JSON's strings are YAML's.
    """
    plain = _SIMPLE.fullmatch(text) and text.lower() not in _WORDS
    if plain:
        return text
    # JSON leaves U+0085 and U+2028 as they are, which YAML takes for line ends.
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in json.dumps(text, ensure_ascii=False))
