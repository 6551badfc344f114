"""What a manifest keeps of its job for the report: roles, words for hierarchies and levels, the limit; never a cell value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from core.columns.domains import Node
from core.lattice.map import STATUSES, DrawnNode, LatticeMap
from schemas.hierarchies.hierarchy import HierarchySpec
from schemas.hierarchies.kinds import entry_of
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.method import SkaldMethod
from schemas.job.objectives import OBJECTIVES
from schemas.privacy.publish import treatment_sentence
from schemas.reading.model import plain
from schemas.release.manifest import Manifest, published_columns
from schemas.release.report import PublishedColumn, Report
from schemas.release.terms import LatticeFigures, QidTerms, Terms

LOSSES = {
    "gcp": ("GCP", "mean coarsening of a value: 0 as in the source, 1 withheld; suppressed records count as 1"),
    "gcp_held": ("GCP of values", "what the same can be at most if every class published just the values that it holds"),
    # As releases of earlier versions call it.
    "gcp_set": ("GCP of values", "the same if every class published just the values that it holds"),
    "precision": ("Precision", "1 − mean of level / last level: 1 as in the source, 0 withheld"),
    "suppression_rate": ("Suppression rate", "share of records that were suppressed"),
    "c_avg": ("C_avg", "{several} per class in units of k: 1 is the finest that k allows"),
    "dm_star": ("DM*", "sum of squared class sizes, and the square of the suppressed records"),
    "dm": ("DM", "sum of squared class sizes; every suppressed record counts as confused with all"),
    "dm_all": ("DM, all cells", "sum of squares over all cells, published or not (El Emam; ARX)"),
    "dm_partitions": ("DM of partitions", "DM of the partitions before equal labels are counted as one class"),
    "c_avg_partitions": ("C_avg of partitions", "C_avg of the same"),
    "numerical_loss": ("Numerical loss", "relative ranges of a record's numbers, added up; it may pass 1"),
    "categorical_loss": ("Categorical loss", "leaves under a label over all leaves, on average"),
    "total_loss": ("Total loss", "mean of both"),
    "ncp": ("NCP", "coarsening added up over all values: GCP times records times quasi-identifiers"),
    "ncp_distinct": ("NCP, distinct values", "the same, of numbers too the share of distinct values that a class holds"),
}
"""Titles and meanings of the losses that releases of every objective tell."""

WEIGHTED = ("Weighted loss", "what was minimised: the objective's loss of a value on average, each column by its weight in the job")

SOUGHT_AFTER = "gcp_held"
"""Where losses stand in the report that are told because they were minimised: behind this one."""


def losses(several: str = "records") -> dict[str, tuple[str, str]]:
    """Returns titles and meanings of losses, in the order of the report; ``several`` are what k counts."""
    told: dict[str, tuple[str, str]] = {}
    for name, (title, meaning) in LOSSES.items():
        told[name] = title, meaning.replace("{several}", several)
        if name == SOUGHT_AFTER:
            told |= {objective: one.loss for objective, one in OBJECTIVES.items() if one.loss} | {"weighted": WEIGHTED}
    return told


LOCAL = "a range or group of its own in every class"


def hierarchy_text(hierarchy: HierarchySpec) -> str:
    """Returns how the values of a quasi-identifier can be grouped; no label of a tree or file."""
    return entry_of(hierarchy).words(hierarchy)


def level_text(hierarchy: HierarchySpec, level: int, top: int | None) -> str:
    """Returns what a level publishes.

    Args:
        hierarchy: As the job says it.
        level: The level, from 0.
        top: The last level; it tells whether the first step that the job names became level 0, as in a width of 1 for integers.
    """
    if level == 0:
        return "values as they are"
    if level == top:
        return "withheld: one group * for all"
    steps = entry_of(hierarchy).steps(hierarchy)
    if not steps:
        return f"group {level} steps above the value" if level > 1 else "group one step above the value"
    # Counted from the top, where the steps end whether or not the first of them became level 0.
    place = level - (top - len(steps)) if top is not None else -1
    return steps[place] if 0 <= place < len(steps) else f"level {level}"


def terms_of(job: Job, node: Node | None = None, tops: Sequence[int] = ()) -> Terms:
    """Returns what a job asked, fit to be published.

    Args:
        job: The job.
        node: The level of each QID that is published; None where every class has labels of its own.
        tops: The last level of each QID.
    """
    columns, asked = job.columns, []
    for place, qid in enumerate(columns.quasi_identifiers):
        published = LOCAL if node is None else level_text(qid.hierarchy, node[place], tops[place] if tops else None)
        names = tuple(published_columns(job, qid))
        asked.append(QidTerms(name=qid.name, columns=names, hierarchy=hierarchy_text(qid.hierarchy), published=published))
    return Terms(
        limit=plain(job.suppression.limit),
        treatment=job.suppression.treatment,
        rounds=job.suppression.rounds,
        objective=job.method.objective if isinstance(job.method, SkaldMethod) else None,
        # Those that are published as pseudonyms are told by treatment, since these here are said to be left out.
        identifiers=tuple(columns.dropped),
        quasi_identifiers=tuple(asked),
        sensitive=tuple(columns.sensitive),
        insensitive=columns.insensitive if isinstance(columns.insensitive, str) else tuple(columns.insensitive),
        memory=job.memory,
        tries_next=job.tries_next,
        withheld=tuple(columns.withheld),
        accept_untreated=columns.accept_untreated,
        source=FORMATS[job.source.format].words,
    )


def lattice_figures(drawn: LatticeMap) -> LatticeFigures:
    """Returns a lattice's map as a manifest holds it."""
    return LatticeFigures(
        levels=drawn.levels,
        heights={status: tuple(row[status] for row in drawn.heights) for status in STATUSES},
        nodes={" ".join(map(str, one.node)): one.status for one in drawn.drawn},
        whole=drawn.whole,
    )


def map_of_report(report: Report) -> LatticeMap | None:
    """Returns the map of the lattice that a report holds, or None if it holds none."""
    figures, node = report.lattice, tuple(qid.level for qid in report.qids if qid.level is not None)
    # Classes with labels of their own are at no node, so that there is none to mark.
    if figures is None or len(node) < len(report.qids):
        return None
    rows = zip(*(figures.heights[status] for status in STATUSES), strict=True)
    return LatticeMap(
        name=report.name,
        qids=tuple(qid.name for qid in report.qids),
        levels=figures.levels,
        node=node,
        heights=tuple(dict(zip(STATUSES, row, strict=True)) for row in rows),
        drawn=tuple(DrawnNode(tuple(map(int, place.split())), status) for place, status in figures.nodes.items()),
        whole=figures.whole,
    )


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
AS_IT_IS = "as in the source"


def published_columns_of(manifest: Manifest, terms: Terms) -> tuple[PublishedColumn, ...]:
    """Returns every column of the data files: quasi-identifiers in job order, then sensitive ones, all others, and pseudonyms.

    Args:
        manifest: Of the release.
        terms: What was asked.
    """
    qids = [
        PublishedColumn(name=name, role="quasi-identifier", published=_published(qid.published, name, qid.columns))
        for qid in terms.quasi_identifiers
        for name in qid.columns
    ]
    # What the word rest stands for was measured column by column.
    rest = (
        [name for name in manifest.passthrough if name not in terms.sensitive] if terms.insensitive == "rest" else list(terms.insensitive)
    )
    untreated = [
        PublishedColumn(
            name=name,
            role="sensitive" if name in terms.sensitive else "insensitive",
            published=_otherwise(manifest, name),
            distinct=_distinct(manifest, name),
        )
        for name in (*terms.sensitive, *rest)
    ]
    pseudonyms = [PublishedColumn(name=name, role="pseudonym", published=words) for name, words in manifest.pseudonyms.items()]
    return (*qids, *untreated, *pseudonyms)


def _published(words: str, name: str, columns: tuple[str, ...]) -> str:
    if len(columns) == 1:
        return words
    return f"{words}: {'lower' if name == columns[0] else 'upper'} bound"


def _otherwise(manifest: Manifest, name: str) -> str:
    found = manifest.published.get(name)
    return AS_IT_IS if found is None else treatment_sentence(found.publish, int(manifest.privacy["k"]))


def _distinct(manifest: Manifest, name: str) -> int | None:
    found = manifest.passthrough.get(name)
    return found.distinct if found else None


def date_text(created: str | None) -> str:
    """Returns a moment as people write it, in UTC; as it is where it cannot be read, empty where there is none."""
    try:
        moment = datetime.fromisoformat(created).astimezone(UTC) if created else None
    except ValueError:
        return created or ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC" if moment else ""
