"""Releases of one file are compared by its records, or it is said that they are not: never as if all had left and others come."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.refusals import OverlapError
from tasks.composition.by_contents import OTHERWISE_READ
from tasks.composition.earlier import OTHER_COLUMNS
from tests.conftest import Anonymise

PEOPLE = 300
TYPES = {"a": "integer", "b": "integer", "pay": "double", "day": "date"}
AS_WRITTEN: dict[str, Any] = {"path": "people.csv", "types": TYPES, "dates": "dd/mm/yyyy"}
DIVERSE = {"k": 5, "l": {"dx": {"distinct": 2}}}


def people() -> list[dict[str, str]]:
    """Return people whose pay and day can be read in two ways each, and never as the same value."""
    drawn = random.Random(3)
    return [
        {
            "pid": f"p{row}", "a": str(row // 15), "b": str(row % 20), "dx": ["flu", "hiv", "asthma"][row % 3],
            "pay": f"{drawn.randrange(1, 9)}.{drawn.randrange(100, 999)}", "day": f"0{drawn.randrange(1, 4)}/0{drawn.randrange(4, 7)}/2020",
        }
        for row in range(PEOPLE)
    ]  # fmt: skip


def job_in(folder: Path, name: str, source: dict[str, Any], qids: tuple[str, ...], *, person: bool, privacy: dict[str, Any]) -> Path:
    kinds = {"a": {"widths": [1, 5]}, "b": {"widths": [1, 5]}, "day": {"date": ["month", "year"]}}
    columns: dict[str, Any] = {
        "quasi_identifiers": [{"name": qid, "hierarchy": kinds[qid]} for qid in qids],
        "sensitive": ["dx", "pay"],
        "identifiers": [*(qid for qid in kinds if qid not in qids), *["pid"] * (not person)],
    }
    job = {
        "version": 1, "name": name, "source": source, "columns": columns | ({"person": "pid"} if person else {}), "privacy": privacy,
        "method": {"name": "skald"}, "suppression": {"limit": 0.9}, "memory": "200MB", "target": f"releases/{name}",
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    return path


def write_csv(folder: Path) -> None:
    rows = people()
    (folder / "people.csv").write_text("\n".join(",".join(line) for line in [rows[0], *(row.values() for row in rows)]) + "\n")


def write_parquet(folder: Path, pay: pa.DataType) -> None:
    rows = people()
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    whole = {name: columns[name].cast(pa.int32()) for name in ("a", "b")}
    pq.write_table(pa.table(columns | whole | {"pay": columns["pay"].cast(pay)}), folder / "people.parquet")


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("other", "qids", "person", "privacy"),
    [
        ({"decimal": ",", "thousands": "."}, ("a", "b"), False, DIVERSE),
        ({"decimal": ",", "thousands": "."}, ("a", "b"), True, DIVERSE),
        ({"dates": "mm/dd/yyyy"}, ("a", "day"), False, {"k": 5}),
        ({"dates": "mm/dd/yyyy", "path": ["people.csv"]}, ("a", "day"), False, {"k": 5}),
        ({"null_values": ["flu"]}, ("a", "b"), False, DIVERSE),
    ],
    ids=["numbers", "numbers of persons", "days that are generalised", "days of one job", "nulls"],
)
def test_one_file_that_is_read_in_two_ways_is_not_compared(
    anonymise: Anonymise, tmp_path: Path, other: dict[str, Any], qids: tuple[str, ...], person: bool, privacy: dict[str, Any]
) -> None:
    write_csv(tmp_path)
    anonymise(job_in(tmp_path, "one", AS_WRITTEN, qids, person=person, privacy=privacy))
    # Releases of one job are compared by the counts of their files first.
    job = job_in(tmp_path, "one" if "path" in other else "two", AS_WRITTEN | other, qids, person=person, privacy=privacy)
    with pytest.raises(OverlapError, match="cannot be compared"):
        anonymise(job, "overlaps=refuse")
    [overlap] = anonymise(job).untold.overlaps or ()
    assert (overlap.unmeasured, overlap.shared, overlap.shared_at_risk, overlap.is_safe) == (OTHERWISE_READ, PEOPLE, None, False)


@pytest.mark.ci
def test_one_file_that_is_read_in_one_way_by_two_jobs_is_compared(anonymise: Anonymise, tmp_path: Path) -> None:
    write_csv(tmp_path)
    anonymise(job_in(tmp_path, "one", AS_WRITTEN, ("a", "b"), person=False, privacy=DIVERSE))
    # Spelled in another way, and another column of which neither says anything.
    source = AS_WRITTEN | {"null_values": ["", "none"], "types": TYPES | {"pid": "text"}}
    [overlap] = (
        anonymise(job_in(tmp_path, "two", source, ("a", "b"), person=False, privacy=DIVERSE), "overlaps=refuse").untold.overlaps or ()
    )
    assert (overlap.unmeasured, overlap.shared, overlap.added, overlap.is_safe) == ("", PEOPLE, 0, True)


@pytest.mark.ci
@pytest.mark.parametrize("pay", [pa.float64(), pa.float32(), pa.decimal128(9, 3)], ids=str)
def test_a_typed_copy_of_a_file_is_compared_or_not_but_never_another_source(anonymise: Anonymise, tmp_path: Path, pay: pa.DataType) -> None:
    write_csv(tmp_path)
    write_parquet(tmp_path, pay)
    anonymise(job_in(tmp_path, "one", AS_WRITTEN, ("a", "b"), person=False, privacy=DIVERSE))
    copy = job_in(tmp_path, "two", {"path": "people.parquet"}, ("a", "b"), person=False, privacy=DIVERSE)
    [overlap] = anonymise(copy).untold.overlaps or ()
    assert (overlap.unmeasured, overlap.shared) == (("", PEOPLE) if pay == pa.float64() else (OTHER_COLUMNS, None))


@pytest.mark.ci
def test_one_file_by_other_columns_is_not_compared_where_the_registry_is_lost(anonymise: Anonymise, tmp_path: Path) -> None:
    write_csv(tmp_path)
    anonymise(job_in(tmp_path, "job", AS_WRITTEN, ("a",), person=False, privacy=DIVERSE))
    shutil.rmtree(tmp_path / ".skald" / ".releases")
    with pytest.raises(OverlapError, match="cannot be compared"):
        anonymise(job_in(tmp_path, "job", AS_WRITTEN, ("b",), person=False, privacy=DIVERSE), "overlaps=refuse")
