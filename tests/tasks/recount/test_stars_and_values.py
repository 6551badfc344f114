"""What of a column is a star, a value as it was or of the wrong type is told by what its files hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.job import Job
from tasks.recount import original as originals
from tasks.recount import published_labels
from tasks.recount.original import Original
from tasks.recount.rows import WRONG_COLUMNS, column_faults_of
from tests.jobs import job_of

COLUMNS = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2]}}], "sensitive": ["disease"]}


def test_a_star_is_a_text_or_two_bounds_that_are_open() -> None:
    both = [pa.array([None, 1, None]), pa.array([None, 2, 3])]
    assert published_labels._stars(both).tolist() == [True, False, False]
    for kind in (pa.string(), pa.large_string()):
        assert published_labels._stars([pa.array(["*", "a", None], kind)]).tolist() == [True, False, False]
    assert published_labels._stars([pa.array([1, None])]).tolist() == [False, False]


@pytest.mark.parametrize(("shown", "kept"), [([1, 2], True), ([9, 2], False), ([1, 9], False), ([1, 2, 7], True)])
def test_labels_are_the_values_only_where_each_is_including_the_first(shown: list[int], kept: bool) -> None:
    owners = np.array([0, 1], np.int32)
    assert published_labels._is_kept(pa.array([1, 2]), pa.array(shown), owners) is kept
    assert not published_labels._is_kept(pa.array([1, 2]), pa.array(shown, pa.int32()), owners)


@pytest.mark.parametrize("suppression", [{"treatment": "mask"}, {"treatment": "drop"}, {"treatment": "drop", "rounds": 1}], ids=str)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int64(), pa.binary(), pa.bool_()], ids=str)
def test_a_column_that_may_hold_stars_or_groups_of_several_levels_is_one_of_text(
    tmp_path: Path, suppression: dict[str, Any], kind: pa.DataType
) -> None:
    job = Job.model_validate(job_of(columns=COLUMNS, suppression={"limit": 0.1} | suppression))
    right = suppression == {"treatment": "drop"} or kind in (pa.string(), pa.large_string(), pa.string_view())
    path = tmp_path / "data" / "0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"age": pa.nulls(2, kind), "disease": ["flu", "gout"]}), path)
    assert column_faults_of(job, [path]) == ([] if right else [WRONG_COLUMNS])


def test_persons_of_a_source_are_counted_once_and_nobody_is_none() -> None:
    job = Job.model_validate(job_of(columns=COLUMNS | {"person": ["who"]}))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE source AS SELECT unnest([1, 1, 2, NULL, 3, 2]) AS who")
        original = Original("source", pa.schema([("who", pa.int32())]))
        assert originals._persons(job, connection, original) == 3
        assert originals._persons(Job.model_validate(job_of(columns=COLUMNS)), connection, original) is None


@pytest.mark.parametrize(
    ("kind", "floating"), [(pa.float32(), True), (pa.float64(), True), (pa.int32(), False), (pa.string(), False)], ids=str
)
@pytest.mark.parametrize("coded", [False, True])
def test_persons_are_numbers_with_a_point_whether_or_not_a_dictionary_holds_them(kind: pa.DataType, floating: bool, coded: bool) -> None:
    job = Job.model_validate(job_of(columns=COLUMNS | {"person": ["who", "where"]}))
    columns = pa.schema([("where", pa.int64()), ("who", pa.dictionary(pa.int32(), kind) if coded else kind)])
    assert Original("source", columns).persons(job) == {'"who"': floating, '"where"': False}
    assert Original("source", columns).type_of("who") == kind
