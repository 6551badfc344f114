"""Events of a job of several tables tell each source, each published table and the exit code, and no value of a cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.conftest import CommandLine
from tests.flows.lineage.test_openlineage import events_of
from tests.flows.privacy.test_no_canary import CANARY
from tests.flows.relational.hospital import JOB, QIDS, WARDS, hospital_job, hospital_tables
from tests.flows.relational.test_few_left_out import PERSONS, K, job_of, write_sources

TABLES = hospital_tables(150, 1)


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["namespace"], one["name"]) for one in datasets]


@pytest.mark.ci
def test_a_run_tells_each_source_and_each_published_table(direct: CommandLine) -> None:
    asked = json.loads(json.dumps(JOB["tables"]))
    asked["visit"]["columns"]["insensitive"] = "rest"
    hospital_job(direct.folder, TABLES, tables=asked)
    place = direct.folder / "events.jsonl"
    for new in (True, False):
        done = direct("run", "job.yaml", "--json", OPENLINEAGE_URL=f"file://{place}")
        assert done.returncode == 0, done.stderr
        [folder] = (direct.folder / "releases").glob("hospital-*")
        manifest = json.loads((folder / "manifest.json").read_text())
        began, ended = events_of(place)[-2:]
        assert [one["eventType"] for one in (began, ended)] == ["START", "COMPLETE"]
        assert began["run"]["runId"] == ended["run"]["runId"]
        for event in (began, ended):
            assert (event["job"]["namespace"], event["job"]["name"]) == ("skald", "hospital")
            assert names(event["inputs"]) == [("file", f"{direct.folder}/{name}") for name in QIDS]
            assert names(event["outputs"]) == [("file", f"{direct.folder}/releases/{name}") for name in QIDS]
        for name, output in zip(QIDS, ended["outputs"], strict=True):
            check_output(output, folder.name, pq.read_table(folder / "data" / name))
        told = ended["run"]["facets"]["skald"]
        assert (told["exit"], told["k"], told["method"]) == (0, 4, "skald")
        persons = manifest["persons"]
        assert told["release"] == {
            "release": folder.name,
            "new": new,
            "k": 4,
            "unit": "person",
            "smallestClass": persons["smallest_class"],
            "classes": manifest["histories"],
            "records": persons["source"],
            "released": persons["released"],
            "suppressed": persons["source"] - persons["released"],
            "optimal": "certified",
        }


def check_output(output: dict[str, Any], release: str, published: pa.Table) -> None:
    """Compare an output dataset with the published table, as anybody would read it."""
    assert output["facets"]["version"]["datasetVersion"] == release
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == published.column_names
    said = output["outputFacets"]["outputStatistics"]
    assert (said["rowCount"], said["fileCount"]) == (published.num_rows, 1)


@pytest.mark.ci
@pytest.mark.parametrize(("left", "stated"), [(K - 1, False), (K, True)])
def test_how_few_persons_are_left_out_is_in_no_event(direct: CommandLine, left: int, stated: bool) -> None:
    write_sources(direct.folder, left)
    job_of(direct.folder)
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", OPENLINEAGE_URL=f"file://{place}")
    assert done.returncode == 0, done.stderr
    told = events_of(place)[-1]["run"]["facets"]["skald"]["release"]
    assert told["released"] == PERSONS
    assert (told.get("records"), told.get("suppressed")) == ((PERSONS + left, left) if stated else (None, None))
    # Each person has two visits in the source: their number would tell.
    numbers = {number for event in events_of(place) for number in whole_numbers(event)}
    assert stated or not numbers & {PERSONS + left, 2 * (PERSONS + left), left, 2 * left}


def whole_numbers(told: Any) -> list[int]:
    """Return all numbers in an event."""
    if isinstance(told, dict | list):
        return [number for part in (told.values() if isinstance(told, dict) else told) for number in whole_numbers(part)]
    return [told] if type(told) is int else []


def canaries(source: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Make every cell of the tables a marked text."""

    def marked(column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.binary_join_element_wise(f"{CANARY}-", pc.utf8_lpad(column.cast(pa.string()), 2, "0"), "")

    return {name: pa.table({column: marked(table[column]) for column in table.column_names}) for name, table in source.items()}


def canary_hospital(folder: Path, source: dict[str, pa.Table], **parts: Any) -> None:
    """Write the tables and a job of them whose trees hold the same values."""

    def mark(value: str) -> str:
        return f"{CANARY}-{value.zfill(2)}"

    asked = json.loads(json.dumps(JOB["tables"]))
    wards = {area: [mark(ward) for ward in WARDS if WARDS[ward] == area] for area in ("inner", "outer")}
    for table, tree in {"visit": wards, "condition": {"*": [mark("no"), mark("yes")]}}.items():
        asked[table]["columns"]["quasi_identifiers"][0]["hierarchy"] = {"tree": tree}
    asked["person"]["columns"]["quasi_identifiers"][0]["hierarchy"] = {"prefix": [len(mark("0")) - 1, len(CANARY)]}
    hospital_job(folder, source, tables=asked, **parts)


def changed(table: str, column: str, value: str) -> Callable[[dict[str, pa.Table]], dict[str, pa.Table]]:
    """Return what replaces a column's first cell by another value."""

    def change(source: dict[str, pa.Table]) -> dict[str, pa.Table]:
        cells = [value, *source[table][column].to_pylist()[1:]]
        return source | {table: source[table].set_column(source[table].column_names.index(column), column, pa.array(cells))}

    return change


FAULTS: dict[str, tuple[Callable[[dict[str, pa.Table]], dict[str, pa.Table]], dict[str, Any], int]] = {
    "none": (dict, {}, 0),
    "k": (dict, {"privacy": {"k": 1234}}, 3),
    "uncovered": (changed("visit", "ward", f"{CANARY}-elsewhere"), {}, 2),
    "orphan": (changed("visit", "person_id", f"{CANARY}-nobody"), {}, 2),
}


@pytest.mark.ci
@pytest.mark.parametrize("fault", FAULTS)
def test_an_end_of_several_tables_tells_its_exit_code_and_no_cell_value(direct: CommandLine, fault: str) -> None:
    change, parts, code = FAULTS[fault]
    canary_hospital(direct.folder, change(canaries(TABLES)), **parts)
    place = direct.folder / "events.jsonl"
    done = direct("run", "job.yaml", OPENLINEAGE_URL=f"file://{place}")
    assert done.returncode == code, done.stderr
    began, ended = events_of(place)
    assert (began["eventType"], ended["eventType"]) == ("START", "FAIL" if code else "COMPLETE")
    assert CANARY not in place.read_text()
    facets = ended["run"]["facets"]
    assert facets["skald"]["exit"] == code
    assert ("release" in facets["skald"], "errorMessage" in facets) == (not code, bool(code))
    if code:
        assert names(ended["outputs"]) == names(began["outputs"])
        assert not any(output["facets"] or output["outputFacets"] for output in ended["outputs"])
        # The terminal tells how many persons or rows are concerned; whoever collects events does not learn it.
        assert not re.search("[0-9]", facets["errorMessage"]["message"])
