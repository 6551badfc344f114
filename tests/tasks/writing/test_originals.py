"""Pseudonyms are undone by whoever has key or vault, and originals are written where nobody else reads them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.values import PseudonymError
from schemas.job.job import Job, load_job
from tasks.writing.pseudonyms import key_fingerprints, needs_subjects, prefect_stores_secrets, pseudonyms_of_key, reveal, write_originals
from tasks.writing.vaults import issue_tokens
from tests.jobs import job_of, write_job

KEY = {"env": "SKALD_TEST_KEY"}
TREATMENTS: dict[str, dict[str, Any]] = {
    "ssn": {"encrypt": {"key": KEY, "alphabet": "digits"}}, "phone": {"mask": {"keep": 3}},
    "email": {"token": {"vault": {"file": "vaults/email.parquet"}}}, "admitted": {"shift": {"key": KEY, "subject": "person", "days": 30}},
}  # fmt: skip


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("SKALD_TEST_KEY", "5ecret-of-the-hospital-0123456789abcdef")
    (tmp_path / "vaults").mkdir()
    identifiers = ["person", *({"name": name, "treatment": treatment} for name, treatment in TREATMENTS.items())]
    columns = {
        "identifiers": identifiers, "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5]}}], "sensitive": [],
        "linkable": [name for name, treatment in TREATMENTS.items() if "shift" not in treatment],
    }  # fmt: skip
    return load_job(write_job(tmp_path, job_of(columns=columns)))


def made(job: Job, column: str, values: list[str], keys: dict[str, str] | None = None) -> list[str]:
    """The pseudonyms of some values."""
    source: Any = SimpleNamespace(keys=key_fingerprints(job) if keys is None else keys)
    [identifier] = [one for one in job.columns.pseudonyms if one.name == column]
    found: list[str] = pseudonyms_of_key(job, source, identifier, pa.array(values)).to_pylist()
    return found


def test_what_is_encrypted_comes_back_by_the_key_that_the_run_began_with(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    values, before = ["1234567", "000000456", "765432"], key_fingerprints(job)
    pseudonyms = made(job, "ssn", values)
    assert not set(pseudonyms) & set(values)
    assert reveal(job, "ssn", pseudonyms) == values
    monkeypatch.setenv("SKALD_TEST_KEY", "another-of-the-hospital-0123456789abcdef")
    assert before.keys() == {"ssn", "email", "admitted"}
    assert [name for name, one in key_fingerprints(job).items() if one == before[name]] == ["email"]
    with pytest.raises(PseudonymError):
        made(job, "ssn", values, before)
    monkeypatch.delenv("SKALD_TEST_KEY")
    with pytest.raises(PseudonymError, match="column 'ssn': ") as error:
        key_fingerprints(job)
    assert "column 'admitted': " in str(error.value)
    for refused in (lambda: made(job, "ssn", values, before), lambda: reveal(job, "ssn", pseudonyms)):
        with pytest.raises(PseudonymError, match=r"column 'ssn': .*SKALD_TEST_KEY is not set"):
            refused()


def test_two_encrypted_columns_name_one_key_by_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_key(**place: str) -> Job:
        treatments = {"ssn": TREATMENTS["ssn"], "mother": {"encrypt": {"key": place, "alphabet": "digits"}}}
        identifiers = [{"name": name, "treatment": treatment} for name, treatment in treatments.items()]
        columns = {"identifiers": identifiers, "linkable": list(treatments), "sensitive": []}
        return load_job(write_job(tmp_path, job_of(columns=job_of()["columns"] | columns)))

    monkeypatch.setenv("SKALD_TEST_KEY", "5ecret-of-the-hospital-0123456789abcdef")
    monkeypatch.setenv("SKALD_SECOND_KEY", "5ecret-of-the-hospital-0123456789abcdef")
    assert len(set(key_fingerprints(with_key(**KEY)).values())) == 1
    with pytest.raises(PseudonymError, match="columns 'ssn' and 'mother': their keys are equal"):
        key_fingerprints(with_key(env="SKALD_SECOND_KEY"))
    monkeypatch.setenv("SKALD_SECOND_KEY", "another-of-the-hospital-0123456789abcdef")
    assert len(set(key_fingerprints(with_key(env="SKALD_SECOND_KEY")).values())) == 2


def test_tokens_come_back_by_their_vault_and_only_those_that_it_gave(job: Job, tmp_path: Path) -> None:
    with pytest.raises(PseudonymError, match=r"column 'email': .* names a vault that does not exist"):
        reveal(job, "email", ["f" * 32])
    path = job.folder / "vaults/email.parquet"
    issue_tokens(job, path, [pa.array(["a@b", "c@d"], pa.large_string())], tmp_path / "spill")
    tokens = made(job, "email", ["c@d", "a@b"])
    assert reveal(job, "email", [*tokens, "f" * 32]) == ["c@d", "a@b", None]
    with pytest.raises(PseudonymError, match="email"):
        made(job, "email", ["e@f"])
    with pytest.raises(PseudonymError):
        made(job, "email", ["a@b"], {"email": "another vault"})


def test_dates_come_back_with_their_subjects_all_of_one_by_as_many_days(job: Job) -> None:
    assert {name for name in TREATMENTS if needs_subjects(job, name)} == {"admitted"}
    days, people = ["2020-01-31", "2020-02-29", "2020-01-31"], ["p", "p", "q"]
    found = [date.fromisoformat(one or "") for one in reveal(job, "admitted", days, people)]
    moved = [(one - date.fromisoformat(day)).days for one, day in zip(found, days, strict=True)]
    assert moved[0] == moved[1] != moved[2]
    assert all(0 < abs(by) <= 30 for by in moved)
    assert reveal(job, "admitted", ["", days[0]], ["q", "p"]) == [None, found[0].isoformat()]
    with pytest.raises(PseudonymError, match="'admitted' needs a subject and a date in each line"):
        reveal(job, "admitted", days)
    with pytest.raises(PseudonymError, match="'ssn' needs one pseudonym in each line"):
        reveal(job, "ssn", ["123456789"], ["p"])


@pytest.mark.parametrize(
    ("column", "why"), [("phone", "cannot be undone"), ("emial", "did you mean 'email'"), ("person", "'person' is not among")]
)
def test_what_no_key_undoes_is_refused(job: Job, column: str, why: str) -> None:
    with pytest.raises(PseudonymError, match=why):
        reveal(job, column, ["x"])


def test_originals_are_private_and_lie_outside_the_target_and_replace_nothing(job: Job, tmp_path: Path) -> None:
    path = tmp_path / "originals.csv"
    write_originals(job, path, ["x", "y"], ["a", None], None)
    assert path.read_text() == "pseudonym,original\nx,a\ny,\n"
    assert path.stat().st_mode & 0o777 == 0o600
    write_originals(job, tmp_path / "dates.csv", ["x"], ["a"], ["p"])
    assert (tmp_path / "dates.csv").read_text() == "subject,pseudonym,original\np,x,a\n"
    for place, why in (
        (path, "it exists"),
        (job.target_path / "originals.csv", "inside the target"),
        (tmp_path / "no" / "a.csv", "No such file"),
    ):
        with pytest.raises(PseudonymError, match=why):
            write_originals(job, place, ["z"], ["b"], None)
    assert path.read_text() == "pseudonym,original\nx,a\ny,\n"


@pytest.mark.parametrize("secrets", [[], [None], ["a key"], [None, "a block"]])
def test_prefect_stores_secrets_where_one_is_in_a_block(secrets: list[str | None]) -> None:
    given = [
        SimpleNamespace(treatment=SimpleNamespace(secret=one and SimpleNamespace(prefect_block="b" if one == "a block" else None)))
        for one in secrets
    ]
    job: Any = SimpleNamespace(columns=SimpleNamespace(pseudonyms=given))
    assert prefect_stores_secrets(job) is ("a block" in secrets)
