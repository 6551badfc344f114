"""What is done about the signature, by somebody who has a key of his own, and by somebody who has none."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from schemas.release.evidence import complete_manifest
from schemas.release.manifest import Manifest
from tasks.release.signatures import Signer
from tests.tampering.kinds import add, anew, kind, private_key, read

SIG = "manifest.sig"


def stranger() -> Signer:
    """Return the key of somebody else."""
    with tempfile.TemporaryDirectory() as folder:
        key: Any = load_pem_private_key(private_key(Path(folder)).read_bytes(), None)
    return Signer(key)


def signed(release: Path, signer: Signer) -> None:
    """Sign a release as this program would."""
    manifest = Manifest.model_validate(read(release))
    manifest, text = complete_manifest(manifest, manifest.documents, signer.name)
    (release / "manifest.json").write_text(text)
    (release / SIG).write_text(signer.signature(manifest, text.encode()))


def envelope(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Return what changes the envelope, in the form in which it is written."""

    def tamper(release: Path) -> None:
        path = release / SIG
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found, indent=1) + "\n")

    return tamper


def payload(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Return what changes the statement and leaves its signature."""

    def change_envelope(found: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(found["payload"]))
        change(statement)
        found["payload"] = base64.b64encode(json.dumps(statement, indent=1, ensure_ascii=False).encode()).decode()

    return envelope(change_envelope)


def _flip(found: dict[str, Any]) -> None:
    raw = bytearray(base64.b64decode(found["signatures"][0]["sig"]))
    raw[5] ^= 1
    found["signatures"][0]["sig"] = base64.b64encode(raw).decode()


add("a bit of the signature is flipped", envelope(_flip), keyed=True)
add("the signature names another key", envelope(lambda found: found["signatures"][0].update(keyid="ed25519:" + "0" * 64)), keyed=True)
add("the signature names no key", envelope(lambda found: found["signatures"][0].update(keyid="")), keyed=True)
add("there are two signatures", envelope(lambda found: found["signatures"].append(found["signatures"][0])), keyed=True)
add("there is an empty list of signatures", envelope(lambda found: found["signatures"].clear()), keyed=True)
add("the envelope has a key more", envelope(lambda found: found.update(raw="Alice")), keyed=True)
add("the envelope is of another type", envelope(lambda found: found.update(payloadType="text/plain")), keyed=True)
add("the statement says another manifest", payload(lambda said: said["subject"][0]["digest"].update(sha256="0" * 64)), keyed=True)
add(
    "the statement says a file more",
    payload(lambda said: said["subject"].append(said["subject"][0])),
    keyed=True,
)
add("the statement is of another type", payload(lambda said: said.update(predicateType="urn:other")), keyed=True)
add("the signature is gone", lambda release: (release / SIG).unlink(), keyed=True)
add("the signature is empty", lambda release: (release / SIG).write_bytes(b""), keyed=True)
add("the signature is no JSON", lambda release: (release / SIG).write_bytes(b"\xff[{"), keyed=True)
add("the signature has a byte more", lambda release: (release / SIG).write_bytes((release / SIG).read_bytes() + b" "), keyed=True)
add(
    "the signature is in another form",
    lambda release: (release / SIG).write_text(json.dumps(json.loads((release / SIG).read_text()))),
    keyed=True,
)
add("another one signs the same release", lambda release: signed(release, stranger()), keyed=True)


@kind("all is made anew, and signed by another", keyed=True)
def signed_anew(release: Path) -> None:
    anew(release, lambda said: said.update(created="2001-01-01T00:00:00+00:00"))
    signed(release, stranger())


@kind("all is made anew, and the old signature stays", keyed=True)
def old_signature(release: Path) -> None:
    anew(release, lambda said: said.update(created="2001-01-01T00:00:00+00:00"))


@kind("all is made anew without a signature", keyed=True)
def unsigned(release: Path) -> None:
    anew(release, lambda said: said.update(signed_by=None))
    (release / SIG).unlink()


@kind("the manifest names no key and the signature stays", keyed=True)
def unnamed(release: Path) -> None:
    anew(release, lambda said: said.update(signed_by=None))


@kind("the signature is that of another release of the same key", keyed=True)
def of_another(release: Path) -> None:
    shutil.copy(release.parent.parent / "other.sig", release / SIG)


@kind("manifest and signature are those of another release of the same key", keyed=True)
def all_of_another(release: Path) -> None:
    shutil.copy(release.parent.parent / "other.sig", release / SIG)
    shutil.copy(release.parent.parent / "other.json", release / "manifest.json")


@kind("the release is another one of the same key, under this name", keyed=True)
def exchanged(release: Path) -> None:
    other = release.parent.parent / "other"
    shutil.rmtree(release)
    shutil.copytree(other, release)
