"""The same records in one file and in many: the same release, in few chunks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Anonymise
from tests.jobs import digests, people, people_job

TABLE = people(3000)


@pytest.mark.ci
@pytest.mark.parametrize("files", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_a_release_of_many_files_is_that_of_one(anonymise: Anonymise, tmp_path: Path, files: int) -> None:
    one = anonymise(people_job(tmp_path / "one", TABLE))
    many = anonymise(people_job(tmp_path / "many", TABLE, files=files))
    assert digests(many.folder) == digests(one.folder)
    assert many.manifest.increment is not None
    assert many.manifest.increment.chunks == -(-files // 128)


@pytest.mark.ci
def test_files_that_write_the_same_text_in_other_ways_make_one_release(anonymise: Anonymise, tmp_path: Path) -> None:
    expected = digests(anonymise(people_job(tmp_path / "plain", TABLE)).folder)
    job = people_job(tmp_path / "coded", TABLE, files=6)
    place = TABLE.column_names.index("disease")
    coded = [None, pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string(), ordered=True)]
    for number, path in enumerate(sorted((tmp_path / "coded" / "people").iterdir())):
        table, dtype = pq.read_table(path), coded[number // 2]
        if dtype:
            table = table.set_column(place, "disease", table["disease"].dictionary_encode().cast(dtype))
        pq.write_table(table, path, row_group_size=200)
    assert digests(anonymise(job).folder) == expected
