"""Mondrian over persons, held against rows and histories that are written out by hand."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import skald
from flows.tables import tables
from flows.terminal.tables import verified_summary
from flows.verification import verified_tables
from schemas.errors.base import VerificationError
from schemas.errors.tables import HistoryError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.publication import PublishedTables
from tasks.relational.verified import verify_tables
from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, LEVELS, QIDS, hospital_job, hospital_tables, read_release
from tests.flows.relational.test_tables import AS_IT_IS
from tests.jobs import digests
from tests.oracles.relational.histories import children, hospital_histories, rare_choices

pytestmark = pytest.mark.ci

MONDRIAN = {"name": "mondrian"}


def numbered_hospital(persons: int, seed: int) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Return the tables with a number for each row, which is published and finds it in the source, and parts of their job."""
    source = {
        name: table.append_column("number", pa.array(np.arange(len(table)))) for name, table in hospital_tables(persons, seed).items()
    }
    specs = deepcopy(JOB["tables"])
    for spec in specs.values():
        spec["columns"]["insensitive"] = [*spec["columns"].get("insensitive", []), "number"]
    return source, {"tables": specs, "method": MONDRIAN}


def check_labels(source: dict[str, pa.Table], rows: dict[str, list[dict[str, Any]]]) -> None:
    """Every label is one of a level of its hierarchy, and that of the row's value; no row is published twice."""
    for name, [qid] in QIDS.items():
        values = source[name][qid].to_pylist()
        assert len({row["number"] for row in rows[name]}) == len(rows[name])
        for row in rows[name]:
            assert row[qid] in {str(level(values[row["number"]])) for level in LEVELS[qid]}


def check_counts(made: PublishedTables, rows: dict[str, list[dict[str, Any]]]) -> None:
    for name, table in made.manifest.tables.items():
        assert table.released == len(rows[name])
        counted = table.released + (table.withheld or 0) + (table.orphans or 0) + (table.suppressed or 0)
        assert table.stated_records == counted
        assert (table.records is None) == (table.suppressed is None)
        assert table.levels == dict.fromkeys(QIDS[name])


CASES: list[dict[str, Any]] = [
    {"privacy": {"k": 4}, "suppression": {"limit": 0, "rows": 0.5}},
    {"privacy": {"k": 3}, "suppression": {"limit": 0.3}},
    {"privacy": {"k": 6}, "suppression": {"limit": 0.4, "rows": 0.3}},
    {"privacy": {"k": 4, "l": {"condition": {"icd": {"distinct": 2}}}}, "suppression": {"limit": 0.5, "rows": 0.3}},
    {"privacy": {"k": 4, "t": {"person": {"income": {"t": 0.5}}}}, "suppression": {"limit": 0.5, "rows": 0.3}},
    {"privacy": {"k": 5, "knows": {"rows": 2}}, "suppression": {"limit": 0.2, "rows": 0.3}},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(12))
def test_every_history_is_shared_by_k_and_every_label_is_that_of_its_row(tmp_path: Path, seed: int) -> None:
    source, parts = numbered_hospital(150, seed)
    path = hospital_job(tmp_path, source, **parts, **CASES[seed % len(CASES)])
    made = tables(path, ())
    rows, k = read_release(made.folder), CASES[seed % len(CASES)]["privacy"]["k"]
    histories = hospital_histories(rows["person"], rows["visit"], rows["condition"], AS_IT_IS)
    shared = Counter(histories.values())
    assert min(shared.values()) >= k
    assert made.manifest.histories == len(shared)
    check_labels(source, rows)
    check_counts(made, rows)
    assert len(rows["person"]) >= (1 - CASES[seed % len(CASES)]["suppression"]["limit"]) * 150
    if "l" in CASES[seed % len(CASES)]["privacy"]:
        whose = {row["visit_id"]: row["person_id"] for row in rows["visit"]}
        values: dict[Any, set[str]] = {}
        for row in rows["condition"]:
            values.setdefault(histories[whose.get(row["visit_id"], row["person_id"])], set()).add(row["icd"])
        assert min(map(len, values.values())) >= 2
    verify_tables(load_tables_job(path), made.folder)
    with pytest.raises(VerificationError, match="fewer than 60"):
        verify_tables(load_tables_job(path, ("privacy.k=60",)), made.folder)


def test_no_choice_of_few_rows_is_rare_where_whole_histories_are_not(tmp_path: Path) -> None:
    source, parts = numbered_hospital(100, 3)
    made = tables(hospital_job(tmp_path, source, **parts, **CASES[5]), ())
    rows = read_release(made.folder)
    visits = children(rows["visit"], "person_id")
    of_unit = {row["person_id"]: row["age"] for row in rows["person"]}
    other = tables(tmp_path / "job.yaml", ("chunk_rows=30", "target=elsewhere", "work=other", "threads=1"))
    one, two = ([path.read_bytes() for path in sorted((run.folder / "data").rglob("*.parquet"))] for run in (made, other))
    assert one == two, "chunks or threads decide"
    assert not rare_choices(of_unit, {person: [[row["ward"] for row in visits.get(person, [])]] for person in of_unit}, 2, 5)
    assert made.manifest.min_class >= 5
    said = verified_summary(verified_tables(load_tables_job(tmp_path / "job.yaml"), made.folder))
    assert f"every choice of at most 2 rows of a table is shared by at least {made.manifest.min_class} persons" in said


def test_what_rows_lose_is_refused_beyond_the_limit(tmp_path: Path) -> None:
    """Thirty persons, each with another number of visits."""
    whose = np.repeat(np.arange(30), np.arange(30))
    visits = pa.table(
        {"visit_id": [f"v{one}" for one in range(len(whose))], "person_id": whose, "ward": ["a"] * len(whose), "nights": [1] * len(whose)}
    )
    source = hospital_tables(30, 1) | {"visit": visits}
    source["condition"] = source["condition"].filter(pc.is_null(source["condition"]["visit_id"]))
    with pytest.raises(HistoryError, match=r"more rows than suppression\.rows allows, also with 3 persons left out"):
        tables(hospital_job(tmp_path, source, method=MONDRIAN, suppression={"limit": 0.1, "rows": 0.01}), ())


def test_the_commands_plan_run_verify_and_report(direct: CommandLine) -> None:
    source, parts = numbered_hospital(120, 8)
    hospital_job(direct.folder, source, **parts, suppression={"limit": 0.2, "rows": 0.2})
    planned = direct("plan", "job.yaml")
    assert "Persons are cut into classes (Mondrian)" in planned.stdout
    done = direct("run", "job.yaml")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "Mondrian made classes of persons" in done.stdout
    [release] = [path for path in (direct.folder / "releases").iterdir() if path.is_dir() and not path.is_symlink()]
    verified = direct("verify", release, "--job", "job.yaml")
    assert verified.returncode == 0, verified.stderr
    assert "every history is shared by at least" in verified.stdout
    assert "by row" in (release / "report.html").read_text()
    # Read as one level a column, the labels are those of no node.
    unexpected = direct("verify", release, "--job", "job.yaml", "--set", "method.name=skald")
    assert unexpected.returncode == 4
    assert "the manifest's method is not that of the job" in unexpected.stderr


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["person_classes/*.record", "matched/*.record", "tables/*.record"])
def test_a_killed_run_goes_on_where_it_was(direct: CommandLine, tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    source, parts = numbered_hospital(120, 8)
    undisturbed = tables(hospital_job(tmp_path_factory.mktemp("whole"), source, **parts, suppression={"limit": 0.2, "rows": 0.2}), ())
    hospital_job(direct.folder, source, **parts, suppression={"limit": 0.2, "rows": 0.2})
    direct.killed(pattern, "run", "job.yaml")
    assert not (direct.folder / "releases").exists()
    kept = {path: path.stat().st_mtime_ns for path in (direct.folder / ".skald").rglob(pattern)}
    assert kept
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    [release] = [path for path in (direct.folder / "releases").iterdir() if path.is_dir() and not path.is_symlink()]
    assert digests(release) == digests(undisturbed.folder)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize("table", ["person", "visit"])
def test_a_class_says_nothing_of_who_made_it_one(table: str) -> None:
    # Whoever knows the ages knows that those of 30 could be a class. That they are none must not say what all of them have.
    labels = []
    for together in (["a"] * 12 + ["b"] * 11 + ["c"] * 9, ["a"] * 6 + ["b"] * 3 + ["c"] * 3 + ["a"] * 6 + ["b"] * 8 + ["c"] * 6):
        person = pa.table({"id": range(32), "age": [30] * 12 + [40] * 20})
        visit = pa.table({"id": range(32), "row": range(32)})
        source = {"person": person, "visit": visit}
        source[table] = source[table].append_column("ill", pa.array(together))
        columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 100]}}]}
        of_tables: dict[str, dict[str, Any]] = {
            "person": {"key": "id", "columns": columns}, "visit": {"key": "row", "references": {"id": "person"}, "columns": {}},
        }  # fmt: skip
        of_tables[table]["columns"] = of_tables[table]["columns"] | {"sensitive": ["ill"]}
        job = {
            "tables": of_tables, "privacy": {"k": 12, "l": {table: {"ill": {"distinct": 2}}}}, "suppression": {"limit": 0},
            "method": {"name": "mondrian"},
        }  # fmt: skip
        made, proved = skald.anonymise(source, job)
        labels.append(sorted(made["person"]["age"].to_pylist()))
        assert proved.manifest["search"] == {}
    assert labels[0] == labels[1]


def test_a_promise_that_changes_makes_other_classes_in_the_same_folder(tmp_path: Path) -> None:
    # Few persons have each value, so that values become the rest, which may break a promise again.
    person = pa.table({"id": range(24), "age": [30 + row // 12 for row in range(24)]})
    visit = pa.table({"id": range(24), "row": range(24), "ill": [*"aaabbbcccddd", *"aaabbbeeefff"]})
    tables_of = {
        "person": {"source": {"path": "person/*.parquet"}, "key": "id",
                   "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 100]}}]}},
        "visit": {"source": {"path": "visit/*.parquet"}, "key": "row", "references": {"id": "person"},
                  "columns": {"sensitive": [{"name": "ill", "publish": "shared"}]}},
    }  # fmt: skip
    parts: dict[str, Any] = {"tables": tables_of, "method": MONDRIAN, "suppression": {"limit": 1}}
    job = hospital_job(tmp_path, {"person": person, "visit": visit}, **parts, privacy={"k": 4, "l": {"visit": {"ill": {"distinct": 2}}}})
    first = tables(job, ()).manifest
    assert first.persons.released == 24
    for least in (3, 2):
        again = tables(job, (f"privacy.l={{visit: {{ill: {{distinct: {least}}}}}}}",)).manifest
        assert again.min_class >= 4


def test_a_value_that_nobody_released_has_is_the_rest_of_the_source(tmp_path: Path) -> None:
    """Of the values a, b, c and the rest, c is left out: one value fewer makes the others lie farther apart."""
    ages, values = [*[30] * 4, *[40] * 4, 50, 60], [*"aaax", *"bbby", *"cc"]
    person = pa.table({"id": range(10), "age": ages, "ill": values})
    visit = pa.table({"id": range(10), "ward": ["a"] * 10})
    wards = {"name": "ward", "hierarchy": {"tree": {"*": ["a"]}}}
    tables_of = {
        "person": {"source": {"path": "person/*.parquet"}, "key": "id",
                   "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1]}}],
                               "sensitive": [{"name": "ill", "publish": "shared"}]}},
        "visit": {"source": {"path": "visit/*.parquet"}, "references": {"id": "person"}, "columns": {"quasi_identifiers": [wards]}},
    }  # fmt: skip
    asked = {"person": {"ill": {"t": 0.31, "distance": "ordered"}}}
    job = hospital_job(
        tmp_path, {"person": person, "visit": visit}, tables=tables_of, privacy={"k": 2, "t": asked}, suppression={"limit": 0.5}
    )
    assert tables(job, ()).manifest.persons.released == 8
    with pytest.raises(HistoryError):
        tables(job, ("privacy.t={person: {ill: {t: 0.25, distance: ordered}}}",))


def test_values_of_a_far_table_are_decided_anew_where_the_persons_have_other_keys(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    costs = random.lognormal(8, 1, 120).round(0).astype(np.int64)
    tables_of = {
        "person": {"source": {"path": "person/*.parquet"}, "key": "id",
                   "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 100]}}]}},
        "visit": {"source": {"path": "visit/*.parquet"}, "key": "row", "references": {"id": "person"}, "columns": {}},
        "bill": {"source": {"path": "bill/*.parquet"}, "references": {"row": "visit"},
                 "columns": {"insensitive": [{"name": "cost", "publish": "shared"}]}},
    }  # fmt: skip
    for keys in (np.arange(40) * 7, np.arange(40) * 7 + 1000):
        source = {
            "person": pa.table({"id": keys, "age": [40] * 40}), "visit": pa.table({"id": keys, "row": range(40)}),
            "bill": pa.table({"row": np.repeat(np.arange(40), 3), "cost": costs}),
        }  # fmt: skip
        for name, table in source.items():
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(table, tmp_path / name / "rows.parquet")
        path = hospital_job(tmp_path, {}, tables=tables_of, method=MONDRIAN, privacy={"k": 4})
        assert tables(path, ()).manifest.persons.released == 40


@pytest.mark.slow
def test_whoever_knows_how_classes_are_cut_leaves_everybody_two_values() -> None:
    # Three ways of cutting are compared: that all of them are refused would say more than each refusal.
    ages, starts = [0, 1, 2, 10, 11, 12, 1000, 1001, 1002], [0, 1, 50, 2, 51, 52, 0, 25, 50]
    spans = {"age": [1, 10, 100, 1000, 10000], "start": [1, 10, 100]}
    axes = {name: [{"name": name, "hierarchy": {"widths": widths}}] for name, widths in spans.items()}
    job = {
        "tables": {"person": {"key": "id", "columns": {"quasi_identifiers": axes["age"], "sensitive": ["ill"]}},
                   "visit": {"references": {"id": "person"}, "columns": {"quasi_identifiers": axes["start"]}}},
        "privacy": {"k": 3, "l": {"person": {"ill": {"distinct": 2}}}}, "method": MONDRIAN,
    }  # fmt: skip
    worlds: dict[Any, list[list[str]]] = {}
    for pair in combinations(range(6), 2):
        ill = ["b" if person in pair else "a" for person in range(6)] + ["b", "b", "a"]
        source = {"person": pa.table({"id": range(9), "age": ages, "ill": ill}), "visit": pa.table({"id": range(9), "start": starts})}
        made, _ = skald.anonymise(source, job)
        seen = made["person"].join(made["visit"], "id").select(["age", "start", "ill"]).to_pylist()
        worlds.setdefault(str(sorted(map(str, seen))), []).append(ill)
    for possible in worlds.values():
        assert all(len({ill[person] for ill in possible}) == 2 for person in range(6))
    assert len(worlds) > 1


def test_refusals_of_one_person_are_in_the_singular() -> None:
    assert "at most 1 person is left out" in str(HistoryError.values_fail_classes(1))
    assert "at most 2 persons are left out" in str(HistoryError.values_fail_classes(2))
    assert "more than 1 person has a choice of at most 1 row of each table" in str(HistoryError.choices_fail(5, 1, 1, can_bound=True))
