"""Output for people, with every name and text printed literally and never read as a command.

Neither Rich nor the terminal may take a name for a command. Columns, files and jobs have the names that persons gave them. ``[red]age``
is a name and no colour, ``:smile:`` is one and no picture, and an escape sequence could move the cursor and write another verdict over
ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from schemas.errors.base import printable


class Screen(Console):
    """A console that prints markup and control characters literally.

    Lines are not wrapped.
    """

    def __init__(self, *, stderr: bool = False, highlight: bool = True) -> None:
        # Without emoji: their table is a file more, too.
        super().__init__(stderr=stderr, highlight=highlight, soft_wrap=True, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts and Rich renderables of any kind with control characters escaped."""
        super().print(*(printable(one) if isinstance(one, str) else _Printable(one) for one in objects), **options)


class _Printable:
    """A Rich renderable with control characters escaped."""

    def __init__(self, drawn: RenderableType) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for one in console.render(self._drawn, options):
            yield one if one.control else Segment(printable(one.text), one.style)


class NameTable(Table):
    """A table with one line per cell, whatever characters are in names."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row of texts with control characters and line breaks escaped."""
        super().add_row(*map(_cell, cells), **options)


def _cell(cell: RenderableType | None) -> RenderableType | None:
    """Return a cell with control characters and line breaks escaped."""
    if isinstance(cell, Text):
        return Text(printable(cell.plain, lines=False), cell.style)
    return printable(cell, lines=False) if isinstance(cell, str) else cell


def print_json(value: object) -> None:
    """Print data as JSON on standard output, for programs."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    Screen(stderr=True, highlight=False).print(sentence)


def check_suffix(path: Path | None, suffix: str) -> None:
    """Raise ``BadParameter`` if a path is given and does not end with the suffix, before any work."""
    if path is not None and path.suffix.lower() != suffix:
        raise typer.BadParameter(f"--to: {suffix.removeprefix('.').upper()} is written; give the file a name that ends with {suffix}")
