"""Whose signature it is, and whether it is true, are two questions; a variable without a key is no wish for no signature."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.errors.folders import SigningKeyError
from schemas.job.job import Job
from tasks.publication.staging import signer_of
from tasks.release.signatures import Signer, signature_faults
from tests.core.recount.test_classes import manifest
from tests.jobs import job_of

MINE, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
SAID = manifest(signed_by=Signer(MINE).name)
CONTENT = SAID.model_dump_json().encode()
SIGNATURE = Signer(MINE).signature(SAID, CONTENT).encode()


def altered(signature: bytes) -> bytes:
    one = json.loads(signature)["signatures"][0]["sig"]
    return signature.replace(one.encode(), base64.b64encode(bytes(64)))


def test_a_true_signature_of_another_key_has_one_fault() -> None:
    mine, other = (key.public_key().public_bytes_raw() for key in (MINE, OTHER))
    assert [signature_faults(SAID, CONTENT, SIGNATURE, key) for key in (None, mine)] == [[], []]
    assert signature_faults(SAID, CONTENT, SIGNATURE, other) == ["manifest.sig is signed with another key than that of --key"]


def test_a_signature_that_is_not_true_is_none_whatever_key_is_asked_for() -> None:
    mine, other = (key.public_key().public_bytes_raw() for key in (MINE, OTHER))
    for key in (None, mine, other):
        assert "the signature in manifest.sig is not true" in signature_faults(SAID, CONTENT, altered(SIGNATURE), key)


@pytest.mark.parametrize("value", ["", " "])
def test_a_variable_that_is_set_and_empty_publishes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    job = Job.model_validate(job_of(target=str(tmp_path)))
    monkeypatch.delenv("SKALD_SIGNING_KEY", raising=False)
    assert signer_of(job) is None
    monkeypatch.setenv("SKALD_SIGNING_KEY", value)
    with pytest.raises(SigningKeyError, match="set and empty"):
        signer_of(job)
