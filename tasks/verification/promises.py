"""What a manifest promises of sensitive values, counted in the files without the job; and what only job, source or run folder can tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from pydantic import ValidationError

from core.recount.classes import Recount, is_of_labels, one_value_is_true
from core.recount.together import together_claims
from schemas.errors.base import VerificationError, listed
from schemas.job.job import Job
from schemas.privacy.kinds import PrivacyKind, models_in_job
from schemas.privacy.sensitive import DiversitySpec
from schemas.release.manifest import Manifest
from schemas.release.terms import Terms
from tasks.recount.people import Counts, columns_together, count_together
from tasks.recount.rows import RowsHere
from tasks.release.files import layout_of, relation_of
from tasks.store.database import database, quote

NO_JOB = (
    "The job was not at hand: the files were counted by what the manifest says was promised, and not held against the source. Labels of "
    "values that the job hides, the form of pseudonyms and the limit of suppression were not looked at."
)
NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
UNREADABLE = "the manifest does not say in words that are known what was promised of sensitive values"


def count_promises(what: str, files: Sequence[Path], manifest: Manifest, terms: Terms, recount: Recount) -> tuple[Recount, list[str]]:
    """Count what a manifest promises of l-diversity as far as the files tell, and holds the classes of one sensitive value against it.

    Args:
        what: How the release is called in a message.
        files: The data files.
        manifest: Says what was promised.
        terms: Name the columns.
        recount: What was counted in the files by now.

    Returns:
        That with the worst of every class, and the faults.
    """
    qids = [quote(column) for qid in terms.quasi_identifiers for column in qid.columns]
    measured, faults = dict[str, float](), list[str]()
    with TemporaryDirectory(prefix="skald-verify-") as spill, database(terms.memory, Path(spill)) as connection:
        source = relation_of(connection, files, layout_of(files, manifest.columns))
        try:
            together = _together(RowsHere(connection, source), manifest, terms)
            for kind, column, asked in _told_by_files(manifest):
                statement = kind.statement(source, qids, quote(column), _spec(what, kind, asked))
                [(failing, classes, worst)] = connection.execute(statement).fetchall()
                measured[column] = float(worst or 0)
                faults += [f"{failing:,} of {classes:,} classes {kind.broken(column, asked)}"] if failing else []
        # Too little memory says nothing against the release.
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            # Of the error its kind alone: DuckDB's text may quote a cell.
            raise VerificationError(what, [f"the files cannot be counted ({type(error).__name__})"]) from None
    if not one_value_is_true(manifest, recount):
        faults.append("the manifest does not say truly in how many classes everybody has one sensitive value")
    # Who is whose is not at hand: what is said of persons is not held against records.
    faults += together_claims(manifest, together, recount.unit, recount.units)
    return replace(recount, measured={"l": measured} if measured else {}, together=together), faults


def _together(rows: RowsHere, manifest: Manifest, terms: Terms) -> Counts:
    """Count what the columns of each kind tell together, by the roles that the manifest says."""
    qids = [column for qid in terms.quasi_identifiers for column in qid.columns]
    columns = columns_together(list(rows.types("release")), qids, terms.sensitive, list(manifest.pseudonyms))
    return count_together(rows, columns, qids, manifest.privacy["k"])


def _told_by_files(manifest: Manifest) -> list[tuple[PrivacyKind, str, object]]:
    """Return the promises that files alone tell: none that is about a source, and where k is of persons none that depends on how many."""
    return [
        (kind, column, asked)
        for kind, column, asked in models_in_job(manifest.privacy)
        if not kind.of_whole and (kind.of_presence or not manifest.persons)
    ]


def _spec(what: str, kind: PrivacyKind, asked: object) -> DiversitySpec:
    try:
        spec = kind.schema.model_validate(_with_numbers(asked))
    except ValidationError:
        raise VerificationError(what, [UNREADABLE]) from None
    # Of other promises none is told by files alone.
    assert isinstance(spec, DiversitySpec)
    return spec


def _with_numbers(asked: Any) -> Any:
    """Return what a manifest says with the numbers that it writes as text, so that they stay exact."""
    if isinstance(asked, Mapping):
        return {name: _with_numbers(one) for name, one in asked.items()}
    return Decimal(asked) if isinstance(asked, str) and NUMBER.fullmatch(asked) else asked


def uncounted(manifest: Manifest) -> list[str]:
    """Return which of a manifest's promises of k, l and t were not counted without the job, a sentence each."""
    told, counted = list[str](), {(kind.section, column) for kind, column, _ in _told_by_files(manifest)}
    if manifest.persons:
        told.append("k is of persons, and records were counted: who is whose is kept where the release was made.")
    for section, model in (("l", "l-diversity"), ("t", "t-closeness")):
        columns = manifest.privacy.get(section)
        names = columns if isinstance(columns, Mapping) else ()
        told += [f"{model} of '{name}' was not counted: {_lacking(section)}." for name in names if (section, name) not in counted]
    return told


def unverified_without_job(manifest: Manifest) -> list[str]:
    """Return what else was not looked at without the job, a sentence each."""
    told = [NO_JOB]
    if ranged := [name for name, ends in manifest.endpoints.items() if ends == "shared"]:
        told.append(f"Where the ranges of {listed(ranged)} end was not checked: that is held against the source.")
    if manifest.linked:
        told.append("How many people share what pseudonyms show to belong together was not counted.")
    if manifest.population:
        told.append("The risk in the population was not counted: the population is not at hand.")
    return told


def _lacking(section: str) -> str:
    return "it is measured from the source" if section == "t" else "it is of persons, and these are not at hand"


OF_SIZES = frozenset({"dm", "dm_star", "suppression_rate", "c_avg"})
"""Losses that follow from the sizes of classes."""
OF_LABELS = frozenset({"gcp", "gcp_held"})
"""Losses that follow from the labels."""
OF_THE_RUN = ("created", "run_by", "source_name", "policy", "versions", "seconds", "peak_rss", "workers", "evolved", "increment")
"""What a run says of itself."""
OF_THE_SEARCH = ("optimal", "search", "lattice", "suppressed_for", "remainder")
"""What it found out about choices that it did not publish."""
TOGETHER = ("passthrough_together", "sensitive_together", "pseudonyms_together")
"""What columns tell together of persons: only the run folder keeps what their records publish."""
OF_THE_SOURCE = ("records", "suppressed", "source_sizes", "risk.before", "sources")
"""What the source tells where it is at hand."""
OTHER_LIBRARY = {
    ".parquet": "Another version of PyArrow wrote the files: columns, types, row groups and who wrote them were looked at, "
    "not whether they hold anything but their records.",
    ".csv": "Another version of DuckDB wrote the files: whether they hold anything but their records, or these in another form, was not "
    "looked at.",
}
"""What was not looked at in files that other versions wrote, which may write the same records in other bytes."""


def unverified_claims(job: Job | None, manifest: Manifest, recount: Recount, *, is_its_job: bool) -> tuple[str, ...]:
    """Return the fields of a manifest that were taken as they are.

    Args:
        job: The job, if it is at hand.
        manifest: The manifest.
        recount: What was counted.
        is_its_job: Whether the manifest was held against the job.
    """
    told: list[str] = [name for name in OF_THE_RUN if getattr(manifest, name) not in (None, {}, ())]
    # What the labels lost is counted in the files.
    of_labels = is_of_labels(manifest) and bool(recount.losses)
    known = OF_SIZES | (OF_LABELS if of_labels else frozenset())
    told += [f"loss.{name}" for name in manifest.loss if name not in known or (name == "c_avg" and manifest.unit != recount.unit)]
    told += ["ncp"] if manifest.ncp and not of_labels else []
    told += [
        name
        for name in (*OF_THE_SEARCH, "passthrough", "repeats", "overlaps", "attacks", "attacked")
        if getattr(manifest, name) not in (None, {}, ())
    ]
    if job is None or recount.source is None or recount.unproved:
        told += OF_THE_SOURCE
    elif manifest.persons is not None:
        # Persons of classes of the source as it is are not counted.
        told += ["source_sizes", "risk.before"]
    told += [] if is_its_job else ["asked", "hierarchies", "node"]
    told += TOGETHER if manifest.persons is not None and not recount.together else []
    told += ["persons"] if manifest.persons is not None and recount.persons is None else []
    return tuple(dict.fromkeys(told))


def exchanged_unseen(recount: Recount) -> str:
    """Return in how many classes values that were exchanged between records could go unnoticed, in a sentence; empty for none."""
    if recount.sampled is None or recount.sampled >= recount.classes:
        return ""
    return (
        f"Values that were exchanged between records were looked for in {recount.sampled:,} of {recount.classes:,} classes, chosen by "
        "chance, and elsewhere column by column."
    )
