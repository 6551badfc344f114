"""Files below a pattern that are no data by their names, as Spark, Hive and PyArrow have it: ``_temporary/``, ``_SUCCESS``, ``.crc``.

A program that writes a folder of files keeps beside them what it is in the midst of. Read as data, the same records would count twice.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

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
