"""Figures of untreated columns are those of the source, into however many chunks it is cut."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.job.job import load_job
from schemas.release.figures import PassedColumn
from tasks.counting.untreated_figures import measure_untreated_columns
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tests.house.replaced import FIGURES_FEW_FILES, FIGURES_MOST_LOOKED_AT
from tests.jobs import job_of, people, people_job

ROWS, LOOKED_AT = 400, 7
TEXTS = [f"house {number % 90} {'long ' * (number % 7)}" for number in range(ROWS)]
TABLE = people(ROWS).append_column("contact", pa.array(TEXTS))
COLUMNS = job_of()["columns"] | {"insensitive": ["visits", "score", "note", "contact"]}


def figures(path: Path, chunk_rows: int) -> tuple[dict[str, PassedColumn], object]:
    """Return what a run finds in the untreated columns, and what it takes of their lengths."""
    with open_run(load_job(path, (f"chunk_rows={chunk_rows}", f"work=work-{chunk_rows}"))) as run:
        found, source = measure_untreated_columns(run, read_source(run))
        return found, (source.text_bytes, source.own_texts)


@pytest.mark.parametrize("few_files", [0, 64], ids=["in DuckDB", "column by column"])
def test_chunks_give_the_figures_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_files: int) -> None:
    """More values than are looked at: of every chunk's sample a part is left over."""
    monkeypatch.setattr(FIGURES_MOST_LOOKED_AT, LOOKED_AT)
    job = people_job(tmp_path, TABLE, columns=COLUMNS)
    expected = figures(job, ROWS)
    monkeypatch.setattr(FIGURES_FEW_FILES, few_files)
    assert figures(job, 10) == expected
    contact = expected[0]["contact"]
    alone = sum(TEXTS.count(text) == 1 for text in TEXTS)
    assert (contact.distinct, contact.unique_records, contact.values) == (len({*TEXTS}), alone, ROWS)
    assert contact.looked_at == LOOKED_AT
