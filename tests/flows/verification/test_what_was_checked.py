"""A verification says what it did not check, and claims nothing that it did not count."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from core.recount.classes import Recount
from flows.terminal.runs import persons_sentence, verification_summary
from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from schemas.release.figures import PassedColumn, Together
from schemas.release.manifest import Manifest, Persons
from tasks.engine.runs import versions
from tasks.recount.recount import verify_release
from tasks.release.manifest import read_manifest
from tasks.verification.entries import OTHER, other_job_note
from tasks.verification.manifest_claims import NO_JOB, uncounted_promises
from tasks.verification.release import OTHER_LIBRARY, VerificationContext, Verified, verify_published
from tests.conftest import Anonymise
from tests.jobs import people, people_job, two_column_job
from tests.tampering.kinds import anew
from tests.tampering.play import COLUMNS

SETTINGS = ("method.name=mondrian", "privacy.k=4", "privacy.l={disease: {distinct: 2}}", "privacy.t={disease: {t: 0.9}}")


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a job and of its release."""
    folder = tmp_path_factory.mktemp("made")
    shutil.move(anonymise(people_job(folder, people(300), columns=COLUMNS), *SETTINGS).folder, folder / "release")
    return folder


def without_job(made: Path, folder: Path, change: Callable[[dict[str, Any]], object] = lambda said: None) -> Verified:
    """Verify a copy of the release after somebody made its manifest anew."""
    release = Path(shutil.copytree(made / "release", folder / manifest_of(made).release))
    anew(release, change)
    return verify_published(None, release, VerificationContext(str(release)))


def manifest_of(made: Path) -> Manifest:
    manifest = read_manifest(made / "release")
    assert manifest is not None
    return manifest


def shown(recount: Recount, manifest: Manifest | None) -> str:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(verification_summary(recount, manifest, 4))
    return captured.get()


@pytest.mark.ci
def test_without_the_job_l_is_counted_and_what_is_not_counted_is_said(made: Path, tmp_path: Path) -> None:
    found = without_job(made, tmp_path)
    assert found.unverified == ("t-closeness of 'disease' was not counted: it is measured from the source.",)
    assert found.notes[0] == NO_JOB
    assert [note.startswith("Where the ranges of ") for note in found.notes[1:]] == [True]
    assert found.recount.measured == {"l": manifest_of(made).measured["l"]}
    assert {name: (one.classes, one.records) for name, one in manifest_of(made).one_value.items()} == found.recount.one_value


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("asked", ["{recursive: {c: 2.5, l: 1}}", "{entropy: 1.25}", "{distinct: 2, nulls: value}"])
@pytest.mark.parametrize("output", ["csv", "duckdb"])
def test_every_model_of_l_is_counted_without_the_job(anonymise: Anonymise, tmp_path: Path, asked: str, output: str) -> None:
    settings = ("privacy.k=4", f"privacy.l={{disease: {asked}}}", "suppression.limit=1", f"output.format={output}")
    made = anonymise(people_job(tmp_path, people(300), columns=COLUMNS), *settings)
    assert verify_published(None, made.folder, VerificationContext(str(made.folder))).recount.measured == {"l": made.manifest.measured["l"]}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda said: said["privacy"]["l"]["disease"].update(distinct=50), "classes lack the l-diversity of 'disease'"),
        (lambda said: said["measured"]["l"].update(disease=9.0), "measured.l.disease"),
        (lambda said: said["one_value"]["disease"].update(classes=77), "in how many classes everybody has one sensitive value"),
    ],
)
def test_a_manifest_that_promises_more_than_the_files_keep_is_refused_without_the_job(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    with pytest.raises(VerificationError, match=fault):
        without_job(made, tmp_path, change)


def test_where_k_is_of_persons_it_is_said_that_records_were_counted(made: Path) -> None:
    persons = Persons(columns=("person",), source=9, released=9, smallest_class=4, most_records=1)
    promised = {"k": 4, "l": {"disease": {"entropy": "2"}, "note": {"distinct": 2}}}
    assert persons_sentence(persons) == "9 of 9; at least k of them have 1 record or more"
    told = uncounted_promises(manifest_of(made).model_copy(update={"persons": persons, "privacy": promised}))
    assert any("k is of persons, and records were counted" in sentence for sentence in told)
    assert "l-diversity of 'disease' was not counted: it is of persons, and these are not at hand." in told
    assert not any("'note'" in sentence for sentence in told)


def test_without_the_source_it_is_said_that_t_was_not_counted_and_that_ends_were_not_looked_at(made: Path) -> None:
    found, _ = verify_release(load_job(made / "job.yaml", (*SETTINGS, "source.path=nowhere.parquet")), made / "release")
    records, ends = found.unproved
    assert "was not checked: the source is not at hand" in records
    assert found.unverified == ("t-closeness of 'disease' was not counted: it is measured from the source.",)
    assert "t" not in found.measured
    assert ends == "Where the ranges of 'age' end was not checked."


def test_what_was_held_together_is_said_in_classes(made: Path) -> None:
    found, manifest = verify_release(load_job(made / "job.yaml", SETTINGS), made / "release")
    assert (found.unproved, found.sampled) == ((), min(64, found.classes))
    assert f"whole records were held together in {found.sampled} of {found.classes} classes" in shown(found, manifest)
    assert "has a record for each of the files'" not in shown(found, manifest)
    assert "has a record for each of the files'" in shown(replace(found, sampled=None), manifest)


def test_no_maximum_risk_is_claimed_that_the_run_did_not_claim(made: Path) -> None:
    manifest = manifest_of(made).model_copy(update={"passthrough": {}, "passthrough_together": None})
    mails = PassedColumn(distinct=9, unique_records=9, values=9, looked_at=9, reasons=("e-mail addresses",))
    nobody = Together(unique_records=0, below_k=0, with_classes=0)
    telling = manifest.model_copy(update={"passthrough": {"note": mails}, "passthrough_together": nobody})
    recount = Recount(manifest.released, manifest.classes, manifest.min_class, 0, 0, 0, {4: manifest.classes})
    claim = "No maximum risk is claimed"
    assert claim not in shown(recount, manifest)
    assert f"{claim}: a column published besides the quasi-identifiers may tell who people are ('note')" in shown(recount, telling)
    assert f"{claim}: what the untreated columns tell together was not counted" in shown(
        recount, telling.model_copy(update={"passthrough_together": None})
    )
    assert f"{claim}: without a manifest" in shown(recount, None)


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("output", "library"), [("parquet", "pyarrow"), ("csv", "duckdb"), ("duckdb", "duckdb")])
def test_files_of_another_version_are_told_by_what_was_not_looked_at(
    anonymise: Anonymise, tmp_path: Path, output: str, library: str
) -> None:
    release = anonymise(people_job(tmp_path, people(60), columns=COLUMNS), f"output.format={output}", "privacy.k=4").folder
    anew(release, lambda said: said["versions"].update({library: "0.0"}))
    assert versions()[library] != "0.0"
    note = OTHER_LIBRARY.get(f".{output}")
    assert (output, note is None) == (output, output == "duckdb")
    told = verify_published(
        load_job(tmp_path / "job.yaml", (f"output.format={output}", "privacy.k=4")), release, VerificationContext(str(release))
    )
    assert told.notes == (() if note is None else (note,))


@pytest.mark.ci
def test_without_the_source_it_is_said_that_pseudonyms_were_not_compared(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSON_KEY", "9f3c1b7a5e2d48c6" * 4)
    hashed = {"name": "person", "treatment": {"hash": {"key": {"env": "PERSON_KEY"}, "length": 16}}}
    columns = COLUMNS | {"identifiers": [hashed, "height", "smoker", "born"]}
    path = people_job(tmp_path, people(60), columns=columns)
    release = anonymise(path, "privacy.k=4").folder
    job = load_job(path, ("privacy.k=4",))
    assert verify_release(job, release)[0].unproved == ()
    shutil.rmtree(tmp_path / "people")
    assert verify_release(job, release)[0].unproved[1:] == ("Whether pseudonyms of 'person' are values of the source was not checked.",)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "kmember"])
@pytest.mark.parametrize("values", [["Zoe", "*"] * 2, ["Zoe", "*", "Eva", "*"], ["Zoe", None, "*", "*"]])
@pytest.mark.parametrize("hierarchy", [{"prefix": [2]}, {"tree": {"*": {"G": ["Zoe", "Eva", "*"], "H": ["Kim", "Lea"]}}}])
def test_a_value_that_is_called_as_all_are_is_verified(
    anonymise: Anonymise, tmp_path: Path, hierarchy: dict[str, Any], values: list[str | None], method: str
) -> None:
    table = pa.table({"q": pa.array(values, pa.string()), "s": ["x"] * 4})
    settings = ("privacy.k=1", f"method={{name: {method}}}")
    made = anonymise(two_column_job(tmp_path, table, hierarchy), *settings)
    verify_published(load_job(tmp_path / "job.yaml", settings), made.folder, VerificationContext(str(made.folder)))


OF_JOB = [
    ((), "method.name is mondrian in the release and skald in the job; privacy.k is 4 in the release and 5 in the job; 3 settings of"),
    (("privacy.k=9", SETTINGS[0], *SETTINGS[2:]), "privacy.k is 4 in the release and 9 in the job. If"),
    (
        (*SETTINGS[:3], "privacy.l.disease.distinct=3"),
        "privacy.l.disease.distinct is 2 in the release and 3 in the job; 2 settings of privacy in",
    ),
    (
        (*SETTINGS, "suppression.limit=0.5"),
        "their keyed digests differ, or the secret of the work folder is another than then. If the release was made with --set",
    ),
    (SETTINGS, None),
]


@pytest.mark.ci
@pytest.mark.parametrize(("settings", "told"), OF_JOB)
def test_a_job_that_is_not_the_manifests_is_told_from_it_and_its_own_is_not(
    made: Path, settings: tuple[str, ...], told: str | None
) -> None:
    note = other_job_note(load_job(made / "job.yaml", settings), manifest_of(made))
    assert note == "" if told is None else note.startswith(OTHER) and told in note


@pytest.mark.ci
def test_a_release_made_with_other_settings_is_refused_with_both_named(made: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(made / "release", tmp_path / manifest_of(made).release))
    with pytest.raises(VerificationError, match=r"have fewer than k = 200 records(.|\n)*privacy.k is 4 in the release and 200 in the job"):
        verify_published(load_job(made / "job.yaml", ("privacy.k=200",)), release, VerificationContext(str(release)))


@pytest.mark.ci
def test_what_somebody_wrote_into_a_manifest_is_not_repeated(made: Path) -> None:
    """Names of promises and their values may be anything there."""
    forged = {"k": "alice", "l": {"Alice 44": {"distinct": 3}}}
    note = other_job_note(load_job(made / "job.yaml", SETTINGS[:2]), manifest_of(made).model_copy(update={"job": "", "privacy": forged}))
    assert "privacy.k is something else in the release and 4 in the job; 1 setting of privacy in the release alone" in note
    assert "alice" not in note.lower()
