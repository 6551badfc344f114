"""A comparison of methods counts persons wherever the job names them."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from flows.terminal.methods import methods_summary
from schemas.job.method import METHODS
from schemas.release.method_comparison import MethodComparison
from tasks.utility.methods import render_methods
from tests.conftest import CommandLine
from tests.flows.lattice.test_persons import TABLE, WHOSE, K, columns, job, ladders, people_in, rows
from tests.oracles.persons import best_node, losses

pytestmark = pytest.mark.slow

LIMIT = Fraction(1, 5)
COUNTING = [name for name, method in METHODS.items() if method.counts_persons]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> MethodComparison:
    """The real thing: the command line, and a process for each method that counts persons."""
    folder = tmp_path_factory.mktemp("methods")
    path = job(folder / "job", method={"name": "skald", "objective": "dm_star"}, suppression={"limit": float(LIMIT)})
    ended = CommandLine("direct", folder)("compare", path, "--methods", ",".join(COUNTING), "--json")
    assert ended.returncode == 0, ended.stderr
    return MethodComparison.model_validate_json(ended.stdout)


def test_every_method_is_measured_by_persons(compared: MethodComparison) -> None:
    comparison = compared
    assert comparison.unit == "person"
    for run in comparison.runs:
        assert run.figures, run.failed
        assert run.figures.min_class >= K
        assert run.figures.prosecutor_max == 1 / run.figures.min_class
        assert run.figures.records == len(TABLE)


def test_the_figures_of_method_skald_are_those_of_persons_counted_one_by_one(compared: MethodComparison) -> None:
    [run] = [run for run in compared.runs if run.method == "skald"]
    best = best_node(rows(), WHOSE, ladders(), K, LIMIT, "dm_star")
    assert best
    assert run.figures
    sizes = [len(who) for who in people_in(best).values() if len(who) >= K]
    assert run.figures.c_avg == pytest.approx(sum(sizes) / len(sizes) / K)
    assert run.figures.prosecutor_mean == pytest.approx(len(sizes) / sum(sizes))
    assert run.figures.share_above == pytest.approx(sum(size for size in sizes if size < 12) / sum(sizes))
    assert run.figures.suppressed == losses(rows(), WHOSE, ladders(), best, K).suppressed


def test_words_are_of_persons_where_persons_were_counted(compared: MethodComparison) -> None:
    page = render_methods(compared)
    written = StringIO()
    Console(width=120, file=written).print(methods_summary(compared, "folder"))
    assert f"at most {float(LIMIT)} of them suppressed. k counts different persons" in written.getvalue()
    assert "Persons above 0.09" in page
    assert "persons per class" in page
    assert not any(wrong in page for wrong in ("Records above 0.09", "records per class", "for the mean record"))


def test_a_comparison_of_records_warns_where_identifiers_repeat(direct: CommandLine) -> None:
    columns_: dict[str, Any] = columns(person=[], identifiers=["person"], insensitive="rest")
    ended = direct("compare", job(direct.folder, TABLE.drop_columns(["note", "born"]), columns=columns_), "--methods", "skald")
    assert ended.returncode == 0, ended.stderr
    assert "1 identifier repeats" in " ".join(ended.stdout.split())
    page = (direct.folder / "releases-comparison" / "methods.html").read_text()
    assert "1 identifier repeats" in page
    assert "Records above 0.09" in page
