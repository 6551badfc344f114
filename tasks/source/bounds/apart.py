"""Reads what a library may not survive in a process of its own: Arrow ends the process at some files that are damaged."""

from __future__ import annotations

import os
import pickle
import resource
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from schemas.errors.base import SkaldError
from schemas.errors.tables import FileError

Result = TypeVar("Result")


def survived(name: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a function returns that is called in a copy of this process.

    Args:
        name: The file that it reads, as the user knows it.
        function: Reads a file of this machine, and returns what can be pickled.
        *arguments: Of the function.

    Raises:
        FileError: the copy was ended by a signal.
        Exception: whatever the function raised.
    """
    content = _answer_of(function, arguments)
    if content is None:
        raise FileError.fatal(name)
    made: Result = _given(content)
    return made


def survived_each(function: Callable[..., Result], calls: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Result]:
    """Return what a function returns for each of several files, as ``survived`` does.

    A copy of the process costs as much as a hundred small files, so that one reads all of them. Where a signal ends it, each file is
    read in a copy of its own: then it is known which one did.

    Args:
        function: As for ``survived``.
        calls: The name of each file, and the arguments of the function.

    Raises:
        FileError: a copy was ended by a signal.
        Exception: whatever the function raised first.
    """
    if not calls:
        return []
    content = _answer_of(_each_of, (function, [arguments for _, arguments in calls]))
    if content is None:
        return [survived(name, function, *arguments) for name, arguments in calls]
    made: list[Result] = _given(content)
    return made


def _each_of(function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
    return [function(*arguments) for arguments in calls]


def _given(content: bytes) -> Any:
    result, error = pickle.loads(content)
    if error is not None:
        raise error
    return result


def _answer_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes | None:
    """Return what a copy of this process answers; None if a signal ended it."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Other threads are not in the copy, which only reads a file.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _answer(write, function, arguments)
    os.close(write)
    with os.fdopen(read, "rb") as answered:
        content = answered.read()
    status = os.waitpid(child, 0)[1]
    return None if os.WIFSIGNALED(status) or not content else content


def _answer(write: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> NoReturn:
    """Write a result or an error into a pipe, and end without what a process does at its end, which is the first one's."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A library's last words are no sentence of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        result: Any = None
        error: Exception | None = None
        try:
            result = function(*arguments)
        except SkaldError as ours:
            error = ours
        except Exception as other:  # its text is kept from everybody by whoever catches it
            error = other
        with os.fdopen(write, "wb") as answer:
            answer.write(pickle.dumps((result, error)))
        code = 0
    finally:
        os._exit(code)
