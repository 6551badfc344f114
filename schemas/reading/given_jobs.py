"""Jobs that a program passes instead of a file, as YAML text that the same rules read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from schemas.errors.base import JobError
from schemas.reading.regular_files import read_text


@dataclass(frozen=True)
class GivenJob:
    """The text and base folder of a job that has no file.

    Attributes:
        text: YAML. Not in what the object shows of itself: there may be cell values in a tree.
        folder: To which its paths are relative.
        called: How it is called in messages.
        scratch: Whether what it makes is counted or handed over, and removed again. Only our own programs say so: no job file does, and
            no look at folders, in which others may write.
    """

    text: str
    folder: Path
    called: str = "The job given"
    scratch: bool = False

    def __str__(self) -> str:
        return self.called

    def __repr__(self) -> str:
        return "GivenJob(…)"


def given_job(data: Mapping[str, Any], folder: Path) -> GivenJob:
    """Convert plain Python data to a job for the YAML reader; raise for data that no job can hold.

    Args:
        data: What the YAML would say.
        folder: To which its paths are relative.
    """
    return GivenJob(_written(data, "The job given"), folder.absolute())


def scratch_job(job: Path | GivenJob) -> GivenJob:
    """Read a job, or raise ``JobError``; return it as one whose release is temporary.

    Its release is neither registered nor compared with other releases.
    """
    if isinstance(job, GivenJob):
        return replace(job, scratch=True)
    text, faults = read_text(job)
    if faults:
        raise JobError(str(job), faults)
    return GivenJob(text, job.parent, str(job), scratch=True)


def setting_texts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Convert settings by dotted key to texts for ``--set``; raise for values that no job can hold."""
    return tuple(f"{key}={_written(value, 'The settings given')}" for key, value in settings.items())


def _written(data: object, where: str) -> str:
    """Return data as JSON text, or raise a JobError that names ``where``."""
    # JSON is YAML; its escapes of characters beyond the first plane are not, so that they stay as they are.
    try:
        return json.dumps(_plain(data), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    raise JobError(where, ["it must hold mappings, lists, texts, numbers, true, false and None alone, and not itself"])


def _plain(value: object) -> object:
    """Convert data to types that JSON can hold; leave other values for JSON to refuse."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_plain(part) for part in value]
    if isinstance(value, Decimal):
        # A number that only looks like another one would change a width; as text it is refused where a number is asked for.
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, date):
        return value.isoformat()
    # Numbers of NumPy.
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value


def _key(key: object) -> str:
    """Return the key of a mapping as text; raise TypeError for keys other than int and str."""
    # Whole numbers and texts: of what else a key could be, YAML's own spelling is no agreement.
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise TypeError
    return str(key)
