"""Signing of releases and checks of signatures (Ed25519).

``SKALD_SIGNING_KEY`` names the file of the private key. This module is imported only to sign or check, because the library behind it
takes longer to load than a small job's counts.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from schemas.errors.folders import SigningKeyError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of, open_regular
from schemas.release.evidence import (
    SCHEME,
    SIGNING_KEY,
    Envelope,
    Signable,
    is_statement_of,
    read_envelope,
    signed_bytes,
    statement_of,
)

MOST_BYTES = 10_000
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Signer:
    """A private key that signs releases; its text and representation reveal nothing of it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def name(self) -> str:
        """Return the public key as text, as the manifest names the signer."""
        return SCHEME + self._public.hex()

    @property
    def _public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def signature(self, manifest: Signable, content: bytes) -> str:
        """Return the text of ``manifest.sig``, signing a manifest and its file's ``content``."""
        payload = statement_of(manifest, content)
        return Envelope(payload, self._public, self._key.sign(signed_bytes(payload))).text()


def read_signer(job: Job) -> Signer:
    """Return the signer of the key in ``SKALD_SIGNING_KEY``; raise ``SigningKeyError`` if unfit."""
    if not os.environ[SIGNING_KEY].strip():
        raise SigningKeyError.private("has no path, because the variable is set and empty")
    path = Path(os.environ[SIGNING_KEY]).resolve()
    for folder, name in ((job.target_path, "target"), (job.work_path, "work folder")):
        if path.is_relative_to(folder.resolve()):
            raise SigningKeyError.private(f"lies inside the {name}; keep it outside")
    try:
        with open_regular(path, MOST_BYTES) as file:
            # Of the file that was opened: its name may lead elsewhere by now.
            if os.fstat(file.fileno()).st_mode & OTHERS:
                raise SigningKeyError.private("can be read by others; run chmod 600 on it")
            key = load_pem_private_key(file.read(), None)
    except OSError:
        raise SigningKeyError.private("cannot be read; check that it is a regular file, small and yours") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The library's words may show what it read.
        raise SigningKeyError.private("holds no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningKeyError.private("is no Ed25519 key")
    return Signer(key)


def read_public_key(path: Path) -> bytes:
    """Read the 32 bytes of an Ed25519 public key from a PEM file; raise ``SigningKeyError`` for others."""
    try:
        content = content_of(path, MOST_BYTES)
    except OSError:
        raise SigningKeyError.public("cannot be read; check the path") from None
    if b"PRIVATE KEY" in content:
        raise SigningKeyError.public("holds a private key, which nobody who verifies should have")
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise SigningKeyError.public("holds no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SigningKeyError.public("is no Ed25519 key")
    return key.public_bytes_raw()


def signature_faults(manifest: Signable, content: bytes, signature: bytes, trusted: bytes | None) -> list[str]:
    """Return faults of a manifest's signature as sentences; empty if it is valid.

    Args:
        content: The bytes of the manifest's file.
        signature: The bytes of ``manifest.sig``.
        trusted: The public key that must have signed; None for any.
    """
    envelope = read_envelope(signature)
    if envelope is None:
        return ["manifest.sig is not a signature in the form that is written"]
    faults = []
    if trusted is not None and envelope.key != trusted:
        faults.append("manifest.sig is signed with another key than that of --key")
    if manifest.signed_by != SCHEME + envelope.key.hex():
        faults.append("manifest.sig is signed with another key than the manifest names")
    try:
        Ed25519PublicKey.from_public_bytes(envelope.key).verify(envelope.signature, signed_bytes(envelope.payload))
    except (InvalidSignature, ValueError):
        faults.append("the signature in manifest.sig is not true")
    if not is_statement_of(envelope.payload, manifest, content):
        faults.append("manifest.sig is the signature of another manifest than manifest.json, or of other files")
    return faults
