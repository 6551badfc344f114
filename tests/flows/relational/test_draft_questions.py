"""What a draft of several tables asks, and what becomes of it under ``--accept``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.relational.tables_job import load_tables_job
from tests.conftest import CommandLine


@pytest.fixture
def folders(direct: CommandLine) -> Path:
    """Persons with a code that may be a name, and visits of which some are of nobody."""
    persons = {
        "person_id": range(600),
        "age": [number % 70 for number in range(600)],
        "code": [f"c{number}" for number in range(600)],
        "q17": [number % 5 for number in range(600)],
    }
    visits = {"visit_id": range(800), "person_id": [number % 610 for number in range(800)], "x": [number % 7 for number in range(800)]}
    for name, table in {"person": persons, "visit": visits}.items():
        (direct.folder / name).mkdir()
        pq.write_table(pa.table(table), direct.folder / name / "0.parquet")
    return direct.folder


def test_questions_are_asked_table_by_table_and_have_the_answer_that_the_draft_gave(direct: CommandLine, folders: Path) -> None:
    done = direct("init", "person", "visit", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    roles = {name: {one["name"]: one["role"] for one in table["columns"]} for name, table in found["tables"].items()}
    of_columns = [one for one in found["questions"] if one["safest"] != "drop"]
    assert all(roles[one["table"]][column] == one["safest"] for one in of_columns for column in one["columns"])
    asked = {(one["table"], column) for one in of_columns for column in one["columns"]}
    assert asked == {("person", "code"), ("person", "q17"), ("visit", "x")}
    [orphans] = [one for one in found["questions"] if one["safest"] == "drop"]
    assert (orphans["table"], orphans["columns"], load_tables_job(folders / "job.yaml").orphans) == ("visit", ["person_id"], "drop")
    assert all(one.keys() == {"table", "columns", "question", "safest"} for one in found["questions"])
    text = (folders / "job.yaml").read_text()
    assert text.count("DECIDE, ") == 3
    assert all(f"# {number}. {one['question']} Safest: {one['safest']}" in text for number, one in enumerate(found["questions"], 1))


def test_accepting_answers_every_question_and_changes_nothing_else(direct: CommandLine, folders: Path) -> None:
    asking = direct("init", "person", "visit", "--out", "asks.yaml").stdout
    accepting = direct("init", "person", "visit", "--out", "says.yaml", "--accept").stdout
    open_, answered = (load_tables_job(folders / name, ("name=one", "target=out")) for name in ("asks.yaml", "says.yaml"))
    assert open_.canonical() == answered.canonical()
    asks, says = ((folders / name).read_text() for name in ("asks.yaml", "says.yaml"))
    assert ("DECIDE" in asks, "DECIDE" in says, "ACCEPTED" in asks, "ACCEPTED" in says) == (True, False, False, True)
    assert asks.count("DECIDE, ") == says.count("accepted, ") == 3
    assert (asking.count("Meanwhile, and safest: "), asking.count("Decide on 4 questions")) == (4, 1)
    assert (accepting.count("Accepted: "), accepting.count("Decide on")) == (4, 0)
    assert "Accepted: drop, " in accepting
