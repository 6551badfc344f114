"""Data files of a release as they are put into staging."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from schemas.errors.base import StorageError
from schemas.release.files import PublishedFile
from tasks.store.files import flush, open_up
from tasks.store.store import Artifact, Store

Numbered = tuple[int, Artifact]
"""A data file with its number in the release."""


def numbered(files: Sequence[Artifact]) -> list[Numbered]:
    """Returns the files that have records, numbered from 1 in the order of the release."""
    return list(enumerate((file for file in files if file.rows), start=1))


def stage_files(files: Sequence[Numbered], store: Store, staging: Path) -> list[PublishedFile]:
    """Puts data files into staging, without copying where the file systems allow it; returns an entry for each.

    Raises:
        StorageError: a folder, the disk or another run stands in the way.
    """
    staged = []
    for number, artifact in files:
        name = f"data/part-{number:05d}.parquet"
        try:
            _link_or_copy(store.path(artifact), staging / name)
        except OSError as error:
            raise StorageError.not_writable(str(staging), error.strerror or "unknown reason") from None
        staged.append(PublishedFile(path=name, rows=artifact.rows, sha256=artifact.sha256, bytes=artifact.size))
    return staged


def _link_or_copy(source: Path, destination: Path) -> None:
    try:
        # The artefact and the published file are one then, mode and all; what keeps others from artefacts is the folder above.
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)
    open_up(destination)
    flush(destination)
