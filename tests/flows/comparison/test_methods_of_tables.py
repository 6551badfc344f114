"""Methods for several tables are compared by what their releases publish, joined and counted person by person here."""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.tables import tables
from schemas.release.method_comparison import MethodComparison
from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, QIDS, WARDS, hospital_job, hospital_tables, read_release
from tests.oracles.relational.histories import hospital_histories

pytestmark = pytest.mark.ci

PERSONS, K = 400, 4
SOURCE = hospital_tables(PERSONS, 5)
AS_IT_IS = {table: {name: (lambda value: value) for name in names} for table, names in QIDS.items()}
PARTS: dict[str, Any] = {"suppression": {"limit": 0.3, "rows": 0.6}}


def vaulted(vault: Path) -> dict[str, Any]:
    of_tables = deepcopy(JOB["tables"])
    of_tables["person"]["columns"]["identifiers"] = [{"name": "person_id", "treatment": {"token": {"vault": {"file": str(vault)}}}}]
    return of_tables


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MethodComparison]:
    """The real thing: the command line, and a process for each method, of a job whose persons have tokens."""
    folder = tmp_path_factory.mktemp("methods")
    path = hospital_job(folder / "job", SOURCE, tables=vaulted(folder / "vault.parquet"), **PARTS)
    ended = CommandLine("direct", folder)("compare", path, "--json")
    assert ended.returncode == 0, ended.stderr
    return folder, MethodComparison.model_validate_json(ended.stdout)


def penalty(table: str, column: str, label: Any) -> float:
    """What a label has lost: the part of the ages that it spans, or of the values that it may stand for; 0 for one value."""
    values = SOURCE[table][column].to_pylist()
    if label == "*":
        return 1.0
    if column == "age":
        ends = [int(end) for end in re.findall(r"\d+", str(label))]
        covered = [value for value in values if ends[0] <= value <= ends[-1]]
        return (max(covered) - min(covered)) / (max(values) - min(values))
    stands = [value for value in set(values) if label in {value, WARDS.get(value)} or value in re.findall(r"\w+", label)]
    return len(stands) / len(set(values)) if len(stands) > 1 else 0.0


@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_figures_are_those_of_the_histories_joined_person_by_person(
    compared: tuple[Path, MethodComparison], tmp_path: Path, method: str
) -> None:
    [run] = [run for run in compared[1].runs if run.method == method]
    found = run.figures
    assert found, run.failed
    rows = read_release(tables(hospital_job(tmp_path, SOURCE, method={"name": method}, **PARTS), ()).folder)
    sizes = Counter(Counter(hospital_histories(rows["person"], rows["visit"], rows["condition"], AS_IT_IS).values()).values())
    released, histories = len(rows["person"]), sum(sizes.values())
    assert (found.released, found.suppressed, found.classes) == (released, PERSONS - released, histories)
    assert (found.min_class, found.prosecutor_max) == (min(sizes), 1 / min(sizes))
    assert found.dm == sum(size * size * many for size, many in sizes.items()) + (PERSONS - released) * PERSONS
    assert found.prosecutor_mean == pytest.approx(histories / released)
    assert found.share_above == pytest.approx(sum(size * many for size, many in sizes.items() if size < 12) / released)
    lost = sum(penalty(table, name, row[name]) for table, names in QIDS.items() for name in names for row in rows[table])
    values = sum(len(SOURCE[table]) * len(names) for table, names in QIDS.items())
    gone = values - sum(len(rows[table]) * len(names) for table, names in QIDS.items())
    assert found.gcp == pytest.approx((lost + gone) / values)


def test_persons_are_counted_and_only_figures_stay(compared: tuple[Path, MethodComparison]) -> None:
    folder, comparison = compared
    assert (comparison.records, comparison.counts, comparison.unit) == (PERSONS, "person", "person")
    assert comparison.tables == ("person", "visit", "condition")
    assert comparison.quasi_identifiers == ("age", "visit.ward", "condition.chronic")
    assert [(run.method, run.k) for run in comparison.runs] == [("skald", K), ("mondrian", K)]
    assert not (folder / "vault.parquet").exists()
    assert not (folder / "job" / "releases").exists()
    assert not (folder / "job" / ".skald" / "hospital" / "comparison").exists()
    page = (folder / "job" / "releases-comparison" / "methods.html").read_text("utf-8")
    assert "400 persons" in page
    assert "Histories" in page


def test_rows_of_nobody_are_no_loss_though_too_few_to_be_stated(tmp_path: Path) -> None:
    at_home = hospital_tables(40, 6)
    strays = {
        "visit": {"visit_id": ["stray0", "stray1"], "person_id": [1000, 1001], "ward": ["a", "c"], "nights": [1, 2]},
        "condition": {"person_id": pa.nulls(1, pa.int64()), "visit_id": ["stray0"], "chronic": ["no"], "icd": ["x"]},
    }
    found = dict[str, MethodComparison]()
    for name, source in {
        "without": at_home,
        "with": at_home | {table: pa.concat_tables([at_home[table], pa.table(rows)]) for table, rows in strays.items()},
    }.items():
        path = hospital_job(tmp_path / name, source, orphans="drop", suppression={"limit": 1})
        ended = CommandLine("direct", tmp_path)("compare", path, "--methods", "skald", "--json")
        assert ended.returncode == 0, ended.stderr
        found[name] = MethodComparison.model_validate_json(ended.stdout)
    [figures, expected] = [found[name].runs[0].figures for name in ("with", "without")]
    assert figures
    assert expected
    assert (figures.released, figures.gcp) == (expected.released, expected.gcp)


def test_a_method_that_takes_one_table_is_refused_before_any_run(tmp_path: Path) -> None:
    ended = CommandLine("direct", tmp_path)("compare", hospital_job(tmp_path / "job", SOURCE), "--methods", "kmember")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "there is no method 'kmember' here; there are 'skald' and 'mondrian'" in ended.stderr
