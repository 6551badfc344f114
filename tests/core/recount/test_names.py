"""A recount does not depend on what columns are called: not on names that its own statements use, not on upper and lower case."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.recount.classes import column_faults
from schemas.errors.base import SourceError, StorageError
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.privacy import Privacy
from tests.core.recount.test_classes import job

QIDS = [1] * 101 + [2] * 100
VALUES = ["flu"] * 100 + ["gout"] + ["flu", "gout"] * 50


def counted(qid: str, sensitive: str, statement: str) -> Any:
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({qid: QIDS, sensitive: VALUES, "other": ["x"] * 201}))
        whole = pa.table({"value": ["flu", "gout"], "records": [150, 51], "place": [0, 1]})
        connection.register("whole", whole)
        return connection.execute(statement).fetchone()


@pytest.mark.few(10)
@pytest.mark.parametrize("name", ["r", "R", "s", "value", "class", "Class", "records", "falling", "extra", "qid_0", "share"])
@pytest.mark.parametrize("diversity", [{"distinct": 2}, {"entropy": 1.9}, {"recursive": {"c": 3, "l": 2}}])
def test_names_change_no_count_of_diversity(name: str, diversity: dict[str, Any]) -> None:
    [(kind, _, spec)] = Privacy.model_validate({"k": 1, "l": {"t": diversity}}).models
    plain = counted("q", "t", kind.statement("rows", ['"q"'], '"t"', spec, 0))
    assert counted(name, "t", kind.statement("rows", [f'"{name}"'], '"t"', spec, 0)) == plain
    assert counted("q", name, kind.statement("rows", ['"q"'], f'"{name}"', spec, 0)) == plain
    assert plain[0] == (0 if "distinct" in diversity else 1)


@pytest.mark.parametrize("name", ["r", "value", "class", "Class", "place", "extra", "qid_0", "share"])
@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_names_change_no_count_of_closeness(name: str, distance: str) -> None:
    [(kind, _, spec)] = Privacy.model_validate({"k": 1, "t": {"t": {"t": 0.2, "distance": distance}}}).models
    plain = counted("q", "t", kind.statement("rows", ['"q"'], '"t"', spec, 0))
    assert counted(name, "t", kind.statement("rows", [f'"{name}"'], '"t"', spec, 0)) == plain
    assert counted("q", name, kind.statement("rows", ['"q"'], f'"{name}"', spec, 0)) == plain
    assert plain[0] == 2


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    assert column_faults(job(), ["Age", "age"]) == ["columns of the data files differ in nothing but upper and lower case"]


@pytest.mark.parametrize("path", ["/d/name=O'Brien/p.parquet", "/d/home town=O'Brien/p.parquet", "d/region=O'Brien", "s3://b/x=O'Brien"])
def test_no_value_of_a_partition_is_told_whatever_it_holds(path: str) -> None:
    for error in (
        SourceError.unreadable(path, "parquet"), SourceError.changed(path), SourceError.no_files(path), SourceError.own_files(1, path),
        SourceError.same_files([path], 2, path, path), SourceError.schemas_differ(path, path, ["a"]), SourceError.bad_rows(path, ["x"]),
        SourceError.no_common_type("a", "text", path, "date", path), SourceError.not_exact("a", path, "date"),
        StorageError.not_writable(path, "gone"), ValuesError.not_utf8("a", path, 1), FileError.unsupported_format(path, "a picture"),
    ):  # fmt: skip
        assert "Brien" not in str(error)
        assert "=…" in str(error)


def test_folders_of_partitions_are_not_told() -> None:
    assert "HIV" not in str(SourceError.unreadable("data/diag=HIV/day=1/p.parquet", "parquet"))
    assert "diag=…/day=…/p.parquet" in str(SourceError.unreadable("data/diag=HIV/day=1/p.parquet", "parquet"))
