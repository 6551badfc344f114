"""What the manifest of several tables states is held against job, sources, report and run folder, though its seal is made anew."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flows.tables import tables
from flows.terminal.tables import verified_summary
from flows.verification import verified_tables
from schemas.errors.base import SkaldError, VerificationError
from schemas.relational.manifest import TablesManifest
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.relational.report import report_texts
from tasks.relational.stated_figures import count_faults, promise_faults, source_faults, tables_stated_faults, together_faults
from tasks.relational.verified import VerifiedTables, figures_of_tables, verify_tables
from tests.flows.relational.hospital import hospital_job, hospital_tables
from tests.flows.relational.test_few_left_out import PERSONS, K, job_of
from tests.flows.relational.test_few_left_out import published as few_left_out
from tests.flows.relational.test_tables import resealed

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TablesJob, Path, VerifiedTables]:
    """A published release that is altered nowhere, with its job and its recount."""
    path = hospital_job(tmp_path_factory.mktemp("hospital"), hospital_tables(60, 5))
    made = tables(path, ())
    job = load_tables_job(path)
    return path, job, made.folder, verified_tables(job, made.folder)


def replaced(manifest: TablesManifest, place: str, value: Any) -> TablesManifest:
    """Return a manifest with one value replaced, by its dotted name."""
    said = manifest.model_dump(mode="json")
    *above, last = place.split(".")
    within = said
    for name in above:
        within = within[name]
    within[last] = value
    return TablesManifest.model_validate_json(json.dumps(said))


STATED = {
    "name": ("another", "name is"),
    "privacy.knows": ({"rows": 1}, "privacy is"),
    "privacy.l": ({"person": {"income": {"distinct": 5}}}, "privacy is"),
    "privacy.k": (5, "k is"),
    "method": ("mondrian", "method is"),
    "optimal": ("better than that", "optimal is"),
    "search": ({"classes": 24}, "search is"),
    "references": ({}, "references are"),
    "key_columns": ({}, "keys are"),
    "pseudonyms": ({"person_id": "hash"}, "pseudonyms are"),
    "tables.person.levels.age": (None, "levels are"),
    "published": ({"person": {"income": {"publish": "shared", "changed": 0.0, "error": None, "null": 0.0}}}, "published columns are"),
    "tables.visit.orphans": (9, "find nobody"),
    "tables.condition.orphans": (None, "find nobody"),
}


@pytest.mark.parametrize("place", STATED)
def test_what_a_manifest_says_of_its_job_is_what_the_job_says(released: tuple[Path, TablesJob, Path, VerifiedTables], place: str) -> None:
    _, job, _, verified = released
    value, fault = STATED[place]
    assert promise_faults(verified.manifest, job) == []
    assert any(fault in one for one in promise_faults(replaced(verified.manifest, place, value), job))


def test_rows_are_not_withheld_of_fewer_than_none_nor_left_out_of_nobody(
    released: tuple[Path, TablesJob, Path, VerifiedTables],
) -> None:
    _, job, _, verified = released
    visits, persons = verified.manifest.tables["visit"], verified.manifest.persons
    assert verified.recount is not None
    fewer = replaced(verified.manifest, "tables.visit.withheld", -1)
    fewer = replaced(fewer, "tables.visit.suppressed", (visits.suppressed or 0) + visits.withheld + 1)
    assert count_faults(fewer, verified.recount, job.privacy.k) == ["the manifest states fewer than no rows"]
    nobody = replaced(verified.manifest, "persons.source", persons.released)
    for name, value in {"records": persons.released, "suppressed": 0}.items():
        nobody = replaced(nobody, f"tables.person.{name}", value)
    assert visits.suppressed
    assert any("that nobody is" in one for one in count_faults(nobody, verified.recount, job.privacy.k))


def test_published_columns_that_no_job_asks_for_are_no_figures_of_the_files(
    released: tuple[Path, TablesJob, Path, VerifiedTables],
) -> None:
    _, job, _, verified = released
    assert verified.recount is not None
    assert tables_stated_faults(verified.manifest, verified.recount, job, sources_were_read=True) == []
    value, _ = STATED["published"]
    said = replaced(verified.manifest, "published", value)
    assert any("figures of published columns" in one for one in tables_stated_faults(said, verified.recount, job, sources_were_read=True))


def test_fewer_than_k_persons_left_out_are_held_against_the_limit_by_the_source(tmp_path: Path) -> None:
    manifest = few_left_out(tmp_path, 2).manifest
    rows = {"person": PERSONS + 2}
    assert manifest.persons.source is None
    assert source_faults(manifest, rows, load_tables_job(job_of(tmp_path))) == []
    limit = 1 / (PERSONS + K)
    [fault] = source_faults(manifest, rows, load_tables_job(job_of(tmp_path), (f"suppression.limit={limit}",)))
    assert "more persons are left out" in fault


def with_another_report(folder: Path) -> None:
    """Replace the report, and its digest in the manifest."""
    said = json.loads((folder / "manifest.json").read_text())
    for one in said["documents"]:
        path = folder / one["path"]
        content = path.read_text().replace("4 persons", "40 persons").encode()
        path.write_bytes(content)
        one |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    resealed(folder, documents=said["documents"])


def with_other_rows_of_files(folder: Path) -> None:
    """State another number of rows of a file."""
    said = json.loads((folder / "manifest.json").read_text())["files"]
    said[0]["rows"] += 1
    resealed(folder, files=said)


def with_another_format(folder: Path) -> None:
    """State another format."""
    resealed(folder, format=2)


def with_another_name(folder: Path) -> None:
    """Call the folder otherwise, as if it held another release."""
    folder.rename(folder.parent / "hospital-0123456789abcdef")


REBUILT = {
    with_another_report: "does not say what the manifest does",
    with_other_rows_of_files: "rows of files are not those",
    with_another_format: "format 2",
    with_another_name: "does not bear the name",
}


@pytest.mark.parametrize("alter", REBUILT, ids=lambda alter: alter.__name__)
def test_a_release_that_was_rebuilt_is_no_verified_one(tmp_path: Path, alter: Any) -> None:
    made = tables(hospital_job(tmp_path, hospital_tables(60, 5)), ())
    alter(made.folder)
    [folder] = (path for path in made.folder.parent.iterdir() if path.is_dir())
    with pytest.raises(SkaldError, match=REBUILT[alter]) as refused:
        verify_tables(None, folder)
    assert refused.value.exit_code == 4


def test_the_run_folder_knows_a_manifest_that_was_made_anew(tmp_path: Path) -> None:
    path = hospital_job(tmp_path, hospital_tables(60, 5))
    made, job = tables(path, ()), load_tables_job(path)
    # The report says nothing of who ran the job, and so nothing else speaks against it.
    resealed(made.folder, run_by="somebody else")
    assert report_texts(made.manifest) == report_texts(verify_tables(job, made.folder).manifest)
    with pytest.raises(VerificationError, match="was made anew"):
        verified_tables(job, made.folder)


def test_a_newer_release_is_named_and_what_nothing_tells_is_on_trust_without_a_seal(tmp_path: Path) -> None:
    old, new = few_left_out(tmp_path, 7), few_left_out(tmp_path, 8)
    job = load_tables_job(job_of(tmp_path))
    found = verified_tables(job, old.folder)
    assert (found.newer, found.on_trust) == ((new.folder.name,), ())
    assert verified_tables(job, new.folder).newer == ()
    assert f"beside it lies '{new.folder.name}'" in verified_summary(found)
    unsealed = verified_tables(None, old.folder)
    assert "attacks" in unsealed.on_trust
    assert "nothing at hand tells them" in verified_summary(unsealed)
    assert figures_of_tables(unsealed)["newer"] == [new.folder.name]


@pytest.mark.parametrize("table", ["person", "visit"])
def test_a_manifest_says_of_every_table_what_is_published_untreated(
    released: tuple[Path, TablesJob, Path, VerifiedTables], table: str
) -> None:
    *_, verified = released
    assert verified.recount is not None
    assert together_faults(verified.manifest, verified.recount) == []
    said = verified.manifest.model_dump(mode="json")
    del said["tables"][table]["passthrough"]
    with pytest.raises(ValidationError, match="passthrough"):
        TablesManifest.model_validate(said)
