"""A hierarchy file is one and the same in all steps of a run: one that changes meanwhile is refused, and nothing of it is kept."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import job_digest, load_job
from tests.conftest import CommandLine
from tests.flows.source.test_stable_files import released, stopped
from tests.jobs import digests, job_of, people, write_job, write_parquet

K = ("--set", "privacy.k=4")
COLUMNS = {
    "identifiers": ["person", "age", "zip", "height", "smoker", "born", "note", "score", "visits"],
    "quasi_identifiers": [{"name": "sex", "hierarchy": {"csv": "sex.csv"}}],
    "sensitive": ["disease"],
}
FINE, COARSE = "f;A\nm;A\nx;B\n", "f;A\nm;B\nx;B\n"


def job_in(folder: Path) -> Path:
    job = write_job(folder, job_of(columns=COLUMNS))
    write_parquet(folder / "people", people(300))
    (folder / "sex.csv").write_text(FINE)
    return job


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["digests.json", "domains/*.record", "histograms/*.record", "outcome/*.record", "runs/*.record"])
def test_a_hierarchy_that_changes_in_a_run_is_refused_and_leaves_nothing(direct: CommandLine, tmp_path: Path, moment: str) -> None:
    job_in(tmp_path)
    done = direct("run", "job.yaml", *K, "--set", "work=other", "--set", "target=kept")
    assert done.returncode == 0, done.stderr
    with stopped(direct, moment, "run", "job.yaml", *K) as process:
        (tmp_path / "sex.csv").write_text(COARSE)
    said = process.communicate()[1]
    assert (process.returncode, "hierarchy file 'sex.csv' changed while it was being read" in said) == (2, True), said
    assert not list((tmp_path / "releases").glob("*"))
    (tmp_path / "sex.csv").write_text(FINE)
    again = direct("run", "job.yaml", *K)
    assert again.returncode == 0, again.stderr
    [undisturbed] = (tmp_path / "kept").glob("people-*")
    assert released(tmp_path) == digests(undisturbed)


def test_a_worker_elsewhere_knows_which_hierarchy_the_run_began_with(tmp_path: Path) -> None:
    job = load_job(job_in(tmp_path))
    job_digest(job)
    elsewhere = pickle.loads(pickle.dumps(job))
    assert elsewhere == load_job(tmp_path / "job.yaml")
    (tmp_path / "sex.csv").write_text(COARSE)
    for known in (job, elsewhere):
        with pytest.raises(HierarchyError, match="changed while it was being read"):
            job_digest(known)
    assert job_digest(load_job(tmp_path / "job.yaml"))
