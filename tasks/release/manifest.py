"""The manifest of a release that is there."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from schemas.errors.base import StorageError
from schemas.release.manifest import Manifest
from tasks.release.names import check_names


def read_manifest(release: Path) -> Manifest | None:
    """Returns the manifest of a release, or None if it has none.

    Raises:
        StorageError: there is one, but it is not a manifest.
        EscapeError: it names files outside the release.
    """
    path = release / "manifest.json"
    if not path.exists():
        return None
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        # Pydantic's message quotes what it read.
        raise StorageError.not_a_release(str(release), "manifest.json cannot be read as a manifest") from None
    check_names(str(release), (file.path for file in manifest.files))
    return manifest
