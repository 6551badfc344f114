"""The report of a release, from its manifest and the recount, or from its manifest and files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory

from core.recount.classes import Recount, contradicted_counts
from core.units.losses import without_masked
from schemas.errors.base import StorageError, VerificationError, verb_of
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.privacy import SUPPRESSIONS
from schemas.release.evidence import ALTERED, has_digest, has_valid_digest
from schemas.release.manifest import FORMAT, Manifest
from schemas.release.report import CameOut, Example, Figure, Limit, Report, ReportedFile, ReportedQid, RequestedTerms, RiskFigure
from schemas.release.terms import Band, QidTerms
from tasks.recount.recount import count_classes, file_faults, risk_faults
from tasks.release.examples import examples_of
from tasks.release.files import data_files, file_error, layout_of, relation_of
from tasks.release.manifest import is_of_job, manifest_content, read_manifest
from tasks.report.claims import attack_sentences, maximum_risk, reported_attacks, together_sentences
from tasks.report.criteria import advice_sentences, criteria_of
from tasks.report.sentences import (
    COMPOSITION,
    PSEUDONYMOUS,
    SEQUENCES,
    certificate,
    increment_sentences,
    limits,
    linked_sentences,
    local_treatment_sentences,
    one_value_limits,
    overlap_sentences,
    promises,
    proofs,
    suppression,
    verification,
    warning_sentences,
)
from tasks.report.terms import UnitWording, losses, published_columns_of, share_limits
from tasks.store.database import database
from tasks.store.keys import read_secrets

BANDS = (1, 2, 5, 10, 100, 1000)
"""Where bands of class sizes begin, in units of k."""


def make_report(manifest: Manifest, recount: Recount, examples: tuple[Example, ...]) -> Report:
    """Return a release's report, built from manifest, recount and example records.

    Args:
        manifest: The release's manifest.
        recount: The counts of the written files.
        examples: Published records, as far as they may be shown.
    """
    terms, unit = manifest.asked, UnitWording.of_release(manifest)
    return Report(
        release=manifest.release,
        name=manifest.name,
        asked=_asked(manifest),
        came_out=_came_out(manifest, recount),
        proofs=proofs(manifest.privacy, manifest.measured, manifest.min_class, unit),
        qids=tuple(_qid(qid, manifest) for qid in terms.quasi_identifiers),
        losses=tuple(_losses(manifest.loss, unit)),
        risk=tuple(_risks(manifest.risk, unit)),
        risk_basis=unit.basis(),
        maximum_risk=maximum_risk(manifest),
        optimal=manifest.optimal,
        certificate=certificate(manifest),
        advice=advice_sentences(manifest),
        lattice=manifest.lattice,
        verified=verification(manifest),
        limits=(
            *(PSEUDONYMOUS if manifest.pseudonyms else ()),
            *(Limit(text=sentence, source=SEQUENCES) for sentence in linked_sentences(manifest)),
            *(Limit(text=sentence, source=COMPOSITION) for sentence in overlap_sentences(manifest)),
            *one_value_limits(manifest),
            *share_limits(manifest),
            *limits(manifest.privacy, terms, unit),
        ),
        job=manifest.job,
        inputs=manifest.inputs,
        files=tuple(ReportedFile(path=file.path, rows=file.rows, sha256=file.sha256) for file in manifest.files),
        versions=manifest.versions,
        seconds=manifest.seconds,
        peak_rss=manifest.peak_rss,
        increment=increment_sentences(manifest),
        policy=manifest.policy,
        passthrough=manifest.passthrough,
        published=manifest.published,
        passthrough_together=manifest.passthrough_together,
        together=together_sentences(manifest),
        source_name=manifest.source_name,
        run_by=manifest.run_by,
        created=manifest.created,
        columns=published_columns_of(manifest),
        examples=examples,
        criteria=criteria_of(manifest),
        attacks=reported_attacks(manifest),
        attacked=attack_sentences(manifest),
    )


def _asked(manifest: Manifest) -> RequestedTerms:
    """Return the report's section on the job's requirements."""
    terms = manifest.asked
    return RequestedTerms(
        promises=promises(manifest.privacy, UnitWording.of_release(manifest)),
        privacy=manifest.privacy,
        limit=terms.limit,
        # Not in floats: a product just below a whole number would allow one record fewer than the job does.
        most_suppressed=floor(Fraction(Decimal(terms.limit)) * manifest.records),
        treatment=terms.treatment,
        treatment_words=SUPPRESSIONS[terms.treatment].words,
        method=manifest.method,
        # A release may be of a version that knows other methods than this one.
        method_words=METHODS[manifest.method].words if manifest.method in METHODS else "",
        identifiers=terms.identifiers,
        quasi_identifiers=tuple(qid.name for qid in terms.quasi_identifiers),
        sensitive=terms.sensitive,
        insensitive=terms.insensitive,
        memory=terms.memory,
        pseudonyms=manifest.pseudonyms,
        source=terms.source,
        withheld=terms.withheld,
    )


def _came_out(manifest: Manifest, recount: Recount) -> CameOut:
    """Return the report's section on the resulting records and classes."""
    # In the files masked records are one class; in the report they are suppressed and in no class. Persons are not in the files, so that
    # a report that is made again has them from the manifest.
    held = (
        manifest.person_sizes
        if manifest.persons
        else bands(without_masked(recount.sizes, recount.masked, manifest.masked), manifest.privacy["k"])
    )
    classes = sum(band.classes for band in held)
    return CameOut(
        records=manifest.records,
        released=manifest.released,
        suppressed=manifest.suppressed,
        masked=manifest.masked,
        classes=manifest.classes,
        min_class=manifest.min_class,
        mean_class=sum(band.records for band in held) / classes if classes else 0.0,
        bands=held,
        source_bands=manifest.source_sizes,
        why_suppressed=suppression(manifest),
        files=len(manifest.files),
        remainder=local_treatment_sentences(manifest),
        unit=UnitWording.of_release(manifest).one,
        persons=manifest.persons,
        repeats=manifest.repeats,
        warnings=tuple(warning_sentences(manifest)),
    )


def bands(sizes: Mapping[int, int], k: int) -> tuple[Band, ...]:
    """Return class sizes grouped into bands by multiples of k, with counts of classes and records.

    Empty bands at either end are left out.

    Args:
        k: The unit.
    """
    starts = sorted({1, 2, *(k * times for times in BANDS)})
    found = []
    for least, after in zip(starts, [*starts[1:], None], strict=True):
        mine = {size: number for size, number in sizes.items() if size >= least and (after is None or size < after)}
        records = sum(size * number for size, number in mine.items())
        found.append(Band(least=least, most=None if after is None else after - 1, classes=sum(mine.values()), records=records))
    filled = [place for place, band in enumerate(found) if band.classes]
    return tuple(found[filled[0] : filled[-1] + 1]) if filled else ()


def _qid(qid: QidTerms, manifest: Manifest) -> ReportedQid:
    """Return the report's entry of a quasi-identifier."""
    level, top = (manifest.levels or {}).get(qid.name), manifest.tops.get(qid.name)
    ncp = manifest.ncp.get(qid.name)
    return ReportedQid(name=qid.name, hierarchy=qid.hierarchy, level=level, top=top, meaning=qid.published, ncp=ncp)


def _losses(loss: Mapping[str, int | float], unit: UnitWording) -> list[Figure]:
    """Return the report's loss figures, with titles and meanings."""
    words = losses(unit.several)
    known = [Figure(name=name, title=title, value=loss[name], meaning=meaning) for name, (title, meaning) in words.items() if name in loss]
    # Releases outlive versions: a loss that has no words here is told by its name and not left out.
    return known + [Figure(name=name, title=name, value=value, meaning="") for name, value in loss.items() if name not in words]


def _risks(risk: Mapping[str, Mapping[str, int | float]], unit: UnitWording) -> list[RiskFigure]:
    """Return the report's risk figures before and after, with titles and meanings."""
    before, after = risk.get("before", {}), risk.get("after", {})
    threshold = (after or before).get("threshold", "")
    return [
        RiskFigure(
            name=name, title=title, before=before.get(name), after=after.get(name), share=share, meaning=meaning.format(threshold=threshold)
        )
        for name, (title, share, meaning) in unit.risks().items()
        if name in before or name in after
    ]


def rebuild_report(release: Path, job: Job | None = None) -> Report:
    """Verify data files by manifest and recount; return the report, rebuilt in memory; raise on faults.

    Args:
        job: Raises unless the release is of this job.
    """
    files, manifest = data_files(release), read_manifest(release)
    if manifest is None:
        raise StorageError.not_a_release(str(release), "it has no manifest.json")
    what = f"'{release}'"
    # Digests first: what is counted in altered files says nothing of the release. Manifests of earlier formats had none of their own.
    content = manifest_content(release)
    altered = (manifest.format >= FORMAT or has_digest(content)) and not has_valid_digest(content)
    if faults := [*([ALTERED] if altered else []), *file_faults(release, files, manifest.files)]:
        raise VerificationError(what, faults)
    if job is not None and not is_of_job(manifest, job, read_secrets(job)):
        raise StorageError.other_job(str(release))
    found = recount_release_files(what, files, manifest)
    if faults := rebuilt_report_faults(manifest, found):
        raise VerificationError(what, faults)
    return make_report(manifest, found, examples_of(what, files, manifest))


def recount_release_files(release_name: str, files: Sequence[Path], manifest: Manifest) -> Recount:
    """Return a recount of the classes in a release's data files, by its manifest without the job.

    Args:
        release_name: How the release is called in a message.
        manifest: Gives k, the format of CSV files, and the columns under which the quasi-identifiers are published.
    """
    terms = manifest.asked
    columns = [column for qid in terms.quasi_identifiers for column in qid.columns]
    layout = layout_of(files, manifest.columns)
    # Without a job there is no work folder; what is spilt here is of published files.
    with TemporaryDirectory(prefix="skald-report-") as spill, database(terms.memory, Path(spill)) as connection, file_error(release_name):
        relation = relation_of(connection, files, layout)
        return count_classes(connection, relation, columns, manifest.privacy["k"], terms.sensitive)


def rebuilt_report_faults(manifest: Manifest, found: Recount) -> list[str]:
    """Return faults for counts of a manifest that differ from the recount of its files."""
    thin = (
        [f"{found.failing:,} of {found.classes:,} classes {verb_of(found.failing, 'hold')} fewer than k records"] if found.failing else []
    )
    return thin + contradicted_counts(manifest, found) + risk_faults(manifest, found)
