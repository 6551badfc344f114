"""What is promised of the synthetic medical data set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data.medical import FILE_ROWS, QIDS, make_medical
from data.patients import BLOCK, draw_block, pin_codes
from tests.laws import tried
from tests.patience import SECONDS
from tests.places import ROOT

ROWS = 200_000


@pytest.fixture(scope="module")
def medical(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return pl.read_parquet(make_medical(tmp_path_factory.mktemp("medical"), ROWS))


@pytest.mark.ci
def test_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    here = make_medical(tmp_path / "here", 3_000, files=2, seed=7)
    code = "import sys; from pathlib import Path; from data.medical import *; make_medical(Path(sys.argv[1]), 3_000, files=2, seed=7)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], cwd=ROOT, check=True, timeout=SECONDS)
    assert [path.read_bytes() for path in here] == [(tmp_path / "there" / path.name).read_bytes() for path in here]


def test_another_seed_gives_other_records_with_the_same_pin_codes(tmp_path: Path, medical: pl.DataFrame) -> None:
    other = pl.read_parquet(make_medical(tmp_path, ROWS, seed=1))
    differing = {column: (medical[column] != other[column]).to_numpy().mean() for column in medical.columns}
    assert min(differing.values()) > 0.5, differing
    assert set(other["pin_code"].unique()) == set(medical["pin_code"].unique())


@pytest.mark.ci
@tried(15)
@example(rows=BLOCK, more=1, files=1, other_files=2)
@example(rows=BLOCK + 1, more=2 * BLOCK, files=7, other_files=3)
@given(rows=st.integers(1, 2 * BLOCK), more=st.integers(0, BLOCK), files=st.integers(1, 7), other_files=st.integers(1, 7))
def test_record_i_depends_on_the_seed_and_on_i_only(
    tmp_path_factory: pytest.TempPathFactory, rows: int, more: int, files: int, other_files: int
) -> None:
    short = pl.read_parquet(make_medical(tmp_path_factory.mktemp("short"), rows, files=min(files, rows)))
    long = pl.read_parquet(make_medical(tmp_path_factory.mktemp("long"), rows + more, files=min(other_files, rows + more)))
    assert short.equals(long.head(rows))


@pytest.mark.slow
def test_default_files_hold_a_million_records_and_do_not_depend_on_what_follows(tmp_path: Path) -> None:
    one = make_medical(tmp_path / "one", FILE_ROWS)
    two = make_medical(tmp_path / "two", FILE_ROWS + 1)
    assert [path.name for path in two] == ["medical-00001.parquet", "medical-00002.parquet"]
    assert [pq.read_metadata(path).num_rows for path in two] == [FILE_ROWS, 1]
    assert len(one) == 1 and one[0].read_bytes() == two[0].read_bytes()


@pytest.mark.parametrize(("rows", "files", "lengths"), [(1, 1, [1]), (1, None, [1]), (5, 5, [1] * 5), (10, 3, [3, 3, 4])])
def test_files_are_of_equal_length_to_within_one_record(tmp_path: Path, rows: int, files: int | None, lengths: list[int]) -> None:
    paths = make_medical(tmp_path, rows, files=files)
    assert [pq.read_metadata(path).num_rows for path in paths] == lengths
    assert sorted(tmp_path.iterdir()) == paths


def test_columns_have_the_types_that_readers_expect_and_no_trace_of_how_they_were_written(tmp_path: Path) -> None:
    path = make_medical(tmp_path, 10)[0]
    schema = pq.read_schema(path)
    assert schema.metadata is None
    assert {field.name: str(field.type) for field in schema} == {
        "patient_id": "string",
        "name": "string",
        "address": "string",
        "blood_group": "string",
        "profession": "string",
        "age": "int16",
        "bmi": "double",
        "pin_code": "int32",
        "health_condition": "string",
    }


def test_row_groups_are_small_enough_to_be_chunks(tmp_path: Path) -> None:
    metadata = pq.read_metadata(make_medical(tmp_path, 300_000)[0])
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [125_000, 125_000, 50_000]


def test_every_column_has_the_number_of_values_of_the_paper(medical: pl.DataFrame) -> None:
    assert medical.height == ROWS
    assert sum(medical.null_count().row(0)) == 0
    distinct = {column: medical[column].n_unique() for column in (*QIDS, "health_condition", "patient_id")}
    assert distinct == {
        "blood_group": 8, "profession": 16, "age": 67, "bmi": 241, "pin_code": 1_347, "health_condition": 25, "patient_id": ROWS,
    }  # fmt: skip


def test_numbers_keep_to_their_ranges(medical: pl.DataFrame) -> None:
    ranges = {column: (medical[column].min(), medical[column].max()) for column in ("age", "bmi")}
    assert ranges == {"age": (19, 85), "bmi": (12.0, 36.0)}
    codes = pin_codes()
    assert np.unique(codes).size == codes.size == 1_347
    assert codes.min() == 560_001 and 590_000 <= codes.max() <= 599_999
    assert set(medical["pin_code"].unique()) == set(codes.tolist())


def test_bmi_is_the_double_nearest_to_its_one_decimal(medical: pl.DataFrame) -> None:
    assert set(medical["bmi"].unique()) == {float(f"{tenths // 10}.{tenths % 10}") for tenths in range(120, 361)}


def test_patient_ids_look_like_the_papers_and_agree_with_age(medical: pl.DataFrame) -> None:
    parts = medical["patient_id"].str.extract_groups(r"^P(\d{9})-(\d\d)(0[1-9]|1[0-2])-[1-3]$").struct.unnest()
    assert parts["1"].cast(pl.Int64).equals(pl.int_range(1, ROWS + 1, eager=True).alias("1"))
    assert ((2024 - medical["age"].cast(pl.Int64)) % 100 == parts["2"].cast(pl.Int64)).all()


def test_numbers_are_written_out_to_the_last_patient() -> None:
    last = 999_999_999 // BLOCK
    assert draw_block(0, last)["patient_id"][999_999_998 - last * BLOCK].as_py().startswith("P999999999-")


def test_identifiers_look_like_the_papers(medical: pl.DataFrame) -> None:
    assert medical["name"].str.contains(r"^[^\s,]+ [^\s,]+$").all()
    assert medical["address"].str.contains(r"^(H\.No\. )?[\d/]+, [^\d,]+$").all()
    assert medical["name"].n_unique() > 50_000
    assert medical["address"].n_unique() > 100_000


@pytest.mark.parametrize(
    ("column", "ratio"), [("blood_group", 10), ("profession", 3), ("pin_code", 20), ("health_condition", 4), ("age", 1.3)]
)
def test_the_most_frequent_value_is_far_more_frequent_than_the_median_one(medical: pl.DataFrame, column: str, ratio: float) -> None:
    counts = np.sort(medical[column].value_counts()["count"].to_numpy())
    median = counts[(counts.size - 1) // 2]
    assert counts[-1] > ratio * median


def test_big_cities_have_most_patients(medical: pl.DataFrame) -> None:
    assert 0.35 < medical["pin_code"].is_between(560_001, 560_999).to_numpy().mean() < 0.6


def test_bmi_is_near_normal_around_24_and_leans_mildly_on_age(medical: pl.DataFrame) -> None:
    bmi, age = medical["bmi"].to_numpy(), medical["age"].to_numpy()
    assert abs(bmi.mean() - 24) < 0.5
    assert 0.66 < np.mean(np.abs(bmi - bmi.mean()) < bmi.std()) < 0.71
    assert 0.05 < np.corrcoef(bmi, age)[0, 1] < 0.3
    assert max(np.mean(bmi == 12.0), np.mean(bmi == 36.0)) < 0.001


def test_health_condition_leans_mildly_on_age(medical: pl.DataFrame) -> None:
    def shares(group: pl.Expr) -> dict[str, float]:
        part = medical.filter(group)["health_condition"]
        return dict(part.value_counts(normalize=True).iter_rows())

    young, old = shares(pl.col("age") < 35), shares(pl.col("age") >= 60)
    assert old["Hypertension"] > 1.2 * young["Hypertension"]
    assert young["Asthma"] > 1.2 * old["Asthma"]
    assert 0.1 < sum(abs(young[name] - old[name]) for name in young) / 2 < 0.4


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_records(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from data.medical import make_medical; from tasks.engine.progress import peak_rss; "
        "make_medical(Path(sys.argv[1]), int(sys.argv[2])); print(peak_rss())"
    )
    peaks = [
        int(subprocess.run([sys.executable, "-c", code, str(tmp_path / rows), rows], cwd=ROOT, check=True, capture_output=True).stdout)
        for rows in ("1000000", "4000000")
    ]
    assert max(peaks) < 500_000_000
    assert peaks[1] - peaks[0] < 50_000_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rows": 0}, "0 records are asked for; the medical data set has 1 to 999,999,999"),
        ({"rows": -5}, "-5 records are asked for"),
        ({"rows": 10**9}, "1,000,000,000 records are asked for"),
        ({"rows": 3, "files": 4}, "3 records cannot fill 4 files; give 1 to 3 files"),
        ({"rows": 3, "files": 0}, "3 records cannot fill 0 files"),
        ({"rows": 3, "seed": -1}, "the seed is -1; give 0 or a greater number"),
    ],
)
def test_impossible_wishes_are_refused_in_a_sentence_and_leave_nothing(tmp_path: Path, arguments: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence):
        make_medical(tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_files_of_a_longer_data_set_are_never_mixed_in(tmp_path: Path) -> None:
    before = [path.read_bytes() for path in make_medical(tmp_path, 100, files=3)]
    with pytest.raises(ValueError, match=r"holds 1 file of another data set \('medical-00003.parquet'\); choose another folder or remove"):
        make_medical(tmp_path, 100, files=2, seed=1)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before
    assert [path.read_bytes() for path in make_medical(tmp_path, 100, files=3, seed=1)] != before


def test_a_file_that_fails_half_way_appears_under_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_in_the_second_block(seed: int, number: int) -> object:
        if number == 1:
            raise MemoryError
        return draw_block(seed, number)

    monkeypatch.setattr("data.medical.draw_block", fail_in_the_second_block)
    with pytest.raises(MemoryError):
        make_medical(tmp_path, 2 * BLOCK)
    assert list(tmp_path.iterdir()) == []
