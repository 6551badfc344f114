"""What a manifest promises of sensitive values is counted in the files by what the manifest alone says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import exp, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.classes import Recount
from schemas.errors.base import VerificationError
from schemas.release.manifest import Manifest
from tasks.verification.manifest_claims import count_promises
from tests.core.recount.test_classes import PERSONS, manifest

ROWS = [
    *(("x", 0, value) for value in "abb"), *(("x", 9, value) for value in "aa"), *(("y", 0, value) for value in "cbac"),
]  # fmt: skip
TERMS: Any = SimpleNamespace(
    quasi_identifiers=[SimpleNamespace(columns=('q "1"',)), SimpleNamespace(columns=("low", "high"))], sensitive=("s",), memory=200_000_000
)
COUNTED = Recount(records=9, classes=3, min_class=2, failing=0, exposed=0, masked=0)


def asking(privacy: dict[str, Any], **said: Any) -> Manifest:
    return manifest(privacy=privacy, **said).model_copy(update={"asked": TERMS})


def counted(folder: Path, asked: Any, recount: Recount = COUNTED, **said: Any) -> tuple[Recount, list[str]]:
    columns = {'q "1"': [row[0] for row in ROWS], "low": [row[1] for row in ROWS], "high": [row[1] + 8 for row in ROWS]}
    paths = [folder / f"{number}.parquet" for number in range(2)]
    for path, part in zip(paths, (slice(0, 4), slice(4, 9)), strict=True):
        pq.write_table(pa.table(columns | {"s": [row[2] for row in ROWS]}).slice(part.start, part.stop - part.start), path)
    privacy = {"k": 2, "l": {"s": asked}, "t": {"s": {"t": "0.1", "distance": "equal"}}}
    return count_promises("it", paths, asking(privacy, **said), recount)


def classes() -> Iterator[Counter[str]]:
    yield from (Counter(value for *mine, value in ROWS if mine == list(qids)) for qids in (("x", 0), ("x", 9), ("y", 0)))


def spread(counts: Counter[str]) -> float:
    return exp(-sum(count / counts.total() * log(count / counts.total()) for count in counts.values()))


def frequency(counts: Counter[str], least: int) -> float:
    falling = sorted(counts.values(), reverse=True)
    return falling[0] / sum(falling[least - 1 :])


MEASURES: Any = {
    "distinct": ({"distinct": 2}, [float(len(one)) for one in classes()], min, 1),
    "distinct 1": ({"distinct": 1}, [float(len(one)) for one in classes()], min, 0),
    "entropy": ({"entropy": "1.5"}, [spread(one) for one in classes()], min, 1),
    "entropy as a number": ({"entropy": 2}, [spread(one) for one in classes()], min, 2),
    "recursive": ({"recursive": {"c": "1.1", "l": 1}}, [frequency(one, 1) for one in classes()], max, 0),
    "recursive to the letter": ({"recursive": {"c": "1", "l": 1}}, [frequency(one, 1) for one in classes()], max, 1),
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_worst_class_and_those_that_fail_are_those_that_are_counted_one_by_one(tmp_path: Path, name: str) -> None:
    asked, measured, worst, failing = MEASURES[name]
    found, faults = counted(tmp_path, asked)
    assert found.measured == {"l": {"s": pytest.approx(worst(measured))}}
    assert faults == ([f"{failing} of 3 classes lack the l-diversity of 's' that the job promises"] if failing else [])
    assert replace(found, measured={}, together={}) == COUNTED


def test_of_persons_that_are_not_at_hand_only_which_values_occur_is_counted(tmp_path: Path) -> None:
    found, _ = counted(tmp_path, {"distinct": 2}, persons=PERSONS)
    assert found.measured == {"l": {"s": 1.0}}
    found, faults = counted(tmp_path, {"entropy": 2}, persons=PERSONS)
    assert (found.measured, faults) == ({}, [])


@pytest.mark.parametrize("asked", [{"entropy": "two"}, {"distinct": 0}, {"entropy": "1" * 41}, {"recursive": {"c": "x", "l": 1}}])
def test_a_promise_that_nobody_can_read_is_refused(tmp_path: Path, asked: Any) -> None:
    with pytest.raises(VerificationError, match="does not say in words that are known"):
        counted(tmp_path, asked)


def test_classes_of_one_value_are_those_that_were_counted(tmp_path: Path) -> None:
    one = {"s": {"classes": 1, "records": 2, "share": 2 / 9}}
    fault = "the manifest does not say truly in how many classes everybody has one sensitive value"
    assert counted(tmp_path, {"distinct": 1}, one_value=one)[1] == [fault]
    assert counted(tmp_path, {"distinct": 1}, replace(COUNTED, one_value={"s": (1, 2)}), one_value=one)[1] == []


def test_of_a_class_that_has_no_value_the_worst_is_none(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({'q "1"': ["x", "x"], "low": [0, 0], "high": [8, 8], "s": pa.array([None, None], pa.string())}), path)
    said = asking({"k": 2, "l": {"s": {"distinct": 1}}})
    found, faults = count_promises("it", [path], said, replace(COUNTED, records=2, classes=1))
    assert found.measured == {"l": {"s": 0.0}}
    assert any("1 of 1 classes" in fault for fault in faults)
