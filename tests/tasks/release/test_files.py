"""The data files of a release are found and read back as what they were written as, or not at all."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from schemas.errors.base import StorageError
from tasks.release.files import Csv, data_files, partition_of, relation_of


def test_folders_above_a_release_are_no_columns_of_it() -> None:
    assert partition_of(Path("/data/year=2020/people-0/data/sex=f/part-00001.parquet")) == (("sex", "f", "text"),)
    assert partition_of(Path("/data/year=2020/people-0/data/part-00001.parquet")) == ()


def test_files_of_two_formats_are_no_release(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("part-00001.parquet", "part-00002.csv"):
        (tmp_path / "data" / name).touch()
        if name.endswith("parquet"):
            assert len(data_files(tmp_path)) == 1
    with pytest.raises(StorageError, match="of several formats"):
        data_files(tmp_path)


def csv_files(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"part-{number:05d}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize("header", ["sex,age", "age", "age,sex,zip", "age,SEX", ""])
def test_text_files_whose_columns_are_not_in_one_order_are_not_read_as_if_they_were(tmp_path: Path, header: str) -> None:
    with duckdb.connect() as connection:
        layout = Csv(types={"age": "VARCHAR", "sex": "VARCHAR"})
        same = relation_of(connection, csv_files(tmp_path, 'age,sex\n"1","f"\n', 'age,sex\n"2",\n'), layout)
        assert connection.execute(f"SELECT age, sex FROM {same} ORDER BY ALL").fetchall() == [("1", "f"), ("2", None)]
        with pytest.raises(duckdb.InvalidInputException):
            relation_of(connection, csv_files(tmp_path, 'age,sex\n"1","f"\n', f'{header}\n"f","1"\n'), layout)
