"""A first job file for a source: names of columns and proposals in YAML, with comments where the user has to decide; no cell value."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.formats.proposals import Proposal, ProposedRole, propose, propose_person
from schemas.errors.base import StorageError, counted
from schemas.job.source import suffix
from tasks.planning.profiles import MOST_RECORDS, Profiled, profile, source_files
from tasks.store.files import USER_UMASK, write_whole

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


def draft_job(paths: Sequence[Path], out: Path) -> tuple[list[Proposal], int]:
    """Looks at a source and writes a job file for it.

    Args:
        paths: Files, or a folder of files.
        out: The job file; one that exists stays as it is.

    Returns:
        What is proposed for each column, and how many records were looked at.

    Raises:
        SourceError: no files, files of different formats, unreadable ones, or no record.
        StorageError: the job file exists or cannot be written.
    """
    if out.exists():
        raise StorageError(f"'{out}' exists and stays as it is. Name another file with --out, or move it away.")
    files = source_files(paths)
    profiled = profile(files)
    proposals = [propose(column) for column in profiled.columns]
    person = propose_person(proposals)
    if person:
        # Whoever is told by it is not published: by its counts alone, too.
        proposals = [replace(one, role="identifiers", reason=one.reason or PERSON) if one is person else one for one in proposals]
    text = job_text(_patterns(paths, files, out.parent), out, profiled, proposals, person)
    write_whole(out, lambda part: part.write_text(text, "utf-8"), 0o666 & ~USER_UMASK)
    return proposals, profiled.records


def _patterns(paths: Sequence[Path], files: Sequence[Path], folder: Path) -> list[str]:
    """Returns the source's paths relative to the job file; a folder as the pattern of its files."""
    named = []
    for path in paths:
        # `source.path` is a pattern: a bracket in a file's name would stand for one of several characters.
        relative = glob.escape(os.path.relpath(path, folder))
        # Endings as they are spelt: patterns heed capitals, formats do not.
        inside = sorted({file.name[file.name.lower().index(suffix(file.name)) :] for file in files if file.parent == path})
        named += [f"{relative}/*{ending}" for ending in inside] if path.is_dir() else [relative]
    return named


def job_text(patterns: Sequence[str], out: Path, profiled: Profiled, proposals: Sequence[Proposal], person: Proposal | None = None) -> str:
    """Returns the text of a job file; ``person`` is the column that says whose a record is, if any does."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", out.stem).strip("-") or "job"
    undecided = [proposal for proposal in proposals if proposal.role == "open"]
    looked = counted(profiled.records, "record") + (" at the front" if profiled.records == MOST_RECORDS else "")
    parts = [
        f"# A first job, drafted from {counted(len(proposals), 'column')} and {looked}.",
        "# Read every line: a proposal is a guess from names and counts.",
        f"# {_to_do(out, undecided)}",
        "",
        "version: 1",
        f"name: {yaml_name(name)}",
        _source(patterns, profiled, undecided),
        "",
        "columns:",
        *_person(person),
        "  # Say who somebody is, or may do so: never published.",
        *_listed("identifiers", proposals),
        "",
        *QUASI_IDENTIFIERS,
        "  quasi_identifiers:",
        *(f"    - {_qid(proposal)}{_why(proposal)}" for proposal in proposals if proposal.role == "quasi_identifiers"),
        *_open(undecided),
        "",
        "  # What nobody may learn about one person: published. Guard it with privacy.l or privacy.t.",
        *_listed("sensitive", proposals),
        "",
        "  # Published as in the source, and in no risk: only what nobody outside can know. Nothing is proposed here.",
        "  insensitive: []",
        "",
        *_rest(name, proposals, "person" if person else "record"),
    ]
    return "\n".join(parts) + "\n"


def _to_do(out: Path, undecided: Sequence[Proposal]) -> str:
    open_ones = f"Decide on {counted(len(undecided), 'column')} marked DECIDE, then: " if undecided else "Then: "
    # A line end in the name would end the comment, and what follows it would be YAML.
    return f"{open_ones}skald plan {' '.join(out.name.split())}"


def _source(patterns: Sequence[str], profiled: Profiled, undecided: Sequence[Proposal]) -> str:
    paths = yaml_name(patterns[0]) if len(patterns) == 1 else f"[{', '.join(map(yaml_name, patterns))}]"
    if not profiled.sample.keys:
        return f"source: {{path: {paths}}}"
    lines = ["source:", f"  path: {paths}", *(f"  {key}: {yaml_name(value)}" for key, value in profiled.sample.keys.items())]
    if not profiled.sample.texts:
        return "\n".join(lines)
    # A type makes the job name every column that has no role yet, and not only those that are no text.
    waiting = {proposal.profile.name for proposal in undecided}
    typed = [column for column in profiled.columns if column.kind not in {"text", "other"} or column.name in waiting]
    lines += ["  types:  # all others are text"] if typed else []
    return "\n".join([*lines, *(f"    {yaml_name(column.name)}: {column.kind}" for column in typed)])


def _listed(role: ProposedRole, proposals: Sequence[Proposal]) -> list[str]:
    mine = [proposal for proposal in proposals if proposal.role == role]
    if not mine:
        return [f"  {role}: []"]
    return [f"  {role}:", *(f"    - {yaml_name(proposal.profile.name)}{_why(proposal)}" for proposal in mine)]


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


def _open(undecided: Sequence[Proposal]) -> list[str]:
    if not undecided:
        return []
    told = "    # DECIDE: can anybody know these about a person? Then take the # away; else move the name to another role."
    return [told, *(f"    # - {_qid(one)}  # {one.hint or _distinct(one)}" for one in undecided)]


def _distinct(proposal: Proposal) -> str:
    return f"about {counted(proposal.profile.distinct, 'different value')}"


def _rest(name: str, proposals: Sequence[Proposal], unit: str) -> list[str]:
    sensitive = next((proposal.profile.name for proposal in proposals if proposal.role == "sensitive"), None)
    model = f", l: {{{yaml_name(sensitive)}: {{distinct: 3}}}}" if sensitive else ""
    return [
        f"# Every published combination is shared by at least k {unit}s; 12 keeps the risk of each below 0.09.",
        "privacy: {k: 12}",
        *([f"# privacy: {{k: 12{model}}}  # and so many different sensitive values in every class"] if model else []),
        "",
        "# The share of records that may be left out (drop), or published with * in every quasi-identifier (mask) or in as few as",
        "# make them safe (cell).",
        "suppression: {limit: 0.01, treatment: drop}",
        "",
        "method: {name: skald}",
        "memory: 1GB",
        f"target: {yaml_name('releases/' + name)}",
    ]


def yaml_name(text: str) -> str:
    """Returns a text as one YAML scalar on one line, inside braces or not; JSON's strings are YAML's."""
    plain = _SIMPLE.fullmatch(text) and text.lower() not in _WORDS
    if plain:
        return text
    # JSON leaves U+0085 and U+2028 as they are, which YAML takes for line ends.
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in json.dumps(text, ensure_ascii=False))
