"""Files below a pattern that are no data by their names, as Spark, Hive and PyArrow have it: ``_temporary/``, ``_SUCCESS``, ``.crc``.

A program that writes a folder of files keeps beside them what it is in the midst of. Read as data, the same records would count twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

_WILD = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[[*?[]\]")
"""A mark of a pattern that stands for itself."""


def is_hidden(name: str, pattern: str) -> bool:
    """Tell whether a name that a pattern matches is no data: below what the pattern spells out, a part begins with ``_`` or ``.``.

    A folder such as ``_region=North`` is a partition. A part of the pattern that itself begins with ``_`` or ``.`` asks for such names.

    Args:
        name: Path or address.
        pattern: What matched it, written the same way.
    """
    parts, asked = name.split("/"), pattern.split("/")
    fixed = next((place for place, part in enumerate(asked) if _WILD.search(_ESCAPED.sub("", part))), len(asked))
    spelled = [part for part in asked[fixed:] if part.startswith(("_", "."))]
    return any(_is_aside(part) and not any(fnmatchcase(part, one) for one in spelled) for part in parts[fixed:])


def _is_aside(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")


TABLE_FORMAT_FOLDERS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi", "metadata": "Iceberg"}
"""The folder that lies in the table's own, and what the table is then; that of Iceberg may be anybody's, and is looked into."""
_ICEBERG = (".metadata.json", ".gz.metadata.json", "version-hint.text")
_DEEPEST = 64
"""Folders that are looked at in a store, which answers slowly."""

Names = Callable[[str], list[str]]
"""Gives the names of what lies in a folder; none where there is no such folder."""


def table_format(files: Iterable[str], names_in: Names, *, most: int | None = None) -> tuple[str, str] | None:
    """Return the folder of a table that files belong to, and its format; None if they belong to none.

    Args:
        files: Paths or addresses, without patterns.
        names_in: Lists a folder.
        most: Folders to look at.
    """
    folders = dict.fromkeys(folder for file in files for folder in _above(file))
    for folder in list(folders)[:most]:
        for mark, words in TABLE_FORMAT_FOLDERS.items():
            found = names_in(f"{folder}/{mark}")
            if any(name.endswith(_ICEBERG) for name in found) if words == "Iceberg" else found:
                return folder, words
    return None


def table_format_here(files: Iterable[str]) -> tuple[str, str] | None:
    """Return the same of files of this machine."""

    def names_in(folder: str) -> list[str]:
        try:
            return [path.name for path in Path(folder).iterdir()]
        except OSError:
            return []

    return table_format(files, names_in)


def table_format_there(files: Iterable[str], names_in: Names) -> tuple[str, str] | None:
    """Return the same of objects of a store."""
    return table_format(files, names_in, most=_DEEPEST)


def _above(file: str) -> list[str]:
    """Return the folders that a file lies in, from the innermost; those of partitions are no tables."""
    parts = file.split("/")
    ends = range(len(parts) - 1, 0, -1)
    return ["/".join(parts[:end]) for end in ends if parts[end - 1] and "=" not in parts[end - 1]]
