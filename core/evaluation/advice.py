"""Advice on methods: which one to take and what the others are better for, by fixed rules.

Only figures of the releases decide. Figures that depend on the machine (CPU time, memory) are reported and never decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from schemas.errors.base import counted
from schemas.job.method import METHODS
from schemas.release.method_comparison import Advice, Figures, MethodRun

SAME = 0.02
SAME_COST = 0.2
SAME_SHARE = 0.005


def percent(share: float, digits: int = 0) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.{digits}f} %"


RULES = (
    "Every method that ran leaves out no more than the job's suppression.limit allows. Of these, the one with the least GCP of what is "
    "published is recommended; what is left out counts 1 in it.",
    f"GCPs that differ by less than {percent(SAME)} are the same; then the smaller mean class (C_avg) decides, then the smaller DM, again "
    f"by {percent(SAME)}, then the order in which the methods were asked for.",
    f"Other methods are said to be better for what differs by {percent(SAME)} or more (shares: by {percent(SAME_SHARE, 1)} of "
    f"all; CPU time and memory, which change from run to run: by {percent(SAME_COST)}).",
)
"""How the advice is made, as it is shown with it."""


class Measure(NamedTuple):
    """Figure in which one method can be better than another.

    Attributes:
        of: Reads it.
        same: A difference below this is none: relative to the smaller figure, or for shares of the records a difference of shares.
        share: Whether it is such a share.
        more: Whether more is better.
        sentence: What a better method has, given its own figure and the recommended one's.
    """

    of: Callable[[Figures], float]
    same: float
    share: bool
    more: bool
    sentence: Callable[[Figures, Figures], str]


def _less(name: str, of: Callable[[Figures], float], text: Callable[[float], str]) -> Callable[[Figures, Figures], str]:
    """Return a function that writes a comparison of two figures as a sentence."""

    def says(mine: Figures, other: Figures) -> str:
        return f"{name} ({text(of(mine))} against {text(of(other))})"

    return says


def _measure(
    name: str, figure: str, text: Callable[[float], str], same: float = SAME, *, share: bool = False, more: bool = False
) -> Measure:
    """Build a measure that reads an attribute of the figures."""
    of = attrgetter(figure)
    return Measure(of, same, share, more, _less(name, of, text))


def _tenths(share: float) -> str:
    """Write a share as a percentage with one decimal."""
    return percent(share, 1)


def measures(unit: str = "record", counts: str = "record") -> tuple[Measure, ...]:
    """Return the measures in which a method can be better, in the order of the report.

    ``unit`` is what k counts, and ``counts`` what may be suppressed.
    """
    return (
        _measure(f"more {counts}s kept", "share_in_classes", _tenths, SAME_SHARE, share=True, more=True),
        _measure("less coarsening", "gcp", "GCP {:.4f}".format),
        _measure("smaller classes", "c_avg", "C_avg {:,.2f}".format),
        _measure("fewer large classes", "dm", "DM {:,.0f}".format),
        _measure(f"less risk for the mean {unit}", "prosecutor_mean", lambda risk: percent(risk, 2)),
        _measure(f"fewer {unit}s at higher risk", "share_above", _tenths, SAME_SHARE, share=True),
        _measure("less CPU time", "cpu", "{:,.1f} s".format, SAME_COST),
        _measure("less memory", "peak", lambda peak: f"{peak / 1e6:,.0f} MB", SAME_COST),
    )


def advise(k: int, runs: Sequence[MethodRun], unit: str = "record", counts: str = "record") -> Advice:
    """Recommend a method for one k; return it with a verdict and the advantages of other methods.

    Args:
        k: Of all the runs.
        runs: One per method, in the order of preference where all figures are the same.
        unit: What k counts.
        counts: What may be suppressed.
    """
    found = {run.method: run.figures for run in runs if run.figures}
    failed = tuple(f"{run.method} could not be compared: {run.failed}" for run in runs if run.failed)
    if not found:
        return Advice(k=k, method=None, verdict="No method could be run, so that there is nothing to recommend.", others=failed)
    best = _chosen(found)
    told = tuple(_other(name, found[name], best, found[best], measures(unit, counts), counts) for name in found if name != best)
    return Advice(k=k, method=best, verdict=f"{best}. {_reason(best, found)}", others=(*told, *failed))


def _chosen(found: Mapping[str, Figures]) -> str:
    """Return the best of the methods by GCP, then C_avg, then DM."""
    left = dict(found)
    for of in map(attrgetter, ("gcp", "c_avg", "dm")):
        least = min(map(of, left.values()))
        left = {name: figures for name, figures in left.items() if _same(of(figures), least, SAME)}
    # A dictionary keeps the order in which the methods were asked for, which is the last to decide.
    return next(iter(left))


def _reason(best: str, found: Mapping[str, Figures]) -> str:
    """Write the reason why the recommended method is the best."""
    own = found[best]
    if len(found) == 1:
        return f"Its GCP is {own.gcp:.4f}."
    least = min(figures.gcp for figures in found.values())
    same = [name for name, figures in found.items() if name != best and _same(figures.gcp, least, SAME)]
    if not same:
        return f"Of {counted(len(found), 'method')} within suppression.limit it has the least GCP: {own.gcp:.4f}."
    return (
        f"Its GCP is {own.gcp:.4f}, and that of {' and '.join(same)} is the same (less than {percent(SAME)} above the least); of these it "
        "has the smaller classes, or was asked for first."
    )


def _other(name: str, mine: Figures, best: str, chosen: Figures, measured: Sequence[Measure], counts: str) -> str:
    """Write what another method is better for than the recommended one."""
    better = [measure.sentence(mine, chosen) for measure in measured if _better(measure, mine, chosen)]
    if METHODS[name].one_level and not METHODS[best].one_level:
        better.append("one level per column, so that equal values are published alike in all records")
    told = f"{name} is better for: {'; '.join(better)}." if better else f"{name} is better for nothing that was measured here."
    coarser = "the same GCP" if _same(mine.gcp, chosen.gcp, SAME) else f"GCP {mine.gcp:.4f}"
    fewer = chosen.share_in_classes - mine.share_in_classes >= SAME_SHARE
    lost = f", but it keeps only {percent(mine.share_in_classes, 1)} of the {counts}s" if fewer else ""
    return f"{told} It has {coarser}{lost}."


def _same(one: float, other: float, margin: float) -> bool:
    """Return whether two figures differ by less than a margin, relative to the smaller one."""
    return one == other or abs(one - other) < margin * min(one, other)


def _better(measure: Measure, mine: Figures, other: Figures) -> bool:
    """Return whether one method's figure is better than another's by more than the margin."""
    one, two = measure.of(mine), measure.of(other)
    alike = abs(one - two) < measure.same if measure.share else _same(one, two, measure.same)
    return not alike and (one > two) == measure.more


def summary(advice: Sequence[Advice]) -> str:
    """Return the advice for all k in one sentence."""
    by_method: dict[str | None, list[str]] = {}
    for one in advice:
        by_method.setdefault(one.method, []).append(f"{one.k:,}")
    if set(by_method) == {None}:
        return "No method could be run."
    if len(advice) == 1:
        return f"Recommended: {advice[0].verdict}"
    if len(by_method) == 1:
        return f"Recommended at every k: {advice[0].method}."
    parts = [f"{method or 'none'} at k = {', '.join(ks)}" for method, ks in by_method.items()]
    return f"Recommended: {'; '.join(parts)}."
