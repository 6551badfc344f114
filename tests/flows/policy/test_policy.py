"""No job passes under the policy of the process that runs it, whatever file, override or form says otherwise."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from schemas.errors.refusals import PolicyError
from schemas.job.policy import read_policy
from tests.conftest import Anonymise, CommandLine
from tests.jobs import job_of, people, people_job, write_job

POLICY: dict[str, Any] = {
    "version": 1,
    "privacy": {"k": 5},
    "suppression": {"limit": 0.05},
    "never_published": ["PERSON", "*_ssn"],
    "methods": ["skald", "mondrian"],
}


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy that ``JOB`` keeps exactly."""
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(POLICY))
    monkeypatch.setenv("SKALD_POLICY", str(path))
    return path


def say(path: Path, **parts: Any) -> None:
    path.write_text(yaml.safe_dump({key: part for key, part in (POLICY | parts).items() if part is not None}))


def refused(anonymise: Anonymise, job: Path, *settings: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as error:
        anonymise(job, *settings)
    assert error.value.exit_code == 2
    assert not (job.parent / "releases").exists()
    assert not list(job.parent.glob(".skald/*/artifacts/domains/*"))
    return error.value.faults


@pytest.mark.ci
def test_a_job_that_keeps_the_policy_runs_and_manifest_and_report_bear_its_digest(
    anonymise: Anonymise, policy: Path, tmp_path: Path
) -> None:
    published = anonymise(people_job(tmp_path))
    digest = hashlib.sha256(policy.read_bytes()).hexdigest()
    assert published.manifest.policy == digest
    assert json.loads((published.folder / "manifest.json").read_text())["policy"] == digest
    assert json.loads((published.folder / "report.json").read_text())["policy"] == digest
    assert digest in (published.folder / "report.html").read_text()


@pytest.mark.ci
def test_the_policy_changes_no_id_and_no_byte(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = anonymise(people_job(tmp_path / "without"))
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    monkeypatch.setenv("SKALD_POLICY", str(tmp_path / "policy.yaml"))
    under = anonymise(people_job(tmp_path / "under"))
    assert without.manifest.policy is None
    assert (under.manifest.release, under.manifest.files) == (without.manifest.release, without.manifest.files)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("privacy.k=4", "privacy.k is 4, and the policy asks for 5 or more"),
        ("suppression.limit=0.051", "suppression.limit is 0.051, and the policy allows 0.05 at most"),
        ("method={name: rayden}", "method.name is 'rayden', and the policy allows 'skald', 'mondrian'"),
        ("columns.insensitive.0=Person", "column 'Person' is never to be published"),
    ],
)
@pytest.mark.usefixtures("policy")
def test_what_asks_for_less_is_refused_with_a_sentence(anonymise: Anonymise, tmp_path: Path, setting: str, said: str) -> None:
    columns = job_of()["columns"] | ({"identifiers": []} if "columns" in setting else {})
    assert [said in fault for fault in refused(anonymise, people_job(tmp_path, columns=columns), setting)] == [True]


@pytest.mark.usefixtures("policy")
def test_each_fault_has_its_sentence(anonymise: Anonymise, tmp_path: Path) -> None:
    assert len(refused(anonymise, people_job(tmp_path), "privacy.k=2", "suppression.limit=1", "method={name: canon}")) == 3


@pytest.mark.parametrize(
    "columns",
    [
        {"identifiers": [{"name": "person", "treatment": {"hash": {"key": {"env": "KEY"}}}}]},
        {"identifiers": [], "sensitive": ["disease", "person"]},
        {"identifiers": [], "insensitive": "rest"},
        {"identifiers": [], "quasi_identifiers": [{"name": "person", "hierarchy": {"widths": [1, 1000]}}]},
    ],
)
@pytest.mark.usefixtures("policy")
def test_what_is_never_published_has_no_role_in_which_it_is(anonymise: Anonymise, tmp_path: Path, columns: dict[str, Any]) -> None:
    given = job_of()["columns"]
    if "quasi_identifiers" in columns:
        columns = columns | {"quasi_identifiers": [*given["quasi_identifiers"], *columns["quasi_identifiers"]]}
    job = people_job(tmp_path, columns=given | columns)
    (fault,) = refused(anonymise, job)
    assert fault.startswith("column 'person' is never to be published")


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT *, person AS x FROM people", "source.query makes a column of 'person' that does not bear its name"),
        ("SELECT *, people AS x FROM people", "without the name of a table in the place of a column"),
        ("SELECT * FROM people WHERE person > 0", None),
    ],
)
@pytest.mark.usefixtures("policy")
def test_a_query_cannot_rename_what_is_never_published(anonymise: Anonymise, tmp_path: Path, query: str, said: str | None) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.register("given", people(300))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    columns = job_of()["columns"] | ({"insensitive": [*job_of()["columns"]["insensitive"], "x"]} if said else {})
    job = write_job(tmp_path, job_of(columns=columns, source={"path": "people.duckdb", "query": query}))
    if said is None:
        assert anonymise(job).new
        return
    (fault,) = refused(anonymise, job)
    assert said in fault


@pytest.mark.ci
def test_persons_are_said_where_the_policy_asks_for_them(anonymise: Anonymise, policy: Path, tmp_path: Path) -> None:
    say(policy, person="required")
    (fault,) = refused(anonymise, people_job(tmp_path))
    assert fault.startswith("columns.person is not said")
    for number, said in enumerate(["person", "none"]):
        columns = job_of()["columns"] | {"person": said}
        assert anonymise(people_job(tmp_path / str(number), columns=columns)).new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\nprivcy: {k: 5}\n", "did you mean 'privacy'"),
        ("version: 2\n", "version: must be 1"),
        ("version: 1\nmethods: [skld]\n", "methods[0]"),
        ("version: 1\nprivacy: {k: '5'}\n", "privacy.k: must be a whole number"),
        ("version: 1\nsuppression: {limit: 5}\n", "suppression.limit: must be a share"),
        ("version: 1\nmethods:\n", "methods: is empty"),
        ("version: 1\nattacks: null\n", "attacks: is empty"),
        ("- 1\n", "the policy must be a mapping"),
        ("", "the policy must be a mapping"),
        ("a: [", "not valid YAML"),
        (None, "No such file"),
    ],
)
def test_a_policy_that_cannot_be_read_is_not_taken_for_none(
    anonymise: Anonymise, policy: Path, tmp_path: Path, text: str | None, said: str
) -> None:
    policy.unlink()
    if text is not None:
        policy.write_text(text)
    assert any(said in fault for fault in refused(anonymise, people_job(tmp_path)))


def test_names_that_are_never_published_are_met_in_any_spelling(policy: Path) -> None:
    """A bracket is one, an accent is the same in one character or two, and what nobody sees is nothing."""
    policy.write_text('version: 1\nnever_published: ["income[eur]", "pr\u00e9nom", "*_ssn"]\n')
    banned = ["income[EUR]", "pre\u0301nom", "PR\u00c9NOM", "pat_SSN", " my_ssn", "\uff50at_ssn", "\ufeffpat_s\u00adsn\u200b"]
    assert read_policy(str(policy)).banned([*banned, "incomee", "ssn", "prenom"]) == banned


def test_an_empty_variable_is_not_taken_for_none(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKALD_POLICY", "")
    assert "set and empty" in refused(anonymise, people_job(tmp_path))[0]


def test_the_command_line_ends_with_code_2_and_so_do_plan_and_compare(direct: CommandLine, policy: Path, tmp_path: Path) -> None:
    write_job(tmp_path, job_of())
    people_job(tmp_path)
    for command in ("run", "plan", "compare"):
        done = direct(command, "job.yaml", "--set", "privacy.k=2", SKALD_POLICY=str(policy))
        assert done.returncode == 2, command
        assert "privacy.k is 2, and the policy asks for 5 or more" in done.stderr
