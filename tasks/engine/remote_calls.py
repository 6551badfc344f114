"""A call of a step as a file, for a worker in another process or on another machine.

What a step gets can hold cell values: the tree of a hierarchy stands in the job itself. So a worker is sent no arguments but the path of a
file in the run folder (0600 in a folder 0700), and sends back references or a sentence. A file that is gone was withdrawn.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from schemas.errors.base import SkaldError
from schemas.errors.runners import RunnerError, WithdrawnError
from tasks.engine.guard import guarded
from tasks.engine.versions import versions
from tasks.store.files import write_whole
from tasks.store.keys import code_of

MAY_DIFFER = ("python", "prefect")


@dataclass(frozen=True)
class Failure:
    """How a call ended badly; an exception itself would take its traceback along, and Dask would log it.

    Attributes:
        kind: An error of ours.
        sentence: Its message.
        transient: Whether another try may help.
    """

    kind: type[SkaldError]
    sentence: str
    transient: bool = False

    def error(self) -> SkaldError:
        """Returns the error as it was raised."""
        # Some kinds make their sentence of other arguments; here it is made.
        error = self.kind.__new__(self.kind, self.sentence)
        error.transient = self.transient
        return error


def write_call(folder: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Path:
    """Writes a call where only its owner can read it.

    Args:
        folder: In the run folder.
        function: A function of a module.
        arguments: What it gets.

    Returns:
        The file, named by chance: the name goes into Dask's messages and logs.

    Raises:
        StorageError: the folder cannot be written.
    """
    path = folder / uuid4().hex
    content = pickle.dumps((function, arguments))
    write_whole(path, lambda part: part.write_bytes(content))
    return path


def run_call(path: str, wanted: Mapping[str, str]) -> Any:
    """Makes the call that a file holds; runs on a worker, and raises nothing.

    Args:
        path: The file.
        wanted: What the call is to be made with, as ``made_with`` tells.

    Returns:
        What the function returns, or a `Failure`.
    """
    try:
        return guarded(_run)(Path(path), wanted)
    except SkaldError as error:
        return Failure(type(error), str(error), error.transient)


def _run(path: Path, wanted: Mapping[str, str]) -> Any:
    # Before the file is read: a pickle of another version's classes may not even load.
    if differing := [name for name, version in wanted.items() if (release_versions().get(name) or code_of(name)) != version]:
        raise RunnerError.versions_differ(differing)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        # A folder without the file means that it was withdrawn; no folder, that this machine does not have it.
        raise (WithdrawnError() if path.parent.is_dir() else RunnerError.not_shared(str(path.parent))) from None
    except OSError:
        raise RunnerError.not_shared(str(path.parent)) from None
    # To read a pickle is to run what it says: this one lies where its owner alone can write.
    function, arguments = pickle.loads(content)
    return function(*arguments)


def made_with(function: Callable[..., Any]) -> Mapping[str, str]:
    """Returns the versions that decide over the bytes of a release, and the code of a function: so that keys are the same everywhere."""
    return {**release_versions(), function.__module__: code_of(function.__module__)}


@cache
def release_versions() -> Mapping[str, str]:
    """Returns the versions that decide over the bytes of a release."""
    return {package: version for package, version in versions().items() if package not in MAY_DIFFER}
