"""Two releases side by side: which is better, and that what reads the same is called the same."""

from __future__ import annotations

import pytest

from schemas.job.identifiers import ColumnPublication
from schemas.release.report import Report
from tasks.studio.releases import _columns, _figures, _shares


@pytest.mark.parametrize(
    ("first", "second", "more", "better"),
    [(1, 2, False, "first"), (1, 2, True, "second"), (2, 2, True, ""), (None, 2, False, ""), (0.12341, 0.12342, False, "")],
)
def test_the_better_figure_is_said(first: float | None, second: float | None, more: bool, better: str) -> None:
    assert _figures("x", first, second, more=more).better == better


def test_a_lower_share_is_better() -> None:
    assert _shares("x", 0.5, 0.25) == ("x", "50 %", "25 %", "second")
    assert _shares("x", 0.250001, 0.25).better == ""


def test_a_release_with_fewer_nulls_is_better() -> None:
    def report(null: float) -> Report:
        return Report.model_construct(
            qids=(), published={"income": ColumnPublication(publish="shared", changed=0.0, error=None, null=null)}
        )

    changed, nulls = _columns(report(0.25), report(0.5))
    assert (changed.better, tuple(nulls)) == ("", ("income: values null", "25 %", "50 %", "first"))
