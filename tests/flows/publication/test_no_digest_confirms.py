"""No digest in a release or on Prefect's server confirms a guess about the source, and the same job on the same data still does nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from schemas.errors.values import SecretError
from schemas.job.job import hierarchy_digests, job_digest, load_job
from tasks.attacks.release_attack import attack_code
from tasks.report.page import report_code
from tasks.source.listing import source_digest
from tasks.store.keys import fingerprint_of, values_with_digest
from tests.conftest import Anonymise, CommandLine
from tests.jobs import data_files, people, people_job

TABLE = people(120)
DISEASES = ["flu", "gout", "cough", "measles", None]
TOKEN = re.compile(r"[0-9a-f]{16,}")
ELSEWHERE = "5a0c7d1e94b2f3860f1d2c3b4a596877"
PLAIN = ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s", "sha3_256")


@pytest.fixture
def _own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work folders have secrets of their own, as they have unless somebody sets one."""
    monkeypatch.delenv("SKALD_SECRET")


def published_bytes(folder: Path) -> Mapping[str, bytes]:
    """Return all that a target hands on: names, and what is in the files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def tokens(published: Mapping[str, bytes]) -> set[str]:
    """Return whatever could be a digest in what is published: hexadecimal digits in texts, names and what Parquet notes of itself."""
    texts = [*published, *(content.decode("latin-1") for content in published.values())]
    return {token for text in texts for token in TOKEN.findall(text)}


def guessed_digests(job_path: Path, file: Path) -> set[str]:
    """Return what an attacker can compute who has the job and guesses the source: plain digests, and what versions before made of them."""
    job, content = load_job(job_path), file.read_bytes()
    whole = source_digest(file)
    inputs = fingerprint_of([whole])
    made = {hashlib.new(name, content).hexdigest() for name in PLAIN} | {blake3(content).hexdigest(), whole, inputs}
    made |= {job_digest(job), fingerprint_of(job_digest(job), inputs), *hierarchy_digests(job).values()}
    cells = pq.read_table(file).to_pylist()
    for row in cells:
        for written in (json.dumps(row, default=str), json.dumps(list(row.values()), default=str), ",".join(map(str, row.values()))):
            made |= {hashlib.new(name, written.encode()).hexdigest() for name in PLAIN}
    return made | {one[:size] for one in made for size in (16, 32, 40, 64)}


def night(folder: Path, disease: str | None) -> Path:
    """Write the files of two nights: one of many people, and one of the single one whose diagnosis is asked for."""
    job = people_job(folder, TABLE)
    last = people(1, seed=7)
    place = last.schema.get_field_index("disease")
    pq.write_table(last.set_column(place, "disease", pa.array([disease], pa.string())), folder / "people" / "001.parquet")
    return job


def kept_digests(work: Path) -> Iterator[str]:
    """Yield every plain digest and key that the work folder knows its artefacts by: each is a function of source and job."""
    for record in work.glob("artifacts/*/*.record"):
        content: Any = values_with_digest(record)
        if isinstance(content, dict) and "sha256" in content:
            yield from (content["sha256"], content["key"])


@pytest.mark.ci
@pytest.mark.usefixtures("_own_secrets")
def test_whoever_knows_all_but_one_value_confirms_no_candidate(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(night(tmp_path / "truth", "measles"))
    found = tokens(published_bytes(tmp_path / "truth" / "releases"))
    assert made.manifest.inputs in found
    for number, disease in enumerate(DISEASES):
        guess = tmp_path / f"guess-{number}"
        job = night(guess, disease)
        for file in sorted((guess / "people").iterdir()):
            assert not found & guessed_digests(job, file), disease


@pytest.mark.slow
@pytest.mark.usefixtures("_own_secrets")
def test_what_two_secrets_have_in_common_is_of_the_published_files(anonymise: Anonymise, tmp_path: Path) -> None:
    made = [anonymise(night(tmp_path / name, "gout")) for name in ("one", "other")]
    # A fraction has as many digits, and none of them a letter.
    found = [{one for one in tokens(published_bytes(tmp_path / name / "releases")) if not one.isdigit()} for name in ("one", "other")]
    files = {file.sha256 for file in made[0].manifest.files}
    # The code that made the reports, and that of the attacks, is no source's; a report shows the beginning of the latter.
    common = (found[0] & found[1]) - {report_code(), attack_code(), attack_code()[:12]}
    assert common == files == {hashlib.sha256(path.read_bytes()).hexdigest() for path in data_files(made[1].folder)}
    assert made[0].manifest.release != made[1].manifest.release


@pytest.mark.ci
@pytest.mark.usefixtures("_own_secrets")
def test_nothing_published_is_a_digest_that_the_work_folder_goes_by(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path, TABLE, files=3))
    kept = set(kept_digests(tmp_path / ".skald" / "people"))
    assert len(kept) > 10
    assert tokens(published_bytes(tmp_path / "releases")) & kept <= {file.sha256 for file in made.manifest.files}


@pytest.mark.slow
def test_prefects_database_holds_no_digest_of_the_source(prefect: CommandLine) -> None:
    people_job(prefect.folder, TABLE)
    done = replace(prefect, secret=None)("run", "job.yaml", "--json")
    assert done.returncode == 0, done.stderr
    job, work = load_job(prefect.folder / "job.yaml"), prefect.folder / ".skald" / "people"
    files = {file["sha256"] for file in json.loads(done.stdout)["files"]}
    digests = {*kept_digests(work), source_digest(prefect.folder / "people" / "000.parquet"), job_digest(job)} - files
    databases = [path.read_bytes() for path in prefect.home.glob("**/*.db*")]
    assert databases
    assert not [digest for digest in digests for content in databases if digest.encode() in content]


@pytest.mark.ci
def test_the_same_job_on_the_same_data_does_nothing_and_says_so(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, TABLE, artifacts="delete")
    own = replace(direct, secret=None)
    assert own("run", "job.yaml").returncode == 0
    before = published_bytes(tmp_path / "releases")
    again = own("run", "job.yaml")
    assert (again.returncode, published_bytes(tmp_path / "releases")) == (0, before)
    assert "Already published: the same job on the same data" in again.stdout


@pytest.mark.ci
@pytest.mark.usefixtures("_own_secrets")
def test_the_folders_own_secret_is_made_once_for_its_owner_alone(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, artifacts="delete")
    first = anonymise(job)
    secret = tmp_path / ".skald" / "people" / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    text = secret.read_text()
    again = anonymise(job)
    assert (again.new, again.manifest.release, secret.read_text()) == (False, first.manifest.release, text)
    anonymise(job, "privacy.k=6")
    assert secret.read_text() == text
    assert not [name for name, content in published_bytes(tmp_path / "releases").items() if text.strip().encode() in content]


@pytest.mark.slow
def test_ids_agree_between_machines_of_one_secret(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [anonymise(people_job(tmp_path / name, TABLE)).manifest for name in ("one", "other")]
    assert made[0].release == made[1].release
    assert (made[0].job, made[0].inputs, made[0].sources, made[0].hierarchies) == (
        made[1].job, made[1].inputs, made[1].sources, made[1].hierarchies,
    )  # fmt: skip
    assert not (tmp_path / "one" / ".skald" / "people" / "secret").exists()
    monkeypatch.setenv("SKALD_SECRET", ELSEWHERE)
    third = anonymise(people_job(tmp_path / "third", TABLE)).manifest
    assert third.release != made[0].release
    assert third.files == made[0].files


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("damage", ["", "\n", "0" * 64, "5a0c"])
@pytest.mark.usefixtures("_own_secrets")
def test_a_damaged_secret_keys_nothing(anonymise: Anonymise, tmp_path: Path, damage: str) -> None:
    job = people_job(tmp_path, TABLE)
    anonymise(job)
    (tmp_path / ".skald" / "people" / "secret").write_text(damage)
    with pytest.raises(SecretError, match="is not the secret that this work folder was given"):
        anonymise(job, "privacy.k=6")


def test_a_weak_secret_of_the_environment_is_refused(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKALD_SECRET", "anonymous")
    with pytest.raises(SecretError) as refused:
        anonymise(people_job(tmp_path, TABLE))
    assert refused.value.exit_code == 2
    assert "anonymous" not in str(refused.value)


@pytest.mark.slow
def test_how_many_records_a_file_holds_is_told_of_none_if_one_holds_fewer_than_k(anonymise: Anonymise, tmp_path: Path) -> None:
    small = anonymise(night(tmp_path / "small", "flu"))
    assert [file.records for file in small.manifest.sources] == [None, None]
    large = anonymise(people_job(tmp_path / "large", TABLE, files=2))
    assert [file.records for file in large.manifest.sources] == [60, 60]


@pytest.mark.slow
def test_verify_knows_the_source_by_the_folders_secret_and_says_what_it_lacks_without(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, TABLE)
    own = replace(direct, secret=None)
    assert own("run", "job.yaml").returncode == 0
    release = f"releases/{(tmp_path / 'releases' / 'CURRENT').read_text().strip()}"
    proved = own("verify", release, "--job", "job.yaml")
    assert (proved.returncode, "not what it was" in proved.stdout + proved.stderr) == (0, False)
    (tmp_path / ".skald" / "people" / "secret").unlink()
    unproved = own("verify", release, "--job", "job.yaml")
    assert unproved.returncode == 0
    assert "the secret of its digests is not at hand" in " ".join((unproved.stdout + unproved.stderr).split())
