"""How paths and names that others chose may stand in what is said: without a value of a cell, and as letters alone."""

from __future__ import annotations

import re

_PARTITION = re.compile(r"((?:^|[/'])[^/'=\s]+)=[^/']+(?=/)")


def shown_path(path: str) -> str:
    """Return a path as messages may tell it: the folders of Hive partitions, and a file that is called like one, are values of cells."""
    return "/".join(f"{name}=…" if name and mark else part for part in path.split("/") for name, mark, _ in [part.partition("=")])


def printable_message(sentence: str) -> str:
    """Return a message as it may be told: nothing that a terminal would do, and no folder that a constructor let through."""
    return printable(_PARTITION.sub(r"\1=…", sentence))


def printable(text: str, *, lines: bool = True) -> str:
    """Return a text with what a terminal would do rather than show written out: escape sequences, marks that turn the direction round.

    Args:
        text: Names of columns and files in it are what somebody called them.
        lines: Whether it may be of several lines.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or (lines and one == "\n") else _escaped(one) for one in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
