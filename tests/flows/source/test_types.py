"""What real tables hold comes out as it went in: every type in every role, nulls too, for every format that can hold it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError
from tests.conftest import Anonymise
from tests.corpus.columns_of_types import FAMILIES, NESTED, OTHERS, Kind, columns_of, table_of
from tests.jobs import job_of, write_job

CASES = [(family, name, role) for family, kinds in FAMILIES.items() for name in kinds for role in ("q", "s", "i")]
Made = dict[str, tuple[pa.Table, pa.Table]]


def rows_of(table: pa.Table, columns: list[str]) -> Counter[Any]:
    """Count records as Python has them."""
    return Counter(zip(*(map(repr, table[name].to_pylist()) for name in columns), strict=True))


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Source and release of each family of types, as they are read back from Parquet."""
    found = {}
    for family, kinds in FAMILIES.items():
        folder = tmp_path_factory.mktemp(family)
        pq.write_table(table_of(kinds), folder / "source.parquet", row_group_size=7)
        privacy = {"k": 5} | ({"l": {"s0": {"distinct": 1, "nulls": "value"}}} if family != "others" else {})
        job = job_of(source={"path": "source.parquet"}, columns=columns_of(kinds), suppression={"limit": 0}, privacy=privacy)
        release = anonymise(write_job(folder, job), "chunk_rows=10")
        assert not any(release.manifest.node or ())
        found[family] = pq.read_table(folder / "source.parquet"), pq.read_table(release.folder / "data")
    return found


@pytest.mark.ci
@pytest.mark.few(40)
@pytest.mark.parametrize(("family", "name", "role"), CASES)
def test_values_types_and_nulls_are_kept(made: Made, family: str, name: str, role: str) -> None:
    source, release = made[family]
    column = f"{role}{list(FAMILIES[family]).index(name)}"
    dtype = source.schema.field(column).type
    assert release.schema.field(column).type == (dtype.value_type if pa.types.is_dictionary(dtype) else dtype)
    assert rows_of(release, [column]) == rows_of(source, [column])
    assert source[column].null_count == release[column].null_count > 0


@pytest.mark.ci
@pytest.mark.parametrize("family", FAMILIES)
def test_records_are_kept_whole(made: Made, family: str) -> None:
    source, release = made[family]
    assert rows_of(release, source.column_names) == rows_of(source, source.column_names)


def refused(anonymise: Anonymise, folder: Path, kind: Kind, role: str) -> str:
    """Return the sentence that refuses a kind in a role."""
    table = pa.table({"key": pa.array(["x"] * len(kind.column())), "c": kind.column()})
    qids = [{"name": "key", "hierarchy": {"prefix": [1]}}]
    columns: dict[str, Any] = {"quasi_identifiers": qids}
    columns |= {"quasi_identifiers": [*qids, {"name": "c", "hierarchy": {"prefix": [1]}}]} if role == "quasi_identifiers" else {role: ["c"]}
    pq.write_table(table, folder / "source.parquet")
    privacy = {"k": 5, "l": {"c": {"distinct": 1}}} if role == "sensitive" else {"k": 5}
    with pytest.raises(SourceError) as told:
        anonymise(write_job(folder, job_of(source={"path": "source.parquet"}, columns=columns, privacy=privacy)))
    return str(told.value)


@pytest.mark.ci
@pytest.mark.parametrize("name", [*OTHERS, *NESTED])
def test_what_makes_no_sense_as_a_quasi_identifier_is_refused_in_one_sentence(anonymise: Anonymise, tmp_path: Path, name: str) -> None:
    kind = (OTHERS | NESTED)[name]
    assert refused(anonymise, tmp_path, kind, "quasi_identifiers").startswith("Column 'c' is of type ")


@pytest.mark.ci
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_what_cannot_be_published_is_refused_in_one_sentence(anonymise: Anonymise, tmp_path: Path, name: str, role: str) -> None:
    assert refused(anonymise, tmp_path, NESTED[name], role).startswith("Column 'c' is of type ")


@pytest.mark.ci
@pytest.mark.parametrize("way", ["shared", {"top": 1}])
@pytest.mark.parametrize("dtype", [pa.json_(), pa.bool8()])
def test_types_that_are_defined_over_others_are_published_as_they_are_or_not(
    anonymise: Anonymise, tmp_path: Path, dtype: pa.DataType, way: Any
) -> None:
    values = pa.array(["1", "2"] * 10).cast(dtype.storage_type)
    pq.write_table(pa.table({"key": ["x"] * 20, "c": pa.ExtensionArray.from_storage(dtype, values)}), tmp_path / "source.parquet")
    columns = {"quasi_identifiers": [{"name": "key", "hierarchy": {"prefix": [1]}}], "insensitive": [{"name": "c", "publish": way}]}
    with pytest.raises(SourceError, match=r"^Column 'c' is of type extension<arrow\."):
        anonymise(write_job(tmp_path, job_of(source={"path": "source.parquet"}, columns=columns)))
