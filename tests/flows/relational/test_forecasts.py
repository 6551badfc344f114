"""What a plan of several tables says would be published is what the run publishes."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.tables import tables
from flows.terminal.tables import plan_lines, tables_summary
from schemas.relational.table_jobs import most_rows_of
from schemas.relational.tables_job import load_tables_job
from tasks.relational.plan import plan_tables
from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables

MONDRIAN = {"name": "mondrian"}


def bounded() -> dict[str, Any]:
    """Tables of the job, of which one is bounded in rows."""
    return JOB["tables"] | {"visit": JOB["tables"]["visit"] | {"rows": {"most": 1}}}


@pytest.mark.parametrize("parts", [
    {}, {"method": MONDRIAN}, {"suppression": {"limit": 0.3, "rows": 0.2}}, {"privacy": {"k": 4, "knows": {"rows": 1}}},
    {"tables": bounded(), "suppression": {"limit": 0.3, "rows": 0.2}}, {"method": MONDRIAN, "suppression": {"limit": 0.3, "rows": 0.2}},
], ids=["skald", "mondrian", "withheld", "known rows", "bounded", "aligned"])  # fmt: skip
def test_a_plan_says_what_the_run_publishes(tmp_path: Path, parts: dict[str, Any]) -> None:
    source = hospital_tables(150, 3)
    path = hospital_job(tmp_path, source, **parts)
    planned = plan_tables(load_tables_job(path)).expected
    assert planned is not None
    made = tables(path, ())
    manifest = made.manifest
    assert made.bounded == {name: table.bounded for name, table in planned.tables.items() if table.bounded}
    beyond = sum(count - 1 for count in Counter(source["visit"]["person_id"].to_pylist()).values())
    assert made.bounded.keys() == ({"visit", "condition"} if "tables" in parts else set())
    assert 0 <= made.bounded.get("visit", 0) <= beyond
    said = tables_summary(manifest, "", most_rows_of(load_tables_job(path)), made.bounded, new=True)
    assert (f"'visit': {made.bounded.get('visit', 0)} of the rows withheld are beyond rows: {{most: 1}}" in said) == ("tables" in parts)
    assert manifest.persons.source in {None, planned.left_out + manifest.persons.released}
    for name, table in manifest.tables.items():
        expected = planned.tables[name]
        assert (expected.released, expected.levels) == (table.released, table.levels)
        assert table.withheld in {None, expected.withheld}
        assert expected.bounded <= expected.withheld
        assert table.suppressed in {None, expected.suppressed}
    if all(table.withheld is not None and table.suppressed is not None for table in manifest.tables.values()):
        assert planned.loss == pytest.approx(manifest.loss.gcp, abs=0.02)
        assert {name: one.loss for name, one in planned.tables.items()} == pytest.approx(manifest.loss.by_table, abs=0.02)


def test_a_plan_ends_as_the_run_that_would_publish_nothing(tmp_path: Path, direct: CommandLine) -> None:
    hospital_job(tmp_path, hospital_tables(60, 1), privacy={"k": 61})
    done, ran = direct("plan", "job.yaml"), direct("run", "job.yaml")
    assert (done.returncode, ran.returncode) == (3, 3)
    assert ran.stderr.strip() in " ".join(done.stdout.split())
    quick = plan_tables(load_tables_job(tmp_path / "job.yaml"), quick=True)
    assert (quick.expected, quick.refusal, quick.below_k) == (None, None, None)


@pytest.mark.ci
def test_a_lattice_too_large_to_be_searched_is_a_fault_of_the_job_and_has_a_plan(tmp_path: Path, direct: CommandLine) -> None:
    widths = {"widths": [1 << place for place in range(58)], "origin": 0}
    of_tables = deepcopy(JOB["tables"])
    for table, names in {"person": ["age", "income"], "visit": ["nights"]}.items():
        columns = of_tables[table]["columns"]
        columns |= {"sensitive": [], "insensitive": []}
        columns["quasi_identifiers"] = [{"name": name, "hierarchy": widths} for name in names]
    of_tables["visit"]["columns"]["withheld"] = ["ward"]
    hospital_job(tmp_path, hospital_tables(60, 1), tables=of_tables)
    ran, planned, quick = direct("run", "job.yaml"), direct("plan", "job.yaml"), direct("plan", "job.yaml", "--quick", "--json")
    assert (ran.returncode, planned.returncode, quick.returncode) == (2, 2, 2)
    found, said = json.loads(quick.stdout), " ".join(planned.stdout.split())
    nodes = prod(len(groups) for table in found["tables"].values() for groups in table["groups"].values())
    assert nodes > 262_144
    assert f"The lattice of all tables has {nodes:,} nodes." in said
    assert f"The run would publish nothing. {ran.stderr.strip()}" in said
    assert "at most 262,144 are searched. Name fewer quasi-identifiers" in said
    assert (found["nodes"], found["exit_code"], found["expected"], found["below_k"]) == (nodes, 2, None, None)
    assert found["refusal"] == ran.stderr.strip()
    # Classes of persons have no lattice.
    assert direct("plan", "job.yaml", "--quick", "--set", "method.name=mondrian").returncode == 0


def test_persons_whose_keys_differ_only_in_spelling_are_told_of(tmp_path: Path, direct: CommandLine) -> None:
    def spelled(table: pa.Table) -> pa.Table:
        keys = [None if key is None else "P0 " if key == 1 else f"p{key}" for key in table["person_id"].to_pylist()]
        return table.set_column(table.column_names.index("person_id"), "person_id", pa.array(keys, pa.string()))

    hospital_job(tmp_path, {name: spelled(table) for name, table in hospital_tables(60, 1).items()}, privacy={"k": 61})
    for command in ("plan", "run"):
        assert "Column 'person_id' has 1 value that differs from another only in case or blanks;" in direct(command, "job.yaml").stderr


def test_a_plan_names_tables_of_which_hardly_anything_would_be_left(tmp_path: Path) -> None:
    few = {name: table | ({"rows": {"most": 1}} if name != "person" else {}) for name, table in JOB["tables"].items()}
    path = hospital_job(tmp_path, hospital_tables(80, 2), tables=few, privacy={"k": 20}, suppression={"limit": 0.5, "rows": 0.5})
    said = plan_lines(plan_tables(load_tables_job(path)))
    assert "The run would leave out" in said
    assert "Hardly anything is left of the quasi-identifiers of " in said
