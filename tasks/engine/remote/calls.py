"""Remote calls of steps: encrypted calls for workers in other processes or on other machines.

The arguments of a step can hold cell values: the job itself may contain the tree of a hierarchy. So a worker gets no arguments, only the
address of an encrypted call. It returns references or a sentence. A call that is gone was withdrawn.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import uuid4

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schemas.errors.base import SkaldError
from schemas.errors.runners import RunnerError
from tasks.engine.calls import Call
from tasks.engine.guard import guarded
from tasks.engine.remote.call_queues import CallQueue, decoded, encoded
from tasks.engine.runs import versions
from tasks.store.keys import code_of
from tasks.store.step import Step

NONCE = 12
"""Bytes; chosen by chance, of which 2^32 under one key are safe, and a phase has some dozen."""


@dataclass(frozen=True)
class CallKey:
    """The key that encrypts calls; its representation hides the secret."""

    secret: bytes = field(default_factory=lambda: AESGCM.generate_key(256), repr=False)

    def encrypt(self, name: str, content: bytes) -> bytes:
        """Return a call's content encrypted and authenticated, bound to the call's name."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + AESGCM(self.secret).encrypt(nonce, content, name.encode())

    def decrypt(self, name: str, sealed: bytes) -> bytes:
        """Return a call's decrypted content; raise ``RunnerError`` if content or name was altered."""
        try:
            return AESGCM(self.secret).decrypt(sealed[:NONCE], sealed[NONCE:], name.encode())
        except (InvalidTag, ValueError):
            raise RunnerError.altered_call() from None


MAY_DIFFER = ("python", "prefect")


@dataclass(frozen=True)
class Failure:
    """The error of a failed remote call, without its traceback.

    Attributes:
        kind: An error of ours.
        sentence: Its message.
        transient: Whether another try may help.
    """

    kind: type[SkaldError]
    sentence: str
    transient: bool = False
    continuation: str = ""

    def error(self) -> SkaldError:
        """Return the error that the remote call raised, without its traceback."""
        # Some kinds make their sentence of other arguments; here it is made.
        error = self.kind.__new__(self.kind, self.sentence)
        error.transient, error.continuation = self.transient, self.continuation
        return error


@dataclass(frozen=True)
class Order:
    """The message to a worker: a call's address in the queue, its key and the required versions.

    Attributes:
        queue: Where the call lies.
        name: Under which; by chance, because it goes into an engine's messages and logs.
        key: Opens it.
        versions: The versions that the worker must have, from ``code_versions``.
    """

    queue: CallQueue
    name: str
    key: CallKey
    versions: Mapping[str, str] = field(repr=False)


@contextmanager
def queued_call(queue: CallQueue, key: CallKey, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[Order]:
    """Put an encrypted call into the queue and yield its order; remove the call after the block.

    Args:
        queue: Where it lies meanwhile.
        key: Seals it.
        function: A function of a module.
        arguments: What it gets.
    """
    order = Order(queue, uuid4().hex, key, code_versions(function, arguments))
    queue.add_call(order.name, key.encrypt(order.name, encoded(function, arguments, queue)))
    try:
        yield order
    finally:
        queue.remove(order.name)


class RemoteCalls(ABC):
    """Caller of one phase's functions on workers by encrypted orders; subclasses send the orders.

    Args:
        queue: Where calls lie meanwhile; empty at the end.
    """

    def __init__(self, queue: CallQueue) -> None:
        self._queue, self._key, self._waiting = queue, CallKey(), set[str]()

    def __call__(self, function: Callable[..., Any], call: Call) -> Any:
        """Make a call and wait for it; return its result or raise its error."""
        with queued_call(self._queue, self._key, function, call.arguments) as order:
            self._waiting.add(order.name)
            try:
                return result_of(self.send_and_wait(order))
            finally:
                self._waiting.discard(order.name)

    @abstractmethod
    def send_and_wait(self, order: Order) -> Any:
        """Send an order to a worker, wait, and return its answer: a result or a ``Failure``."""

    def withdraw(self) -> None:
        """Remove from the queue the calls that no worker has begun; calls in progress run to their end."""
        for name in list(self._waiting):
            self._queue.remove(name)


def fulfil(order: Order) -> Any:
    """Make an order's call on this worker; return its result, or a ``Failure`` instead of an error.

    Returns:
        What the function returns, or a `Failure`.
    """
    try:
        return guarded(_fulfil)(order)
    except SkaldError as error:
        return Failure(type(error), str(error), error.transient, error.continuation)


def result_of(answer: Any) -> Any:
    """Return a remote call's result, or raise its error."""
    if isinstance(answer, Failure):
        raise answer.error()
    return answer


def _fulfil(order: Order) -> Any:
    # Before the call is read: another version's classes may be others.
    differing = [name for name, version in order.versions.items() if (release_versions().get(name) or code_of(name)) != version]
    if differing:
        raise RunnerError.versions_differ(differing)
    content = order.key.decrypt(order.name, order.queue.take(order.name))
    function, arguments = decoded(content, order.queue)
    return function(*arguments)


def code_versions(function: Callable[..., Any], arguments: Sequence[Any] = ()) -> Mapping[str, str]:
    """Return the package versions and code fingerprints that a worker must have to make a call."""
    modules = {function.__module__, *([function.module_name(arguments[0])] if isinstance(function, Step) else ())}
    return {**release_versions(), **{module: code_of(module) for module in modules}}


@cache
def release_versions() -> Mapping[str, str]:
    """Return by package the versions that a release's bytes depend on, cached; not Python or Prefect."""
    return {package: version for package, version in versions().items() if package not in MAY_DIFFER}
