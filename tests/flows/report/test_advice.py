"""What a run and its report say where one level for each whole column withholds columns."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from schemas.job.job import load_job
from schemas.release.manifest import Manifest
from tasks.report.criteria import advice_sentences
from tests.command_line import CommandLine
from tests.conftest import Anonymise
from tests.flows.lattice.test_objectives import job
from tests.flows.report.test_report import report_of
from tests.jobs import people_job


def advice(manifest: Manifest) -> tuple[str, ...]:
    """What is advised of a manifest that kept its job."""
    return advice_sentences(manifest)


@pytest.mark.ci
def test_columns_that_are_withheld_are_named_with_the_line_to_write(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path), "method={name: skald, objective: dm_star, node: [1, 1, 3]}", "suppression.limit=0.9")
    first, second, third = advice(made.manifest)
    assert first == "'sex' and 'zip' are withheld in every record."
    assert "objective: gcp" in second
    assert f"{made.manifest.loss['gcp']:.2f} of GCP" in third
    report, page = report_of(made.folder)
    assert report.advice == (first, second, third)
    assert all(sentence in page.text for sentence in report.advice)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("setting", ["method={name: skald, objective: gcp}", 'method={name: skald, objective: gcp, weights: {"zip": 3}}'])
def test_each_line_that_is_advised_is_one_that_a_job_takes(anonymise: Anonymise, tmp_path: Path, setting: str) -> None:
    path = job(tmp_path)
    sentences = " ".join(advice(anonymise(path, setting, "privacy.k=100").manifest))
    assert "raise its weight, as in method.weights: {" in sentences
    weights = yaml.safe_load(sentences.partition("method.weights: ")[2].partition(".")[0])
    assert load_job(path, ["method.objective=gcp", f"method.weights={weights}"])
    method = sentences.partition("method: {")[2].partition("}")[0]
    assert load_job(path, [f"method={{{method}}}"]).method.name == "mondrian"


@pytest.mark.ci
def test_where_levels_are_named_no_weight_is_advised(anonymise: Anonymise, tmp_path: Path) -> None:
    sentences = " ".join(advice(anonymise(job(tmp_path), "method={name: skald, node: [1, 1, 3]}", "suppression.limit=0.9").manifest))
    assert "leave method.node out" in sentences
    assert "method.weights" not in sentences


@pytest.mark.ci
@pytest.mark.parametrize("local", ["suppression.treatment=cell", "suppression.rounds=2"])
def test_a_comparison_that_is_advised_takes_the_job_whatever_its_suppression(anonymise: Anonymise, tmp_path: Path, local: str) -> None:
    path = job(tmp_path)
    sentences = " ".join(advice(anonymise(path, "privacy.k=100", local).manifest))
    words = shlex.split(sentences.partition("skald compare JOB ")[2].rstrip("."))
    settings = [setting for option, setting in pairwise(words) if option == "--set"]
    assert load_job(path, [local, *settings]).method.name == "mondrian"


@pytest.mark.ci
def test_nothing_is_advised_where_enough_is_kept_or_where_classes_have_labels_of_their_own(anonymise: Anonymise, tmp_path: Path) -> None:
    kept = anonymise(job(tmp_path / "kept"), "method.node=[0, 1, 0]", "suppression.limit=0.99", "privacy.k=2").manifest
    assert kept.loss["gcp"] < 0.5
    assert advice(kept) == ()
    assert advice(anonymise(job(tmp_path / "other"), "method={name: mondrian}").manifest) == ()


@pytest.mark.ci
def test_a_run_ends_with_what_to_do_next(direct: CommandLine, tmp_path: Path) -> None:
    said = direct("run", job(tmp_path), "--set", "privacy.k=100").stdout
    assert "withheld in every record" in said
    assert "skald compare JOB --methods skald,mondrian" in said


@pytest.mark.slow
def test_classes_that_stay_whole_for_a_refused_cut_are_told_with_the_line_and_its_price(anonymise: Anonymise, tmp_path: Path) -> None:
    """The first column is the better one to cut by and tells the secret; the second does not."""
    rows = [(half, other, f"secret {half}") for half in range(2) for other in range(200) for _ in range(2)]
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(("half", "other", "secret"))})
    qids = [{"name": "half", "hierarchy": {"widths": [2]}}, {"name": "other", "hierarchy": {"widths": [100]}}]
    asked = {
        "columns": {"quasi_identifiers": qids, "sensitive": ["secret"]},
        "privacy": {"k": 2, "l": {"secret": {"distinct": 2}}},
        "suppression": {"limit": 0},
    }

    def made(folder: str, **method: str) -> tuple[str, ...]:
        path = people_job(tmp_path / folder, table, method={"name": "mondrian", **method}, **asked)
        return advice(anonymise(path).manifest)

    [sentence] = made("stop")
    assert "A record is in a class of 400 on average, where k asks for 2" in sentence
    assert "method.refused: next" in sentence
    assert "can learn whose values refused one" in sentence
    assert made("next", refused="next") == ()
