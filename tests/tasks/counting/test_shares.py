"""Values that tasks of a cluster sum up by share give the figures of one sum, to the byte."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.job.job import load_job
from tasks.counting import untreated
from tasks.counting.untreated import measure_untreated_columns
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tests.house.replaced import FIGURES_MOST_LOOKED_AT
from tests.jobs import job_of, people, people_job

ROWS = 400
TABLE = people(ROWS).append_column("contact", pa.array([f"house {number % 90} {'long ' * (number % 7)}" for number in range(ROWS)]))
COLUMNS = job_of()["columns"] | {"insensitive": ["visits", "score", "note", "contact"]}


def looked(path: Path, work: str) -> tuple[bytes, object, list[str]]:
    """Return the figures of a job's columns as they are kept, what the run takes from them, and which steps left artefacts."""
    with open_run(load_job(path, ("chunk_rows=10", f"work={work}"))) as run:
        found, source = measure_untreated_columns(run, read_source(run))
        [made] = (run.store.folder / "passthrough").glob("*.json")
        steps = sorted(folder.name for folder in run.store.folder.iterdir())
        return made.read_bytes(), (made.name, found, source.text_bytes, source.own_texts), steps


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("files", [3, 1])
def test_shares_give_the_figures_of_one_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    job = people_job(tmp_path, TABLE, files=files, columns=COLUMNS)
    expected = looked(job, "here")
    monkeypatch.setattr(untreated, "count_remote_workers", lambda: 2)
    found = looked(job, "shares")
    assert found[:2] == expected[:2]
    assert sorted({*found[2]} - {*expected[2]}) == ["values_apart"]


@pytest.mark.slow
def test_what_is_looked_at_are_values_of_least_digest_whatever_is_summed_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than are looked at: of every group's sample a part is left over."""
    monkeypatch.setattr(FIGURES_MOST_LOOKED_AT, 7)
    job = people_job(tmp_path, TABLE, columns=COLUMNS)
    expected = looked(job, "here")
    monkeypatch.setattr(untreated, "count_remote_workers", lambda: 2)
    assert looked(job, "shares")[:2] == expected[:2]
