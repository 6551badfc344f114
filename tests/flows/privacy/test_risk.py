"""The risk in the manifest is that of the files and of the source, counted record by record, and is shown by both commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise, CommandLine
from tests.house.replaced import ROOTS_BYTES_PER_CELL
from tests.jobs import QIDS, class_sizes, job_of, people, people_job, released

TABLE = people(400)
SOURCE = Counter(zip(*(TABLE[qid].to_pylist() for qid in QIDS), strict=True))


def check(figures: Mapping[str, Any], sizes: list[int], suppressed: int) -> None:
    """Compare figures with those of single records."""
    each = [1 / size for size in sizes for _ in range(size)]
    assert figures["records"] == len(each)
    assert (figures["classes"], figures["min_class"], figures["suppressed"]) == (len(sizes), min(sizes), suppressed)
    assert figures["prosecutor_max"] == figures["journalist_max"] == max(each)
    assert figures["prosecutor_mean"] == figures["marketer"] == pytest.approx(sum(each) / len(each))
    assert figures["share_above"] == pytest.approx(sum(risk > 0.09 for risk in each) / len(each))
    assert figures["unique"] == sizes.count(1)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "settings",
    [[], ["privacy.l={disease: {distinct: 2}}"], ["method.root=dense"]],
    ids=["plain", "sensitive values in the cells", "dense root"],
)
@pytest.mark.parametrize("treatment", ["drop", "mask"])
def test_risk_is_that_of_every_record_before_and_after(anonymise: Anonymise, tmp_path: Path, settings: list[str], treatment: str) -> None:
    job = people_job(tmp_path, TABLE, files=2, memory="256MB")
    made = anonymise(job, "suppression.limit=0.2", f"suppression.treatment={treatment}", "chunk_rows=100", *settings)
    manifest, frame = made.manifest, released(made.folder)
    assert manifest.suppressed
    sizes = class_sizes(frame, QIDS)
    if treatment == "mask":
        assert sizes.pop(("*",) * len(QIDS)) == manifest.suppressed
    check(manifest.risk["after"], list(sizes.values()), manifest.suppressed)
    check(made.untold.risk, list(SOURCE.values()), 0)
    assert "before" not in manifest.risk


def test_risk_before_needs_no_root_as_fine_as_the_source(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    untold = anonymise(people_job(tmp_path, TABLE, files=3), "privacy.l={disease: {distinct: 2}}").untold
    assert any(untold.search["root"])
    check(untold.risk, list(SOURCE.values()), 0)


@pytest.mark.ci
def test_an_altered_risk_is_noticed(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    folder = anonymise(job).folder
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["risk"]["after"]["prosecutor_mean"] /= 2
    path.write_text(json.dumps(manifest))
    with pytest.raises(VerificationError, match="the manifest's risk is not that of the classes in the files"):
        verify_release(load_job(job), folder)


@pytest.mark.ci
def test_run_and_verify_show_the_same_risk(direct: CommandLine) -> None:
    columns = job_of()["columns"] | {"insensitive": [], "withheld": ["note", "score", "visits"]}
    job = people_job(direct.folder / "job", TABLE, columns=columns)
    ran = direct("run", job, "--set", "privacy.k=12")
    release = direct.folder / "job" / "releases" / (direct.folder / "job" / "releases" / "CURRENT").read_text().strip()
    checked = direct("verify", release, "--job", job, "--set", "privacy.k=12")
    assert (ran.returncode, checked.returncode) == (0, 0), ran.stderr + checked.stderr
    lines = [[" ".join(line.split()) for line in text.splitlines() if "risk" in line] for text in (ran.stdout, checked.stdout)]
    # What the source was like is told by the run that has counted it.
    assert lines[0][1:] == lines[1]
    assert [line.split(" risk")[0].split("risk ")[-1].split(" ")[0] for line in lines[0]] == ["before", "after", "maximum"]
    assert "keeps 0.09" in lines[0][2]
    figures = json.loads(direct("verify", release, "--job", job, "--json").stdout)["risk"]
    assert figures == json.loads((release / "manifest.json").read_text())["risk"]["after"]
