"""Written tables of a few rows are refused for what is wrong with them, though no source is at hand."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.histories import ReadTable, row_person_table
from schemas.errors.base import VerificationError, counted, verb_of
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import load_tables_job
from tasks.recount.original import Original
from tasks.recount.table_values import few_persons_faults, source_owners
from tasks.recount.tables import WrittenTables, _claim, _column_faults, _pseudonym_faults, recount_tables
from tests.flows.relational.hospital import JOB, hospital_job

Rows = dict[str, list[dict[str, Any]]]


def four_alike() -> Rows:
    """Four persons with the same two visits, of which the first has a condition."""
    return {
        "person": [{"person_id": f"p{number}", "age": "[0 - 40)", "income": 7} for number in range(4)],
        "visit": [
            {"visit_id": f"v{number}{visit}", "person_id": f"p{number}", "ward": "inner", "nights": visit}
            for number in range(4)
            for visit in range(2)
        ],
        "condition": [{"person_id": f"p{number}", "visit_id": f"v{number}0", "chronic": "no", "icd": "x"} for number in range(4)],
    }


def write_rows(path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows of a table with the types that its own have."""
    pq.write_table(pa.Table.from_pylist(rows, pa.Table.from_pylist(four_alike()[name]).schema), path)


def recounted(
    folder: Path,
    rows: Rows,
    most: int | None,
    *,
    top: int | None = None,
    originals: dict[str, Original | None] | None = None,
    publish: str | None = None,
    said: dict[str, dict[str, int | None]] | None = None,
    privacy: dict[str, Any] | None = None,
) -> Any:
    described = deepcopy(JOB["tables"])
    described["visit"] |= {"rows": {"most": most}} if most else {}
    described["person"]["columns"]["quasi_identifiers"][0]["hierarchy"] |= {"top": top} if top else {}
    described["person"]["columns"]["sensitive"] = [{"name": "income", "publish": publish}] if publish else ["income"]
    (folder / "job").mkdir()
    job = load_tables_job(hospital_job(folder / "job", {}, tables=described, privacy={"k": 4} | (privacy or {})))
    files = {}
    for name, table in rows.items():
        files[name] = [folder / f"{name}.parquet"]
        write_rows(files[name][0], name, table)
    levels: dict[str, dict[str, int | None]] = {"person": {"age": 2}, "visit": {"ward": 1}, "condition": {"chronic": 0}} | (said or {})
    return recount_tables(WrittenTables(job, files, originals or dict.fromkeys(rows), levels), folder / "spill", "it")


def two_histories() -> Rows:
    """Four persons with 7 and x, and four others, who are older, with 9 and y."""
    rows, others = four_alike(), four_alike()
    for row in [row for table in others.values() for row in table]:
        row |= {key: f"o{row[key]}" for key in ("person_id", "visit_id") if row.get(key)}
        row |= {key: value for key, value in {"age": "[40 - 80)", "income": 9, "icd": "y"}.items() if key in row}
    return {name: rows[name] + others[name] for name in rows}


@pytest.mark.parametrize(
    ("said", "distance"), [({"distance": "equal"}, 1 / 2), ({"distance": "hierarchical", "hierarchy": {"widths": [16, 64]}}, 1 / 6)]
)
@pytest.mark.parametrize(("more", "fails"), [(0.01, False), (-0.01, True)])
def test_histories_are_as_far_from_all_as_half_of_the_persons_are_from_the_others(
    tmp_path: Path, said: dict[str, Any], distance: float, more: float, fails: bool
) -> None:
    t = round(distance + more, 3)
    privacy = {"t": {"person": {"income": said | {"t": t}}}}
    rows, sources = two_histories(), their_sources(tmp_path, 8)
    rows["person"] = [row | {"age": "[0 - 39]" if row["income"] == 7 else "[40 - 79]"} for row in rows["person"]]
    if not fails:
        assert recounted(tmp_path, rows, None, originals=sources, privacy=privacy).persons == 8
        return
    with pytest.raises(VerificationError) as error:
        recounted(tmp_path, rows, None, originals=sources, privacy=privacy)
    assert list(error.value.faults) == [f"2 of 2 histories are farther from the whole in 'income' than t = {t}"]


def test_without_all_sources_no_distance_from_them_is_a_fault(tmp_path: Path) -> None:
    privacy = {"t": {"person": {"income": {"distance": "equal", "t": 0.01}}}}
    some = their_sources(tmp_path, 8) | {"person": None}
    assert recounted(tmp_path, two_histories(), None, originals=some, privacy=privacy).persons == 8


@pytest.mark.parametrize(
    ("values", "nulls", "fault"),
    [
        ("xxxx xxxx", "none", "1 of 1 histories lack the l-diversity of 'icd' that the job promises"),
        ("xxxx xxxy", "none", "in 1 of 1 histories too many persons hold the same value of 'icd' (condition)"),
        ("xxyy xxyy", "none", ""), ("---- xxyy", "none", ""),
        ("---- xxyy", "value", "in 1 of 1 histories too many persons hold the same value of 'icd' (condition)"),
    ],
)  # fmt: skip
def test_of_several_values_of_a_person_each_counts_once_and_none_may_be_of_nearly_all(
    tmp_path: Path, values: str, nulls: str, fault: str
) -> None:
    rows, given = four_alike(), [None if one == "-" else one for one in values.replace(" ", "")]
    rows["condition"] = [row | {"icd": value} for row, value in zip(rows["condition"] * 2, given, strict=True)]
    asked = {"l": {"condition": {"icd": {"distinct": 2, "nulls": nulls}}}}
    if not fault:
        assert recounted(tmp_path, rows, None, privacy=asked).histories == 1
        return
    with pytest.raises(VerificationError) as error:
        recounted(tmp_path, rows, None, privacy=asked)
    assert fault in error.value.faults


@pytest.mark.parametrize("with_sources", [True, False])
@pytest.mark.parametrize(("values", "few"), [("xxxx xxxy", True), ("xxxx yyyy", True), ("xxyy xxyy", False)])
def test_how_even_values_can_be_beside_one_of_nearly_all_is_asked_where_the_source_says_which_there_are(
    tmp_path: Path, values: str, few: bool, with_sources: bool
) -> None:
    """All four have x, and one of them or all have y too: counted by rows these are even enough."""
    rows, sources = four_alike(), their_sources(tmp_path)
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    rows["condition"] = [row | {"icd": icd} for row, icd in zip(rows["condition"] * 2, values.replace(" ", ""), strict=True)]
    theirs = [{"person_id": number % 4, "visit_id": f"s{number % 4}0"} for number in range(8)]
    given = pa.Table.from_pylist([row | {"chronic": "no", "icd": mine["icd"]} for row, mine in zip(theirs, rows["condition"], strict=True)])
    pq.write_table(given, tmp_path / "source_condition.parquet")
    asked, originals = {"l": {"condition": {"icd": {"entropy": 1.5}}}}, sources if with_sources else None
    if not (few and with_sources):
        assert recounted(tmp_path, rows, None, originals=originals, privacy=asked).histories == 1
        return
    with pytest.raises(VerificationError) as error:
        recounted(tmp_path, rows, None, originals=originals, privacy=asked)
    assert list(error.value.faults) == ["in 1 of 1 histories too many persons hold the same value of 'icd' (condition)"]


@pytest.mark.parametrize("most", [None, 2])
def test_persons_with_the_same_history_share_it(tmp_path: Path, most: int | None) -> None:
    found = recounted(tmp_path, four_alike(), most)
    assert (found.persons, found.histories, found.smallest, found.failing) == (4, 1, 4, 0)
    assert found.records == {"person": 4, "visit": 8, "condition": 4}
    assert found.most_rows == {"visit": 2, "condition": 1}


def test_a_person_with_more_rows_than_the_job_lets_be_published_is_refused(tmp_path: Path) -> None:
    rows = four_alike()
    rows["visit"] += [{"visit_id": f"w{number}", "person_id": f"p{number}", "ward": "inner", "nights": 1} for number in range(4)]
    with pytest.raises(VerificationError, match=r"a person has 3 rows of 'visit', and rows.most is 2"):
        recounted(tmp_path, rows, 2)


def test_one_person_with_another_history_is_refused(tmp_path: Path) -> None:
    rows = four_alike()
    rows["visit"][0]["ward"] = "outer"
    with pytest.raises(VerificationError, match="4 persons have a history that fewer than 4 share, the smallest 1"):
        recounted(tmp_path, rows, None)


def test_labels_that_tell_hidden_values_are_counted_each_once(tmp_path: Path) -> None:
    rows = four_alike()
    for row in rows["person"]:
        row["age"] = "[80 - 120)"
    with pytest.raises(VerificationError, match="1 label of 'age' tells values that the job hides"):
        recounted(tmp_path, rows, None, top=90)


def their_sources(folder: Path, persons: int = 4) -> dict[str, Original | None]:
    """The four persons as they were, and what they had; of more, the others are older and had something else."""
    rows: Rows = {
        "person": [{"person_id": number, "age": 5 + 10 * number, "income": 7 if number < 4 else 9} for number in range(persons)],
        "visit": [
            {"visit_id": f"s{number}{visit}", "person_id": number, "ward": "ab"[visit], "nights": visit}
            for number in range(persons)
            for visit in range(2)
        ],
        "condition": [
            {"person_id": number, "visit_id": f"s{number}0", "chronic": "no", "icd": "x" if number < 4 else "y"}
            for number in range(persons)
        ],
    }
    made: dict[str, Original | None] = {}
    for name, table in rows.items():
        columns, path = pa.Table.from_pylist(table), folder / f"source_{name}.parquet"
        pq.write_table(columns, path)
        made[name] = Original(f"read_parquet('{path}')", columns.schema)
    return made


def test_rows_are_held_against_their_source_at_the_levels_that_are_said(tmp_path: Path) -> None:
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    found = recounted(tmp_path, rows, None, originals=their_sources(tmp_path))
    assert found.penalties == {"person": {"age": 1.0 * 4}, "visit": {"ward": 2 / 3 * 8}, "condition": {"chronic": 0.0}}


def test_a_star_is_no_label_of_a_level_that_has_none(tmp_path: Path) -> None:
    rows = four_alike()
    for row in rows["visit"]:
        row["ward"] = "*"
    with pytest.raises(VerificationError, match="'visit': the labels of 'ward' are not those of the levels"):
        recounted(tmp_path, rows, None, originals=their_sources(tmp_path))


@pytest.mark.parametrize(("way", "k", "few"), [("shared", 2, 0), ("shared", 3, 1), ("shared", 4, 2), ({"top": 5}, 4, 0)])
def test_values_of_fewer_than_k_persons_are_counted_however_many_rows_they_have(tmp_path: Path, way: Any, k: int, few: int) -> None:
    """Two persons have x, one of them in three rows; three have y. What the job alone says of values few may have."""
    described = deepcopy(JOB["tables"])
    described["person"]["columns"]["sensitive"] = [{"name": "income", "publish": way}]
    job = load_tables_job(hospital_job(tmp_path, {}, tables=described, privacy={"k": k}))
    read = ReadTable("person", "person", ("age",), ("person_id",), {}, ('"income"',))
    rows = [(1, "x"), (1, "x"), (1, "x"), (2, "x"), (3, "y"), (4, "y"), (5, "y")]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE {row_person_table(read)} (person BIGINT, {read.at(read.sensitive[0])} VARCHAR)")
        connection.executemany(f"INSERT INTO {row_person_table(read)} VALUES (?, ?)", rows)
        faults = few_persons_faults(job, connection, {"person": read})
    values = "1 value" if few == 1 else f"{few} values"
    assert faults == ([f"column 'income' of 'person' publishes {values} of fewer than {k} persons"] if few else [])


def test_a_table_without_a_source_is_compared_with_none(tmp_path: Path) -> None:
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    some = their_sources(tmp_path)
    without = recounted(tmp_path, rows, None, originals=some | {"visit": None})
    assert without.penalties == {"person": {"age": 1.0 * 4}, "visit": {}, "condition": {"chronic": 0.0}}


def test_values_that_the_source_has_not_are_refused(tmp_path: Path) -> None:
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    rows["visit"][0] |= {"nights": 9}
    with pytest.raises(VerificationError, match="'visit': "):
        recounted(tmp_path, rows, None, originals=their_sources(tmp_path))


@pytest.mark.parametrize("income", [7, 8])
def test_shared_values_of_all_persons_are_published_as_they_are(tmp_path: Path, income: int) -> None:
    """All four persons have 7."""
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]", "income": income} for row in rows["person"]]
    if income == 7:
        found = recounted(tmp_path, rows, None, originals=their_sources(tmp_path), publish="shared")
        assert {name: one.changed for name, one in found.published["person"].items()} == {"income": 0.0}
        assert set(found.published) == {"person"}
        return
    with pytest.raises(VerificationError, match="'person': "):
        recounted(tmp_path, rows, None, originals=their_sources(tmp_path), publish="shared")


def test_where_another_source_is_missing_nothing_is_said_of_what_is_published_by_persons(tmp_path: Path) -> None:
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    found = recounted(tmp_path, rows, None, originals=their_sources(tmp_path) | {"visit": None}, publish="shared")
    assert not found.published.get("person")


def test_labels_whose_level_is_not_said_are_those_of_any(tmp_path: Path) -> None:
    rows = four_alike()
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    found = recounted(tmp_path, rows, None, originals=their_sources(tmp_path), said={"visit": {"ward": None}, "person": {}})
    assert found.penalties["visit"] == {"ward": 2 / 3 * 8}


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize("missing", [None, "person", "visit"])
def test_rows_of_the_sources_are_joined_to_their_persons_where_all_are_at_hand(tmp_path: Path, missing: str | None, promised: bool) -> None:
    described = deepcopy(JOB["tables"])
    described["person"]["columns"]["sensitive"] = ["income"] if promised else [{"name": "income", "publish": "shared"}]
    privacy = {"k": 4} | ({"l": {"condition": {"icd": {"distinct": 2}}}} if promised else {})
    job = load_tables_job(hospital_job(tmp_path, {}, tables=described, privacy=privacy))
    originals = their_sources(tmp_path) | ({missing: None} if missing else {})
    tables = {name: WrittenTables(job, {key: () for key in job.tables}, originals, {}).read(name) for name in job.tree.tables}
    with duckdb.connect() as connection:
        found = source_owners(job, originals, connection, tables)
        assert set(found) == (set() if missing else {"person", "visit", "condition"})
        for name, rows in (("person", 4), ("visit", 8), ("condition", 4)):
            if found:
                statement = f"SELECT count(*), count(DISTINCT person) FROM {row_person_table(found[name])}"
                assert connection.execute(statement).fetchall() == [(rows, 4)]
    plain = load_tables_job(hospital_job(tmp_path, {}))
    with duckdb.connect() as connection:
        assert source_owners(plain, their_sources(tmp_path), connection, tables) == {}, "nothing is counted by persons"


@pytest.mark.parametrize(
    ("insensitive", "columns", "right"),
    [
        (["nights"], ["visit_id", "person_id", "ward", "nights"], True), (["nights"], ["visit_id", "person_id", "ward"], False),
        (["nights"], ["visit_id", "person_id", "ward", "nights", "note"], False),
        (["nights"], ["visit_id", "person_id", "nights", "ward"], False), ("rest", ["visit_id", "person_id", "ward"], True),
        ("rest", ["visit_id", "person_id", "ward", "note", "nights"], True), ("rest", ["person_id", "visit_id", "ward", "nights"], False),
        ("rest", ["visit_id", "person_id", "ward", "nights", "name"], False),
    ],
)  # fmt: skip
def test_a_table_has_its_keys_its_quasi_identifiers_and_then_what_else_the_job_publishes(
    tmp_path: Path, insensitive: Any, columns: list[str], right: bool
) -> None:
    described = deepcopy(JOB["tables"])
    described["visit"]["columns"] |= {"insensitive": insensitive, "withheld": ["name"]}
    job = load_tables_job(hospital_job(tmp_path, {}, tables=described))
    pq.write_table(pa.table({name: ["a"] for name in columns}), tmp_path / "visit.parquet")
    written = WrittenTables(job, {"visit": [tmp_path / "visit.parquet"]}, {}, {})
    assert bool(_column_faults(written, "visit")) is not right


@pytest.mark.parametrize(("table", "column", "same"), [("person", "person_id", 1), ("visit", "visit_id", 3)])
def test_published_keys_that_are_keys_of_the_source_are_counted(tmp_path: Path, table: str, column: str, same: int) -> None:
    rows, sources = four_alike(), their_sources(tmp_path)
    rows["person"] = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    path = tmp_path / f"source_{table}.parquet"
    given, keys = pq.read_table(path), [row[column] for row in rows[table]]
    named = pa.array([*keys[:same], *map(str, given[column].to_pylist()[same:])])
    given = given.set_column(given.column_names.index(column), column, named)
    pq.write_table(given, path)
    sources[table] = Original(f"read_parquet('{path}')", given.schema)
    with pytest.raises(VerificationError) as error:
        recounted(tmp_path, rows, None, originals=sources)
    assert list(error.value.faults) == [f"{counted(same, 'key')} of '{table}' {verb_of(same, 'stand')} in the source"]


def test_published_keys_have_the_form_of_their_treatment(tmp_path: Path) -> None:
    rows = four_alike()
    described = deepcopy(JOB["tables"])
    described["person"]["columns"]["identifiers"] = [{"name": "person_id", "treatment": {"hash": {"key": {"env": "KEY"}}}}]
    job = load_tables_job(hospital_job(tmp_path, {}, tables=described))
    form = {f"p{number}": f"{number:064x}" if number else "p0" for number in range(4)}
    files = {}
    for name, table in rows.items():
        files[name] = [tmp_path / f"{name}.parquet"]
        write_rows(files[name][0], name, [row | {"person_id": form.get(row["person_id"])} for row in table])
    with pytest.raises(VerificationError) as error:
        recount_tables(WrittenTables(job, files, dict.fromkeys(rows), {}), tmp_path / "spill", "it")
    assert list(error.value.faults) == ["1 key of 'person' is not of the form that its treatment publishes"]
    write_rows(tmp_path / "missing.parquet", "condition", [row | {"person_id": None} for row in rows["condition"]])
    read = WrittenTables(job, files | {"person": [tmp_path / "missing.parquet"]}, {}, {}).read("person")
    with duckdb.connect() as connection:
        assert _pseudonym_faults(job, connection, read) == [], "a key that is missing has no form"


@pytest.mark.parametrize("linked", [True, False])
def test_a_table_of_links_alone_has_nothing_to_compare_and_one_without_links_all_of_its_columns(tmp_path: Path, linked: bool) -> None:
    tables = {"person": {key: value for key, value in JOB["tables"]["person"].items() if linked or key != "key"}}
    rows, sources = four_alike(), their_sources(tmp_path)
    files, kept = {"person": [tmp_path / "person.parquet"]}, ["person_id"] * linked + ["age", "income"]
    own = [row | {"age": "[0 - 39]"} for row in rows["person"]]
    pq.write_table(pa.Table.from_pylist(own).select(kept), files["person"][0])
    if linked:
        tables["stay"] = {"source": {"path": "stay/*.parquet"}, "references": {"person_id": "person"}}
        files["stay"], path = [tmp_path / "stay.parquet"], tmp_path / "source_stay.parquet"
        pq.write_table(pa.table({"person_id": [row["person_id"] for row in own]}), files["stay"][0])
        pq.write_table(pa.table({"person_id": [0, 1, 2, 3]}), path)
        sources["stay"] = Original(f"read_parquet('{path}')", pq.read_schema(path))
    job = load_tables_job(hospital_job(tmp_path, {}, tables=tables))
    written = WrittenTables(job, files, {name: sources[name] for name in tables}, {"person": {"age": 2}})
    found = recount_tables(written, tmp_path / "spill", "it")
    assert found.penalties == {"person": {"age": 1.0 * 4}} | ({"stay": {}} if linked else {})


@pytest.mark.parametrize(
    ("local", "said", "levels"),
    [
        (False, {"age": 2}, {"age": (2,)}), (False, {"age": None}, None), (False, {}, None), (True, {"age": 2}, {"age": ()}),
        (True, {}, {"age": ()}),
    ],
)  # fmt: skip
def test_labels_are_of_the_levels_that_are_said_unless_rows_of_one_column_may_differ(
    tmp_path: Path, local: bool, said: dict[str, int | None], levels: dict[str, tuple[int, ...]] | None
) -> None:
    parts: dict[str, Any] = {"method": {"name": "mondrian"}, "suppression": {"limit": 0}} if local else {}
    job = load_tables_job(hospital_job(tmp_path, {}, **parts))
    claim = _claim(WrittenTables(job, {}, {}, {"person": said}), table_job(job, "person"), "person")
    assert (claim.levels if claim else None) == levels
