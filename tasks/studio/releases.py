"""The releases of a job, and the comparison of two: settings, loss by column, risk and utility."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from schemas.errors.base import SkaldError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.release.report import Report
from tasks.release.manifest import manifest_content, manifest_of
from tasks.report.page import number, percent
from tasks.store.place import target_of

MOST_RELEASES, MOST_BYTES = 50, 64_000_000
MORE = ("min_class", "classes")
"""Figures of risk of which more is better."""
REPORT, PAGE = "report.json", "report.html"


class KnownRelease(NamedTuple):
    """A release in the target: its name, creation time, k, method, and whether it is current."""

    name: str
    created: str
    k: int
    method: str
    current: bool


class Compared(NamedTuple):
    """One figure of two releases as texts, and which of them is better.

    Attributes:
        title: Its name.
        first: Of the first release, as text; ``second`` of the other.
        better: ``first``, ``second``, or empty where they are equal or neither is better.
    """

    title: str
    first: str
    second: str
    better: str = ""


def known_releases(job: Job) -> list[KnownRelease]:
    """Return the readable releases in a job's target folder, newest first, fifty at most."""
    target = target_of(job).folder
    if target is None or not target.is_dir():
        return []
    pointer = target / "CURRENT"
    current = pointer.read_text("utf-8", "replace").strip() if pointer.is_file() else ""
    found = []
    for path in sorted(target.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / "manifest.json").is_file():
            try:
                manifest = manifest_of(manifest_content(path), path.name)
            except SkaldError:
                continue
            k = manifest.privacy.get("k", 0)
            found.append(KnownRelease(path.name, str(manifest.created or ""), int(k), manifest.method, path.name == current))
    return sorted(found, key=lambda one: (one.created, one.name), reverse=True)[:MOST_RELEASES]


def report_page(job: Job, release: str) -> str | None:
    """Return the HTML text of a release's report in the job's target; None if there is none."""
    if release not in {one.name for one in known_releases(job)}:
        return None
    try:
        return content_of(job.target_path / release / PAGE, MOST_BYTES, may_be_link=False).decode("utf-8", "replace")
    except OSError:
        return None


def report_of_release(job: Job, release: str) -> Report | None:
    """Return the parsed report of a release in the job's target; None if it is missing or invalid."""
    if release not in {one.name for one in known_releases(job)}:
        return None
    try:
        return Report.model_validate_json(content_of(job.target_path / release / REPORT, MOST_BYTES, may_be_link=False))
    except (OSError, ValidationError):
        # Pydantic's message quotes what it read.
        return None


def compare_releases(first: Report, second: Report) -> list[tuple[str, list[Compared]]]:
    """Return the figures of two releases' reports side by side, by subject."""
    return [
        ("Asked", _asked(first, second)),
        ("Came out", _came_out(first, second)),
        ("Loss by column", _columns(first, second)),
        ("Loss", _losses(first, second)),
        ("Risk", _risks(first, second)),
    ]


def _asked(first: Report, second: Report) -> list[Compared]:
    rows = [Compared("Promises", "; ".join(first.asked.promises), "; ".join(second.asked.promises))]
    rows.append(Compared("Method", first.asked.method, second.asked.method))
    rows.append(Compared("Suppression limit", first.asked.limit, second.asked.limit))
    return rows


def _came_out(first: Report, second: Report) -> list[Compared]:
    one, other = first.came_out, second.came_out
    return [
        _figures("Records released", one.released, other.released, more=True),
        _figures("Records suppressed", one.suppressed, other.suppressed),
        _figures("Classes", one.classes, other.classes, more=True),
        _figures(f"Smallest class ({one.unit}s)", one.min_class, other.min_class, more=True),
    ]


def _columns(first: Report, second: Report) -> list[Compared]:
    rows = []
    others = {one.name: one for one in second.qids}
    for one in first.qids:
        other = others.get(one.name)
        rows.append(_shares(f"{one.name}: generalised (NCP)", one.ncp, other.ncp if other else None))
    for name, changed in first.published.items():
        after = second.published.get(name)
        rows.append(_shares(f"{name}: values changed", changed.changed, after.changed if after else None))
        rows.append(_shares(f"{name}: values null", changed.null, after.null if after else None))
    return rows


def _losses(first: Report, second: Report) -> list[Compared]:
    others = {one.name: one.value for one in second.losses}
    known = [one for one in first.losses if one.name in others]
    return [_figures(one.title, one.value, others[one.name], more=one.name == "precision") for one in known]


def _risks(first: Report, second: Report) -> list[Compared]:
    others = {one.name: one for one in second.risk}
    rows = []
    for one in first.risk:
        after = others[one.name].after if one.name in others else None
        rows.append(_shares(one.title, one.after, after) if one.share else _figures(one.title, one.after, after, more=one.name in MORE))
    return rows


def _figures(title: str, first: float | None, second: float | None, *, more: bool = False) -> Compared:
    return _compared(title, number(first), number(second), _better(first, second, more=more))


def _shares(title: str, first: float | None, second: float | None) -> Compared:
    return _compared(title, percent(first), percent(second), _better(first, second, more=False))


def _compared(title: str, first: str, second: str, better: str) -> Compared:
    # What reads the same is the same.
    return Compared(title, first, second, better if first != second else "")


def _better(first: float | None, second: float | None, *, more: bool) -> str:
    if first is None or second is None or first == second:
        return ""
    return "first" if (first > second) == more else "second"
