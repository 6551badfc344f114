"""The report of a release, made of its job, its manifest and the recount: names, counts and words, never a cell value."""

from __future__ import annotations

from collections.abc import Mapping

from core.risk import kept_preset, without_masked
from core.verification import Recount
from schemas.columns import QuasiIdentifier
from schemas.job import Job
from schemas.release import Manifest
from schemas.report import Asked, Band, CameOut, Figure, Report, ReportedQid, RiskFigure
from schemas.strict import plain
from tasks.examination import most_suppressed
from tasks.report_words import LOSSES, METHODS, RISKS, certificate, hierarchy_words, level_words, limits, promises, verification

BANDS = (1, 2, 5, 10, 100, 1000)
"""Where bands of class sizes begin, in units of k."""


def make_report(job: Job, manifest: Manifest, recount: Recount) -> Report:
    """Returns what a release's report says.

    Args:
        job: What was asked.
        manifest: What was made of it.
        recount: What was counted in the written files.
    """
    return Report(
        release=manifest.release,
        name=manifest.name,
        asked=_asked(job, manifest),
        came_out=_came_out(job, manifest, recount),
        qids=tuple(_qid(qid, manifest) for qid in job.columns.quasi_identifiers),
        losses=tuple(_losses(manifest.loss)),
        risk=tuple(_risks(manifest.risk)),
        maximum_risk=_maximum_risk(manifest.risk),
        optimal=manifest.optimal,
        certificate=certificate(job, manifest),
        verified=verification(job, manifest),
        limits=limits(job),
        job=manifest.job,
        inputs=manifest.inputs,
        versions=manifest.versions,
        seconds=manifest.seconds,
        peak_rss=manifest.peak_rss,
    )


def _asked(job: Job, manifest: Manifest) -> Asked:
    columns = job.columns
    return Asked(
        promises=promises(job),
        privacy=job.privacy.summary(),
        limit=plain(job.suppression.limit),
        most_suppressed=most_suppressed(job, manifest.records),
        treatment=job.suppression.treatment,
        method=manifest.method,
        method_words=METHODS.get(manifest.method, ""),
        identifiers=tuple(columns.identifiers),
        quasi_identifiers=tuple(qid.name for qid in columns.quasi_identifiers),
        sensitive=tuple(columns.sensitive),
        insensitive=columns.insensitive if isinstance(columns.insensitive, str) else tuple(columns.insensitive),
        memory=job.memory,
    )


def _came_out(job: Job, manifest: Manifest, recount: Recount) -> CameOut:
    sizes = without_masked(recount.sizes, recount.masked, manifest.masked)
    classes = sum(sizes.values())
    return CameOut(
        records=manifest.records,
        released=manifest.released,
        suppressed=manifest.suppressed,
        masked=manifest.masked,
        classes=manifest.classes,
        min_class=manifest.min_class,
        mean_class=sum(size * number for size, number in sizes.items()) / classes if classes else 0.0,
        bands=bands(sizes, job.privacy.k),
        files=len(manifest.files),
    )


def bands(sizes: Mapping[int, int], k: int) -> tuple[Band, ...]:
    """Returns classes by size in multiples of k; the last band is open, and empty ones at the end are left out.

    Args:
        sizes: Number of classes by size, all of k records or more.
        k: The unit.
    """
    starts = [k * times for times in BANDS]
    found = []
    for least, after in zip(starts, [*starts[1:], None], strict=True):
        mine = {size: number for size, number in sizes.items() if size >= least and (after is None or size < after)}
        records = sum(size * number for size, number in mine.items())
        found.append(Band(least=least, most=None if after is None else after - 1, classes=sum(mine.values()), records=records))
    last = max((place for place, band in enumerate(found) if band.classes), default=-1)
    return tuple(found[: last + 1])


def _qid(qid: QuasiIdentifier, manifest: Manifest) -> ReportedQid:
    level, top = (manifest.levels or {}).get(qid.name), manifest.tops.get(qid.name)
    meaning = "a range or group of its own in every class" if level is None else level_words(qid.hierarchy, level, top)
    ncp = manifest.ncp.get(qid.name)
    return ReportedQid(name=qid.name, hierarchy=hierarchy_words(qid.hierarchy), level=level, top=top, meaning=meaning, ncp=ncp)


def _losses(loss: Mapping[str, int | float]) -> list[Figure]:
    known = [Figure(name=name, title=LOSSES[name][0], value=loss[name], meaning=LOSSES[name][1]) for name in LOSSES if name in loss]
    return known + [Figure(name=name, title=name, value=value, meaning="") for name, value in loss.items() if name not in LOSSES]


def _risks(risk: Mapping[str, Mapping[str, int | float]]) -> list[RiskFigure]:
    before, after = risk.get("before", {}), risk.get("after", {})
    threshold = (after or before).get("threshold", "")
    return [
        RiskFigure(
            name=name, title=title, before=before.get(name), after=after.get(name), share=share, meaning=meaning.format(threshold=threshold)
        )
        for name, (title, share, meaning) in RISKS.items()
        if name in before or name in after
    ]


def _maximum_risk(risk: Mapping[str, Mapping[str, int | float]]) -> str:
    least = int(risk.get("after", {}).get("min_class", 0))
    if not least:
        return ""
    if preset := kept_preset(least):
        return f"No record's risk is above {preset[0]} ({preset[1]})."
    return "No published maximum risk (0.2 or 0.09) is kept; these need k = 5 and k = 12."
