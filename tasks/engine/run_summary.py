"""The report in short, as Markdown and as a table, for whoever watches runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from schemas.errors.base import counted
from schemas.release.manifest import Persons
from schemas.release.report import Report, RiskFigure


def summary(report: Report, folder: Path, link: str, *, new: bool) -> str:
    """Returns a release in Markdown: what was promised, what came out, and what became of each quasi-identifier.

    Args:
        report: Of the release.
        folder: Where it lies.
        link: Where its report can be read.
        new: Whether this run made it.
    """
    out = report.came_out
    facts = [
        ("records", f"{out.records:,}"),
        ("released", f"{out.released:,}" + (f", {out.masked:,} of them masked" if out.masked else "")),
        ("suppressed", f"{out.suppressed:,} ({out.suppressed / out.records:.2%}; the job allows {report.asked.most_suppressed:,})"),
        ("classes", f"{out.classes:,}, the smallest of {counted(out.min_class, out.unit)}"),
        *([("persons", _persons(out.persons))] if out.persons else []),
        *(("warning", warning) for warning in out.warnings),
        ("method", report.asked.method),
        ("optimum", report.optimal),
        ("verified", "recounted from the written files"),
        *(
            [("pseudonymous", f"{', '.join(report.asked.pseudonyms)}: linkable by the same key or vault")]
            if report.asked.pseudonyms
            else []
        ),
        ("time", f"{sum(report.seconds.values()):.1f} s, at most {report.peak_rss / 1e6:,.0f} MB"),
        ("release", str(folder)),
    ]
    qids = [(qid.name, "" if qid.level is None else f"{qid.level} of {qid.top}", qid.meaning, _share(qid.ncp)) for qid in report.qids]
    return "\n\n".join(
        [
            f"## {_text(report.release)}",
            *(() if new else ("Published already: the same job on the same data. No new release was made.",)),
            "\n".join(f"- {_text(promise)}" for promise in report.asked.promises),
            _table(facts[0], facts[1:]),
            "### What became of each quasi-identifier",
            _table(("column", "level", "published as", "NCP"), qids),
            # Browsers open no file from a page that came from a server, so that its path is there to be copied.
            f"[The whole report]({link})" if not link.startswith("file:") else f"The whole report: `{link}`",
        ]
    )


def published_lines(report: Report, folder: Path, *, new: bool) -> list[str]:
    """Returns what the log of a run ends with: the release, how many records it has and lacks, and what there is to be warned of."""
    out = report.came_out
    made = "Published release" if new else "Nothing to do: the same job on the same data was published as release"
    masked = f", {out.masked:,} of them masked" if out.masked else ""
    return [
        f"{made} {report.release} in '{folder}'.",
        f"{counted(out.records, 'record')}: {out.released:,} released{masked}, {out.suppressed:,} suppressed of at most "
        f"{report.asked.most_suppressed:,}; {out.classes:,} classes, the smallest of {counted(out.min_class, out.unit)}; recounted.",
        *(f"Warning: {warning}" for warning in out.warnings),
    ]


def figures(report: Report) -> list[dict[str, str]]:
    """Returns risks before and after, then losses, one row each."""
    risks = [
        {"figure": risk.title, "before": _risk(risk, risk.before), "after": _risk(risk, risk.after), "meaning": risk.meaning}
        for risk in report.risk
    ]
    losses = [{"figure": loss.title, "before": "", "after": _number(loss.value), "meaning": loss.meaning} for loss in report.losses]
    return risks + losses


def _persons(persons: Persons) -> str:
    return f"{persons.released:,} of {persons.source:,}" if persons.source is not None else f"{persons.released:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *[[_text(cell) for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(words: str) -> str:
    """Escapes what Markdown would take for its own: names of columns are free text."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(words.split()))


def _risk(risk: RiskFigure, value: float | None) -> str:
    return "not counted" if value is None else f"{value:.4f}" if risk.share else _number(value)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
