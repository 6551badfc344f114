"""What a report says in words: promises, levels, losses, the certificate, and the limits of what was promised."""

from __future__ import annotations

from schemas.errors import counted
from schemas.hierarchy import AnyHierarchy, CsvHierarchy, DateHierarchy, PrefixHierarchy, WidthsHierarchy
from schemas.job import Job
from schemas.method import SkaldMethod
from schemas.privacy import Diversity
from schemas.release import Manifest
from schemas.report import Limit
from schemas.strict import plain

METHODS = {
    "skald": "One level for each whole column: of all combinations of levels that keep the promise, the one with the least loss.",
    "mondrian": "Mondrian: the records are cut again and again along one quasi-identifier, as long as both sides keep the promise.",
    "rayden": "RAYDEN: a tree of nearest records under Gower's distance; outliers are parted among themselves.",
    "canon": "CANON: a tree of nearest records under the distance of the numerical quasi-identifiers.",
    "mondrian_cof": "Mondrian, then outliers of its classes are parted among themselves.",
    "clustering": "Semantic clustering: records with equal groups are taken together, level by level.",
}

LOSSES = {
    "gcp": ("GCP", "mean coarsening of a value: 0 as in the source, 1 withheld; suppressed records count as 1"),
    "gcp_set": ("GCP of values", "the same if every class published just the values that it holds"),
    "gcp_covered": ("GCP, values covered", "the same, of numbers too the share of distinct values that a group covers"),
    "entropy": ("Entropy", "non-uniform entropy per value, in bits: what a value can no longer tell"),
    "precision": ("Precision", "1 − mean of level / last level: 1 as in the source, 0 withheld"),
    "suppression_rate": ("Suppression rate", "share of records that were suppressed"),
    "c_avg": ("C_avg", "records per class in units of k: 1 is the finest that k allows"),
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
"""Titles and meanings of losses, in the order of the report."""

RISKS = {
    "unique": ("Unique records", False, "records that nobody shares their combination with"),
    "min_class": ("Smallest class", False, "records that share the rarest combination"),
    "prosecutor_max": ("Highest risk", True, "chance to pick the right record of somebody known to be in the data, at worst"),
    "prosecutor_mean": ("Mean risk", True, "the same for a record on average"),
    "marketer": ("Marketer risk", True, "share of all records that matching them with a register would get right"),
    "share_above": ("Records at higher risk", True, "share of records whose risk is above {threshold}"),
}
"""Titles of risks, whether they are shares, and their meanings, in the order of the report."""

NOT_ASKED = "Everybody in a class may share a sensitive value, and then to know the class is to know it. The job did not ask for {models}."


def promises(job: Job) -> tuple[str, ...]:
    """Returns what the job asks of every class, a sentence each."""
    kept = [f"Every published combination of quasi-identifiers is shared by at least {counted(job.privacy.k, 'record')} (k-anonymity)."]
    kept += [f"In every class {_diversity(column, one)}." for column, one in job.privacy.l.items()]
    kept += [
        f"The distribution of '{column}' in every class is at most {plain(one.t)} away from that of the whole source "
        f"(t-closeness, {one.distance} distance)."
        for column, one in job.privacy.t.items()
    ]
    return tuple(kept)


def _diversity(column: str, one: Diversity) -> str:
    if one.distinct is not None:
        return f"'{column}' takes at least {counted(one.distinct, 'different value')} (distinct l-diversity)"
    if one.entropy is not None:
        return f"'{column}' is spread at least as evenly as {plain(one.entropy)} equally frequent values (entropy l-diversity)"
    assert one.recursive is not None
    c, least = plain(one.recursive.c), one.recursive.l
    rest = "all values together" if least == 1 else f"all values from the {least}. most frequent on together"
    return f"the most frequent value of '{column}' is less than {c} times as frequent as {rest} (recursive (c, l)-diversity)"


def hierarchy_words(hierarchy: AnyHierarchy) -> str:
    """Returns how the values of a quasi-identifier can be grouped; no label of a tree or file."""
    match hierarchy:
        case WidthsHierarchy():
            return "ranks in bins" if hierarchy.encode else "numbers in bins"
        case PrefixHierarchy():
            return "leading characters"
        case DateHierarchy():
            return "calendar units"
        case CsvHierarchy():
            return "groups listed in a file"
    return "groups of a tree"


def level_words(hierarchy: AnyHierarchy, level: int, top: int | None) -> str:
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
    steps = _steps(hierarchy)
    if not steps:
        return f"group {level} steps above the value" if level > 1 else "group one step above the value"
    place = level - (top - len(steps)) if top is not None else -1
    return steps[place] if 0 <= place < len(steps) else f"level {level}"


def _steps(hierarchy: AnyHierarchy) -> list[str]:
    match hierarchy:
        case WidthsHierarchy(encode=True):
            return [f"bins of {counted(int(width), 'neighbouring value')}" for width in hierarchy.widths]
        case WidthsHierarchy():
            origin = f", counted from {plain(hierarchy.origin)}" if hierarchy.origin else ""
            return [f"bins of width {plain(width)}{origin}" for width in hierarchy.widths]
        case PrefixHierarchy():
            return [f"first {counted(kept, 'character')}" for kept in hierarchy.prefix]
        case DateHierarchy():
            return [f"{unit} of the date" for unit in hierarchy.date]
    return []


MEASURES = {
    "dm_star": "DM* (eq. 4 of the SKALD paper)",
    "dm_all": "DM over all cells (El Emam; ARX)",
    "c_avg": "mean class size (C_avg)",
    "precision": "lack of precision (Sweeney's 1 - Prec)",
    "gcp": "certainty penalty (GCP, range over range)",
    "gcp_covered": "certainty penalty (GCP, values covered)",
    "entropy": "non-uniform entropy",
}
"""The objectives in words."""


def certificate(job: Job, manifest: Manifest) -> tuple[str, ...]:
    """Returns in plain words whether a better release of the same kind was possible."""
    nodes, passing = manifest.search.get("nodes"), manifest.search.get("passing")
    if not isinstance(job.method, SkaldMethod) or not isinstance(nodes, int):
        return (
            "No certificate: this method gives every class labels of its own and looks for small classes step by step. "
            "It claims to be safe, which was verified, not to be the best.",
        )
    measure = MEASURES[job.method.objective]
    ways = f"The hierarchies allow {counted(nodes, 'combination')} of levels for whole columns."
    if manifest.optimal == "certified":
        known = f" At least {passing:,} of them are known to keep the promise within the suppression limit." if passing is not None else ""
        return (
            f"{ways}{known}",
            f"Certified: none that keeps it has a smaller loss by {measure}. Every combination was counted, or excluded because it cannot "
            "keep the promise or cannot lose less.",
        )
    return (
        ways,
        f"Not certified: this is the {manifest.optimal}. It is safe all the same; a combination with a smaller {measure} may exist.",
    )


def verification(job: Job, manifest: Manifest) -> tuple[str, ...]:
    """Returns how the release was verified before it was published."""
    told = [
        f"The written files were counted again by DuckDB, which was told the job and not how the classes were made: "
        f"{counted(manifest.released, 'record')} in {manifest.classes:,} classes, the smallest of "
        f"{counted(manifest.min_class, 'record')}. Nulls count as a value of their own. No class fails.",
    ]
    told += [f"l-diversity of '{column}' was counted in every class; none fails." for column in job.privacy.l]
    told += [f"The distance of '{column}' from the whole source was measured in every class; none is above t." for column in job.privacy.t]
    told += [
        "The files hold the columns that the job publishes and no others; no identifier is among them.",
        "A release that fails any of this is not published. To check it again: skald verify RELEASE --job JOB.",
    ]
    return tuple(told)


def limits(job: Job) -> tuple[Limit, ...]:
    """Returns what this release does not promise."""
    sensitive = job.columns.sensitive
    unguarded = [f"'{name}'" for name in sensitive if name not in job.privacy.columns]
    told = []
    if unguarded:
        told.append(Limit(text=f"{NOT_ASKED.format(models='l-diversity or t-closeness of ' + ', '.join(unguarded))}", source=DIVERSITY))
    if job.privacy.l and not job.privacy.t:
        told.append(Limit(text="l-diversity counts values, not what they mean: different values may tell much the same.", source=CLOSENESS))
    rest = job.columns.insensitive
    if rest:
        which = "All columns without another role" if rest == "rest" else counted(len(rest), "insensitive column")
        told.append(Limit(text=f"{which}: published as in the source and in no risk. Whoever knows such a value can use it.", source=""))
    return (*told, *ALWAYS)


DIVERSITY = "Machanavajjhala et al., l-Diversity, TKDD 2007"
CLOSENESS = "Li, Li and Venkatasubramanian, t-Closeness, ICDE 2007"
ALWAYS = (
    Limit(
        text="The risks hold for what the job calls quasi-identifiers. Any other column that people can know is not counted.",
        source="Sweeney, k-anonymity, IJUFKS 2002",
    ),
    Limit(
        text="Classes are counted in records. Where one person has several records, a class of k records may hold fewer than k people.",
        source="",
    ),
    Limit(
        text="Two releases about the same people can be combined, even if each is k-anonymous by itself.",
        source="Ganta, Kasiviswanathan and Smith, Composition attacks, KDD 2008",
    ),
    Limit(
        text="Who knows the method and more about some people may narrow a class down; k-anonymity does not bound what is learnt.",
        source="Cohen, Attacks on Deidentification's Defenses, USENIX Security 2022",
    ),
    Limit(
        text="Whether data are anonymous in law also depends on who gets them, what else they hold, and on linking and inference.",
        source="Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
    ),
)
