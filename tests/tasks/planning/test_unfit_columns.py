"""Columns of types that a run neither coarsens nor shares are drafted as withheld, with the reason, so that the draft runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from core.formats.proposals import ColumnProfile, propose_role
from schemas.errors.base import SourceError
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tasks.planning.draft import draft_job
from tasks.planning.open_sources import SourceOptions
from tasks.planning.plan import make_plan
from tasks.planning.profiles import NOT_FINITE
from tasks.planning.samples import AS_IT_IS, UNPUBLISHABLE, unfit_columns
from tasks.relational.draft import draft_tables

ROWS = 60


def column(values: list[object], dtype: pa.DataType) -> pa.Array:
    """Return a column in which three values come again and again."""
    return pa.array([values[row % len(values)] for row in range(ROWS)], dtype)


WITHHELD: Mapping[str, tuple[pa.Array, str]] = {
    "lasted": (column([0, 1, 2], pa.duration("ms")), AS_IT_IS),
    "lasted_ns": (column([0, 1, 2], pa.duration("ns")), AS_IT_IS),
    "clock": (column([time(8), time(9), time(10)], pa.time64("us")), AS_IT_IS),
    "scanned": (column([b"a", b"b", b"c"], pa.binary()), AS_IT_IS),
    "half": (column([0.5, 1.5, 2.5], pa.float16()), AS_IT_IS),
    "listed": (column([[1], [2], [3]], pa.list_(pa.int64())), UNPUBLISHABLE),
    "parts": (column([{"a": 1}, {"a": 2}, {"a": 3}], pa.struct({"a": pa.int64()})), UNPUBLISHABLE),
    "digits": (column([Decimal(1), Decimal(2), Decimal(3)], pa.decimal256(50, 2)), UNPUBLISHABLE),
    "nothing": (pa.nulls(ROWS), "holds nothing"),
    "height": (column([150.5, float("nan"), 172.5], pa.float64()), NOT_FINITE),
    "weight": (column([70.5, float("inf"), 92.5], pa.float64()), NOT_FINITE),
}
AGES = [20 + row % 6 for row in range(ROWS)]


def test_a_draft_withholds_them_says_why_and_runs(tmp_path: Path) -> None:
    table = pa.table({"age": AGES} | {name: values for name, (values, _) in WITHHELD.items()})
    pq.write_table(table, tmp_path / "people.parquet")
    draft_job(SourceOptions((str(tmp_path / "people.parquet"),)), tmp_path / "job.yaml")
    assert set(load_job(tmp_path / "job.yaml").columns.withheld) == WITHHELD.keys()
    said = dict(re.findall(r"^    - (\w+)  # (.*)$", (tmp_path / "job.yaml").read_text(), re.MULTILINE))
    assert said == {name: reason for name, (_, reason) in WITHHELD.items()}
    # A plan reads the source and refuses types as the run does.
    assert make_plan(load_job(tmp_path / "job.yaml")).records == ROWS


def test_what_is_withheld_for_its_type_is_what_a_run_refuses_to_share(tmp_path: Path) -> None:
    schema = pa.schema([(name, values.type) for name, (values, _) in WITHHELD.items()])
    unfit = unfit_columns(schema)
    assert unfit.keys() == {name for name, (_, reason) in WITHHELD.items() if reason != NOT_FINITE}
    for name in ("lasted", "half", "digits"):
        folder = tmp_path / name
        folder.mkdir()
        pq.write_table(pa.table({"age": AGES, "value": WITHHELD[name][0]}), folder / "people.parquet")
        draft_job(SourceOptions((str(folder / "people.parquet"),)), folder / "job.yaml")
        job = yaml.safe_load((folder / "job.yaml").read_text())
        job["columns"] |= {"withheld": [], "sensitive": [{"name": "value", "publish": "shared"}]}
        (folder / "shared.yaml").write_text(yaml.safe_dump(job))
        with pytest.raises(SourceError, match="which cannot be"):
            make_plan(load_job(folder / "shared.yaml"))


@pytest.mark.parametrize(("name", "role"), [("patient_id", "identifier"), ("visit_id", "key"), ("value", "withheld"), ("age", "withheld")])
def test_a_number_of_people_stays_an_identifier_whatever_its_type(name: str, role: str) -> None:
    proposal = propose_role(ColumnProfile(name, "other", 100, 0))
    assert (proposal.role, proposal.publish_setting, proposal.question) == (role, None, None)
    assert proposal.reason.endswith("of a type that can be neither coarsened nor shared")


def test_measures_with_values_that_are_no_numbers_are_shared(tmp_path: Path) -> None:
    """What others hardly know is published by values of k people; NaN and infinity are then no values."""
    measures = {"glucose": column([5.5, float("nan"), 7.5], pa.float64()), "score_7": column([0.5, float("-inf"), 2.5], pa.float32())}
    pq.write_table(pa.table({"age": AGES} | measures), tmp_path / "people.parquet")
    draft_job(SourceOptions((str(tmp_path / "people.parquet"),)), tmp_path / "job.yaml")
    job = load_job(tmp_path / "job.yaml")
    assert job.columns.ways == dict.fromkeys(measures, "shared")
    assert make_plan(job).records == ROWS


@pytest.mark.parametrize(("name", "role"), [("age", "withheld"), ("glucose", "sensitive"), ("patient_id", "identifier")])
def test_a_column_that_no_bin_takes_is_proposed_by_no_bins(name: str, role: str) -> None:
    proposal = propose_role(ColumnProfile(name, "double", 100, 90, span=50.0, even=0.1, obstacle=NOT_FINITE))
    assert (proposal.role, proposal.hierarchy) == (role, None)


def test_a_draft_of_several_tables_withholds_them_and_says_why(tmp_path: Path) -> None:
    persons = pa.table({"person_id": range(ROWS), "age": AGES, "lasted": WITHHELD["lasted"][0]})
    visits = pa.table({"visit_id": range(ROWS), "person_id": range(ROWS), "parts": WITHHELD["parts"][0]})
    for name, table in {"person": persons, "visit": visits}.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
    draft_tables([tmp_path / "person", tmp_path / "visit"], tmp_path / "job.yaml")
    tables = load_tables_job(tmp_path / "job.yaml").tables
    assert (tables["person"].columns.withheld, tables["visit"].columns.withheld) == (["lasted"], ["parts"])
    text = (tmp_path / "job.yaml").read_text()
    assert f"- lasted  # {AS_IT_IS}\n" in text
    assert f"- parts  # {UNPUBLISHABLE}\n" in text
