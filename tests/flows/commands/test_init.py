"""``skald init`` drafts a job that runs as it is, without a cell value, and never calls a column harmless."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.formats.person_proposals import choose_person, person_candidates, propose_person
from core.formats.proposals import (
    ColumnProfile,
    Kind,
    Proposal,
    bin_widths,
    code_bin_sizes,
    propose_role,
)
from flows.cli import app
from schemas.job.job import load_job
from schemas.reading.job_files import parse
from schemas.registry.hierarchies import WidthsHierarchy
from tasks.planning.draft_text import person_question, yaml_name
from tasks.planning.evidence import has_repeats
from tasks.planning.profiles import planning_connection
from tests.conftest import CommandLine
from tests.jobs import people, write_csv, write_parquet

CANARY = "CANARY"
ROWS = 400


def records() -> pa.Table:
    """Return columns of every kind, some with names that tell nothing or would break YAML."""
    return pa.table(
        {
            "Patient-ID": [f"{CANARY}{row}" for row in range(ROWS)],
            "birthDate": [date(1950, 1, 1) + timedelta(days=row * 37) for row in range(ROWS)],
            "seen": [datetime(2020, 1, 1, 8) + timedelta(hours=row) for row in range(ROWS)],
            "zip_code": [f"{row % 40 * 311:05d}" for row in range(ROWS)],
            "plz": [10_000 + row % 90 * 7 for row in range(ROWS)],
            "sex": [CANARY[: 1 + row % 2] for row in range(ROWS)],
            "smoker": [row % 3 == 0 for row in range(ROWS)],
            "height": [150 + row % 400 / 10 for row in range(ROWS)],
            "diagnosis": [f"{CANARY} {row % 9}" for row in range(ROWS)],
            "q17: [x], {y} # z": [row % 11 for row in range(ROWS)],
            "no": [row % 5 for row in range(ROWS)],
            "batch": [f"{CANARY}-{row % 4}" for row in range(ROWS)],
            "token": [f"{CANARY}-{row}" for row in range(ROWS)],
            "told": [f"{CANARY} said at length what nobody else would have said {row % 3}" for row in range(ROWS)],
        }
    )


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
def test_a_draft_is_a_job_before_the_user_has_decided(direct: CommandLine, kind: str) -> None:
    table, folder = records(), direct.folder
    if kind == "parquet":
        write_parquet(folder / "in [put]", table, files=2)
    else:
        write_csv(folder / "in [put]" / f"one.{kind}", table, ";")
    done = direct("init", "in [put]", "--out", "first.yaml")
    # The sample's types may be new to a loop.
    assert (done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("Compiling ")]) == (0, [])
    job = folder / "first.yaml"
    assert CANARY not in done.stdout + job.read_text()
    for name in table.column_names:
        assert name in done.stdout
    planned = direct("plan", "first.yaml")
    assert planned.returncode == 0, planned.stderr
    columns = load_job(job).columns
    assert columns.identifiers == ["Patient-ID", "token"]
    given = {
        *columns.identifiers,
        *columns.withheld,
        *(qid.name for qid in columns.quasi_identifiers),
        *columns.sensitive,
        *columns.insensitive,
    }
    assert given == set(table.column_names)
    assert {"diagnosis", "q17: [x], {y} # z", "no"} <= set(columns.sensitive)
    # What is published is published so that k people have each value.
    assert set(columns.ways) == {*columns.sensitive, *columns.insensitive}
    assert set(columns.ways.values()) == {"shared"}
    assert load_job(job).privacy.l["diagnosis"].distinct == 3
    kinds: dict[str, Any] = {qid.name: qid.hierarchy for qid in columns.quasi_identifiers}
    assert kinds["zip_code"].prefix == [5, 4, 3, 2, 1]
    assert kinds["plz"].encode
    assert kinds["birthDate"].kind == kinds["seen"].kind == "date"


def visits(name: str, people: int, rows: int = 6000) -> pa.Table:
    """Return records of people, each with a number of the visit and other columns that repeat as well."""
    random = np.random.default_rng(people)
    return pa.table(
        {
            "visit_id": range(rows),
            name: [f"{CANARY}{number}" for number in random.integers(0, people, rows)],
            "age": random.integers(18, 90, rows),
            "zip": random.integers(10_000, 12_000, rows),
            "ward": [f"ward {number}" for number in random.integers(0, 12, rows)],
            "diagnosis": [f"{CANARY} {number}" for number in random.integers(0, 9, rows)],
        }
    )


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", ["patient_id", "x17", "q: [x] # y", "holder"])
@pytest.mark.parametrize("people", [200, 1000, 2500])
def test_the_column_of_people_is_proposed_whatever_its_name(direct: CommandLine, kind: str, name: str, people: int) -> None:
    table = visits(name, people)
    if kind == "parquet":
        write_parquet(direct.folder / "in", table)
    else:
        write_csv(direct.folder / "in" / "one.csv", table)
    assert direct("init", "in").returncode == 0
    text = (direct.folder / "job.yaml").read_text()
    assert CANARY not in text
    columns = load_job(direct.folder / "job.yaml").columns
    assert columns.person == [name]
    assert name in columns.identifiers
    [figure] = re.findall(r"  person: .*each of ([\d.]+) records on average", text)
    assert float(figure) == pytest.approx(len(table) / people, rel=0.1)
    assert direct("plan", "job.yaml").returncode == 0


@pytest.mark.ci
@pytest.mark.parametrize("people", [1, 6000])
def test_no_person_is_proposed_where_values_are_few_or_never_repeat(direct: CommandLine, people: int) -> None:
    table = visits("holder", people)
    if people == 6000:
        table = table.set_column(1, "holder", pa.array([f"{CANARY}{row}" for row in range(len(table))]))
    write_parquet(direct.folder / "in", table)
    assert direct("init", "in").returncode == 0
    assert load_job(direct.folder / "job.yaml").columns.person == []


def nested(person: str, visit: str, ward: str, people: int, visits_each: int = 5, records: int = 4) -> pa.Table:
    """Return records of visits, each of one person and in one ward."""
    random = np.random.default_rng(5)
    whose = np.repeat(np.arange(people), visits_each * records)
    visit_of = np.arange(len(whose)) // records
    return pa.table(
        {
            visit: 500_000 + visit_of,
            person: [f"{CANARY}{number}" for number in whose],
            ward: random.integers(0, 160, visit_of[-1] + 1)[visit_of] + 70_000,
            "age": 20 + whose % 60,
            "diagnosis": [f"{CANARY} {number}" for number in random.integers(0, 9, len(whose))],
        }
    )


@pytest.mark.ci
@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("names", "people", "each"),
    [
        (("person_id", "visit_id", "ward_id"), 60, 30),
        (("patient", "encounter_id", "hospital_id"), 400, 5),
        (("memberNo", "claim_id", "provider_id"), 400, 5),
        (("customer_id", "order_id", "store_id"), 300, 4),
        (("subject_key", "patient_visit_id", "x3"), 300, 4),
        # No name tells: the coarser of the two that can be people.
        (("x1", "x2", "ward_id"), 300, 4),
    ],
)
def test_of_nested_units_the_person_is_proposed_and_not_the_visit(
    direct: CommandLine, names: tuple[str, str, str], people: int, each: int
) -> None:
    write_parquet(direct.folder / "in", nested(*names, people, each))
    assert direct("init", "in").returncode == 0
    columns = load_job(direct.folder / "job.yaml").columns
    assert columns.person == [names[0]]
    assert names[0] in columns.identifiers


def test_visits_are_no_persons_where_nobody_else_is_there(direct: CommandLine) -> None:
    write_parquet(direct.folder / "in", nested("person", "visit_id", "ward_id", 300, 4).drop_columns(["person"]))
    assert direct("init", "in").returncode == 0
    assert load_job(direct.folder / "job.yaml").columns.person == []


@given(st.permutations(range(4)), st.integers(0, 3))
def test_of_a_chain_of_units_the_coarsest_is_the_person_in_whatever_order(order: list[int], same: int) -> None:
    # Column n determines n + 1 and all coarser ones; the last two may be one unit under two names.
    columns = [propose_role(ColumnProfile(f"x{place}", "integer", 4000, 1600 // 2**place)) for place in range(4)]
    unit = {column.profile.name: min(place, same) for place, column in enumerate(columns)}

    def determines(finer: Proposal, coarser: Proposal) -> bool:
        return unit[finer.profile.name] <= unit[coarser.profile.name]

    candidates = person_candidates([columns[place] for place in order])
    found = propose_person(candidates, determines)
    assert found is not None
    assert unit[found.profile.name] == max(unit.values())


def chosen(determining: set[tuple[str, str]], *columns: tuple[str, int], repeating: str = "") -> tuple[str, set[str], bool]:
    """The person of 6,000 records, its rivals and whether it is unsure, of columns with so many values; one repeats a few."""
    proposals = [propose_role(ColumnProfile(name, "text", 6000, distinct, longest=8, mean_length=8.0)) for name, distinct in columns]
    choice = choose_person(
        proposals,
        lambda _: True,
        lambda one, other: (one.profile.name, other.profile.name) in determining,
        lambda one: one.profile.name == repeating,
    )
    person = choice.person.profile.name if choice.person else ""
    assert bool(person_question(choice)) == bool(person and (choice.rivals or choice.unsure))
    for question in person_question(choice):
        assert question.columns[0] == person and set(question.columns[1:]) == {one.profile.name for one in choice.rivals}
    return person, {one.profile.name for one in choice.rivals}, bool(person) and choice.unsure


def test_whose_records_are_is_asked_where_columns_are_as_likely() -> None:
    equals = ("x1", 900), ("x2", 800)
    assert chosen(set(), *equals) == ("x1", {"x2"}, False)
    # One unit under two names, and nested units, leave nothing to ask.
    assert chosen({("x1", "x2"), ("x2", "x1")}, *equals) == ("x1", set(), False)
    assert chosen({("x1", "x2")}, *equals) == ("x2", set(), False)
    # A name decides.
    assert chosen(set(), *equals, ("patient_id", 700)) == ("patient_id", set(), False)


@pytest.mark.parametrize(("name", "distinct", "asked"), [
    ("key", 4000, True), ("key", 5990, False), ("order_key", 4000, False), ("shelf", 4000, False), ("key", 60, False),
])  # fmt: skip
def test_of_a_key_that_repeats_it_is_asked_whether_it_is_the_person(name: str, distinct: int, asked: bool) -> None:
    assert chosen(set(), (name, distinct)) == ((name, set(), True) if asked else ("", set(), False))


@pytest.mark.parametrize(("name", "repeating", "asked"), [
    ("patient_id", "patient_id", True), ("patient_id", "", False), ("visit_id", "visit_id", False), ("patient", "patient", True),
    ("patient_age", "patient_age", False), ("doctor_id", "doctor_id", False),
])  # fmt: skip
def test_of_a_persons_number_that_repeats_once_it_is_asked_whether_it_is_the_person(name: str, repeating: str, asked: bool) -> None:
    assert chosen(set(), (name, 5995), repeating=repeating) == ((name, set(), True) if asked else ("", set(), False))


@given(st.lists(st.none() | st.integers(0, 40), max_size=12))
def test_a_column_has_repeats_where_two_records_have_a_value(values: list[int | None]) -> None:
    texts = [None if value is None else f"P{value}" for value in values]
    with planning_connection() as connection:
        connection.register("source", pa.table({"who": pa.array([*texts, *["-", "n/a", ""] * 2], pa.string())}))
        said = [one for one in values if one is not None]
        column = ColumnProfile("who", "text", len(values), len(set(said)), mean_length=3.0)
        assert has_repeats(connection, column) == (len(set(said)) < len(said))


@pytest.mark.ci
def test_columns_of_which_nothing_tells_are_published_shared_and_cancel_no_claim(direct: CommandLine) -> None:
    random = np.random.default_rng(3)
    rows = 2000
    unknown = {f"q{number}": random.integers(0, 100, rows) for number in range(14)}
    write_parquet(direct.folder / "in", pa.table({"age": random.integers(20, 60, rows), "sex": random.choice(["f", "m"], rows)} | unknown))
    assert direct("init", "in").returncode == 0
    columns = load_job(direct.folder / "job.yaml").columns
    assert (columns.withheld, columns.identifiers, columns.insensitive) == ([], [], [])
    assert set(columns.sensitive) == unknown.keys()
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "repeat" not in done.stdout
    assert "keeps 0.09" in done.stdout


@pytest.mark.ci
def test_a_draft_of_nested_and_unreadable_columns_leaves_them_out(direct: CommandLine) -> None:
    table = people(50).append_column("visits_at", pa.array([[1, 2]] * 50)).append_column("scan", pa.array([b"x"] * 50))
    write_parquet(direct.folder / "people", table)
    assert direct("init", "people").returncode == 0
    job = yaml.safe_load((direct.folder / "job.yaml").read_text())
    assert {"visits_at", "scan"} <= set(job["columns"]["withheld"])


def test_a_job_that_exists_is_never_written_over(direct: CommandLine) -> None:
    write_parquet(direct.folder / "people", people(50))
    (direct.folder / "job.yaml").write_text("mine")
    done = direct("init", "people")
    assert done.returncode == 2
    assert "exists and stays as it is" in done.stderr
    assert (direct.folder / "job.yaml").read_text() == "mine"


def test_what_cannot_be_drafted_is_told_in_one_sentence(direct: CommandLine) -> None:
    (direct.folder / "empty").mkdir()
    (direct.folder / "both").mkdir()
    write_csv(direct.folder / "both" / "a.csv", people(5))
    write_parquet(direct.folder / "both", people(5))
    (direct.folder / "broken.parquet").write_text(CANARY)
    write_csv(direct.folder / "bare.csv", people(0))
    for source, sentence in {
        "nothing": "Not found: 'nothing'.",
        "empty": "No data file was found in 'empty'",
        "both": "different formats",
        "broken.parquet": "cannot be read as parquet",
        "bare.csv": "is empty",
    }.items():
        done = direct("init", source)
        assert (done.returncode, done.stdout) == (2, ""), source
        assert sentence in done.stderr
        assert CANARY not in done.stderr
    for option in ("--table", "--query", "--type"):
        done = direct("init", "empty", "both", option, "x=decimal(4,1)")
        assert (done.returncode, "--table, --query and --type are for one source" in done.stderr) == (2, True), option
    assert not (direct.folder / "job.yaml").exists()


@given(st.text(min_size=1))
def test_any_name_is_the_same_when_the_job_is_read(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    data, faults = parse(f"a: {{name: {yaml_name(name)}, b: 1}}  # why\nc: {yaml_name(name)}\n")
    assert (data, faults) == ({"a": {"name": name, "b": 1}, "c": name}, [])


@given(st.floats(0, 1e15), st.booleans())
def test_proposed_widths_nest(span: float, whole: bool) -> None:
    found = bin_widths(span, integers=whole)
    assert WidthsHierarchy.model_validate_json(f'{{"widths": [{", ".join(found)}]}}', strict=False).widths
    assert found[0] == "1" or not whole


@given(st.integers(0, 10**9))
def test_proposed_ranks_nest(distinct: int) -> None:
    assert WidthsHierarchy.model_validate({"widths": [int(rank) for rank in code_bin_sizes(distinct)], "encode": True})


@given(st.text(), st.sampled_from(get_args(Kind)), st.integers(1, 99), st.integers(0, 99))
def test_what_is_published_as_values_is_shared_and_an_identifiers_name_counts_but_where_it_only_says_whether_there_is_one(
    name: str, kind: Kind, values: int, distinct: int
) -> None:
    assert propose_role(ColumnProfile(name, kind, values, distinct)).publish_setting in {None, "shared"}
    named = propose_role(ColumnProfile(f"{name} email", kind, values, distinct))
    flag = kind == "boolean" or (distinct <= 3 and named.profile.mean_records >= 20)
    assert named.publish_setting is None or flag


@pytest.mark.ci
def test_counts_decide_before_names_and_codes_get_ladders_and_outliers_no_widths(direct: CommandLine) -> None:
    random = np.random.default_rng(0)
    rows = 2000
    table = pa.table(
        {
            "ward_id": [f"w{number}" for number in random.integers(0, 8, rows)],
            "number_of_visits": random.integers(0, 12, rows),
            "reading": [*range(10**6, 10**6 + 1500), *random.integers(0, 40, 500)],
            "q1": random.choice(["A00.1", "A01.0", "B20.1", "B20.2", "C34.9"], rows),
            "dose": np.append(random.integers(0, 1000, rows - 1) / 10, 1e9),
        }
    )
    write_parquet(direct.folder / "in", table)
    assert direct("init", "in").returncode == 0
    columns = load_job(direct.folder / "job.yaml").columns
    assert columns.identifiers == []
    assert {"reading", "dose", "number_of_visits", "q1"} <= set(columns.sensitive)
    assert [qid.name for qid in columns.quasi_identifiers] == ["ward_id"]
    # Figures of which one is very frequent come again and again, and are nobody.
    assert columns.person == []


def test_json_takes_the_place_of_the_screen_and_not_of_the_job() -> None:
    """A program finds the drafted job under ``job`` of what is printed: see the test below."""
    [option] = [one for one in typer.main.get_command(app).commands["init"].params if one.name == "as_json"]  # type: ignore[attr-defined]
    assert "the job is written" in option.help
    assert "nothing else" not in option.help


@pytest.mark.ci
def test_json_says_roles_and_questions_and_accepting_says_which(direct: CommandLine) -> None:
    random = np.random.default_rng(6)
    rows = 1500
    table = pa.table(
        {
            "visit_id": range(rows),
            "age": random.integers(20, 80, rows),
            "education": random.choice(["a", "b", "c", "d"], rows),
            "latitude": random.normal(50, 1, rows),
            "longitude": random.normal(8, 1, rows),
            "diagnosis": random.choice(list("uvwxyz"), rows),
            "salary": np.exp(random.normal(10, 1, rows)).round(2),
            "fnlwgt": random.integers(10_000, 900_000, rows),
            **{f"a{number}": random.integers(1, 6, rows) for number in range(9)},
            "code": [f"{CANARY}{row}" for row in range(rows)],
        }
    )
    table = table.append_column("educational-num", pa.array([ord(one) for one in table["education"].to_pylist()]))
    write_parquet(direct.folder / "in", table)
    done = direct("init", "in", "--json", "--accept")
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout
    said = json.loads(done.stdout)
    assert load_job(direct.folder / said["job"]).columns.roles().keys() == set(table.column_names)
    assert [one["name"] for one in said["columns"]] == table.column_names
    roles = {one["name"]: one["role"] for one in said["columns"]}
    assert roles["visit_id"] == "key"
    assert roles["fnlwgt"] == "weight"
    assert roles["educational-num"] == "withheld"
    assert roles["education"] == roles["age"] == roles["latitude"] == roles["longitude"] == "quasi_identifier"
    assert all(0 <= one["confidence"] <= 1 and one["because"] for one in said["columns"])
    assert {one["name"] for one in said["columns"] if one.get("publish") == "shared"} == {
        name for name, role in roles.items() if role in {"sensitive", "insensitive", "weight"}
    }
    # Nine answers are one question, and the draft has the safest answer.
    assert len(said["questions"]) <= 2
    assert all(roles[name] == one["safest"] for one in said["questions"] for name in one["columns"])
    assert {f"a{number}" for number in range(9)} <= {name for one in said["questions"] for name in one["columns"]}
    text = (direct.folder / "job.yaml").read_text()
    assert "ACCEPTED" in text
    assert "DECIDE" not in text
    columns = load_job(direct.folder / "job.yaml").columns
    assert columns.identifiers == ["visit_id", "code"]
    assert columns.ways["salary"] == "shared"


def test_a_folder_of_other_files_below_a_partition_is_told_as_any_folder(direct: CommandLine) -> None:
    write_csv(direct.folder / "src" / "year=2020" / "a.csv", people(20))
    done = direct("init", "src", "--out", "job.yaml")
    assert done.returncode == 2
    assert "No data file was found in 'src'" in done.stderr
