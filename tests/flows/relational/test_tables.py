"""A release of several tables, held against histories that are written out by hand."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skald
from flows.commands.tables import report_of_tables
from flows.tables import tables
from schemas.errors.base import SourceError, StorageError, VerificationError
from schemas.errors.refusals import PolicyError
from schemas.errors.tables import HistoryError, RelationError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.publication import PublishedTables
from tasks.relational.verified import verify_tables
from tests.flows.relational.hospital import JOB, LEVELS, QIDS, hospital_job, hospital_tables, read_release
from tests.oracles.relational.histories import children, failing, hospital_histories, rare_choices

pytestmark = pytest.mark.ci

AS_IT_IS = {table: {name: (lambda value: value) for name in names} for table, names in QIDS.items()}


def filled(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return source rows; whose condition it is may be said by its visit alone."""
    whose = {visit["visit_id"]: visit["person_id"] for visit in rows["visit"]}
    conditions = [row | {"person_id": whose.get(row["visit_id"], row["person_id"])} for row in rows["condition"]]
    return rows | {"condition": conditions}


def check_release(made: PublishedTables, k: int) -> dict[str, list[dict[str, Any]]]:
    """Join the files of a release and counts its histories; return its rows."""
    rows = read_release(made.folder)
    persons, visits = ({row[key] for row in rows[name]} for name, key in (("person", "person_id"), ("visit", "visit_id")))
    assert {row["person_id"] for row in (*rows["visit"], *rows["condition"])} <= persons
    assert {row["visit_id"] for row in rows["condition"]} <= {*visits, None}
    shared = Counter(hospital_histories(rows["person"], rows["visit"], rows["condition"], AS_IT_IS).values())
    assert min(shared.values()) >= k
    # Whoever joins fewer of the tables sees coarser histories.
    for some in ((rows["visit"], []), ([], rows["condition"])):
        assert min(Counter(hospital_histories(rows["person"], *some, AS_IT_IS).values()).values()) >= k
    assert (made.manifest.histories, made.manifest.min_class) == (len(shared), min(shared.values()))
    assert made.manifest.persons.released == len(persons) == len(rows["person"])
    return rows


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(8))
def test_the_best_levels_are_those_of_an_enumeration(tmp_path: Path, seed: int) -> None:
    """Each value of a person who is left out counts as lost, and ages by the length of their bins."""
    source = hospital_tables(120, seed)
    made = tables(hospital_job(tmp_path, source), ())
    check_release(made, 4)
    rows, best = filled({name: table.to_pylist() for name, table in source.items()}), []
    for node in itertools.product(*(range(len(LEVELS[name])) for [name] in QIDS.values())):
        labels = {table: {name: LEVELS[name][level]} for (table, [name]), level in zip(QIDS.items(), node, strict=True)}
        lost = failing(hospital_histories(rows["person"], rows["visit"], rows["condition"], labels), 4)
        if len(lost) <= 0.3 * 120:
            best.append((len(lost), node))
    levels = tuple(made.manifest.tables[table].levels[name] for table, [name] in QIDS.items())
    assert (120 - made.manifest.persons.released, levels) in best
    # No node that passes is finer in every table: it could not cost more.
    assert not [node for _, node in best if node != levels and all(one <= other for one, other in zip(node, levels, strict=True))]


@pytest.fixture
def source() -> dict[str, pa.Table]:
    return hospital_tables(150, 3)


def test_neither_order_nor_chunks_change_what_is_published_and_a_run_again_is_none(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    """With the same secret the same rows are the same release, whatever files they come in."""
    path = hospital_job(tmp_path / "one", source, orphans="drop")
    made = tables(path, ())
    again = tables(path, ())
    assert (made.new, again.new, again.manifest) == (True, False, made.manifest)
    other = tables(path, ("chunk_rows=40", "target=elsewhere", "artifacts=delete"))
    one, two = ([path.read_bytes() for path in sorted((run.folder / "data").rglob("*.parquet"))] for run in (made, other))
    assert one == two
    released = check_release(made, 4)
    known = {str(row["person_id"]) for row in source["person"].to_pylist()} | set(source["visit"]["visit_id"].to_pylist())
    assert not known & {row["person_id"] for row in released["person"]}
    assert not known & {row["visit_id"] for row in released["visit"]}
    coarser = tables(path, ("privacy.k=5",))
    assert not {row["person_id"] for row in read_release(coarser.folder)["person"]} & {row["person_id"] for row in released["person"]}


def test_what_is_altered_in_a_release_is_noticed(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    path = hospital_job(tmp_path, source)
    made = tables(path, ())
    job = load_tables_job(path)
    assert verify_tables(job, made.folder).notes == ()
    with pytest.raises(VerificationError, match="have a history that fewer than 40 share") as raised:
        verify_tables(load_tables_job(path, ("privacy.k=40",)), made.folder)
    assert "privacy.k is 4 in the release and 40 in the job. If the release was made with --set" in str(raised.value)
    [note] = verify_tables(load_tables_job(path, ("suppression.limit=0.5",)), made.folder).notes
    assert "their keyed digests differ, or the secret of the work folder is another than then. If the release was made with --set" in note
    manifest = json.loads((made.folder / "manifest.json").read_text())
    [part] = (made.folder / "data" / "visit").iterdir()
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(VerificationError, match="1 data file altered since publication"):
        verify_tables(job, made.folder)
    (made.folder / "manifest.json").write_text(json.dumps(manifest | {"histories": 1}, indent=2) + "\n")
    with pytest.raises(VerificationError, match=r"manifest\.json was altered since publication"):
        verify_tables(job, made.folder)
    with pytest.raises(StorageError, match="altered"):
        tables(path, ())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b"{", b"[", "cannot be read as a manifest"),
        (b'"histories"', b'"hisuories"', "cannot be read as a manifest"),
        (b'"format": 3', b'"format": x', "cannot be read as a manifest"),
        (b"", b"", "is missing"),
    ],
)
def test_a_damaged_manifest_makes_no_release_of_one_table(
    tmp_path: Path, source: dict[str, pa.Table], before: bytes, after: bytes, said: str
) -> None:
    path = hospital_job(tmp_path, source)
    folder = tables(path, ()).folder
    content = (folder / "manifest.json").read_bytes()
    assert before in content
    (folder / "manifest.json").unlink()
    if before:
        (folder / "manifest.json").write_bytes(content.replace(before, after, 1))
    for job in (path, None):
        with pytest.raises(VerificationError, match=rf"manifest\.json {said}"):
            skald.verify(folder, job)
    for part in (folder / "data").rglob("*.parquet"):
        part.unlink()
    for kept in (folder / "data").iterdir():
        kept.rmdir()
    (folder / "data").rmdir()
    with pytest.raises(StorageError, match="is not a release"):
        skald.verify(folder, path)


def resealed(folder: Path, **parts: Any) -> None:
    """Write the manifest anew: with some parts, and with the size and digest that each data file has now."""
    file = folder / "manifest.json"
    said = json.loads(file.read_text()) | parts
    for one in said["files"]:
        content = (folder / one["path"]).read_bytes()
        one |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    unsealed = json.dumps(said | {"seal": ""}, indent=2) + "\n"
    seal = hashlib.sha256(unsealed.encode()).hexdigest()
    file.write_text(unsealed.replace('"seal": ""', f'"seal": "{seal}"'))


@pytest.mark.parametrize("knows", ["all", "{rows: 1}"])
def test_without_a_job_histories_are_counted_by_what_the_manifest_states(tmp_path: Path, source: dict[str, pa.Table], knows: str) -> None:
    made = tables(hospital_job(tmp_path, source), (f"privacy.knows={knows}",))
    found = verify_tables(None, made.folder)
    assert found.recount is not None
    assert (found.recount.smallest, found.recount.histories) == (found.manifest.min_class, found.manifest.histories)
    # What takes the job was not counted, and it is said.
    assert found.unverified
    [part] = (made.folder / "data" / "person").iterdir()
    rows = pq.read_table(part)
    label = next(name for name in found.manifest.tables["person"].levels if pa.types.is_string(rows[name].type))
    alone = pa.array(["alone", *rows[label].to_pylist()[1:]], rows[label].type)
    pq.write_table(rows.set_column(rows.column_names.index(label), label, alone), part)
    resealed(made.folder)
    with pytest.raises(VerificationError, match="share" if knows == "all" else "choices"):
        verify_tables(None, made.folder)


@pytest.mark.parametrize("parts", [{"references": {}}, {"key_columns": {}}, {"privacy": {}}])
def test_what_states_too_little_is_not_counted_and_not_called_verified(
    tmp_path: Path, source: dict[str, pa.Table], parts: dict[str, Any]
) -> None:
    made = tables(hospital_job(tmp_path, source), ())
    resealed(made.folder, **parts)
    found = verify_tables(None, made.folder)
    assert found.recount is None
    assert any("k was not counted" in sentence for sentence in found.unverified)
    with pytest.raises(VerificationError, match="not state enough to make its report"):
        report_of_tables(made.folder, None, (), None, as_json=True)


def test_a_manifest_that_holds_more_than_a_manifest_is_refused_though_its_seal_is_made_anew(
    tmp_path: Path, source: dict[str, pa.Table]
) -> None:
    path = hospital_job(tmp_path, source)
    made = tables(path, ())
    file = made.folder / "manifest.json"
    unsealed = json.dumps({"note": "Alice 44"} | json.loads(file.read_text()) | {"seal": ""}, indent=2) + "\n"
    seal = hashlib.sha256(unsealed.encode()).hexdigest()
    file.write_text(unsealed.replace('"seal": ""', f'"seal": "{seal}"'))
    with pytest.raises(VerificationError, match="holds more than a manifest") as refused:
        verify_tables(load_tables_job(path), made.folder)
    assert "Alice" not in str(refused.value)


def test_all_that_is_wrong_between_tables_is_told_at_once(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    persons, visits = source["person"].to_pylist(), source["visit"].to_pylist()
    persons[1]["person_id"] = persons[0]["person_id"]
    visits[0]["visit_id"], visits[1]["person_id"], visits[2]["person_id"] = None, 99_999, None
    wrong = source | {"person": pa.Table.from_pylist(persons), "visit": pa.Table.from_pylist(visits)}
    with pytest.raises(RelationError) as raised:
        tables(hospital_job(tmp_path, wrong), ())
    told = " ".join(raised.value.faults)
    for words in ("1 key of 'person'", "1 row of 'visit' has no whole key", "to rows that 'person' does not have", "no reference at all"):
        assert words in told
    assert "99999" not in told
    assert not (tmp_path / "releases").exists()


def test_orphans_are_left_out_and_counted_where_the_job_says_so(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    visits = source["visit"].to_pylist()
    visits[0]["person_id"], visits[1]["person_id"] = 99_999, None
    gone = {visits[0]["visit_id"], visits[1]["visit_id"]}
    path = hospital_job(tmp_path, source | {"visit": pa.Table.from_pylist(visits)}, orphans="drop")
    made = tables(path, ())
    check_release(made, 4)
    for name, orphans in {"visit": 2, "condition": sum(row["visit_id"] in gone for row in source["condition"].to_pylist())}.items():
        table = made.manifest.tables[name]
        # Fewer than k = 4 are not stated, nor what they would follow from.
        assert (table.orphans, table.records is None) == ((orphans, False) if orphans == 0 else (None, True))
        assert len(source[name]) == table.released + (table.withheld or 0) + (table.suppressed or 0) + orphans
    verify_tables(load_tables_job(path), made.folder)


@pytest.mark.parametrize("empty", [["condition"], ["visit", "condition"]])
def test_a_table_without_rows_is_published_without_rows(tmp_path: Path, source: dict[str, pa.Table], empty: list[str]) -> None:
    """Histories have no rows of it, and there is nothing of it to price."""
    path = hospital_job(tmp_path, source | {name: source[name].slice(0, 0) for name in empty})
    privacy = ("privacy.l={condition: {icd: {distinct: 2}}}",)
    made = tables(path, privacy)
    check_release(made, 4)
    for name in empty:
        assert (made.manifest.tables[name].records, made.manifest.tables[name].released) == (0, 0)
        assert name not in made.manifest.loss.by_table
    verify_tables(load_tables_job(path, privacy), made.folder)


def test_references_that_disagree_are_refused_with_those_that_find_nobody(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    conditions = source["condition"].to_pylist()
    alone = next(row for row in conditions if not row["visit_id"])
    alone["person_id"] = 99_999
    one = next(row for row in conditions if row["visit_id"] and row["person_id"] is not None)
    one["person_id"] = (one["person_id"] + 1) % 150
    with pytest.raises(RelationError) as raised:
        tables(hospital_job(tmp_path, source | {"condition": pa.Table.from_pylist(conditions)}), ())
    nobody, disagreeing = raised.value.faults
    assert nobody.startswith("1 row of 'condition' refers by 'person_id' to rows that 'person' does not have")
    assert disagreeing.startswith("the references of 1 row of 'condition' disagree")


def test_columns_that_do_not_fit_are_told_of_all_tables_at_once(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    unfit = {"person": source["person"].drop_columns(["age"]), "visit": source["visit"].append_column("more", source["visit"]["ward"])}
    with pytest.raises(SourceError, match="2 tables of the job cannot be read as it says") as raised:
        tables(hospital_job(tmp_path, source | unfit), ())
    assert "table 'person': The source lacks 1 column that the job names: 'age'." in str(raised.value)
    assert "table 'visit': No role is given to 'more'." in str(raised.value)


def test_rows_of_a_person_are_bounded(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    asked = json.loads(json.dumps(JOB["tables"]))
    asked["visit"]["rows"] = {"most": 1}
    path = hospital_job(tmp_path, source, tables=asked)
    made = tables(path, ())
    released = check_release(made, 4)
    assert max(Counter(row["person_id"] for row in released["visit"]).values()) == 1
    told = made.manifest.tables["visit"]
    assert told.records == told.released + told.withheld + told.suppressed
    assert told.withheld > 0
    verify_tables(load_tables_job(path), made.folder)


@pytest.mark.slow
def test_values_of_persons_with_one_history_are_diverse(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    """Of the persons of a history who have a row of the table, each counts once for each of their values."""
    path = hospital_job(
        tmp_path, source, privacy={"k": 4, "l": {"condition": {"icd": {"distinct": 3}}, "person": {"income": {"entropy": 2}}}}
    )
    made = tables(path, ("suppression.limit=0.6",))
    check_diverse(made)
    assert made.manifest.privacy["l"]["condition"] == {"icd": {"distinct": 3}}
    assert made.manifest.persons.released < tables(path, ("privacy.l={}",)).manifest.persons.released
    verify_tables(load_tables_job(path, ("suppression.limit=0.6",)), made.folder)
    with pytest.raises(VerificationError, match="lack the l-diversity of 'icd'"):
        verify_tables(load_tables_job(path, ("suppression.limit=0.6", "privacy.l.condition.icd.distinct=4")), made.folder)
    withholding = ("suppression.limit=0.6", "suppression.rows=0.3")
    made = tables(path, withholding)
    check_diverse(made)
    verify_tables(load_tables_job(path, withholding), made.folder)


def check_diverse(made: PublishedTables) -> None:
    """Count who of the persons of a history holds which value."""
    released = check_release(made, 4)
    histories = hospital_histories(released["person"], released["visit"], released["condition"], AS_IT_IS)
    values: dict[Any, set[str]] = {}
    for row in released["condition"]:
        values.setdefault(row["person_id"], set()).add(row["icd"])
    classes: dict[Any, list[set[str]]] = {}
    for person, history in histories.items():
        if person in values:
            classes.setdefault(history, []).append(values[person])
    assert classes
    for persons in classes.values():
        held = Counter(value for one in persons for value in one)
        assert len(held) >= 3
        assert max(held.values()) <= len(persons) - 2


def test_the_fewest_rows_are_withheld_of_persons_who_would_be_left_out(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    """Who stays in a history of k has lost nothing else; with a visit goes what it found."""
    path = hospital_job(tmp_path, source)
    before, made = tables(path, ()), tables(path, ("suppression.rows=0.3",))
    check_release(made, 4)
    assert before.manifest.persons.released < made.manifest.persons.released
    gone = source["person"].num_rows - made.manifest.persons.released
    for table in ("visit", "condition"):
        told = made.manifest.tables[table]
        left = source[table].num_rows - told.released - told.withheld
        assert (told.records, told.suppressed) == ((None, None) if 0 < gone < 4 or 0 < left < 4 else (source[table].num_rows, left))
        assert told.withheld <= 0.3 * source[table].num_rows
    assert made.manifest.tables["visit"].withheld > 0
    assert made.manifest.loss.gcp < before.manifest.loss.gcp
    verify_tables(load_tables_job(path, ("suppression.rows=0.3",)), made.folder)


@pytest.mark.few(1)
@pytest.mark.parametrize("known", [1, 2])
def test_every_choice_of_few_rows_is_that_of_k_persons(tmp_path: Path, source: dict[str, pa.Table], known: int) -> None:
    path = hospital_job(tmp_path, source, privacy={"k": 5, "knows": {"rows": known}})
    made = tables(path, ())
    rows = read_release(made.folder)
    visits, conditions = children(rows["visit"], "person_id"), children(rows["condition"], "visit_id")
    lone = children([row for row in rows["condition"] if row["visit_id"] is None], "person_id")

    def told(visit: dict[str, Any]) -> Any:
        return visit["ward"], tuple(sorted(row["chronic"] for row in conditions.get(visit["visit_id"], [])))

    of_unit = {row["person_id"]: row["age"] for row in rows["person"]}
    of_rows = {
        person: [[told(visit) for visit in visits.get(person, [])], [row["chronic"] for row in lone.get(person, [])]] for person in of_unit
    }
    assert not rare_choices(of_unit, of_rows, known, 5)
    assert made.manifest.min_class >= 5
    assert made.manifest.privacy == {"k": 5, "knows": {"rows": known}}
    assert made.manifest.persons.released >= tables(path, ("privacy.knows=all",)).manifest.persons.released * 0.7
    verify_tables(load_tables_job(path), made.folder)
    with pytest.raises(VerificationError, match="rows are of fewer than 30 persons"):
        verify_tables(load_tables_job(path, ("privacy.k=30",)), made.folder)


def test_numbers_of_rows_alone_can_set_too_many_apart(tmp_path: Path, source: dict[str, pa.Table]) -> None:
    with pytest.raises(HistoryError, match=r"by their numbers of rows alone; .* at most 0\. Bound the rows of a person"):
        tables(hospital_job(tmp_path, source, privacy={"k": 60}, suppression={"limit": 0}), ())
    with pytest.raises(HistoryError, match=r"by their numbers of rows alone; .* at most 0\. Raise the limit or lower privacy\.k; nothing"):
        tables(tmp_path / "job.yaml", ("tables.visit.rows={most: 1}", "tables.condition.rows={most: 1}"))
    with pytest.raises(HistoryError, match="k = 1,000 cannot be met by 150 persons"):
        tables(tmp_path / "job.yaml", ("privacy.k=1000",))


def test_a_policy_that_asks_for_persons_takes_a_job_of_tables_and_asks_the_rest_of_each(
    tmp_path: Path, source: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, policy = hospital_job(tmp_path, source), tmp_path / "policy.yaml"
    monkeypatch.setenv("SKALD_POLICY", str(policy))
    policy.write_text("version: 1\nprivacy: {k: 4}\nsuppression: {limit: 0.3}\nperson: required\n")
    assert tables(job, ()).manifest.policy
    policy.write_text("version: 1\nprivacy: {k: 5}\nsuppression: {limit: 0.3}\nperson: required\n")
    with pytest.raises(PolicyError, match="asks for 5 or more"):
        tables(job, ())
    policy.write_text("version: 1\nprivacy: {k: 4}\nsuppression: {limit: 0.3}\nmethods: [mondrian]\n")
    with pytest.raises(PolicyError, match="is 'skald', and the policy allows 'mondrian'"):
        tables(job, ())
    assert tables(job, ("method.name=mondrian",)).manifest.method == "mondrian"
