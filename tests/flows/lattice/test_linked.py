"""Pseudonyms that show which records belong together: who shares the set of combinations of all of them is counted, told and refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.base import JobError, VerificationError
from schemas.errors.refusals import LinkedError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.release.manifest import Linked
from schemas.release.report import Report
from tasks.composition.release_history import people_of_release
from tasks.publication.verify_and_publish import PublishedRelease
from tasks.recount.recount import verify_release
from tasks.report.terms import UnitWording
from tasks.store.store import Store
from tests.conftest import Anonymise, CommandLine
from tests.flows.lattice.test_persons import QIDS, TABLE, K, columns, job
from tests.jobs import released
from tests.oracles.linked import Told, told_by

HASH = {"hash": {"key": {"env": "PERSON_KEY"}, "length": 16}}
DROPPED = ["zip", "height", "born"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    monkeypatch.setenv("OTHER_KEY", "0a3c1b7a5e2d48c6" * 4)


def hashed(*names: str, **others: Any) -> dict[str, Any]:
    """Columns of which some are published as hashes; those that name the person and are not are dropped."""
    treated = [{"name": name, "treatment": HASH} for name in names]
    dropped = [name for name in ("person",) if name not in names]
    return columns(identifiers=[*treated, *dropped, *DROPPED], **others)


def told(one: Linked) -> Told:
    return Told(one.people, one.sets, one.smallest, one.below_k, one.left_over)


def in_files(made: PublishedRelease, link: str, whose: str | None, k: int = K) -> Told:
    frame = released(made.folder)
    people = frame[whose].to_list() if whose else [link if link is not None else row for row, link in enumerate(frame[link].to_list())]
    found = told_by(frame.select(QIDS).rows(), frame[link].to_list(), people, k)
    if whose in (None, link):
        return found
    # How few people have a pseudonym that is not a person's own is in no file, and so not told.
    return Told(*(k if 0 < count < k and name != "sets" else count for name, count in found._asdict().items()))


@pytest.mark.ci
def test_a_run_that_shows_whose_records_belong_together_ends_with_three(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(LinkedError, match=r"columns.linkable: \[person\]") as refused:
        anonymise(job(tmp_path, columns=hashed("person")))
    assert refused.value.exit_code == 3
    assert f"fewer than k = {K}" in str(refused.value)
    assert "persons of" in str(refused.value)
    assert "ask for method.linked: keep" in str(refused.value)
    with pytest.raises(LinkedError) as without:
        anonymise(tmp_path / "job.yaml", "suppression.treatment=mask")
    assert "method.linked" not in str(without.value)
    assert not list((tmp_path / "releases").glob("*"))
    made = anonymise(tmp_path / "job.yaml", "columns.linkable=person")
    [one] = made.manifest.linked or ()
    assert one.columns == ("person",)
    assert one.accepted
    assert told(one) == in_files(made, "person", "person")
    assert one.below_k > 0
    assert one.share == one.below_k / one.people
    report = Report.model_validate_json((made.folder / "report.json").read_text())
    assert not report.criteria[0].kept
    assert any("share the set of combinations" in figure for figure in report.criteria[0].figures)
    assert "no maximum risk is claimed" in UnitWording.of_release(made.manifest).maximum_risk(12)


@pytest.mark.ci
def test_without_a_person_every_pseudonym_counts_as_one(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(LinkedError, match="pseudonyms of"):
        anonymise(job(tmp_path, columns=hashed("person", person=[])))
    made = anonymise(tmp_path / "job.yaml", "columns.linkable=[person]")
    [one] = made.manifest.linked or ()
    assert told(one) == in_files(made, "person", None)


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", ["skald", "mondrian", "rayden", "clustering"])
def test_a_pseudonym_of_its_own_for_every_record_links_nothing(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    number = [None if row % 9 == 0 else row for row in range(len(TABLE))]
    table = TABLE.append_column("number", pa.array(number, pa.int64()))
    made = anonymise(job(tmp_path, table, columns=hashed("number", person=[]), method={"name": method}))
    [one] = made.manifest.linked or ()
    assert told(one) == in_files(made, "number", None)
    assert (one.below_k, one.share, one.accepted) == (0, 0.0, False)
    assert one.smallest >= K


def accounts() -> pa.Table:
    """The visits with accounts, of which a person has several and shares each, and a number for every record."""
    whose: list[int | None] = TABLE["person"].to_pylist()
    held = [None if row % 11 == 0 or who is None else f"{who // 2}-{row % 3}" for row, who in enumerate(whose)]
    return TABLE.append_column("account", pa.array(held)).append_column("number", pa.array(range(9_000, 9_000 + len(TABLE))))


@pytest.mark.slow
def test_people_are_counted_whatever_else_links_their_records(anonymise: Anonymise, tmp_path: Path) -> None:
    """An account may be one of several of a person, or shared; a number of each record's own links nothing, whoever's it is."""
    wanted = hashed("person", "account", "number", linkable=["person", "account"])
    made = anonymise(job(tmp_path, accounts(), columns=wanted, files=3))
    assert [one.columns for one in made.manifest.linked or ()] == [("person",), ("account",), ("number",)]
    for one in made.manifest.linked or ():
        assert told(one) == in_files(made, one.columns[0], "person")
    with pytest.raises(LinkedError, match="'account'"):
        anonymise(tmp_path / "job.yaml", "columns.linkable=person")


def relatives(mothers: list[int | None], households: list[int], ages: list[int]) -> pa.Table:
    """One record a person, with who is the mother and who live together."""
    count = len(ages)
    columns = {
        "person": range(count),
        "mother": pa.array(mothers, pa.int64()),
        "household": [1_000 + one for one in households],
        "age": ages,
    }
    same = {name: [TABLE[name][0].as_py()] * count for name in TABLE.column_names if name not in columns}
    return pa.table({**same, **columns})


def changed(table: pa.Table, name: str, values: list[int]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.ci
def test_who_lives_in_a_household_of_k_is_alone_in_the_class(anonymise: Anonymise, tmp_path: Path) -> None:
    """Each of the four is the only one of that age who lives with people of these ages, whatever the others are."""
    ages = [place // 5 for place in range(20)]
    table = relatives([None] * 20, [0 if place % 5 == 0 else place for place in range(20)], ages)
    wanted = columns(identifiers=[{"name": "household", "treatment": HASH}, "person", "mother", *DROPPED])
    told_of = "4 persons of 20 share .* the least 1"
    with pytest.raises(LinkedError, match=told_of):
        anonymise(job(tmp_path, table, columns=wanted, privacy={"k": 4}, method={"name": "skald", "node": [0, 0, 0]}))


@pytest.mark.ci
def test_mothers_who_are_patients_are_joined_to_their_children(anonymise: Anonymise, tmp_path: Path) -> None:
    """Each column by itself shows sets of two; a mother of forty with a child of eight is one."""
    table = relatives([None, None, 0, 90, 1, 91], [0] * 6, [40, 40, 8, 8, 2, 2])
    treated = [{"name": name, "treatment": HASH} for name in ("person", "mother")]
    parts = {"privacy": {"k": 2}, "method": {"name": "skald", "node": [0, 0, 0]}}
    wanted = columns(identifiers=[*treated, "household", *DROPPED])
    with pytest.raises(LinkedError, match=r"'person' and 'mother' .*Leave one of these columns out"):
        anonymise(job(tmp_path / "one", table, columns=wanted, **parts))
    made = anonymise(tmp_path / "one" / "job.yaml", "columns.linkable=[person,mother]")
    assert [(one.columns, one.below_k) for one in made.manifest.linked or ()] == [
        (("person",), 0),
        (("mother",), 0),
        (("person", "mother"), 6),
    ]
    with_other_keys = [treated[0], {"name": "mother", "treatment": {"hash": HASH["hash"] | {"key": {"env": "OTHER_KEY"}}}}]
    wanted = columns(identifiers=[*with_other_keys, "household", *DROPPED])
    assert len(anonymise(job(tmp_path / "two", table, columns=wanted, **parts)).manifest.linked or ()) == 2


@pytest.mark.ci
def test_two_columns_beside_each_other_are_counted_together(anonymise: Anonymise, tmp_path: Path) -> None:
    """Three persons are there at both ages, in households that are alike; one of them has moved in between."""
    people, households, ages = [0, 0, 1, 1, 2, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 2, 1, 2, 3, 4], [40, 8, 40, 8, 40, 8, 40, 8, 40, 8]
    table = changed(relatives([None] * 10, households, ages), "person", people)
    other = {"name": "household", "treatment": {"hash": HASH["hash"] | {"key": {"env": "OTHER_KEY"}}}}
    wanted = columns(identifiers=[{"name": "person", "treatment": HASH}, other, "mother", *DROPPED])
    parts = {"privacy": {"k": 2}, "method": {"name": "skald", "node": [0, 0, 0]}}
    told_of = "'person' and 'household' show .* 5 persons of 7 share .* the least 1. Leave one of these columns out"
    with pytest.raises(LinkedError, match=told_of):
        anonymise(job(tmp_path / "one", table, columns=wanted, **parts))
    for accepted in ("person", "household"):
        made = anonymise(tmp_path / "one" / "job.yaml", f"columns.linkable={accepted}")
        assert [(one.columns, one.below_k) for one in made.manifest.linked or ()] == [(("person",), 0), (("household",), 0)]
    same = {"name": "mother", "treatment": other["treatment"]}
    table = changed(table, "mother", [7_000 + one for one in people])
    wanted = columns(identifiers=[{"name": "person", "treatment": HASH}, "household", same, *DROPPED])
    assert len(anonymise(job(tmp_path / "two", table, columns=wanted, **parts)).manifest.linked or ()) == 2


@pytest.mark.ci
def test_who_has_not_moved_is_told_apart_from_who_has(anonymise: Anonymise, tmp_path: Path) -> None:
    """All three are there at both ages, and so is each household; one person alone is there twice in the same household."""
    table = changed(relatives([None] * 6, [0, 0, 1, 2, 2, 1], [40, 8] * 3), "person", [0, 0, 1, 1, 2, 2])
    wanted = columns(
        identifiers=[*({"name": name, "treatment": HASH} for name in ("person", "household")), "mother", *DROPPED], person="none"
    )
    with pytest.raises(LinkedError, match=r"'person' and 'household' show .* 6 pseudonyms of 6 share"):
        anonymise(job(tmp_path, table, columns=wanted, privacy={"k": 3}, method={"name": "skald", "node": [0, 0, 0]}))


@pytest.mark.ci
def test_columns_that_link_in_another_column_alone_are_counted_with_a_third(anonymise: Anonymise, tmp_path: Path) -> None:
    """No mother has two children, but they live with their own child or with one of that age, or with one of the other age."""
    table = relatives([None] * 4 + [0, 1, 2, 3], [0, 1, 2, 3, 0, 2, 1, 3], [40] * 4 + [8, 8, 15, 15])
    treated = [{"name": name, "treatment": HASH} for name in ("person", "mother", "household")]
    parts = {"privacy": {"k": 2}, "method": {"name": "skald", "node": [0, 0, 0]}}
    with pytest.raises(LinkedError, match=r"'person', 'mother' and 'household' show .* the least 1"):
        anonymise(job(tmp_path, table, columns=columns(identifiers=[*treated, *DROPPED]), **parts))


@pytest.mark.slow
@pytest.mark.parametrize("fragments", [{}, {"fragments": {"count": 3}}])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "skald"])
def test_linked_records_of_every_method_are_counted(anonymise: Anonymise, tmp_path: Path, method: str, fragments: dict[str, Any]) -> None:
    """With sensitive values of people beside them, which the private file keeps too."""
    wanted = hashed("person", "account", linkable=["person", "account"])
    parts: dict[str, Any] = {"method": {"name": method} | fragments, "privacy": {"k": K, "l": {"disease": {"distinct": 2}}}}
    made = anonymise(job(tmp_path, accounts().drop_columns(["number"]), columns=wanted, files=2, chunk_rows=90, **parts))
    assert made.manifest.method == method
    for one in made.manifest.linked or ():
        assert told(one) == in_files(made, one.columns[0], "person")
    kept = people_of_release(made.manifest.release, Store(tmp_path / ".skald" / "people" / "artifacts"))
    assert kept
    assert verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)[0].linked


@pytest.mark.ci
def test_a_key_of_three_columns_links_as_a_whole(anonymise: Anonymise, tmp_path: Path) -> None:
    whose: list[int | None] = TABLE["person"].to_pylist()
    table = TABLE
    for name, values in {"tens": [who and who // 10 for who in whose], "digit": [who and who % 10 for who in whose]}.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    wanted = hashed("tens", "digit", person=["tens", "digit"], linkable=["digit", "tens"])
    made = anonymise(job(tmp_path, table, columns=wanted))
    [one] = made.manifest.linked or ()
    frame = released(made.folder)
    both = [None if None in pair else pair for pair in frame.select("tens", "digit").rows()]
    assert one.columns == ("tens", "digit")
    assert told(one) == told_by(frame.select(QIDS).rows(), both, both, K)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("parts", [{"output": {"format": "csv"}}, {"output": {"partition_by": ["sex"]}}, {"files": 3, "chunk_rows": 60}])
def test_linked_records_are_counted_whatever_the_files_are(anonymise: Anonymise, tmp_path: Path, parts: dict[str, Any]) -> None:
    wanted = hashed("person", linkable="person")
    plain = anonymise(job(tmp_path / "plain", columns=wanted))
    assert anonymise(job(tmp_path / "other", columns=wanted, **parts)).manifest.linked == plain.manifest.linked


@pytest.mark.ci
def test_masked_records_are_linked_to_none(anonymise: Anonymise, tmp_path: Path) -> None:
    suppression = {"limit": 0.2, "treatment": "mask"}
    made = anonymise(job(tmp_path, columns=hashed("person", linkable="person"), suppression=suppression, privacy={"k": 8}))
    frame = released(made.folder)
    assert made.manifest.masked
    [one] = made.manifest.linked or ()
    # Of the masked ones the files do not tell whose they are, and their combination is in no set.
    shown = frame.filter(pl.col("age").cast(pl.String).ne_missing("*"))
    assert told(one) == told_by(shown.select(QIDS).rows(), shown["person"].to_list(), shown["person"].to_list(), 8)


@pytest.mark.ci
def test_dates_that_are_shifted_link_nothing(anonymise: Anonymise, tmp_path: Path) -> None:
    shift = {"shift": {"key": {"env": "PERSON_KEY"}, "subject": "person", "days": 9}}
    table = TABLE.filter(pa.compute.is_valid(TABLE["person"]))
    wanted = columns(identifiers=[{"name": "born", "treatment": shift}, "person", "zip", "height"])
    assert anonymise(job(tmp_path, table, columns=wanted)).manifest.linked == ()


@pytest.mark.slow
def test_verify_counts_linked_records_again(anonymise: Anonymise, direct: CommandLine, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, columns=hashed("person", linkable="person")))
    command = ("verify", str(made.folder), "--job", str(tmp_path / "job.yaml"))
    environment = {"PERSON_KEY": "9f3c1b7a5e2d48c6" * 4}
    done = direct(*command, "--json", **environment)
    assert done.returncode == 0, done.stderr
    [counted] = json.loads(done.stdout)["linked"]
    [one] = made.manifest.linked or ()
    assert {name: counted[name] for name in ("people", "sets", "smallest", "below_k")} == one.model_dump(
        include={"people", "sets", "smallest", "below_k"}
    )
    assert "show which records belong together" in direct(*command, **environment).stdout
    refused = direct(*command, "--set", "columns.linkable=[]", **environment)
    assert refused.returncode == 4
    assert "'person' shows which records belong together" in refused.stderr
    shutil.rmtree(tmp_path / ".skald")
    # What names the person is what links: the files alone tell as much.
    done = direct(*command, "--json", **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["linked"] == [counted]


@pytest.mark.slow
def test_a_manifest_that_tells_less_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, columns=hashed("person", linkable="person")))
    path = made.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    kept = people_of_release(made.manifest.release, Store(tmp_path / ".skald" / "people" / "artifacts"))
    for change in ({"smallest": 9}, {"below_k": 0}, {"people": 9}, {"sets": 9}, {"accepted": False}, {"columns": ["other"]}):
        path.write_text(json.dumps(manifest | {"linked": [manifest["linked"][0] | change]}))
        for whose in (kept, None):
            with pytest.raises(VerificationError, match=r"linked|records belong together|links records"):
                verify_release(load_job(tmp_path / "job.yaml"), made.folder, whose)
    path.write_text(json.dumps({name: value for name, value in manifest.items() if name != "linked"}))
    assert verify_release(load_job(tmp_path / "job.yaml"), made.folder, kept)


@pytest.mark.ci
def test_report_and_summary_tell_it(anonymise: Anonymise, direct: CommandLine, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, columns=hashed("person", linkable="person")))
    [one] = made.manifest.linked or ()
    limits = [limit["text"] for limit in json.loads((made.folder / "report.json").read_text())["limits"]]
    [said] = [text for text in limits if "show which records belong together" in text]
    assert f"{one.below_k:,} persons of {one.people:,}" in said
    assert "columns.linkable" in said
    assert said in " ".join(direct("run", str(tmp_path / "job.yaml"), PERSON_KEY="9f3c1b7a5e2d48c6" * 4).stdout.split())


def test_only_pseudonyms_that_link_can_be_accepted(tmp_path: Path) -> None:
    for linkable, meant in (("persn", "did you mean 'person'"), (["zip"], "'zip' is no identifier"), (["person", "person"], "twice")):
        with pytest.raises(JobError, match=meant):
            load_job(job(tmp_path, columns=hashed("person", linkable=linkable)))
