"""The job's settings that a manifest keeps for the report, without any cell value.

These are roles, words for hierarchies and levels, and the suppression limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from core.columns.domains import Node
from core.lattice.search import STATUSES, DrawnNode, LatticeMap
from core.units.losses import THRESHOLD, least_class, preset_met
from schemas.errors.base import counted
from schemas.job.formats import FORMATS
from schemas.job.identifiers import treatment_sentence
from schemas.job.job import Job
from schemas.job.method import OBJECTIVES, SkaldMethod
from schemas.reading.model import plain, share_text
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.hierarchy_kinds import hierarchy_kind
from schemas.release.figures import RepeatedColumn, repeating_identifiers_sentence
from schemas.release.manifest import Manifest, published_columns
from schemas.release.report import Limit, PublishedColumn, Report
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
    """Return titles and meanings of losses by name, in the order of the report.

    ``several`` is the plural name of the unit that k counts.
    """
    told: dict[str, tuple[str, str]] = {}
    for name, (title, meaning) in LOSSES.items():
        told[name] = title, meaning.replace("{several}", several)
        if name == SOUGHT_AFTER:
            told |= {objective: one.loss for objective, one in OBJECTIVES.items() if one.loss} | {"weighted": WEIGHTED}
    return told


LOCAL = "a range or group of its own in every class"


def hierarchy_text(hierarchy: HierarchySpec) -> str:
    """Return words for how a hierarchy groups values, without labels of a tree or file."""
    return hierarchy_kind(hierarchy).words(hierarchy)


def level_text(hierarchy: HierarchySpec, level: int, top: int | None) -> str:
    """Return words for the values that a hierarchy level publishes.

    Args:
        hierarchy: As the job says it.
        level: The level, from 0.
        top: The last level. It shows whether the job's first step became level 0, as a width of 1 does for integers.
    """
    if level == 0:
        return "values as they are"
    if level == top:
        return "withheld: one group * for all"
    steps = hierarchy_kind(hierarchy).steps(hierarchy)
    if not steps:
        return f"group {level} steps above the value" if level > 1 else "group one step above the value"
    # Counted from the top, where the steps end whether or not the first of them became level 0.
    place = level - (top - len(steps)) if top is not None else -1
    return steps[place] if 0 <= place < len(steps) else f"level {level}"


def terms_of(job: Job, node: Node | None = None, tops: Sequence[int] = ()) -> Terms:
    """Return the settings of a job that its manifest publishes.

    Args:
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
    """Return a lattice map in the form of the manifest."""
    return LatticeFigures(
        levels=drawn.levels,
        heights={status: tuple(row[status] for row in drawn.heights) for status in STATUSES},
        nodes={" ".join(map(str, one.node)): one.status for one in drawn.drawn},
        whole=drawn.whole,
    )


def map_of_report(report: Report) -> LatticeMap | None:
    """Return the lattice map in a report; None if there is none or classes are at no node."""
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


def published_columns_of(manifest: Manifest) -> tuple[PublishedColumn, ...]:
    """Return every column of the data files with its role and treatment.

    Quasi-identifiers come first in job order, then sensitive ones, all others, and pseudonyms.
    """
    terms = manifest.asked
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
    """Return an ISO timestamp in words and UTC; unchanged if it is none, empty for None."""
    try:
        moment = datetime.fromisoformat(created).astimezone(UTC) if created else None
    except ValueError:
        return created or ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC" if moment else ""


@dataclass(frozen=True)
class UnitWording:
    """Wording of report texts for the unit that k counts: records or persons.

    Attributes:
        one: Its name, in the singular.
        repeats: Identifiers that repeat, where it counts records.
        linked: Whether pseudonyms show sets of records that fewer than k share.
    """

    one: Literal["person", "record"] = "record"
    repeats: Mapping[str, RepeatedColumn] = field(default_factory=dict)
    linked: bool = False

    @classmethod
    def of_job(cls, job: Job, repeats: Mapping[str, RepeatedColumn] | None = None) -> UnitWording:
        """Return the wording for a job's unit."""
        return cls("person" if job.columns.person else "record", repeats or {})

    @classmethod
    def of_release(cls, manifest: Manifest) -> UnitWording:
        """Return the wording of a manifest's unit: person or record, and which warnings hold of it."""
        linked = any(one.below_k or one.left_over for one in manifest.linked or ())
        return cls("person" if manifest.persons else "record", manifest.repeats, linked)

    @property
    def several(self) -> str:
        """Return the unit's plural name."""
        return f"{self.one}s"

    @property
    def of_persons(self) -> bool:
        """Return whether k counts persons here, and not records."""
        return self.one == "person"

    def promise(self, k: int) -> str:
        """Return a sentence that states k-anonymity."""
        return f"Every published combination of quasi-identifiers is shared by at least {counted(k, self.one)} (k-anonymity)."

    def lacking(self, k: int) -> str:
        """Return a clause on why suppressed records failed k, to follow their number."""
        persons = " persons" if self.of_persons else ""
        return f"at the published levels fewer than k = {k:,}{persons} share their combination."

    def warning(self) -> str:
        """Return a warning of repeating identifiers; empty if none repeat."""
        return repeating_identifiers_sentence(self.repeats)

    def maximum_risk(self, least: int) -> str:
        """Return a sentence on the strictest published risk limit that a smallest class keeps, or on none."""
        if self.repeats:
            return "Identifiers repeat and no person is named, so that no maximum risk is claimed."
        if self.linked:
            return "Pseudonyms show sets of records that fewer than k share, so that no maximum risk is claimed."
        if preset := preset_met(least):
            return f"No {self.one}'s risk is above {preset[0]} ({preset[1]})."
        return "No published maximum risk (0.2 or 0.09) is kept; these need k = 5 and k = 12."

    def maximum_risk_in_short(self, least: int) -> str:
        """Return a short clause on the risk limit a smallest class keeps, or why none is claimed."""
        if self.repeats:
            return "none claimed: identifiers repeat and columns.person names nobody"
        if self.linked:
            return "none claimed: pseudonyms show sets of records that fewer than k share"
        preset = preset_met(least)
        return f"keeps {preset[0]} ({preset[1]})" if preset else f"keeps no preset; {THRESHOLD} needs k = {least_class(THRESHOLD)}"

    def risks(self) -> dict[str, tuple[str, bool, str]]:
        """Return titles of risks, whether they are shares, and their meanings, in report order."""
        if self.of_persons:
            return OF_PERSONS
        # Where a class of k records may be one person, a share above a threshold is a claim that nothing bears out.
        return {name: words for name, words in OF_RECORDS.items() if not (self.repeats and name in CLAIMS)}

    def basis(self) -> str:
        """Return a sentence on how risks were counted."""
        if self.of_persons:
            return "Counted from the persons of each class; who is in several classes counts in each"
        if self.repeats:
            return "Counted from class sizes as if every record were a person of its own, which repeating identifiers speak against"
        return "Counted from class sizes"

    def limits(self) -> tuple[Limit, ...]:
        """Return what k in this unit does not promise, for the limits section of a report."""
        if not self.of_persons:
            return (Limit(text=ONLY_RECORDS, source=""),)
        return (Limit(text=SETS_OF_CLASSES, source=PERSONS),)


def share_limits(manifest: Manifest) -> tuple[Limit, ...]:
    """Return the report's limit on the largest share of a class by one person; empty if not counted."""
    share = manifest.persons.largest_share if manifest.persons else None
    return () if share is None else (Limit(text=LARGEST_SHARE.format(share=share_text(share, 0)), source=PERSONS),)


CLAIMS = frozenset({"share_above"})
OF_RECORDS = {
    "unique": ("Unique records", False, "records that nobody shares their combination with"),
    "min_class": ("Smallest class", False, "records that share the rarest combination"),
    "prosecutor_max": ("Highest risk", True, "chance to pick the right record of somebody known to be in the data, at worst"),
    "prosecutor_mean": ("Mean risk", True, "the same for a record on average"),
    "marketer": ("Marketer risk", True, "share of all records that matching them with a register would get right"),
    "share_above": ("Records at higher risk", True, "share of records whose risk is above {threshold}"),
}
OF_PERSONS = {
    "unique": ("Unique persons", False, "persons who are alone with a combination, counted once for each"),
    "min_class": ("Smallest class", False, "persons who share the rarest combination"),
    "prosecutor_max": ("Highest risk", True, "chance to pick the right person for somebody known to be in the data, at worst"),
    "prosecutor_mean": ("Mean risk", True, "the same for a person of a class on average"),
    "marketer": ("Marketer risk", True, "share of the persons of all classes that matching them with a register would get right"),
    "share_above": ("Persons at higher risk", True, "share of the persons of all classes whose risk is above {threshold}"),
}
PERSONS = "Wang and Fung, Anonymizing sequential releases, KDD 2006"
ONLY_RECORDS = "Classes are counted in records. Where one person has several records, a class of k records may hold fewer than k people."
LARGEST_SHARE = (
    "No person holds more than {share} of the records of any class (rounded up, so that nobody's number shows). Who knows that somebody "
    "has far more records than others can tell which values are likely theirs."
)
SETS_OF_CLASSES = (
    "Each class is that of at least k persons, and so is each record by itself. Who knows which records are one person's, by other columns "
    "or from elsewhere, can look at all of that person's classes together, and fewer than k may share these."
)
