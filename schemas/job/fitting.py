"""Checks of a job's parts against each other, on validated or raw data."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.errors.base import listed, nearest
from schemas.job.columns import NONE, hidden_qids, named_entries, names
from schemas.job.identifiers import pseudonym_kinds
from schemas.job.method import METHODS, has_ways, one_level
from schemas.job.privacy import SUPPRESSIONS
from schemas.reading.model import part_of
from schemas.registry.privacy_kinds import models_in_job
from schemas.registry.treatment_kinds import TREATMENTS


def suppression_faults(suppression: Mapping[str, Any], method: Mapping[str, Any], intervals: object) -> list[str]:
    """Return a message for each conflict between suppression, method and ``intervals``."""
    named, faults = suppression.get("treatment"), []
    # Not yet read: there may be a list or a mapping, by which nothing can be looked up.
    treatment = SUPPRESSIONS.get(named) if isinstance(named, str) else None
    if treatment and treatment.withheld and intervals == "bounds":
        faults.append(f"suppression.treatment: bounds cannot tell a {treatment.withheld} from a null; use intervals: text")
    if suppression.get("rounds") and intervals == "bounds":
        faults.append("suppression.rounds: bounds cannot tell a value withheld in a later round from a null; use intervals: text")
    if one_level(method):
        return faults
    why = "only method skald chooses levels for whole columns"
    if treatment and treatment.stars:
        faults.append(f"suppression.treatment: {treatment.name} stars values at chosen levels, and {why}; use drop or mask")
    if suppression.get("rounds"):
        faults.append(f"suppression.rounds: every round chooses levels, and {why}; leave it out")
    return faults


def hidden_faults(method: Mapping[str, Any], qids: object, intervals: object) -> list[str]:
    """Return a message for each column of which a method would publish ranges or sets of hidden values.

    Each message has its location.
    """
    # Levels of whole columns come of the hierarchy, which withholds by itself; ranges and sets are made of the values in a class.
    if one_level(method):
        return []
    ways, concerned = method.get("generalisation"), list(hidden_qids(qids))
    chosen = {name: ways.get(name) if isinstance(ways, Mapping) else ways for name in concerned}
    faults = [
        f"method.generalisation: '{name}' may not be published exactly, so it must be hierarchy, or be left open"
        for name, way in chosen.items()
        # Not yet read: what is no text is refused for that.
        if has_ways(method) and isinstance(way, str) and way != "hierarchy"
    ]
    if intervals == "bounds":
        faults += [f"intervals: '{name}' may not be published exactly; bounds of it need method: {{name: skald}}" for name in concerned]
    return faults


def person_column_names(columns: Mapping[str, Any]) -> list[str]:
    """Return the columns that name a person, from validated or raw ``columns``."""
    person = columns.get("person")
    if isinstance(person, str):
        return [] if person == NONE else [person]
    return list(names(person))


def person_faults(columns: Mapping[str, Any], method: Mapping[str, Any], privacy: Mapping[str, Any]) -> list[str]:
    """Return a message for each conflict of the person columns with other parts of the job.

    Published columns would disclose the person, or the method does not count persons yet. Each message has its location.
    """
    person, raw = person_column_names(columns), {*names(columns.get("sensitive")), *names(columns.get("insensitive"))}
    faults = []
    if person and set(person) <= raw:
        faults.append(f"columns.person: {listed(person)} is published as it is, and tells whose record it is; list it under identifiers")
    entry = METHODS.get(str(method.get("name", "skald")))
    if person and entry and not entry.counts_persons:
        faults.append(f"columns.person: method {entry.name} does not count persons yet; use skald, or leave it out and count records")
    for kind, column, _ in models_in_job(privacy) if person and _in_fragments(method) else ():
        if not kind.of_presence:
            # Each fragment is right by itself, and none knows what the others publish.
            faults.append(
                f"method.fragments: privacy.{kind.section}.{column} cannot be kept of persons in classes that two fragments share; "
                "use distinct, or leave fragments out"
            )
    return faults


def _in_fragments(method: Mapping[str, Any]) -> bool:
    """Return whether a method, validated or raw, has more than one fragment."""
    count = part_of(method, "fragments", "count")
    return isinstance(count, int) and count > 1


def linked_faults(job: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a message for each conflict of ``method.linked: keep`` with other parts of the job.

    Args:
        job: Columns, method, suppression and privacy, read or not yet read.
    """
    if job["method"].get("linked") != "keep":
        return []
    faults = []
    if not person_column_names(job["columns"]):
        faults.append("method.linked: whose records belong together must be named; set columns.person")
    if job["suppression"].get("treatment", "drop") != "drop":
        faults.append("method.linked: people lose single records, and a mask would show these; use suppression.treatment: drop")
    if job["suppression"].get("rounds"):
        faults.append("method.linked: later rounds would publish what people lost; leave suppression.rounds out")
    faults += [
        f"method.linked: privacy.{kind.section}.{column} would have to hold for what is left of each class, which is not looked at yet"
        for kind, column, _ in models_in_job(job["privacy"])
    ]
    return faults


def replay_faults(method: Mapping[str, Any], anew: Sequence[str], *, replays: bool) -> list[str]:
    """Return a message for each part of a job that does not go with ``replay``.

    Args:
        anew: Columns whose published values depend on all people of a release.
        replays: Whether the method can be replayed.
    """
    faults = []
    if anew:
        values = f"values of {listed(anew)} are decided anew for each release, of all people in it"
        faults.append(f"replay: {values}; leave replay out, or publish (round, top and bottom may stay)")
    if not replays:
        faults.append(f"replay: {method.get('name')} recodes single records, and its classes say nothing of others; leave replay out")
    if method.get("node") is not None:
        faults.append("replay: its levels are those of the earlier release, and method.node names others; leave one of them out")
    return faults


def linkable_faults(columns: Mapping[str, Any]) -> list[str]:
    """Return a message for each column of ``linkable`` without linking pseudonyms, with its location."""
    named = columns.get("linkable")
    linking = [name for name, kind in pseudonym_kinds(columns.get("identifiers")) if TREATMENTS[kind].links]
    return [
        f"columns.linkable: '{name}' is no identifier whose treatment shows which records belong together{nearest(name, linking)}"
        for name in names([named] if isinstance(named, str) else named)
        if name not in linking
    ]


def rank_faults(endpoints: object, quasi_identifiers: object, method: Mapping[str, Any]) -> list[str]:
    """Return a message for each column in bins of ranks that ``endpoints: shared`` rules out.

    Such bins would have to end at values that k people share. Columns may be validated or raw; each message has its location.
    """
    if endpoints != "shared":
        return []
    ways = method.get("generalisation")
    faults = []
    for name, qid in named_entries(quasi_identifiers):
        way = ways.get(name) if isinstance(ways, Mapping) else ways
        if part_of(qid, "hierarchy", "encode") is True and (one_level(method) or (way == "hierarchy" and has_ways(method))):
            faults.append(
                f"endpoints: '{name}' is published in bins of ranks, which end at values of the source whoever has them; use observed, "
                "widths of the values themselves (no encode), or a method with ranges of its own"
            )
    return faults
