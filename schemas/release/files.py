"""Entries for files in a manifest: path, digest and size, so that longer files are refused unread."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PublishedFile(BaseModel):
    """A data file of a release: relative path, number of records, SHA-256 in hex, size in bytes.

    Manifests of earlier versions say nothing of the bytes.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    rows: int
    sha256: str
    bytes: int | None = None


class Document(BaseModel):
    """A file of a release that is generated from its manifest, such as the report.

    It has the path, SHA-256 in hex, the fingerprint of the code that made it, and bytes.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str
    code: str
    bytes: int | None = None
