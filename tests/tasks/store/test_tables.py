"""Tables that pass between steps hold what their schemas say, and one that does not is refused before it is written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.errors import SchemaErrors

from schemas.errors.base import StorageError
from tasks.store.tables import TableSchema, domain_schema, histogram_schema, write_table

COLUMNS = {"qid": pa.int16(), "count": pa.int64(), "value_0": pa.string(), "value_1": pa.float64()}
ROWS = st.tuples(
    st.sampled_from([0, 1, 1, 2, -1, None]),
    st.sampled_from([1, 1, 1, 5, 0, None]),
    st.sampled_from(["a", "b", "c", "d", "e", None]),
    st.sampled_from([0.5, 1.5, 2.5, 3.5, None]),
)


def table_of(rows: list[tuple[object, ...]], types: dict[str, pa.DataType]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [() for _ in types]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, types.values(), strict=True)], names=list(types))


def refused_by_pandera(table: pa.Table, schema: TableSchema) -> bool:
    try:
        schema.pandera().validate(pl.DataFrame(table), lazy=True)
    except SchemaErrors:
        return True
    return False


def refused(table: pa.Table, schema: TableSchema, folder: Path) -> bool:
    try:
        write_table(folder / "table.parquet", table, schema, "domain")
    except StorageError:
        return True
    return False


@given(st.lists(ROWS, max_size=6))
def test_what_is_refused_is_what_pandera_refuses(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]]) -> None:
    table, schema = table_of(rows, COLUMNS), domain_schema(["value_0", "value_1"])
    assert refused(table, schema, tmp_path_factory.getbasetemp()) == refused_by_pandera(table, schema)


def test_other_columns_or_types_are_refused(tmp_path: Path) -> None:
    table = pa.table({"cell_0": pa.array([3, 4], pa.int64()), "count": pa.array([1, 2], pa.int64())})
    assert not refused(table, histogram_schema(1), tmp_path)
    assert refused(table, histogram_schema(2), tmp_path)
    assert refused(table.append_column("cell_1", table["count"]), histogram_schema(1), tmp_path)
    assert refused(table.set_column(1, "count", pa.array([1, 2], pa.int32())), histogram_schema(1), tmp_path)


def test_a_refusal_names_checks_and_no_value(tmp_path: Path) -> None:
    rows = [(0, 1, "canary", None), (0, 2, "canary", None), (1, -7654321, None, 0.5)]
    with pytest.raises(StorageError) as error:
        write_table(tmp_path / "table.parquet", table_of(rows, COLUMNS), domain_schema(["value_0", "value_1"]), "domain")
    assert "greater_than_or_equal_to" in str(error.value)
    assert "canary" not in str(error.value)
    assert "7654321" not in str(error.value)
    assert not (tmp_path / "table.parquet").exists()
