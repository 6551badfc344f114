"""Texts that differ in case or blanks alone are one value to a drafted hierarchy, to the pilot runs and to the run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.column_types import ALL
from core.columns.domains import Domain
from core.formats.proposals import Proposal, propose_role
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tasks.planning.draft import draft_job
from tasks.planning.listed_hierarchies import with_drafted_hierarchies
from tasks.planning.open_sources import SourceOptions, open_for_draft, profile_source
from tasks.planning.pilot_runs import normalised_domain
from tasks.planning.plan import make_plan
from tasks.relational.draft import draft_tables
from tasks.relational.plan import plan_tables

PLAIN, CASES, BLANKS = ["Bonn", "Ulm", "Wien"], ["Bonn", "BONN", "Ulm", "Wien"], ["Bonn", " Bonn", "Ulm", "Wien"]


def drafted(folder: Path, values: list[str], counts: list[int]) -> Proposal:
    """Return what is proposed for a column of towns, with its hierarchy."""
    towns = [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
    pq.write_table(pa.table({"town": towns}), folder / "people.parquet")
    with open_for_draft(SourceOptions((str(folder / "people.parquet"),)), folder / "job.yaml") as front:
        [profile], *_ = profile_source(front)
        [proposal], _ = with_drafted_hierarchies(front, [propose_role(profile)], folder / "job.yaml")
    return proposal


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        (PLAIN, ()),
        (CASES, ("case",)),
        (BLANKS, ("space",)),
        ([*CASES, "bonn "], ("case", "space")),
        (["Bonn", "bonn ", "Ulm"], ("case", "space")),
    ],
)
def test_spellings_of_one_value_are_normalised(tmp_path: Path, values: list[str], steps: tuple[str, ...]) -> None:
    assert drafted(tmp_path, values, [100] * len(values)).normalise == steps


def test_a_drafted_file_lists_each_value_once_and_is_used_again(tmp_path: Path) -> None:
    values, counts = ["Bonn", "BONN", "Linz", "Ulm", "ulm", "Wien"], [400, 400, 5, 2, 3, 500]
    first = drafted(tmp_path, values, counts)
    assert (tmp_path / "hierarchies" / "town.csv").read_text().split() == ["bonn;bonn;*", "linz;other;*", "ulm;other;*", "wien;wien;*"]
    again = drafted(tmp_path, values, counts)
    assert (again.hierarchy, again.normalise, again.hint) == (first.hierarchy, ("case",), "a file that was there")


@given(
    st.dictionaries(st.sampled_from(["a", "A", " a", "a  b", "A b", "", " ", "-"]), st.integers(1, 9)),
    st.sampled_from([(), ("case",), ALL]),
)
def test_a_normalised_domain_counts_each_value_once(counts: dict[str, int], steps: tuple[str, ...]) -> None:
    texts = sorted(counts)
    given = Domain("q", pa.array(texts, pa.string()), np.array([counts[text] for text in texts], np.int64), 2)
    found = normalised_domain(given, steps)
    expected: Counter[str | None] = Counter({None: 2})
    for text in texts:
        folded = text.lower() if "case" in steps else text
        folded = " ".join(folded.split()) if "space" in steps else folded
        expected[None if "empty" in steps and folded in {"", "-"} else folded] += counts[text]
    assert (found.nulls, found.values.to_pylist()) == (expected.pop(None), sorted(text for text in expected if text is not None))
    assert dict(zip(found.values.to_pylist(), found.counts.tolist(), strict=True)) == expected


def test_a_draft_with_normalised_texts_is_tried_and_runs(tmp_path: Path) -> None:
    table = pa.table({"sex": ["F", "M", "f", "m", "männlich "] * 12, "race": ["white", "White", "Black"] * 20})
    pq.write_table(table, tmp_path / "people.parquet")
    made = draft_job(SourceOptions((str(tmp_path / "people.parquet"),)), tmp_path / "job.yaml")
    assert made.gcp is not None
    job = load_job(tmp_path / "job.yaml")
    assert job.columns.normalised == {"sex": ["case"], "race": ["case"]}
    assert make_plan(job).records == 60


def test_a_draft_of_several_tables_says_how_their_texts_are_read(tmp_path: Path) -> None:
    persons = list(range(60))
    for name, table in {
        "person": {"person_id": persons, "sex": ["F", "M", "f", "m", "männlich "] * 12},
        "visit": {"visit_id": list(range(100, 160)), "person_id": persons, "ward": ["a", "b"] * 30},
    }.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(table), tmp_path / name / "0.parquet")
    draft_tables([tmp_path / "person", tmp_path / "visit"], tmp_path / "job.yaml")
    [sex] = load_tables_job(tmp_path / "job.yaml").tables["person"].columns.quasi_identifiers
    assert (sex.name, list(sex.normalise)) == ("sex", ["case"])
    plan_tables(load_tables_job(tmp_path / "job.yaml"))
