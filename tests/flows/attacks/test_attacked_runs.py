"""A run attacks its release: it warns first of what breaks it, or refuses it, and the release tells nothing that its files do not."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import JobError
from schemas.job.job import load_job
from tests.conftest import CommandLine
from tests.jobs import JOB, people, people_job, write_job

pytestmark = pytest.mark.ci
KEYS = {
    "name",
    "target",
    "knows",
    "guesses",
    "right",
    "control_guesses",
    "control_right",
    "advantage",
    "low",
    "high",
    "accepted",
    "verdict",
}


def with_digests(folder: Path) -> Path:
    """Write a job whose insensitive column is a plain digest of the identifier: verified, and broken by an attack."""
    table = people(200)
    names = pa.array([f"person {number}" for number in range(len(table))])
    digests = pa.array([hashlib.sha256(name.as_py().encode()).hexdigest() for name in names])
    table = table.set_column(table.column_names.index("person"), "person", names)
    table = table.set_column(table.column_names.index("note"), "note", digests)
    job = people_job(folder, table)
    return job


def attacks_in(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["attacks"]
    return found


def test_what_breaks_a_release_is_said_first_and_refused_where_that_is_asked(direct: CommandLine) -> None:
    job = with_digests(direct.folder)
    refused = direct("run", job, "--set", "attacks.refuse=true")
    assert refused.returncode == 3
    assert "membership of 'person' by digests without a key" in refused.stderr
    assert not list(direct.folder.glob("releases/people-*"))

    policy = direct.folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"version": 1, "attacks": "refuse"}))
    assert direct("run", job, SKALD_POLICY=str(policy)).returncode == 3
    off = direct("run", job, "--set", "attacks=off", SKALD_POLICY=str(policy))
    assert off.returncode == 2
    assert "attacks is off" in off.stderr
    few = direct("run", job, "--set", "attacks={sample: 1999, refuse: true}", SKALD_POLICY=str(policy))
    assert few.returncode == 2
    assert "attacks.sample is 1,999, and the policy asks for 2,000 people or more" in few.stderr

    warned = direct("run", job)
    assert warned.returncode == 0
    assert "1 attack on this release won more than the job accepts" in warned.stdout.splitlines()[0]
    # Those on people of the source are in no release, and a summary without them says so.
    said = "of those that the release states"
    assert said not in " ".join(warned.stdout.split()) and said in " ".join(direct("run", job).stdout.split())
    [release] = direct.folder.glob("releases/people-*")
    [broken] = [one for one in attacks_in(release / "manifest.json") if one["verdict"] == "broken"]
    # How many guesses were right follows from the source.
    assert (broken["name"], broken["target"], broken["guesses"], broken["right"], broken["advantage"]) == (
        "membership",
        "person",
        0,
        0,
        0.0,
    )
    assert "won more than the job accepts" in (release / "report.html").read_text()
    [private] = [one for one in attacks_in(direct.folder / ".skald/people/untold.json") if one["verdict"] == "broken"]
    assert private["guesses"] == 200 > private["right"] > 150

    attacked = direct("attack", release, "--job", job, "--json")
    assert attacked.returncode == 0
    said = json.loads(attacked.stdout)
    assert all(one.keys() == KEYS for one in said["attacks"])
    assert (said["sample"], said["seed"], said["unplayed"]) == (2_000, 0, [])
    assert [one["verdict"] for one in said["attacks"]].count("broken") == 1
    assert direct("attack", release, "--job", job, "--set", "attacks.refuse=true").returncode == 3
    assert direct("verify", release, "--job", job).returncode == 0
    # A run that would publish nothing new holds what is published to what it asks now.
    later = direct("run", job, "--set", "attacks.refuse=true")
    assert later.returncode == 3
    assert f"'{release.name}' won more than the job accepts" in later.stderr


def test_a_release_that_was_not_attacked_is_none_that_kept_what_a_job_refuses_now(direct: CommandLine) -> None:
    job = people_job(direct.folder, people(200))
    assert direct("run", job, "--set", "attacks=off").returncode == 0
    assert direct("run", job, "--set", "attacks=off").returncode == 0
    later = direct("run", job, "--set", "attacks.refuse=true")
    assert later.returncode == 3
    assert "not all attacks that the job (attacks.refuse) requires were played then" in later.stderr


@pytest.mark.parametrize(("sample", "code"), [(1999, 3), (2000, 0), ("all", 0)])
def test_a_release_that_was_attacked_less_than_a_policy_asks_for_is_none_that_kept_it(
    direct: CommandLine, sample: int | str, code: int
) -> None:
    job = people_job(direct.folder, people(200))
    assert direct("run", job, "--set", f"attacks={{sample: {sample}}}").returncode == 0
    policy = direct.folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"version": 1, "attacks": "refuse"}))
    assert direct("run", job, SKALD_POLICY=str(policy)).returncode == code


def test_a_release_that_does_not_verify_is_not_attacked(direct: CommandLine) -> None:
    job = people_job(direct.folder, people(200))
    assert direct("run", job, "--set", "attacks={sample: 50, seed: 7}").returncode == 0
    [release] = direct.folder.glob("releases/people-*")
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["attacked"] | {"code": ""} == {"sample": 50, "seed": 7, "code": "", "unplayed": []}
    assert max(one["guesses"] for one in manifest["attacks"]) <= 50 * 2
    assert {one["verdict"] for one in manifest["attacks"]} <= {"safe", "told"}
    everybody = direct("attack", release, "--job", job, "--all")
    assert everybody.returncode == 0
    assert "0 of them won more than the job accepts" in everybody.stdout
    altered = direct.folder / "altered"
    shutil.copytree(release, altered)
    [file] = altered.glob("data/*.parquet")
    pq.write_table(pq.read_table(file).slice(1), file)
    assert direct("attack", altered, "--job", job).returncode == 4


def test_figures_in_a_release_do_not_follow_where_nobody_attacks(direct: CommandLine) -> None:
    job = people_job(direct.folder, people(200))
    assert direct("run", job, "--set", "attacks=off").returncode == 0
    [release] = direct.folder.glob("releases/people-*")
    manifest = json.loads((release / "manifest.json").read_text())
    assert (manifest["attacks"], manifest["attacked"]) == ([], None)
    assert "This release was not attacked" in (release / "report.html").read_text()


@pytest.mark.parametrize(
    ("word", "sample"),
    [
        ("sample", 2_000),
        ("all", "all"),
        ("{sample: 30}", 30),
        ("{seed: 4}", 2_000),
        ("off", None),
        ("false", None),
        ("{sample: all}", "all"),
    ],
)
def test_a_job_says_how_many_are_attacked(word: str, sample: int | str | None, tmp_path: Path) -> None:
    plain = load_job(write_job(tmp_path, JOB))
    job = load_job(write_job(tmp_path, JOB), [f"attacks={word}"])
    assert (job.attacks and job.attacks.sample) == sample
    # Attacks change no byte of the data files, so that a release is the same one.
    assert job.canonical() == plain.canonical()


@pytest.mark.parametrize("word", ["none", "null", "true", "{sample: 0}", "{sampel: 3}", "[all]"])
def test_what_says_nothing_of_attacks_is_refused(word: str, tmp_path: Path) -> None:
    with pytest.raises(JobError) as error:
        load_job(write_job(tmp_path, JOB), [f"attacks={word}"])
    assert "attacks" in str(error.value)
