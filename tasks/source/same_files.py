"""One file is one file, whatever names lead to it: counted twice, the records of three people would be a class of six."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path

from schemas.errors.base import SourceError
from schemas.job.connection import is_address

_FAMILIES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}
"""Schemes that lead to the same store as another one."""


def each_once(matched: Mapping[str, Set[str]]) -> list[str]:
    """Returns the names of the files that patterns matched, one for each file, in their order.

    A file that overlapping patterns or other spellings of the same path (``a/../b`` for ``b``) reach is taken once, by its shortest name.

    Args:
        matched: By path or address, the patterns that it matches, as the job has them.

    Raises:
        SourceError: two different paths lead to one file, by a link or as two of its names; nobody knows whether that was meant.
    """
    files: dict[tuple[str | int, ...], dict[str, list[str]]] = {}
    for name in sorted(matched, key=lambda name: (len(name), name)):
        files.setdefault(_identity(name), {}).setdefault(_spelled_out(name), []).append(name)
    if twice := [list(spellings.values()) for spellings in files.values() if len(spellings) > 1]:
        patterns = {pattern for names in twice for one in names for name in one for pattern in matched[name]}
        raise SourceError.same_files(sorted(patterns), len(twice), twice[0][0][0], twice[0][1][0])
    return sorted(names[0] for spellings in files.values() for names in spellings.values())


def _identity(name: str) -> tuple[str | int, ...]:
    """Returns what two names have in common if and only if they are names of one file."""
    if is_address(name):
        return (_spelled_out(name),)
    try:
        stat = Path(name).stat()
    except OSError:
        return (name,)
    # Some file systems of networks number their files anew or not at all; size and time tell those apart.
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat.st_ino else (str(Path(name).resolve()),)


def _spelled_out(name: str) -> str:
    if not is_address(name):
        return os.path.normpath(name)
    scheme, path = name.split("://", 1)
    return f"{_FAMILIES.get(scheme.lower(), scheme.lower())}://{path}"
