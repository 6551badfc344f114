"""What several tables publish untreated is measured, told and counted in persons, and the rest takes in nothing that tells who they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.recount.histories import TablesRecount
from flows.tables import tables
from schemas.errors.refusals import PassthroughError, UntreatedError
from schemas.errors.tables import RelationError
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.publication.disclosures import check_recalled
from tasks.relational.making.reading import open_tables
from tasks.relational.plan import plan_tables
from tasks.relational.publication import PublishedTables
from tasks.relational.report import report_content
from tasks.relational.stated_figures import tables_stated_faults
from tasks.relational.verified import verify_tables
from tests.flows.relational.hospital import JOB, QIDS, hospital_job, hospital_tables, read_release
from tests.flows.relational.test_stated_figures import replaced
from tests.oracles.relational.histories import failing, hospital_histories, rare_choices

pytestmark = pytest.mark.ci
PERSONS, K = 100, 4


def with_columns(source: dict[str, pa.Table], table: str, **columns: list[Any]) -> dict[str, pa.Table]:
    """Return tables of which one has more columns."""
    made = source[table]
    for name, values in columns.items():
        made = made.append_column(name, pa.array(values))
    return source | {table: made}


def spec_of(*rest: str, **roles: dict[str, Any]) -> dict[str, Any]:
    """Return the job's tables, of which some take in the rest and others have other roles."""
    made = deepcopy(JOB["tables"])
    for name in rest:
        made[name]["columns"]["insensitive"] = "rest"
    for name, columns in roles.items():
        made[name]["columns"] |= columns
    return made


def test_the_rest_of_no_table_takes_in_what_may_tell_who_people_are(tmp_path: Path) -> None:
    source = hospital_tables(PERSONS, 3)
    mails = [f"canary{number % 7}@example.org" for number in range(len(source["visit"]))]
    codes = [number * 37 for number in range(PERSONS)]
    source = with_columns(with_columns(source, "visit", contact=mails), "person", code=codes)
    path = hospital_job(tmp_path, source, tables=spec_of("person", "visit"))
    for command in (lambda: tables(path, ()), lambda: plan_tables(load_tables_job(path), quick=True)):
        with pytest.raises(PassthroughError) as refused:
            command()
        assert refused.value.exit_code == 2
        assert "2 columns" in str(refused.value)
        assert "'code' of 'person': nearly unique" in str(refused.value)
        assert "'contact' of 'visit': e-mail addresses" in str(refused.value)
        assert "canary" not in str(refused.value)
    assert not (tmp_path / "releases").exists()
    by_name = spec_of(visit={"insensitive": ["nights", "contact"]}, person={"insensitive": ["code"]})
    planned = plan_tables(load_tables_job(hospital_job(tmp_path / "named", source, tables=by_name)), quick=True)
    assert planned.tables["visit"].passthrough["contact"].reasons == ("e-mail addresses",)
    assert list(planned.tables["person"].passthrough) == ["income", "code"]


@pytest.mark.parametrize(("distinct", "refused"), [(0.95, True), (0.5, False)])
def test_values_of_a_table_below_are_compared_with_its_persons_and_not_with_its_rows(
    tmp_path: Path, distinct: float, refused: bool
) -> None:
    source = hospital_tables(PERSONS, 3)
    whose = source["visit"]["person_id"].to_pylist()
    having = sorted(set(whose))
    assert len(whose) > 1.2 * len(having) > 0
    # Each person's own value in all of the person's rows, so that no row is alone with one.
    numbers = [having.index(person) % int(distinct * len(having)) for person in whose]
    source = with_columns(source, "visit", place=[number * 3 for number in numbers])
    source["visit"] = pa.concat_tables([source["visit"], source["visit"].set_column(
        0, "visit_id", pa.array([f"w{number}" for number in range(len(whose))]))])  # fmt: skip
    path = hospital_job(tmp_path, source, tables=spec_of("visit"))
    if not refused:
        plan_tables(load_tables_job(path), quick=True)
        return
    with pytest.raises(PassthroughError, match=r"1 column .*'place' of 'visit': nearly unique"):
        plan_tables(load_tables_job(path), quick=True)


def test_what_says_how_it_is_published_is_not_untreated(tmp_path: Path) -> None:
    source = hospital_tables(PERSONS, 3)
    shared = spec_of("visit", person={"sensitive": [{"name": "income", "publish": "shared"}]})
    planned = plan_tables(load_tables_job(hospital_job(tmp_path, source, tables=shared)), quick=True)
    assert {name: list(table.passthrough) for name, table in planned.tables.items()} == {
        "person": [], "visit": ["nights"], "condition": ["icd"],
    }  # fmt: skip


PLAIN = lambda value: value  # noqa: E731
UNTREATED = {"person": ["shoe"], "visit": ["nights"], "condition": []}
LABELLED = {name: [*QIDS[name], *UNTREATED[name]] for name in QIDS}


def published(folder: Path, *settings: str, **parts: Any) -> PublishedTables:
    """Publish a hospital whose persons and visits have untreated columns, of which one has nulls and one persons with several rows."""
    source = hospital_tables(PERSONS, 3)
    source = with_columns(source, "person", shoe=[None if number % 9 == 0 else 30 + number % 12 for number in range(PERSONS)])
    return tables(hospital_job(folder, source, tables=spec_of(person={"insensitive": ["shoe"]}), **parts), settings)


@pytest.fixture(scope="module", params=["all", "{rows: 1}"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PublishedTables:
    return published(tmp_path_factory.mktemp("untreated"), f"privacy.knows={request.param}")


def of_labels(names: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    return {table: dict.fromkeys(columns, PLAIN) for table, columns in names.items()}


def sharing(values: Mapping[Any, set[Any]], most: int) -> set[Any]:
    """Return the persons who have one of several values that at most so many persons have."""
    persons: dict[Any, set[Any]] = {}
    for person, of_person in values.items():
        for value in of_person:
            persons.setdefault(value, set()).add(person)
    return {person for shared in persons.values() if len(shared) <= most for person in shared}


def told(count: int) -> int:
    return count if count == 0 or count >= K else K


def test_each_column_is_counted_as_a_reader_would_count_it(made: PublishedTables) -> None:
    rows, whose = read_release(made.folder), {}
    for name, names in {"person": ["income", "shoe"], "visit": ["nights"], "condition": ["icd"]}.items():
        passthrough = made.manifest.tables[name].passthrough
        assert passthrough is not None
        assert list(passthrough) == names
        visits = {row["visit_id"]: row["person_id"] for row in rows["visit"]}
        for column, one in passthrough.items():
            counts = Counter(row[column] for row in rows[name] if row[column] is not None)
            whose = {}
            for row in rows[name]:
                person = row["person_id"] or visits[row["visit_id"]]
                whose.setdefault(person, set()).update({row[column]} - {None})
            assert (one.distinct, one.values) == (len(counts), counts.total())
            assert one.unique_records == list(counts.values()).count(1)
            assert one.unique_persons == told(len(sharing(whose, 1)))


def failing_by(made: PublishedTables, names: Mapping[str, Sequence[str]], conditions: Sequence[Any], k: int) -> set[Any]:
    """Return the persons whose rows, with only some columns, are those of fewer than k."""
    rows = read_release(made.folder)
    histories = hospital_histories(rows["person"], rows["visit"], conditions, of_labels(names))
    if made.manifest.privacy["knows"] == "all":
        return failing(histories, k)
    items = {person: [[*Counter(dict(part)).elements()] for part in parts] for person, (_, *parts) in histories.items()}
    return rare_choices({person: label for person, (label, *_) in histories.items()}, items, 1, k)


def test_persons_who_stand_out_are_counted_of_each_table_and_of_all(made: PublishedTables) -> None:
    rows = read_release(made.folder)
    unit = {row["person_id"]: (row["age"],) for row in rows["person"]}
    shoes = {row["person_id"]: {(row["shoe"],)} for row in rows["person"]}
    visits: dict[Any, set[Any]] = {person: set() for person in unit}
    labelled: dict[Any, set[Any]] = {person: set() for person in unit}
    for row in rows["visit"]:
        visits[row["person_id"]].add(row["nights"])
        labelled[row["person_id"]].add((unit[row["person_id"]], row["ward"], row["nights"]))
    persons = made.manifest.tables["person"].passthrough_together, made.manifest.tables["visit"].passthrough_together
    both = ({person: {(unit[person], shoe) for shoe in values} for person, values in shoes.items()}, labelled)
    for alone, with_labels, said in zip((shoes, visits), both, persons, strict=True):
        assert said is not None
        assert (said.unit, said.all) == ("person", len(unit))
        assert (said.unique_records, said.below_k) == (told(len(sharing(alone, 1))), told(len(sharing(alone, K - 1))))
        assert said.with_classes == told(len(sharing(with_labels, K - 1)))
    assert made.manifest.tables["condition"].passthrough_together is None

    whole = made.manifest.passthrough_together
    assert whole is not None
    # Conditions have no untreated column, so that nothing of them is known to whoever knows these.
    assert whole.unique_records == told(len(failing_by(made, UNTREATED, [], 2)))
    assert whole.below_k == told(len(failing_by(made, UNTREATED, [], K)))
    assert whole.with_classes == told(len(failing_by(made, LABELLED, rows["condition"], K)))
    assert whole.with_classes >= whole.below_k > 0


def test_persons_who_stand_out_by_sensitive_columns_are_counted_as_by_untreated_ones(made: PublishedTables) -> None:
    rows, tables = read_release(made.folder), made.manifest.tables
    age = {row["person_id"]: row["age"] for row in rows["person"]}
    visits = {row["visit_id"]: row["person_id"] for row in rows["visit"]}
    incomes = {row["person_id"]: {row["income"]} for row in rows["person"]}
    icds: dict[Any, set[Any]] = {}
    labelled: dict[Any, set[Any]] = {}
    for row in rows["condition"]:
        person = row["person_id"] or visits[row["visit_id"]]
        icds.setdefault(person, set()).add(row["icd"])
        labelled.setdefault(person, set()).add((age[person], row["chronic"], row["icd"]))
    incomes_and_ages = {person: {(age[person], *values)} for person, values in incomes.items()}
    for table, alone, with_labels in (("person", incomes, incomes_and_ages), ("condition", icds, labelled)):
        said = tables[table].sensitive_together
        assert said is not None
        assert (said.unit, said.all) == ("person", len(age))
        assert (said.unique_records, said.below_k) == (told(len(sharing(alone, 1))), told(len(sharing(alone, K - 1))))
        assert said.with_classes == told(len(sharing(with_labels, K - 1)))
    assert tables["visit"].sensitive_together is None
    whole = made.manifest.sensitive_together
    assert whole is not None
    sensitive = {"person": ["income"], "visit": [], "condition": ["icd"]}
    with_labels = {name: [*QIDS[name], *columns] for name, columns in sensitive.items()}
    assert whole.unique_records == told(len(failing_by(made, sensitive, rows["condition"], 2)))
    assert whole.below_k == told(len(failing_by(made, sensitive, rows["condition"], K)))
    assert whole.with_classes == told(len(failing_by(made, with_labels, rows["condition"], K)))
    assert whole.with_classes >= whole.below_k > 0
    sentences = [one for one in report_content(made.manifest)["sentences"] if "By the sensitive columns together" in one]
    assert [one.split(":")[0] for one in sentences] == ["'person', row by row", "'condition', row by row", "All tables"]


def test_no_maximum_risk_is_claimed_where_untreated_columns_tell_more(made: PublishedTables, tmp_path: Path) -> None:
    sentences = report_content(made.manifest)["sentences"]
    assert "whatever k is, and no maximum risk is claimed" in sentences[0]
    assert "accept_untreated" not in sentences[0]
    assert not [one for one in sentences if "chance of at most" in one]
    assert [one for one in sentences if "No maximum risk is claimed: by the untreated columns together" in one]
    assert [one for one in sentences if one.startswith("'nights' of 'visit' is published as it is: 5 values")]
    knows = made.manifest.privacy["knows"]
    settings = [f"privacy.knows={'all' if knows == 'all' else '{rows: 1}'}", "tables.visit.columns.insensitive=[]"]
    source = hospital_tables(PERSONS, 3)
    source["visit"] = source["visit"].drop_columns(["nights"])
    claimed = tables(hospital_job(tmp_path / "none", source), settings)
    assert claimed.manifest.passthrough_together is None
    assert [one for one in report_content(claimed.manifest)["sentences"] if "chance of at most 1 in" in one]


def test_columns_that_look_identifying_leave_no_maximum_risk_to_claim(tmp_path: Path) -> None:
    source = hospital_tables(PERSONS, 3)
    source = with_columns(source, "person", mail=[f"canary{number % 3}@example.org" for number in range(PERSONS)])
    found = tables(hospital_job(tmp_path, source, tables=spec_of(person={"sensitive": ["income", "mail"]}, visit={"insensitive": [],
        "sensitive": ["nights"]})), ())  # fmt: skip
    sentences = " ".join(report_content(found.manifest)["sentences"])
    assert found.manifest.passthrough_together is None
    assert "may tell who people are ('mail')" in sentences
    assert "Warning of 'person': Column 'mail' is published as it is and looks like: e-mail addresses" in sentences
    assert "chance of at most" not in sentences


def test_columns_of_joined_tables_that_are_called_alike_are_refused(tmp_path: Path) -> None:
    # By one name for both, codes that tell who people are were not counted, and a maximum risk was claimed.
    source = with_columns(hospital_tables(PERSONS, 3), "person", **{"visit.nights": [number * 37 for number in range(PERSONS)]})
    path = hospital_job(tmp_path, source, tables=spec_of(person={"sensitive": ["income", "visit.nights"]}))
    for command in (lambda: tables(path, ()), lambda: plan_tables(load_tables_job(path), quick=True)):
        with pytest.raises(RelationError, match="of 'person' is called as 'nights' of 'visit' is where the tables are joined"):
            command()
    mails = [f"a{number % 3}@example.org" for number in range(PERSONS)]
    other = with_columns(hospital_tables(PERSONS, 3), "person", **{"visit.income": mails})
    found = tables(hospital_job(tmp_path / "other", other, tables=spec_of(person={"sensitive": ["income", "visit.income"]}, visit={
        "insensitive": [], "sensitive": ["nights"]})), ())  # fmt: skip
    assert "may tell who people are ('visit.income')" in " ".join(report_content(found.manifest)["sentences"])


STATED = {
    "tables.visit.passthrough.nights.distinct": 6,
    "tables.visit.passthrough.nights.unique_records": 1,
    "tables.visit.passthrough.nights.unique_persons": K,
    "tables.visit.passthrough.nights.values": 0,
    "tables.visit.passthrough.nights.looked_at": 1000,
    "tables.visit.passthrough": {},
    "tables.visit.passthrough_together.below_k": 50,
    "tables.person.passthrough_together": None,
    "passthrough_together.with_classes": 0,
    "passthrough_together": None,
    "tables.condition.sensitive_together.unique_records": 50,
    "tables.person.sensitive_together": None,
    "tables.visit.sensitive_together": {"unique_records": 0, "below_k": 0, "with_classes": 0, "unit": "person", "all": 1},
    "sensitive_together.below_k": 0,
    "sensitive_together": None,
}


@pytest.mark.parametrize("place", STATED)
def test_the_recount_holds_what_a_manifest_says_of_untreated_columns_against_the_files(made: PublishedTables, place: str) -> None:
    job = load_tables_job(made.folder.parents[1] / "job.yaml", [f"privacy.knows={json.dumps(made.manifest.privacy['knows'])}"])
    recount = made_recount(job, made.folder)
    assert tables_stated_faults(made.manifest, recount, job, sources_were_read=True) == []
    faults = tables_stated_faults(replaced(made.manifest, place, STATED[place]), recount, job, sources_were_read=True)
    assert [one for one in faults if ("sensitive columns" if "sensitive" in place else "untreated columns") in one]


@cache
def recount_of(folder: Path, knows: str) -> TablesRecount:
    job = load_tables_job(folder.parents[1] / "job.yaml", [f"privacy.knows={knows}"])
    recount = verify_tables(job, folder).recount
    assert recount is not None
    return recount


def made_recount(job: TablesJob, folder: Path) -> TablesRecount:
    """Return the recount of a release, made once."""
    known = job.privacy.known_rows
    return recount_of(folder, "all" if known is None else f"{{rows: {known}}}")


def test_without_a_job_columns_are_counted(made: PublishedTables) -> None:
    found = verify_tables(None, made.folder)
    assert found.recount is not None
    assert {name: list(columns) for name, columns in found.recount.passed.items()}["visit"] == ["nights"]
    assert [one for one in found.unverified if "untreated or sensitive columns together was not counted" in one]


def test_a_policy_refuses_a_release_in_which_fewer_than_k_share_untreated_columns(
    made: PublishedTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text("{version: 1, accept_untreated: false}")
    monkeypatch.setenv("SKALD_POLICY", str(tmp_path / "policy.yaml"))
    path, known = made.folder.parents[1] / "job.yaml", made.manifest.privacy["knows"]
    knows = f"privacy.knows={known if known == 'all' else '{rows: 1}'}"
    with pytest.raises(UntreatedError, match="is published, single out fewer than k") as refused:
        tables(path, (knows,))
    assert refused.value.exit_code == 3
    with open_tables(load_tables_job(path, (knows,))) as run:
        shared = made.manifest.passthrough_together
        assert shared is not None
        few = made.manifest.model_copy(update={"passthrough_together": shared.model_copy(update={"below_k": 0})})
        check_recalled(run, few)


def test_such_a_release_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy.yaml").write_text("{version: 1, accept_untreated: false}")
    monkeypatch.setenv("SKALD_POLICY", str(tmp_path / "policy.yaml"))
    with pytest.raises(UntreatedError, match=r"By the untreated columns together .* persons share"):
        published(tmp_path / "after")
    assert not list((tmp_path / "after" / "releases").glob("hospital-*"))
