"""The advice follows from the figures by its rules, and from nothing that changes from run to run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.advice import SAME, advise, summary
from schemas.release.method_comparison import Figures, MethodRun

PLAIN: dict[str, Any] = {
    "released": 1000, "suppressed": 0, "classes": 50, "min_class": 10, "gcp": 0.2, "dm": 20_000, "c_avg": 2.0,
    "prosecutor_max": 0.1, "prosecutor_mean": 0.05, "share_above": 0.5, "cpu": 10.0, "peak": 500_000_000, "wall": 11.0,
}  # fmt: skip


def ran(method: str, **figures: Any) -> MethodRun:
    return MethodRun(method=method, k=10, figures=Figures(**PLAIN | figures))


def test_the_least_gcp_wins_among_all_that_the_jobs_limit_allows() -> None:
    few = {"released": 900, "suppressed": 100}
    found = advise(10, [ran("skald", gcp=0.3), ran("mondrian", gcp=0.1, **few), ran("canon", gcp=0.15)])
    assert found.method == "mondrian"
    assert found.verdict == "mondrian. Of 3 methods within suppression.limit it has the least GCP: 0.1000."
    assert found.others == (
        "skald is better for: more records kept (100.0 % against 90.0 %); one level per column, so that equal values are published alike "
        "in all records. It has GCP 0.3000.",
        "canon is better for: more records kept (100.0 % against 90.0 %). It has GCP 0.1500.",
    )
    [other] = advise(10, [ran("rayden", gcp=0.1), ran("canon", gcp=0.2, **few)]).others
    assert other.endswith("It has GCP 0.2000, but it keeps only 90.0 % of the records.")


def test_differences_below_two_per_cent_are_the_same_and_smaller_classes_decide() -> None:
    found = advise(10, [ran("mondrian", gcp=0.100, c_avg=1.5), ran("rayden", gcp=0.1019, c_avg=1.0), ran("canon", gcp=0.103, c_avg=0.5)])
    assert found.method == "rayden"
    assert "Its GCP is 0.1019, and that of mondrian is the same" in found.verdict
    assert advise(10, [ran("mondrian", gcp=0.100, c_avg=1.5), ran("rayden", gcp=0.1021, c_avg=1.0)]).method == "mondrian"


def test_where_all_figures_are_the_same_the_order_of_asking_decides() -> None:
    assert advise(10, [ran("rayden"), ran("canon")]).method == "rayden"
    assert advise(10, [ran("canon"), ran("rayden")]).method == "canon"


def test_a_method_that_failed_is_told_with_its_sentence_and_the_others_are_compared() -> None:
    failed = MethodRun(method="canon", k=10, failed="No quasi-identifier holds any.")
    found = advise(10, [failed, ran("rayden")])
    assert (found.method, found.others) == ("rayden", ("canon could not be compared: No quasi-identifier holds any.",))
    nothing = advise(10, [failed])
    assert (nothing.method, summary([nothing])) == (None, "No method could be run.")


def test_what_others_are_better_for_is_told_with_both_figures() -> None:
    best = ran("rayden", gcp=0.1)
    other = ran("clustering", gcp=0.2, c_avg=1.0, prosecutor_mean=0.04, share_above=0.2, cpu=5.0, peak=600_000_000)
    [told] = advise(10, [best, other]).others
    for part in ("C_avg 1.00 against C_avg 2.00", "4.00 % against 5.00 %", "20.0 % against 50.0 %", "5.0 s against 10.0 s"):
        assert part in told
    assert "memory" not in told


def test_the_summary_names_the_method_of_every_k() -> None:
    two = [advise(k, [ran("rayden", gcp=0.1 if k < 20 else 0.4), ran("canon")]) for k in (5, 10, 20)]
    assert summary(two) == "Recommended: rayden at k = 5, 10; canon at k = 20."
    assert summary(two[:2]) == "Recommended at every k: rayden."


positive = st.floats(0.001, 1, allow_nan=False)
figures = st.fixed_dictionaries(
    {
        "released": st.integers(500, 1000),
        "gcp": positive,
        "c_avg": positive,
        "dm": st.integers(1, 10**9),
        "cpu": positive,
        "peak": st.just(1),
    }
).map(lambda parts: parts | {"suppressed": 1000 - parts["released"]})


@given(st.dictionaries(st.sampled_from(["skald", "mondrian", "rayden", "canon"]), figures, min_size=1))
def test_the_rules_hold_for_any_figures(found: dict[str, dict[str, Any]]) -> None:
    runs = [ran(method, **parts) for method, parts in found.items()]
    chosen = advise(10, runs).method
    assert chosen is not None
    assert found[chosen]["gcp"] <= (1 + SAME) * min(parts["gcp"] for parts in found.values())
    slower = [ran(method, **parts | {"cpu": 1 / parts["cpu"], "peak": 7}) for method, parts in found.items()]
    assert advise(10, slower).method == chosen
