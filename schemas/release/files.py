"""Files of a release as its manifest lists them: each by path, digest and size, so that a longer one is refused unread."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PublishedFile(BaseModel):
    """One data file of a release: path relative to the release, number of records, SHA-256 in hex, and bytes.

    Manifests of earlier versions say nothing of the bytes.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    rows: int
    sha256: str
    bytes: int | None = None


class Document(BaseModel):
    """A file of a release that is made of its manifest: path, SHA-256 in hex, the fingerprint of the code that made it, and bytes."""

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str
    code: str
    bytes: int | None = None
