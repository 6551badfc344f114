"""A signature is made with the publication, of all that is published, and tells who stands for it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import VerificationError
from schemas.errors.folders import SigningKeyError
from schemas.job.job import load_job
from tasks.release.signatures import read_public_key
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise, CommandLine
from tests.jobs import people, people_job, write_parquet
from tests.tampering.kinds import private_key


def statement_of(release: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the statement of a release, and payload and signature as they are."""
    envelope = json.loads((release / "manifest.sig").read_text())
    payload = base64.b64decode(envelope["payload"])
    return json.loads(payload), payload, base64.b64decode(envelope["signatures"][0]["sig"])


@pytest.mark.ci
def test_openssl_confirms_a_signature_of_every_file(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = private_key(tmp_path)
    monkeypatch.setenv("SKALD_SIGNING_KEY", str(key))
    release = anonymise(people_job(tmp_path, people(200), run_by="Data office"), "source.name=Admissions").folder
    statement, payload, signature = statement_of(release)
    assert (statement["_type"], statement["predicate"]["release"]) == ("https://in-toto.io/Statement/v1", release.name)
    assert (statement["predicate"]["run_by"], statement["predicate"]["source_name"]) == ("Data office", "Admissions")
    files = {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()} - {"manifest.sig"}
    digests = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert digests == {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in files}
    encoded = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    (tmp_path / "signed").write_bytes(encoded)
    (tmp_path / "signature").write_bytes(signature)
    public = tmp_path / "public-signing.pem"
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", tmp_path / "signed"]
    assert subprocess.run([*command, "-sigfile", tmp_path / "signature"], check=False, capture_output=True).returncode == 0


@pytest.mark.promise
@pytest.mark.slow
def test_the_command_asks_for_the_key_that_is_given(direct: CommandLine) -> None:
    key, other = private_key(direct.folder), private_key(direct.folder, "other.pem")
    job = people_job(direct.folder, people(200))
    assert direct("run", job, SKALD_SIGNING_KEY=str(key)).returncode == 0
    release = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    for arguments in (("--job", job, "--key"), ("--key",)):
        good = direct("verify", release, *arguments, direct.folder / f"public-{key.name}")
        assert (good.returncode, good.stderr) == (0, "")
        wrong = direct("verify", release, *arguments, direct.folder / f"public-{other.name}")
        assert (wrong.returncode, wrong.stdout) == (4, "")
        assert "another key" in wrong.stderr
    assert direct("verify", release, "--job", job).returncode == 0
    private = direct("verify", release, "--job", job, "--key", key)
    assert (private.returncode, "private key" in private.stderr) == (2, True)
    (release / "manifest.sig").unlink()
    gone = direct("verify", release, "--key", direct.folder / f"public-{key.name}")
    assert (gone.returncode, "there is no signature of the key" in gone.stderr) == (4, True)


@pytest.mark.ci
def test_a_release_that_nobody_signed_has_no_signature_of_the_key(anonymise: Anonymise, tmp_path: Path) -> None:
    private_key(tmp_path)
    job = people_job(tmp_path / "job", people(200))
    release = anonymise(job).folder
    assert not (release / "manifest.sig").exists()
    known = VerificationContext(str(release), key=read_public_key(tmp_path / "public-signing.pem"))
    with pytest.raises(VerificationError, match="there is no signature of the key"):
        verify_published(load_job(job), release, known)


@pytest.mark.ci
def test_what_the_run_folder_published_cannot_be_made_anew_unnoticed_there(direct: CommandLine) -> None:
    """Also without a key: the run folder keeps the seal."""
    from tests.tampering.kinds import anew

    job = people_job(direct.folder, people(200))
    assert direct("run", job).returncode == 0
    release = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    anew(release, lambda said: said.update(created="2001-01-01T00:00:00+00:00"))
    told = direct("verify", release, "--job", job)
    assert (told.returncode, "it was made anew" in told.stderr) == (4, True)
    shutil.rmtree(direct.folder / ".skald")
    assert direct("verify", release, "--job", job).returncode == 0


@pytest.mark.ci
@pytest.mark.parametrize("fault", ["gone", "open", "folder", "public", "rsa", "password", "text", "target", "work"])
def test_a_key_that_cannot_be_used_is_refused_before_anything_is_counted(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    job = people_job(tmp_path, people(100))
    place = {"target": tmp_path / "releases", "work": tmp_path / ".skald" / "people"}.get(fault, tmp_path / "keys")
    place.mkdir(parents=True)
    key = private_key(place)
    if fault == "work":
        (place / ".skald-work").touch(0o600)
    openssl = {"rsa": ["genpkey", "-algorithm", "rsa"], "password": ["genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:secret"]}
    if fault in openssl:
        subprocess.run(["openssl", *openssl[fault], "-out", str(key)], check=True, capture_output=True)
    if fault == "gone":
        key.unlink()
    if fault == "text":
        key.write_text("SECRET 4711")
    key = {"folder": place, "public": place / "public-signing.pem"}.get(fault, key)
    if key.exists():
        key.chmod(0o644 if fault == "open" else 0o700 if fault == "folder" else 0o600)
    monkeypatch.setenv("SKALD_SIGNING_KEY", str(key))
    with pytest.raises(SigningKeyError) as refused:
        anonymise(job)
    assert refused.value.exit_code == 2
    assert not any(secret in str(refused.value) for secret in ("SECRET", "4711", "BEGIN", str(key)))
    assert not list((tmp_path / "releases").glob("people-*"))
    assert not (tmp_path / ".skald" / "people" / "artifacts" / "domains").exists()


@pytest.mark.ci
def test_a_release_that_is_there_already_gets_no_signature_and_says_so(direct: CommandLine) -> None:
    key, job = private_key(direct.folder), people_job(direct.folder, people(200))
    assert "signature" not in direct("run", job).stdout
    named = direct("run", job, SKALD_SIGNING_KEY=str(key))
    assert (named.returncode, "none: the release was there already" in named.stdout) == (0, True)
    key.chmod(0o644)
    unfit = direct("run", job, SKALD_SIGNING_KEY=str(key))
    assert (unfit.returncode, "can be read by others" in unfit.stderr) == (2, True)
    key.chmod(0o600)
    signed = direct("run", job, "--set", "privacy.k=6", SKALD_SIGNING_KEY=str(key))
    assert "of ed25519:" in signed.stdout


@pytest.mark.ci
def test_the_key_is_in_nothing_that_is_written(direct: CommandLine) -> None:
    key = private_key(direct.folder)
    job = people_job(direct.folder, people(200))
    done = direct("run", job, SKALD_SIGNING_KEY=str(key))
    secret = key.read_bytes().splitlines()[1]
    raw = base64.b64decode(secret)[-32:]
    written = [path for path in direct.folder.rglob("*") if path.is_file() and path != key]
    assert len(written) > 10
    for content in (done.stdout.encode(), done.stderr.encode(), *(path.read_bytes() for path in written)):
        assert secret not in content
        assert raw not in content
        assert raw.hex().encode() not in content


@pytest.mark.ci
def test_a_run_that_finds_its_release_leaves_the_signature_as_it_is(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = people_job(tmp_path, people(200))
    monkeypatch.setenv("SKALD_SIGNING_KEY", str(private_key(tmp_path)))
    first = anonymise(job)
    signature = (first.folder / "manifest.sig").read_bytes()
    monkeypatch.setenv("SKALD_SIGNING_KEY", str(private_key(tmp_path, "other.pem")))
    assert not anonymise(job).new
    assert (first.folder / "manifest.sig").read_bytes() == signature
    write_parquet(tmp_path / "people", people(250))
    second = anonymise(job)
    assert second.new
    key = read_public_key(tmp_path / "public-other.pem")
    assert verify_published(load_job(job), second.folder, VerificationContext(str(second.folder), key=key)).notes == ()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["manifest.sig", "CURRENT"])
def test_a_run_killed_at_its_signature_publishes_it_with_the_release_or_not_at_all(direct: CommandLine, moment: str) -> None:
    key, job = private_key(direct.folder), people_job(direct.folder, people(200))
    direct.killed(f"*/{moment}", "run", job, SKALD_SIGNING_KEY=str(key))
    for release in (direct.folder / "releases").glob("people-*"):
        assert (release / "manifest.sig").is_file()
    assert direct("run", job, SKALD_SIGNING_KEY=str(key)).returncode == 0
    [release] = (direct.folder / "releases").glob("people-*")
    assert direct("verify", release, "--job", job, "--key", direct.folder / "public-signing.pem").returncode == 0
    assert not list((direct.folder / "releases").glob(".*"))


@pytest.mark.ci
def test_a_manifest_of_an_earlier_format_is_refused_by_name(direct: CommandLine) -> None:
    job = people_job(direct.folder, people(200))
    assert direct("run", job).returncode == 0
    release = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    said = json.loads((release / "manifest.json").read_text())
    for later in ("format", "created", "documents", "seal", "signed_by", "source_name", "run_by"):
        del said[later]
    (release / "manifest.json").write_text(json.dumps(said, indent=2))
    told = direct("verify", release, "--job", job)
    assert (told.returncode, "its manifest is of format 1" in told.stderr) == (4, True)
    # What reads manifests for other ends still does.
    assert direct("report", release, "--to", direct.folder / "again").returncode == 0
