"""Visits are those of patients who come once or often, and change a little between two visits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from data.medical import make_medical
from data.visits import COLUMNS, VISITS_PER_PERSON, make_visits

ROWS = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("visits")
    make_visits(made / "one", ROWS, 1, 3)
    make_medical(made / "patients", ROWS // VISITS_PER_PERSON, 1, 3)
    return made


def test_everybody_comes_and_some_come_often(folder: Path) -> None:
    counts = pl.read_parquet(folder / "one")["patient_id"].value_counts()["count"].to_numpy()
    assert (len(counts), counts.sum()) == (ROWS // VISITS_PER_PERSON, ROWS)
    assert counts.min() == 1
    assert counts.max() > 20 * counts.mean()
    assert np.median(counts) < counts.mean()


def test_a_visitor_is_a_patient_a_little_older_who_may_have_moved(folder: Path) -> None:
    visits = pl.read_parquet(folder / "one")
    assert visits.columns == list(COLUMNS)
    both = visits.join(pl.read_parquet(folder / "patients"), "patient_id", suffix="_first", validate="m:1")
    assert both.height == ROWS
    assert (both["blood_group"].cast(str) == both["blood_group_first"].cast(str)).all()
    older = both["age"] - both["age_first"]
    assert older.is_between(0, 2).all()
    for name, share in (("pin_code", 0.1), ("profession", 0.05)):
        stayed = both.select(pl.col(name).cast(str) == pl.col(f"{name}_first").cast(str)).to_series().mean()
        assert isinstance(stayed, float)
        assert 1 - share - 0.01 < stayed < 1


def test_files_hold_the_same_visits_however_many_they_are(folder: Path) -> None:
    many = make_visits(folder / "many", ROWS, 4, 3)
    assert pl.read_parquet(folder / "one").equals(pl.concat([pl.read_parquet(path) for path in many]))
    assert not pl.read_parquet(folder / "one").equals(pl.read_parquet(make_visits(folder / "other", ROWS, 1, 4)))


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    for rows, files, seed in [(0, None, 0), (2, 3, 0), (5, None, -1)]:
        with pytest.raises(ValueError):
            make_visits(tmp_path, rows, files, seed)
    make_visits(tmp_path, 10, 5)
    with pytest.raises(ValueError, match=r"'visits-00003.parquet'"):
        make_visits(tmp_path, 10, 2)
