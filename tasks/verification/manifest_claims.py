"""Claims of a manifest, checked with the release's files alone or with the job; and unchecked ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import le
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from core.recount.classes import Recount, follows_from_labels, manifest_faults, one_value_counts_agree
from core.recount.figures import drawn_heights, figure_faults, nodes_by_height
from core.recount.groups import combination_claims
from schemas.errors.base import JobError, VerificationError, listed
from schemas.job.job import Job
from schemas.registry.privacy_kinds import PrivacyKind, models_in_job
from schemas.registry.sensitive import DiversitySpec
from schemas.release.manifest import Manifest
from schemas.release.terms import NOT_FOR_NODES, OWN_NODE, LatticeFigures
from tasks.recount.people import Counts, columns_to_combine, count_combinations
from tasks.recount.recount import risk_faults
from tasks.recount.rows import RowsInOneDatabase
from tasks.release.files import layout_of, relation_of
from tasks.release.manifest import hierarchies_as_in, is_of_job
from tasks.report.terms import terms_of
from tasks.store.database import database, quote
from tasks.store.keys import read_secrets

NO_JOB = (
    "The job was not at hand: the files were counted by what the manifest says was promised, and not held against the source. Labels of "
    "values that the job hides, the form of pseudonyms and the limit of suppression were not looked at."
)
UNREADABLE = "the manifest does not say in words that are known what was promised of sensitive values"


def count_promises(release_name: str, files: Sequence[Path], manifest: Manifest, recount: Recount) -> tuple[Recount, list[str]]:
    """Count a manifest's l-diversity and joint columns in files; return the new recount and faults."""
    qids = [quote(column) for qid in manifest.asked.quasi_identifiers for column in qid.columns]
    measured, faults = dict[str, float](), list[str]()
    with TemporaryDirectory(prefix="skald-verify-") as spill, database(manifest.asked.memory, Path(spill)) as connection:
        source = relation_of(connection, files, layout_of(files, manifest.columns))
        try:
            together = _together(RowsInOneDatabase(connection, source), manifest)
            for kind, column, asked in _told_by_files(manifest):
                statement = kind.statement(source, qids, quote(column), _spec(release_name, kind, asked))
                [(failing, classes, worst)] = connection.execute(statement).fetchall()
                measured[column] = float(worst or 0)
                faults += [f"{failing:,} of {classes:,} classes {kind.broken(column, asked)}"] if failing else []
        # Too little memory says nothing against the release.
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            # Of the error its kind alone: DuckDB's text may quote a cell.
            raise VerificationError(release_name, [f"the files cannot be counted ({type(error).__name__})"]) from None
    if not one_value_counts_agree(manifest, recount):
        faults.append("the manifest does not say truly in how many classes everybody has one sensitive value")
    # Who is whose is not at hand: what is said of persons is not held against records.
    faults += combination_claims(manifest, together, recount.unit, recount.units)
    return replace(recount, measured={"l": measured} if measured else {}, together=together), faults


def _together(rows: RowsInOneDatabase, manifest: Manifest) -> Counts:
    """Count what the columns of each role disclose together, by the roles in the manifest."""
    qids = [column for qid in manifest.asked.quasi_identifiers for column in qid.columns]
    columns = columns_to_combine(list(rows.types("release")), qids, manifest.asked.sensitive, list(manifest.pseudonyms))
    return count_combinations(rows, columns, qids, manifest.privacy["k"])


def _told_by_files(manifest: Manifest) -> list[tuple[PrivacyKind, str, object]]:
    """Return the promises that can be counted in files alone.

    Promises about the source are left out, and with k of persons those that depend on their number.
    """
    return [
        (kind, column, asked)
        for kind, column, asked in models_in_job(manifest.privacy)
        if not kind.of_whole and (kind.of_presence or not manifest.persons)
    ]


def _spec(what: str, kind: PrivacyKind, asked: object) -> DiversitySpec:
    try:
        spec = kind.spec_of(asked)
    except ValidationError:
        raise VerificationError(what, [UNREADABLE]) from None
    # Of other promises none is told by files alone.
    assert isinstance(spec, DiversitySpec)
    return spec


def uncounted_promises(manifest: Manifest) -> list[str]:
    """Return a sentence for each promise on k, l or t that files alone do not let count."""
    told, counted = list[str](), {(kind.section, column) for kind, column, _ in _told_by_files(manifest)}
    if manifest.persons:
        told.append("k is of persons, and records were counted: who is whose is kept where the release was made.")
    not_at_hand, of_source = "it is of persons, and these are not at hand", "it is measured from the source"
    for section, model, lacking in (("l", "l-diversity", not_at_hand), ("t", "t-closeness", of_source)):
        columns = manifest.privacy.get(section)
        names = columns if isinstance(columns, Mapping) else ()
        told += [f"{model} of '{name}' was not counted: {lacking}." for name in names if (section, name) not in counted]
    return told


def unverified_without_job(manifest: Manifest) -> list[str]:
    """Return sentences on claims besides k, l and t that cannot be checked without the job."""
    told = [NO_JOB]
    if ranged := [name for name, ends in manifest.endpoints.items() if ends == "shared"]:
        told.append(f"Where the ranges of {listed(ranged)} end was not checked: that is held against the source.")
    if manifest.linked:
        told.append("How many people share what pseudonyms show to belong together was not counted.")
    if manifest.population:
        told.append("The risk in the population was not counted: the population is not at hand.")
    return told


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
    """Return the names of a manifest's fields that nothing at hand can verify.

    Args:
        is_its_job: Whether the manifest was held against the job.
    """
    told: list[str] = [name for name in OF_THE_RUN if getattr(manifest, name) not in (None, {}, ())]
    # What the labels lost is counted in the files.
    of_labels = follows_from_labels(manifest) and bool(recount.losses)
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
    told += ["published"] if manifest.published and not recount.published else []
    told += [] if is_its_job else ["asked", "hierarchies", "node"]
    told += TOGETHER if manifest.persons is not None and not recount.together else []
    if manifest.persons is not None and recount.persons is None:
        # What a class keeps is of its persons.
        told += ["persons", "measured"] if manifest.measured else ["persons"]
    told += ["population"] if manifest.population and job is not None and recount.population is None else []
    return tuple(dict.fromkeys(told))


def exchanged_unseen(recount: Recount) -> str:
    """Return a sentence if only some classes were checked for exchanged values; else empty."""
    if recount.sampled is None or recount.sampled >= recount.classes:
        return ""
    return (
        f"Values that were exchanged between records were looked for in {recount.sampled:,} of {recount.classes:,} classes, chosen by "
        "chance, and elsewhere column by column."
    )


OTHER_JOB = (
    "The manifest names another job than this one, or the same with other settings or another secret: the files keep this one's promise, "
    "and what the manifest says of its own was not held against it."
)
NO_SECRET = (
    "The secret of the work folder is not at hand, without which nobody can tell whether the manifest is of this job: the files keep this "
    "one's promise, and what the manifest says of its own was not held against it."
)
NO_HIERARCHIES = "Files of the job's hierarchies cannot be read: what the manifest says of its job was not held against it."


def job_faults(job: Job, manifest: Manifest) -> tuple[list[str], list[str]]:
    """Return faults of a manifest's claims about its job, and notes on claims not checked."""
    known = read_secrets(job)
    try:
        mine, hierarchies = is_of_job(manifest, job, known), hierarchies_as_in(manifest, job, known)
    except JobError:
        # For k they do not matter.
        return [], [NO_HIERARCHIES]
    if not mine:
        return [], [OTHER_JOB if known else NO_SECRET]
    wrong = [name for name, same in _claims(job, manifest, hierarchies).items() if not same]
    return [f"the manifest's {listed(wrong)} cannot be: the job that it names says something else"] if wrong else [], []


def _claims(job: Job, manifest: Manifest, hierarchies: Mapping[str, str]) -> dict[str, bool]:
    """Return for each field of a manifest whether it agrees with the job."""
    names = [qid.name for qid in job.columns.quasi_identifiers]
    tops = [manifest.tops[name] for name in names if name in manifest.tops]
    levelled = job.method.name == "skald"
    whole = getattr(job.method, "root", None) == "occupied" and not any(qid.hides for qid in job.columns.quasi_identifiers)
    replayed = job.replay.name if job.replay else None
    return {
        "name": manifest.name == job.name and manifest.release.startswith(f"{job.name}-"),
        "method": manifest.method == job.method.name,
        "privacy": manifest.privacy == to_jsonable_python(job.privacy.summary()),
        "hierarchies": manifest.hierarchies == hierarchies,
        "node": (manifest.node is not None) == levelled and (not levelled or _is_node_of(job, manifest, names)),
        "ncp": not manifest.ncp or list(manifest.ncp) == names,
        "asked": manifest.asked == terms_of(job, manifest.node, tops),
        "optimal": _is_worded(job, manifest.optimal),
        "masked": _masks_as_asked(job, manifest),
        "remainder": (manifest.remainder is not None) == (job.suppression.is_local and levelled),
        "lattice": manifest.lattice is None or not tops or _is_drawn(job, manifest.lattice, names, tops),
        "search.nodes": not whole or manifest.search.get("nodes") == _nodes(job, names, tops),
        "replay_of": manifest.replay_of == replayed,
    }


def _is_node_of(job: Job, manifest: Manifest, names: list[str]) -> bool:
    """Return whether the job allows the manifest's node."""
    method, node = job.full_domain, list(manifest.node or ())
    if list(manifest.levels or {}) != names or list(manifest.tops) != names or len(node) != len(names):
        return False
    within = (method.levels.get(name, [0, level]) for name, level in zip(names, node, strict=True))
    kept = all(least <= level <= most for (least, most), level in zip(within, node, strict=True))
    return kept and (method.node is None or job.replay is not None or node == method.node)


def _spans(job: Job, names: list[str], tops: list[int]) -> list[tuple[int, int]]:
    """Return the least and greatest level that the job allows for each quasi-identifier."""
    levels = job.full_domain.levels
    spans = [levels.get(name, [0, top]) for name, top in zip(names, tops, strict=True)] if len(names) == len(tops) else []
    return [(least, most) for least, most in spans]


def _nodes(job: Job, names: list[str], tops: list[int]) -> int:
    """Return the number of nodes that the job allows."""
    return prod(most - least + 1 for least, most in _spans(job, names, tops))


def _is_drawn(job: Job, drawn: LatticeFigures, names: list[str], tops: list[int]) -> bool:
    """Return whether the manifest's lattice has the nodes that the job allows."""
    spans = _spans(job, names, tops)
    if drawn.levels != tuple(most + 1 for _, most in spans):
        return False
    heights, most = drawn_heights(drawn), nodes_by_height(spans)
    # Of a column that hides values, which levels tell them is not in the job alone.
    hides = any(qid.hides for qid in job.columns.quasi_identifiers)
    return len(heights) == len(most) and (all(map(le, heights, most)) if hides else heights == most)


def _is_worded(job: Job, optimal: str) -> bool:
    if job.method.name != "skald":
        return optimal == NOT_FOR_NODES
    if job.replay is not None:
        return optimal.startswith(f"replay of {job.replay.name}")
    if job.full_domain.node is not None:
        return optimal.startswith(OWN_NODE)
    return optimal == "certified" or optimal.startswith("best of ")


def _masks_as_asked(job: Job, manifest: Manifest) -> bool:
    if not job.suppression.masks:
        return manifest.masked == 0
    return manifest.masked <= manifest.suppressed


def stated_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Return faults for a manifest's figures that differ from its job and recount."""
    faults = manifest_faults(job, manifest, recount) + risk_faults(manifest, recount)
    return faults + job_faults(job, manifest)[0] + figure_faults(manifest, recount, proved=True)
