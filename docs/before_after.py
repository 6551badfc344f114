"""Draws records of the demo's patients before and after, by a run of the demo's own job.

``python -m docs.before_after`` writes docs/images/before-after.svg. The patients are synthetic.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

import skald
from core.charts.chart import Picture, paint, text, width_of
from core.columns.domains import Domain
from core.hierarchies.hierarchy import build_hierarchy
from flows.demo import make_patients
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import load_job

PICTURE = Path(__file__).resolve().parent / "images" / "before-after.svg"
PATIENTS, SHOWN = 1_000_000, 4
ROW, HEAD, GAP = 26, 34, 22
NAMES = {
    "patient_id": "id",
    "name": "name",
    "blood_group": "blood",
    "profession": "profession",
    "age": "age",
    "bmi": "BMI",
    "pin_code": "PIN code",
}
Rows = Sequence[Sequence[str]]


def both_tables() -> tuple[Rows, Rows, int]:
    """Return some patients, the same as they are published, and how many people share what is published of them.

    Returns:
        Rows of texts, the first one the heads: before with id and name, after without.
    """
    with tempfile.TemporaryDirectory() as name:
        path = make_patients(Path(name), PATIENTS)
        made, job = skald.run(path), load_job(path)
        frame = pl.read_parquet(Path(name, "medical", "*.parquet"))
        labels = [published(qid, frame[qid.name], made.manifest["levels"][qid.name], job.folder) for qid in job.columns.quasi_identifiers]
        combinations = list(zip(*labels, strict=True))
        counts = Counter(combinations)
        # The first class that is of a size near k: one that a reader can picture.
        wanted = next(one for one in combinations if 50 <= counts[one] <= 80)
        rows = [place for place, one in enumerate(combinations) if one == wanted][:SHOWN]
        before = [[str(frame[column][place]) for column in NAMES] for place in rows]
        disease = [str(frame["health_condition"][place]) for place in rows]
        after = [[*wanted, ill] for ill in disease]
    heads = list(NAMES.values())
    return (
        [[*heads, "illness"], *([*row, ill] for row, ill in zip(before, disease, strict=True))],
        [[*heads[2:], "illness"], *after],
        counts[wanted],
    )


def published(qid: QuasiIdentifier, column: pl.Series, level: int, folder: Path) -> list[str]:
    """Return the label of each value of a column at a level of its hierarchy."""
    counted = column.value_counts().sort(column.name)
    values = counted[column.name].to_list()
    found = counted[column.name].to_arrow()
    found = found.cast(pa.string()) if column.dtype == pl.String else found
    domain = Domain(qid.name, found, counted["count"].cast(pl.Int64).to_numpy(), 0)
    ladder = build_hierarchy(qid, domain, folder)
    texts = [str(label) for label in ladder.labels[level].to_pylist()]
    label_of = {value: texts[group] for value, group in zip(values, ladder.groups[level].tolist(), strict=True)}
    return [label_of[value] for value in column.to_list()]


def table(title: str, says: str, rows: Rows, hidden: int) -> Picture:
    """Return a table as a picture; the first ``hidden`` columns are those that are not published."""
    widths = [max(width_of(row[place]) for row in rows) + GAP for place in range(len(rows[0]))]
    starts = np.cumsum([8, *widths]).tolist()
    parts = [text(8, 14, title, bold=True), text(8, 32, says, "soft")]
    for line, row in enumerate(rows):
        y = HEAD + 24 + line * ROW
        parts += [
            text(starts[place], y, cell, "soft" if line == 0 or place < hidden else "ink", bold=line == 0) for place, cell in enumerate(row)
        ]
        parts.append(f"<path d='M8 {y + 8:.1f}H{starts[-1]:.1f}' {paint(None, 'grid')}/>")
    return Picture(title, says, starts[-1] + 8, HEAD + 24 + len(rows) * ROW, "".join(parts))


def before_after() -> Picture:
    """Return both tables side by side."""
    before, after, share = both_tables()
    drawn = [
        table("Before", "Four patients. 99 of 100 are unique.", before, 2),
        table("After, at k = 50", f"The same four. {share} people share these labels.", after, 0),
    ]
    lower = f"<g transform='translate(0 {drawn[0].height + 12:g})'>{drawn[1].body}</g>"
    height = drawn[0].height + drawn[1].height + 12
    return Picture(
        "Patients before and after", "Two tables: patients, and what is published of them.", drawn[0].width, height, drawn[0].body + lower
    )


if __name__ == "__main__":
    PICTURE.write_text(before_after().alone(), "utf-8")
