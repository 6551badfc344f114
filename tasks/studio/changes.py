"""Edits of a job file's text for the studio: roles, hierarchies, requirements and methods."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from core.formats.proposals import ColumnProfile, hierarchy_of
from schemas.errors.base import JobError
from schemas.job.columns import REST, ROLES
from schemas.job.job import Job
from schemas.job.method import METHODS, OBJECTIVES
from schemas.job.privacy import SUPPRESSIONS
from schemas.reading.job_files import parse
from schemas.registry.hierarchies import DATE_UNITS
from tasks.studio.job_text import Way, comments_behind, read_data, with_entry, with_value, without_value

LISTS = {
    "identifier": "identifiers",
    "quasi_identifier": "quasi_identifiers",
    "sensitive": "sensitive",
    "insensitive": "insensitive",
    "withheld": "withheld",
}
"""Which list of the job has the columns of a role."""
SHARES = (Decimal("0.001"), Decimal("0.005"), Decimal("0.01"), Decimal("0.02"), Decimal("0.05"), Decimal("0.1"), Decimal("0.2"))


def column_path(data: Mapping[str, Any], name: str) -> Way | None:
    """Return the path of a column's entry in a job's data; None where no list names it."""
    columns = data.get("columns") or {}
    for role in ROLES:
        entries = columns.get(role)
        for position, one in enumerate(entries if isinstance(entries, list) else []):
            if (one.get("name") if isinstance(one, Mapping) else one) == name:
                return ("columns", role, position)
    return None


def with_role(text: str, profile: ColumnProfile, role: str) -> str:
    """Return a job's text with a column moved to another role, settings of the old role removed.

    Args:
        role: As in ``LISTS``.
    """
    if role not in LISTS:
        raise JobError("The page", ["there is no such role"])
    name, data = profile.name, read_data(text)
    way, comment = column_path(data, name), ""
    if way and way[1] == LISTS[role]:
        return text
    if way:
        comment = comments_behind(text, way[:2]).get(name, "")
        text = without_value(text, way)
    for part in ("l", "t"):
        if role != "sensitive":
            text = without_emptied(text, ("privacy", part, name))
    for part in ("weights", "levels"):
        if role != "quasi_identifier":
            text = without_emptied(text, ("method", part, name))
    # A node has a level for each quasi-identifier.
    text = without_value(text, ("method", "node")) if "quasi_identifiers" in {LISTS[role], *(way or ())} else text
    if role == "insensitive" and (read_data(text).get("columns") or {}).get("insensitive") == REST:
        return text
    return with_entry(text, ("columns", LISTS[role]), _entry(profile, role), _comment(comment))


def _entry(profile: ColumnProfile, role: str) -> object:
    """Return the entry of a column in the list of a role."""
    if role == "quasi_identifier":
        return {"name": profile.name, "hierarchy": first_hierarchy(profile)}
    return {"name": profile.name, "publish": "shared"} if role in {"sensitive", "insensitive"} else profile.name


def _comment(before: str) -> str:
    """Return a column's comment without the marks of questions."""
    return before.removeprefix("DECIDE, ").removeprefix("accepted, ")


def first_hierarchy(profile: ColumnProfile) -> dict[str, Any]:
    """Return a default hierarchy for a column's profile as plain data; raise ``JobError`` if none fits."""
    written, _ = hierarchy_of(profile)
    if written is None:
        raise JobError("The page", [f"values of column '{profile.name}' are of a type that cannot be coarsened; withhold it"])
    return dict(parse(written)[0])  # type: ignore[call-overload, no-any-return]


def without_emptied(text: str, way: Way) -> str:
    """Return a job's text without an entry, and without its mapping if that becomes empty."""
    before = read_data(text)
    text = without_value(text, way)
    if text and read_data(text) != before:
        parent = read_data(text)
        for step in way[:-1]:
            parent = parent[step]  # type: ignore[index]
        return text if parent else without_value(text, way[:-1])
    return text


def with_levels(text: str, job: Job, name: str, kind: str, form: Mapping[str, list[str]]) -> str:
    """Return a job's text with widths, prefix lengths or date units of a QID set from a form.

    Args:
        text: Of the job.
        job: The job of that text.
        name: Of the column.
        kind: ``widths``, ``prefix`` or ``date``.
        form: The fields that the page sent: ``steps``.
    """
    steps = [part.strip() for one in form.get("steps", []) for part in one.split(",") if part.strip()]
    if kind == "date":
        said: list[object] = [unit for unit in DATE_UNITS if unit in steps]
    else:
        said = [number_of(step) for step in steps]
    way = (*qid_path(job, name), "hierarchy")
    current = job.columns.quasi_identifiers[int(way[2])].hierarchy
    return with_value(text, (*way, kind), said) if current.kind == kind else with_value(text, way, {kind: said})


def qid_path(job: Job, name: str) -> Way:
    """Return the path of a quasi-identifier's entry in a job's data; raise ``JobError`` if there is none."""
    names = [qid.name for qid in job.columns.quasi_identifiers]
    if name not in names:
        raise JobError("The page", ["there is no such quasi-identifier any more; load the page again"])
    return ("columns", "quasi_identifiers", names.index(name))


def number_of(text: str) -> int | Decimal:
    """Parse a number from the page as an integer or a decimal; raise ``JobError`` if it is none."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number.adjusted()) > 18:
        raise JobError("The page", ["a number was expected, such as 5 or 0.01"])
    return int(number) if number == number.to_integral_value() and "." not in text else number


def with_choices(text: str, job: Job, form: Mapping[str, list[str]]) -> str:
    """Return a job's text with a form's changed settings; raise ``JobError`` for invalid ones.

    The form has k, limit, treatment, person, l, t, method and objective.
    """
    given = {key: values[0].strip() for key, values in form.items() if values}
    if (k := given.get("k")) and number_of(k) != job.privacy.k:
        text = with_value(text, ("privacy", "k"), number_of(k))
    if (limit := given.get("limit")) and Decimal(number_of(limit)) != job.suppression.limit:
        text = with_value(text, ("suppression", "limit"), number_of(limit))
    if (treatment := given.get("treatment")) and _known(treatment, SUPPRESSIONS) != job.suppression.treatment:
        text = with_value(text, ("suppression", "treatment"), treatment)
    if (person := given.get("person")) is not None:
        text = _with_person(text, job, person)
    for name in job.columns.sensitive:
        text = _with_model(text, "l", name, given.get(f"l:{name}"), "distinct", job)
        text = _with_model(text, "t", name, given.get(f"t:{name}"), "t", job)
    return _with_method(text, job, given)


def _known(name: str, names: Mapping[str, object]) -> str:
    if name not in names:
        raise JobError("The page", ["there is no such choice; load the page again"])
    return name


def _with_person(text: str, job: Job, person: str) -> str:
    now = "none" if job.columns.each_a_person else "" if not job.columns.person else "\n".join(job.columns.person)
    if person == now or "\n" in person:
        return text
    return without_value(text, ("columns", "person")) if not person else with_value(text, ("columns", "person"), person)


def _with_model(text: str, part: str, name: str, wanted: str | None, key: str, job: Job) -> str:
    """Set l or t of a column in a job's text; models without a field on the page stay."""
    models: Mapping[str, Any] = job.privacy.l if part == "l" else job.privacy.t
    now = models.get(name)
    if wanted is None or (now is not None and not has_form_field(now)):
        return text
    said = "" if now is None else str(getattr(now, key))
    if wanted == said:
        return text
    if not wanted:
        return without_emptied(text, ("privacy", part, name))
    if now is not None:
        return with_value(text, ("privacy", part, name, key), number_of(wanted))
    value = {"distinct": number_of(wanted)} if part == "l" else {"t": number_of(wanted), "distance": "equal"}
    return with_value(text, ("privacy", part, name), value)


def has_form_field(model: Any) -> bool:
    """Return whether the page has a field for a privacy model: a distinct count or a distance."""
    return getattr(model, "distinct", None) is not None or getattr(model, "t", None) is not None


def _with_method(text: str, job: Job, given: Mapping[str, str]) -> str:
    """Set the method or its objective in a job's text."""
    if (name := given.get("method")) and _known(name, METHODS) != job.method.name:
        return with_value(text, ("method",), {"name": name})
    objective = given.get("objective")
    if job.method.name == "skald" and objective and _known(objective, OBJECTIVES) != getattr(job.method, "objective", None):
        return with_value(text, ("method", "objective"), objective)
    return text


def with_node(text: str, job: Job, node: list[int], suppressed_share: float) -> tuple[str, Decimal | None]:
    """Return a job's text with a node set, and the limit raised for it or None; raise above 20 %.

    Args:
        text: Of the job.
        job: The job of that text.
        node: A level for each quasi-identifier.
        suppressed_share: Share of the people that the node suppresses.
    """
    if job.method.name == "skald":
        for part in ("weights", "levels"):
            text = without_value(text, ("method", part))
        text = with_value(text, ("method", "node"), node)
    else:
        text = with_value(text, ("method",), {"name": "skald", "node": node})
    if suppressed_share <= float(job.suppression.limit):
        return text, None
    able = [one for one in SHARES if float(one) >= suppressed_share]
    if not able:
        raise JobError("The page", ["that node leaves out more than a fifth of the people; take another"])
    return with_value(text, ("suppression", "limit"), able[0]), able[0]
