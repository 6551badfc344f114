"""Several tables drafted from their folders, planned, and anonymised in memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skald
from data.hospital import make_hospital
from flows.tables import tables
from flows.terminal.tables import coarse_tables_advice, plan_lines
from schemas.errors.base import JobError, StorageError
from schemas.errors.tables import RelationError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.draft import draft_tables
from tasks.relational.draft_text import draft_content, drafted_table_sentences
from tasks.relational.plan import plan_tables
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make_hospital(folder, 600, files=2, seed=4)
    return folder


def test_the_hospital_hangs_together_and_is_the_same_for_the_same_seed(made: Path, tmp_path: Path) -> None:
    tables = {name: pq.read_table(made / name) for name in ("person", "visit", "condition")}
    make_hospital(tmp_path, 600, files=1, seed=4)
    assert all(table.equals(pq.read_table(tmp_path / name)) for name, table in tables.items())
    persons = set(tables["person"]["person_id"].to_pylist())
    whose = dict(zip(*(tables["visit"][name].to_pylist() for name in ("visit_id", "person_id")), strict=True))
    assert len(persons) == 600
    assert set(whose.values()) <= persons
    for person, visit in zip(*(tables["condition"][name].to_pylist() for name in ("person_id", "visit_id")), strict=True):
        assert person == whose.get(visit, person)
    (tmp_path / "person" / "x").write_text("")
    with pytest.raises(ValueError, match="other file"):
        make_hospital(tmp_path, 600, files=1)


def test_keys_and_references_are_proposed_from_names_and_values(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "job.yaml"
    drafted = draft_tables([made / name for name in ("condition", "visit", "person")], out)
    assert drafted.tree.chains == {"person": (), "visit": ("person",), "condition": ("person", "visit")}
    job = load_tables_job(out)
    assert {name: (table.key, table.references) for name, table in job.tables.items()} == {
        "person": (["person_id"], {}),
        "visit": (["visit_id"], {"person_id": "person"}),
        "condition": ([], {"person_id": "person", "visit_id": "visit"}),
    }
    content = draft_content(drafted, out)
    assert content["unit"] == "person"
    flat = [one | {"table": name} for name, table in content["tables"].items() for one in table["columns"]]  # type: ignore[attr-defined]
    assert content["columns"] == flat
    for name, table in content["tables"].items():  # type: ignore[attr-defined]
        roles = {one["name"]: one["role"] for one in table["columns"]}
        assert table["references"] == job.tables[name].references
        assert {column for column, role in roles.items() if role == "key"} == {*job.tables[name].key, *table["references"]}
        ways = {one["name"]: one["publish"] for one in table["columns"] if "publish" in one}
        assert ways
        assert set(ways) == {column for column, role in roles.items() if role in {"sensitive", "insensitive"}}
        assert set(job.tables[name].columns.ways) == set(ways)
        qids = [qid.name for qid in job.tables[name].columns.quasi_identifiers]
        assert [column for column, role in roles.items() if role == "quasi_identifier"] == qids
    planned = plan_tables(job)
    ways = {name: set(table.published.values()) for name, table in planned.tables.items()}
    assert all(words.startswith("shared: every value is that of at least 12") for found in ways.values() for words in found)
    assert "  'income' goes out shared" in plan_lines(planned)
    assert (planned.persons, planned.unit, planned.exists) == (600, "person", False)
    assert planned.tables["condition"].hangs_from == "visit"
    assert planned.below_k is not None
    assert planned.below_k > 500
    with pytest.raises(StorageError, match="exists and stays as it is"):
        draft_tables([made / "person"], out)


def test_folders_of_one_name_are_refused_before_anything_is_written(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "job.yaml"
    with pytest.raises(JobError, match="'person' is the name of several of these folders"):
        draft_tables([made / "person", made / "visit", made / "person"], out)
    assert list(tmp_path.iterdir()) == []


def test_tables_in_memory_come_back_as_what_they_were() -> None:
    job = {key: deepcopy(JOB[key]) for key in ("tables", "privacy", "suppression")}
    for table in job["tables"].values():
        del table["source"]
    source = hospital_tables(200, 1)
    tables, proved = skald.anonymise(source, job)
    assert {name: type(table) for name, table in tables.items()} == dict.fromkeys(source, pa.Table)
    assert {name: len(table) for name, table in tables.items()} == {
        name: one["released"] for name, one in proved.manifest["tables"].items()
    }
    assert set(tables["visit"]["person_id"].to_pylist()) <= set(tables["person"]["person_id"].to_pylist())
    assert proved.report is not None
    with pytest.raises(JobError, match="'visit' is in the job or among the tables given"):
        skald.anonymise({name: source[name] for name in ("person", "condition")}, job)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"target": "kept"}, "target: the tables are read"),
        ({"work": "kept"}, "work: the tables are read"),
        ({"tables.person.source.path": "others.parquet"}, "tables.person.source: the table is given"),
        ({"overlaps": "refuse"}, "overlaps: tables that are given back"),
        ({"tables": {"person": {}}}, "'condition' and 'visit' are in the job or among the tables given"),
        ({"privacy.k": 1000}, "k = 1,000 cannot be met by 200 persons"),
    ],
)
def test_settings_too_move_no_table_in_memory_and_leave_nothing(
    settings: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = {key: deepcopy(JOB[key]) for key in ("tables", "privacy", "suppression")}
    for table in job["tables"].values():
        del table["source"]
    with pytest.raises(skald.SkaldError, match=said):
        skald.anonymise(hospital_tables(200, 1), job, settings)
    with pytest.raises(JobError, match="'1' is in the job or among the tables given"):
        skald.anonymise({**hospital_tables(200, 1), 1: pa.table({"a": [1]})}, job)  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())


def test_references_of_pandas_may_lack_values_which_make_floats_of_whole_numbers() -> None:
    job = {key: deepcopy(JOB[key]) for key in ("tables", "privacy", "suppression")}
    for table in job["tables"].values():
        del table["source"]
    source = {name: table.to_pandas() for name, table in hospital_tables(200, 1).items()}
    source["visit"]["visit_id"] = source["visit"]["visit_id"].str[1:].astype("int64")
    source["condition"]["visit_id"] = source["condition"]["visit_id"].str[1:].astype("float64")
    assert source["condition"]["visit_id"].isna().any()
    tables, _ = skald.anonymise(source, job)
    assert {type(table) for table in tables.values()} == {pd.DataFrame}
    assert set(tables["condition"]["visit_id"].dropna()) <= set(tables["visit"]["visit_id"])
    source["condition"].loc[0, "visit_id"] = 0.5
    with pytest.raises(RelationError, match="of type double and 'visit_id' of 'visit', to which it refers, of int64"):
        skald.anonymise(source, job)


UNFIT: dict[str, tuple[pa.DataType, Callable[[int], object]]] = {
    "digits": (pa.decimal256(50, 0), lambda key: Decimal(10**49 + key * 10**40)),
    "list": (pa.list_(pa.int64()), lambda key: [key]),
    "struct": (pa.struct([("id", pa.int64())]), lambda key: {"id": key}),
    "null": (pa.null(), lambda _: None),
}


@pytest.mark.parametrize(("kind", "convert"), UNFIT.values(), ids=UNFIT)
def test_keys_and_references_of_types_that_are_not_joined_exactly_are_refused(
    tmp_path: Path, kind: pa.DataType, convert: Callable[[int], object]
) -> None:
    # DuckDB reads decimals of more than 38 digits as floats: references found keys that differed in their last digits.
    given = hospital_tables(60, 1)
    for name in ("person", "visit"):
        keys = pa.array([convert(key) for key in given[name]["person_id"].to_pylist()], kind)
        given[name] = given[name].set_column(given[name].column_names.index("person_id"), "person_id", keys)
    with pytest.raises(RelationError) as raised:
        tables(hospital_job(tmp_path, given), ())
    kind_word = str(kind).partition("<")[0]
    for fault, name in zip(raised.value.faults, ("person", "visit"), strict=True):
        assert fault.startswith(f"'person_id' of '{name}' is of type {kind_word}")
        assert "which no key or reference can have" in fault


def test_texts_of_both_lengths_refer_to_each_other(tmp_path: Path) -> None:
    plain = hospital_tables(60, 1)
    long = plain["visit"]["visit_id"].cast(pa.large_string())
    mixed = plain | {"visit": plain["visit"].set_column(plain["visit"].column_names.index("visit_id"), "visit_id", long)}
    made = [tables(hospital_job(tmp_path / name, given), ()).manifest for name, given in (("plain", plain), ("mixed", mixed))]
    assert made[0].histories == made[1].histories
    assert [one.released for one in made[0].tables.values()] == [one.released for one in made[1].tables.values()]


def test_a_draft_bounds_rows_so_that_it_runs(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "job.yaml"
    drafted = draft_tables([made / name for name in ("person", "visit", "condition")], out)
    assert {table.name: table.most_rows is None for table in drafted.tables} == {"person": True, "visit": False, "condition": False}
    for table in drafted.tables[1:]:
        said = f"rows: {{most: {table.most_rows}}} withholds about {table.rows_beyond:,} of {table.rows:,} rows"
        assert table.rows_beyond and said in drafted_table_sentences(drafted)[table.name]
        assert f"withholds about {table.rows_beyond:,} of" in out.read_text()
    assert tables(out, ()).new


def test_a_draft_takes_columns_for_known_where_none_surely_is_and_asks_less_of_few_persons(tmp_path: Path) -> None:
    persons = pa.table({"person_id": range(90), "score": [number % 6 for number in range(90)]})
    visits = pa.table({"visit_id": range(90), "person_id": range(90), "notes": [f"seen on day {number}" for number in range(90)]})
    for name, table in {"person": persons, "visit": visits}.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
    out = tmp_path / "job.yaml"
    draft_tables([tmp_path / "person", tmp_path / "visit"], out)
    job = load_tables_job(out)
    assert [qid.name for qid in job.tables["person"].columns.quasi_identifiers] == ["score"]
    assert job.privacy.k == 5
    assert tables(out, ()).new


def test_a_run_that_keeps_hardly_anything_says_what_keeps_more() -> None:
    bounds = {"visit": None, "item": 3, "bill": 2}
    assert coarse_tables_advice({"person": 0.4, "visit": 0.89}, "skald", bounds) == []
    [sentence] = coarse_tables_advice({"person": 0.4, "visit": 1.0, "item": 0.95}, "skald", bounds)
    assert "bound the rows of a person in 'visit' and 'item' (rows: {most: 2})" in sentence
    assert sentence.startswith("Hardly anything is left of the quasi-identifiers of 'visit' and 'item'.")
    assert "name: mondrian" in sentence
    [sentence] = coarse_tables_advice({"visit": 1.0}, "mondrian", {"visit": 2, "item": 1})
    assert "method" not in sentence and "most" not in sentence
    for method, known, withholds in (("skald", False, True), ("skald", True, False), ("mondrian", True, True)):
        [sentence] = coarse_tables_advice({"visit": 1.0}, method, bounds, known=known)
        assert ("suppression.rows" in sentence) == withholds
    assert coarse_tables_advice({"person": 1.0}, "mondrian", {})[0].endswith(
        "To keep more, name fewer of them, or raise suppression.limit."
    )
