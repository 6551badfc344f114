"""The cases: what writes a file, what the job says of it, and what is right, in Python's own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """A source with its right outcome.

    Attributes:
        name: Of the case.
        write: Writes the files into a folder.
        source: What the job says of them.
        values: Those of column ``v``, in any order; None if the source is refused.
        said: Words of the refusal.
    """

    name: str
    write: Callable[[Path], Any]
    source: dict[str, Any]
    values: Sequence[Any] | None = None
    said: str = ""
    columns: tuple[str, ...] = field(default=("v",))
