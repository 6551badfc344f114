"""Names of files in a release, written by whoever could write there: none may lead out of its folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from schemas.errors.folders import EscapeError


def check_names(release: str, names: Iterable[str]) -> None:
    """Checks that names relative to a release, of objects or of a manifest, stay in it, and that none is a folder of another one.

    Args:
        release: What the release is called.
        names: With ``/`` between folders.

    Raises:
        EscapeError: some do not.
    """
    listed = list(names)
    folders = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    if wrong := sum(_leads_out(name) or name in folders for name in listed):
        raise EscapeError.leads_out(release, wrong)


def _leads_out(name: str) -> bool:
    # An absolute name begins with an empty part.
    return "\0" in name or any(part in ("", ".", "..") for part in name.split("/"))


def check_no_links(release: Path) -> None:
    """Checks that all that is in a release folder is there itself.

    Raises:
        EscapeError: some of it is elsewhere.
    """
    if links := sum(path.is_symlink() for path in release.rglob("*")):
        raise EscapeError.links(str(release), links)
