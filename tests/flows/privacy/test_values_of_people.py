"""Where a job names persons, promises on sensitive values are of people: everybody counts once for each value that they have in a class."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import PrivacyError, VerificationError
from schemas.job.job import load_job
from tasks.composition.release_history import people_of_release
from tasks.recount.recount import verify_release
from tasks.store.store import Store
from tests.conftest import Anonymise, CommandLine
from tests.covering import each_value
from tests.flows.privacy.test_sensitive import MODELS, best, job, published, safe, table
from tests.jobs import released
from tests.oracles.persons import too_many_hold

Row = tuple[Any, ...]
OFTEN = [name for name in MODELS if name not in {"distinct", "two columns", "nulls"}]
"""Models that look at how often a value occurs."""


def visits(seed: int) -> pa.Table:
    """Records of about sixty people, some with forty of them, some of nobody's."""
    data, random = table(seed), np.random.default_rng(seed + 100)
    whose: list[float | None] = random.integers(0, 60, len(data)).astype(float).tolist()
    for row in range(0, len(data), 6):
        whose[row] = -0.0
    for row in range(5, len(data), 40):
        whose[row] = None
        # What is no number is nobody's either.
        whose[row - 1] = float("nan")
    return data.append_column("who", pa.array(whose, pa.float64()))


def people_job(folder: Path, data: pa.Table, privacy: dict[str, Any], limit: float, **parts: Any) -> Path:
    path = job(folder, data, privacy, limit)
    content = yaml.safe_load(path.read_text())
    content["columns"] |= {"person": "who", "identifiers": ["who"]}
    path.write_text(yaml.safe_dump(content | parts))
    return path


def rows_of(data: pa.Table) -> list[Row]:
    rows = list(zip(*data.to_pydict().values(), strict=True))
    return [(*row[:4], None if row[4] is None or row[4] != row[4] else row[4]) for row in rows]


def pairs(rows: list[Row], place: int) -> list[Row]:
    """Everybody once for each of their values, as rows of which only the sensitive columns are looked at."""
    return [(None, None, value, value) for _, value in {(row[4], row[place]) for row in rows if row[4] is not None}]


def keeps(rows: list[Row], everyone: list[Row], privacy: dict[str, Any]) -> bool:
    if len({row[4] for row in rows} - {None}) < 3:
        return False
    where = {"disease": 2, "pay": 3}
    return all(
        safe(pairs(rows, where[column]), pairs(everyone, where[column]), {section: {column: model}})
        and not too_many_hold(*([(row[4], row[where[column]]) for row in of] for of in (rows, everyone)), {section: {column: model}})
        for section, columns in privacy.items()
        for column, model in columns.items()
    )


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("limit", "seed"), [(0.1, 0), (0.4, 1)])
@pytest.mark.parametrize("model", MODELS)
def test_the_optimum_is_that_of_a_full_enumeration_which_counts_people(
    anonymise: Anonymise, tmp_path: Path, model: str, limit: float, seed: int
) -> None:
    data = visits(seed)
    rows, path = rows_of(data), people_job(tmp_path, data, MODELS[model], limit)
    expected = best(rows, MODELS[model], limit, keeps)
    assert expected is not None
    made = anonymise(path)
    assert (made.manifest.node, made.manifest.loss["dm_star"], made.manifest.suppressed) == expected
    classes: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        classes[published(row, expected[0])].append(row)
    kept = [members for members in classes.values() if keeps(members, rows, MODELS[model])]
    assert released(made.folder).height == sum(map(len, kept))
    verify_release(load_job(path), made.folder, people_of_release(made.manifest.release, store_of(path.parent)))


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("model", "output"), each_value(OFTEN, [{"format": "csv"}, {"format": "duckdb"}]))
def test_whatever_the_files_are_the_worst_class_is_the_same(
    anonymise: Anonymise, tmp_path: Path, model: str, output: dict[str, Any]
) -> None:
    plain = anonymise(people_job(tmp_path / "plain", visits(1), MODELS[model], 0.2))
    other = anonymise(people_job(tmp_path / "other", visits(1), MODELS[model], 0.2, output=output))
    # Distances are sums of fractions, which threads add up in no order.
    worst = []
    for made in (plain, other):
        path = made.folder.parents[1] / "job.yaml"
        people = people_of_release(made.manifest.release, Store(load_job(path).work_path / "artifacts"))
        measured = verify_release(load_job(path), made.folder, people)[0].measured
        worst.append([value for columns in measured.values() for value in columns.values()])
    assert worst[0]
    assert worst[0] == pytest.approx(worst[1])


@pytest.mark.ci
def test_one_person_with_a_value_a_thousand_times_has_it_once(anonymise: Anonymise, tmp_path: Path) -> None:
    """Two values, each of three people: as even as can be, whatever one of them adds in records."""
    who = [1.0] * 1000 + [2.0, 3.0, 4.0, 5.0, 6.0]
    disease = ["flu"] * 1002 + ["cold"] * 3
    data = pa.table({"age": [3] * 1005, "zip": ["000"] * 1005, "disease": disease, "pay": [100] * 1005, "who": who})
    made = anonymise(people_job(tmp_path, data, {"l": {"disease": {"entropy": 2}}}, 0))
    assert made.manifest.measured["l"]["disease"] == pytest.approx(2)
    assert made.manifest.suppressed == 0


def test_a_value_that_nobody_has_is_none_of_the_class(anonymise: Anonymise, tmp_path: Path) -> None:
    data = pa.table(
        {"age": [3] * 4, "zip": ["000"] * 4, "disease": ["flu", "flu", "flu", "cold"], "pay": [100] * 4, "who": [1.0, 2.0, 3.0, None]}
    )
    with pytest.raises(PrivacyError, match="All records in one class would not keep"):
        anonymise(people_job(tmp_path, data, {"l": {"disease": {"distinct": 2}}}, 0))


def store_of(folder: Path) -> Store:
    return Store(folder / ".skald" / "people" / "artifacts")


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("model", MODELS)
def test_values_of_other_people_are_not_believed(anonymise: Anonymise, tmp_path: Path, model: str) -> None:
    path = people_job(tmp_path, visits(0), MODELS[model], 0.2)
    made = anonymise(path)
    kept = people_of_release(made.manifest.release, store_of(tmp_path))
    assert kept is not None
    for file in kept[0]:
        frame = pl.read_parquet(file)
        pq.write_table(frame.with_columns(value_0=pl.col("value_0").reverse()).to_arrow(), file)
    with pytest.raises(VerificationError, match="are not those of the people"):
        verify_release(load_job(path), made.folder, kept)


@pytest.mark.ci
@pytest.mark.parametrize("model", ["recursive", "equal"])
def test_people_who_are_taken_for_one_break_the_promise(anonymise: Anonymise, tmp_path: Path, model: str) -> None:
    """The values of one class all become those of a few people, whose shares are others."""
    path = people_job(tmp_path, visits(0), MODELS[model] | {"k": 1}, 0.2)
    made = anonymise(path)
    kept = people_of_release(made.manifest.release, store_of(tmp_path))
    assert kept is not None
    for file in kept[0]:
        one = pl.when(pl.col("value_0") == "flu").then(pl.int_range(pl.len()) + 1).otherwise(7).cast(pl.UInt64)
        pq.write_table(pl.read_parquet(file).with_columns(person=one).to_arrow(), file)
    with pytest.raises(VerificationError, match=r"classes (lack|are farther)"):
        verify_release(load_job(path), made.folder, kept)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("model", OFTEN)
def test_verify_says_which_values_it_cannot_count_without_people(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path, model: str
) -> None:
    path = people_job(tmp_path, visits(0), MODELS[model], 0.2)
    made = anonymise(path)
    shutil.rmtree(tmp_path / ".skald")
    gone = direct("verify", str(made.folder), "--job", str(path), "--json", "--set=source.path=nowhere.parquet")
    assert gone.returncode == 5, gone.stderr
    [column] = {column for columns in MODELS[model].values() for column in columns}
    assert any(f"'{column}'" in line for line in json.loads(gone.stdout)["unverified"])


UNCOUNTED = "t-closeness of 'disease' was not counted: it is measured from the source."


@pytest.mark.ci
def test_with_the_source_gone_people_are_counted_and_how_far_they_are_from_it_is_not(anonymise: Anonymise, tmp_path: Path) -> None:
    path = people_job(tmp_path, visits(0), {"t": {"disease": {"t": 0.25}}}, 0)
    made = anonymise(path)
    kept = people_of_release(made.manifest.release, store_of(tmp_path))
    found, _ = verify_release(load_job(path), made.folder, kept)
    assert 0 < found.measured["t"]["disease"] <= 0.25
    shutil.rmtree(tmp_path / "people")
    found, _ = verify_release(load_job(path), made.folder, kept)
    assert found.persons is not None
    assert ("t" in found.measured, found.unverified) == (False, (UNCOUNTED,))
    # How far a class is from the whole source is in no release: it follows from records that are in no file.
    assert "t" not in made.manifest.measured
