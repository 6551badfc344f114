"""The text of a drafted job: names of columns and proposals in YAML, with comments where the user has to decide; no cell value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core.formats.proposals import Proposal, ProposedRole
from schemas.errors.base import counted
from tasks.planning.exposure import Exposed
from tasks.planning.profiles import MOST_RECORDS

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
COARSENED = (
    "    # DECIDE: nothing tells what these are. They are coarsened meanwhile, which is safe whatever they are; those first that give",
    "    # most away. What nobody outside can know may move to insensitive, what is nobody's business to withheld.",
)
WITHHELD = (
    "    # DECIDE: nothing tells what these are, and coarsened they would cost the others too much. They are withheld meanwhile; those",
    "    # first that give most away. Move one to quasi_identifiers with the hierarchy beside it, or to another role: to identifiers what",
    "    # may say whose a record is.",
)


class Undecided(NamedTuple):
    """A column for the user to decide on, and what it gives away."""

    proposal: Proposal
    exposed: Exposed


class Decided(NamedTuple):
    """What a draft says whatever becomes of undecided columns.

    Attributes:
        name: Of the job.
        source: What it says under ``source``, but for types.
        texts: Whether it has to give types.
        records: How many were looked at, and ``sampled`` of how many it is told what they give away.
        proposals: For all columns.
        person: The column that says whose a record is, if any does.
        k: The least number that share a combination.
        kept: Sensitive columns, with how many different values every class can be asked for.
    """

    name: str
    source: Mapping[str, Any]
    texts: bool
    records: int
    sampled: int
    proposals: tuple[Proposal, ...]
    person: Proposal | None
    k: int
    kept: Mapping[str, int]


def job_text(
    decided: Decided,
    out: Path,
    ranked: Sequence[Undecided],
    taken: Sequence[Proposal],
    *,
    method: str = "method: {name: skald}",
    gcp: float | None = None,
) -> str:
    """Returns the text of a job file.

    Args:
        decided: What it says in any case.
        out: The file.
        ranked: Undecided columns, those first that give most away.
        taken: Which of them are quasi-identifiers; the others are withheld.
        method: The line that says by which method.
        gcp: What that loses on a sample, if that is known.
    """
    coarsened, withheld = ([one for one in ranked if (one.proposal in taken) is held] for held in (True, False))
    looked = counted(decided.records, "record") + (" at the front" if decided.records == MOST_RECORDS else "")
    parts = [
        f"# A first job, drafted from {counted(len(decided.proposals), 'column')} and {looked}.",
        f"# {_runs(decided, taken)} Read every line all the same: a proposal is a guess from names and counts.",
        f"# {_to_do(out, ranked)}",
        "",
        "version: 1",
        f"name: {yaml_name(decided.name)}",
        _source(decided),
        "",
        "columns:",
        *_person(decided.person),
        "  # Say who somebody is, or may do so: never published.",
        *_listed("identifiers", decided.proposals),
        *_kept_back(decided.proposals, withheld),
        "",
        *QUASI_IDENTIFIERS,
        "  quasi_identifiers:",
        *(f"    - {_qid(one)}{_why(one)}" for one in decided.proposals if one.role == "quasi_identifiers"),
        *([*COARSENED, *(f"    - {_qid(one.proposal)}  # {_away(one)}" for one in coarsened)] if coarsened else []),
        "",
        "  # What nobody may learn about one person: published, and guarded by privacy.l.",
        *_listed("sensitive", decided.proposals),
        "",
        "  # Published as in the source, and in no risk: only what nobody outside can know. Nothing is proposed here.",
        "  insensitive: []",
        "",
        *_rest(decided, method, gcp),
    ]
    return "\n".join(parts) + "\n"


def _runs(decided: Decided, taken: Sequence[Proposal]) -> str:
    if taken or any(one.role == "quasi_identifiers" for one in decided.proposals):
        return "It runs as it is."
    return "It does not run yet: nothing in it can be coarsened, and a job needs a quasi-identifier."


def _to_do(out: Path, undecided: Sequence[Undecided]) -> str:
    open_ones = f"Decide on {counted(len(undecided), 'column')} marked DECIDE. " if undecided else ""
    # A line end in the name would end the comment, and what follows it would be YAML.
    name = " ".join(out.name.split())
    return f"{open_ones}What it would cost: skald plan {name}. Then: skald run {name}"


def _source(decided: Decided) -> str:
    said = {key: value[0] if key == "path" and len(value) == 1 else value for key, value in decided.source.items()}
    if set(said) == {"path"}:
        return f"source: {{path: {_yaml(said['path'])}}}"
    lines = ["source:", *(f"  {key}: {_yaml(value)}" for key, value in said.items())]
    typed = [one.profile for one in decided.proposals if one.profile.kind not in {"text", "other"}]
    if decided.texts and typed:
        lines += ["  types:  # all others are text", *(f"    {yaml_name(one.name)}: {one.kind}" for one in typed)]
    return "\n".join(lines)


def _kept_back(proposals: Sequence[Proposal], undecided: Sequence[Undecided]) -> list[str]:
    """Returns the role of columns that are not published and name nobody, where there are any."""
    if not undecided and all(one.role != "withheld" for one in proposals):
        return []
    listed = _listed("withheld", proposals, more=bool(undecided))
    return ["", "  # Not published either, and nobody's name.", *listed, *([*WITHHELD, *map(_withheld, undecided)] if undecided else [])]


def _listed(role: ProposedRole, proposals: Sequence[Proposal], *, more: bool = False) -> list[str]:
    mine = [proposal for proposal in proposals if proposal.role == role]
    if not mine and not more:
        return [f"  {role}: []"]
    return [f"  {role}:", *(f"    - {_entry(role, proposal)}{_why(proposal)}" for proposal in mine)]


def _entry(role: ProposedRole, proposal: Proposal) -> str:
    name = yaml_name(proposal.profile.name)
    # Spellings of one value would be several to l.
    spelled = role == "sensitive" and proposal.profile.kind == "text"
    return f"{{name: {name}, normalise: [case, space, empty]}}" if spelled else name


def _person(person: Proposal | None) -> list[str]:
    if person is None:
        return []
    profile = person.profile
    figures = f"about {counted(profile.distinct, 'different value')}, each of {profile.mean_records:,.1f} records on average"
    return [
        "  # Whose record it is: k counts different persons then. Say none if every record is a person of its own.",
        f"  person: {yaml_name(profile.name)}  # {figures}",
        "",
    ]


def _qid(proposal: Proposal) -> str:
    return f"{{name: {yaml_name(proposal.profile.name)}, hierarchy: {proposal.hierarchy}}}"


def _why(proposal: Proposal) -> str:
    why = "; ".join(part for part in (proposal.reason, proposal.hint if proposal.role == "quasi_identifiers" else "") if part)
    return f"  # {why}" if why else ""


def _withheld(one: Undecided) -> str:
    beside = f"; {{hierarchy: {one.proposal.hierarchy}}}" if one.proposal.hierarchy else ""
    return f"    - {yaml_name(one.proposal.profile.name)}  # {_away(one)}{beside}"


def _away(one: Undecided) -> str:
    """Returns what a column gives away, in words: counts and shares, no value."""
    figures = f"about {counted(one.proposal.profile.distinct, 'different value')}; alone by it {one.exposed.alone:.1%} of the records"
    if one.exposed.without or one.exposed.together > one.exposed.alone:
        figures += f", with the others {one.exposed.together:.1%}, by those {one.exposed.without:.1%}"
    return f"{figures}; {one.proposal.hint}" if one.proposal.hint else figures


def _rest(decided: Decided, method: str, gcp: float | None) -> list[str]:
    unit, risk = "person" if decided.person else "record", 1 / decided.k
    models = ", ".join(f"{yaml_name(name)}: {{distinct: {kept}}}" for name, kept in decided.kept.items())
    least = "; and at least so many different values of a sensitive column" if models else ""
    lost = f"  # GCP {gcp:.2f} of a sample, by k alone: 0 loses nothing, 1 everything" if gcp is not None else ""
    return [
        f"# Every published combination is shared by at least k {unit}s, so that the risk of each is at most {risk:.2f}{least}.",
        f"privacy: {{k: {decided.k}, l: {{{models}}}}}" if models else f"privacy: {{k: {decided.k}}}",
        *_unkept(decided),
        "",
        "# The share of records that may be left out (drop), or published with * in every quasi-identifier (mask) or in as few as",
        "# make them safe (cell).",
        "suppression: {limit: 0.01, treatment: drop}",
        "",
        f"{method}{lost}",
        "memory: 1GB",
        f"target: {yaml_name('releases/' + decided.name)}",
    ]


def _unkept(decided: Decided) -> list[str]:
    names = [one.profile.name for one in decided.proposals if one.role == "sensitive" and one.profile.name not in decided.kept]
    return [
        f"# {yaml_name(name)}: one value has nearly all records, or there is only one, so that l would be paid for dearly."
        for name in names
    ]


def _yaml(value: Any) -> str:
    """Returns what a job says under ``source`` on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{yaml_name(key)}: {_yaml(one)}' for key, one in value.items())}}}"
    return yaml_name(value) if isinstance(value, str) else f"[{', '.join(map(yaml_name, value))}]"


def yaml_name(text: str) -> str:
    """Returns a text as one YAML scalar on one line, inside braces or not; JSON's strings are YAML's."""
    plain = _SIMPLE.fullmatch(text) and text.lower() not in _WORDS
    if plain:
        return text
    # JSON leaves U+0085 and U+2028 as they are, which YAML takes for line ends.
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in json.dumps(text, ensure_ascii=False))
