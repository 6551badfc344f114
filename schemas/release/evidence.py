"""Files of a manifest by path, digest and size, and the signature: proof that a release is unchanged.

The manifest lists every other file of its release by digest and has a digest of itself. So every change by accident, or by persons who do
not know this, is noticed. Persons who know it can make all digests anew, and only a signature prevents that: a statement in the form of
in-toto (Statement, version 1) in an envelope of DSSE, signed with Ed25519.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from schemas.reading.model import FrozenModel


class PublishedFile(FrozenModel):
    """A data file of a release: relative path, number of records, SHA-256 in hex, size in bytes.

    Manifests of earlier versions say nothing of the bytes.
    """

    path: str
    rows: int
    sha256: str
    bytes: int | None = None


class Document(FrozenModel):
    """A file of a release that is generated from its manifest, such as the report.

    It has the path, SHA-256 in hex, the fingerprint of the code that made it, and bytes.
    """

    path: str
    sha256: str
    code: str
    bytes: int | None = None


MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
DOCUMENTS = ("report.html", "report.json")
"""What a release holds beside its data, manifest and signature."""
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:skald:release:2"
SCHEME = "ed25519:"
SIGNING_KEY = "SKALD_SIGNING_KEY"
"""The variable that names the file of the private key; unset or empty where nothing is signed."""
_SEAL = re.compile(rb'"seal": "([0-9a-f]{64})"\n\}\n\Z')


Digested = TypeVar("Digested", bound=BaseModel)


class Signable(Protocol):
    """Protocol of manifests, of one table or of several, with the fields that are signed.

    They have the fields of ``IN_SHORT``, too.
    """

    @property
    def signed_by(self) -> str | None:
        """Public key that signed the release; None if it is not signed."""

    @property
    def listed(self) -> dict[str, str]:
        """SHA-256 of each other file of the release, by path."""


IDENTITY = ("release", "name", "format")
IN_SHORT = ("created", "source_name", "run_by", "method", "privacy", "policy", "records", "released")
"""What a signed statement says of a release, besides the digest of its manifest."""


def complete_manifest(manifest: Digested, documents: tuple[Document, ...], signed_by: str | None) -> tuple[Digested, str]:
    """Return a copy of a manifest with documents, signer and own digest, and the text of its file."""
    open_one = manifest.model_copy(update={"documents": documents, "signed_by": signed_by, "seal": ""})
    # Of the very bytes of the file: to write the same content in another way is to change it.
    seal = hashlib.sha256(_text(open_one).encode()).hexdigest()
    sealed = open_one.model_copy(update={"seal": seal})
    return sealed, _text(sealed)


def _text(manifest: BaseModel) -> str:
    """Return the JSON text of a manifest's file."""
    return manifest.model_dump_json(indent=2) + "\n"


ALTERED = "manifest.json was altered since publication: its content does not match the digest inside it"


def has_digest(content: bytes) -> bool:
    """Return whether a manifest's file ends with a digest, as all but early ones do."""
    return _SEAL.search(content) is not None


def has_valid_digest(content: bytes) -> bool:
    """Return whether the bytes of a manifest's file match the digest inside them."""
    found = _SEAL.search(content)
    if found is None:
        return False
    return hashlib.sha256(content[: found.start(1)] + content[found.end(1) :]).hexdigest().encode() == found[1]


def is_as_written(content: bytes, manifest: BaseModel) -> bool:
    """Return whether a manifest's file has only what its model holds, in the same form.

    It may have no unknown key, no key twice and no other spelling.
    """
    read, known = json.loads(content), manifest.model_dump(mode="json")
    if _more(read, known):
        return False
    # One of an earlier version may lack keys that came later.
    return bool(_more(known, read)) or _text(manifest).encode() == content


def _more(read: Any, known: Any) -> int:
    """Return how many keys JSON data has that other data has not, at any depth."""
    if isinstance(read, dict) and isinstance(known, dict):
        return sum(_more(one, known[key]) if key in known else 1 for key, one in read.items())
    if isinstance(read, list) and isinstance(known, list):
        return sum(_more(one, other) for one, other in zip(read, known, strict=False))
    return 0


def statement_of(manifest: Signable, content: bytes) -> bytes:
    """Return the statement to sign: the digest of each file of a release, and a short description."""
    digests = _digests(manifest, content)
    predicate = {name: getattr(manifest, name) for name in IDENTITY}
    predicate |= {"manifest": {"sha256": digests[MANIFEST]}} | {name: getattr(manifest, name) for name in IN_SHORT}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": _subjects(digests),
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return json.dumps(statement, indent=1, ensure_ascii=False).encode()


def is_statement_of(payload: bytes, manifest: Signable, content: bytes) -> bool:
    """Return whether a signed statement lists the release's files with the manifest's digests.

    Another version may word the short description differently; the signer answers for it.
    """
    try:
        statement = json.loads(payload)
        kinds = statement["_type"], statement["predicateType"]
        return kinds == (STATEMENT_TYPE, PREDICATE_TYPE) and statement["subject"] == _subjects(_digests(manifest, content))
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _digests(manifest: Signable, content: bytes) -> dict[str, str]:
    """Return the SHA-256 of the manifest and of all files that it lists, by path."""
    return {MANIFEST: hashlib.sha256(content).hexdigest()} | manifest.listed


def _subjects(digests: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return digests as the subjects of an in-toto statement."""
    return [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()]


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes that are signed for a payload: DSSE's pre-authentication encoding.

    With it no payload passes for another type.
    """
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


class Envelope(NamedTuple):
    """Signed statement, with public key and signature, as in ``manifest.sig``.

    Attributes:
        payload: The statement.
        key: The public key, 32 bytes; the envelope bears it, so that whoever has no key sees at least that both belong together.
        signature: 64 bytes.
    """

    payload: bytes
    key: bytes
    signature: bytes

    def text(self) -> str:
        """Return the text of the file ``manifest.sig``."""
        signatures = [{"keyid": SCHEME + self.key.hex(), "sig": _base64(self.signature)}]
        return json.dumps({"payloadType": PAYLOAD_TYPE, "payload": _base64(self.payload), "signatures": signatures}, indent=1) + "\n"


def read_envelope(content: bytes) -> Envelope | None:
    """Parse a signature file, without verifying it; return None if it is not in the form that is written."""
    try:
        read: Mapping[str, Any] = json.loads(content)
        [one] = read["signatures"]
        envelope = Envelope(
            base64.b64decode(read["payload"]), bytes.fromhex(one["keyid"].removeprefix(SCHEME)), base64.b64decode(one["sig"])
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return envelope if envelope.text().encode() == content else None


def _base64(content: bytes) -> str:
    """Return bytes as base64 text."""
    return base64.b64encode(content).decode()
