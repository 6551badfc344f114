"""Safe forms of paths and names in messages: no cell value, no control characters."""

from __future__ import annotations

import re

_PARTITION = re.compile(r"((?:^|[/'])[^/'=\s]+)=[^/']+(?=/)")


def shown_path(path: str) -> str:
    """Return a path for a message, with the values of Hive partitions replaced by ``…``.

    The folders of Hive partitions, and a file with a name of that form, are values of cells.
    """
    return "/".join(f"{name}=…" if name and mark else part for part in path.split("/") for name, mark, _ in [part.partition("=")])


def printable_message(sentence: str) -> str:
    """Return a message with partition values hidden and control characters escaped."""
    return printable(_PARTITION.sub(r"\1=…", sentence))


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text with its control characters and direction marks written as escapes.

    Args:
        text: Names of columns and files in it are what somebody called them.
        lines: Whether it may be of several lines.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or (lines and one == "\n") else _escaped(one) for one in text)


def _escaped(letter: str) -> str:
    """Return a character as its escape sequence."""
    return letter.encode("unicode_escape").decode("ascii")
