"""Sentences on loops that have to be compiled before they can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.compiling.compiled import notified_of_compiling

LONG_LOOPS = {
    "core.mondrian.cuts": "that cuts classes",
    "core.kmember.blocks": "that moves records between classes",
    "core.privacy.refusals": "that looks for what refusals disclose",
}
"""Modules of the loops that take 5 to 15 CPU seconds each to compile, and what these do. The others take 5 at most."""


def compiling_sentence(module: str) -> str:
    """Return the sentence to print before a loop of a module is compiled."""
    long = LONG_LOOPS.get(module)
    return f"Compiling the loop {long}, once: about 10 s." if long else "Compiling loops, once."


@contextmanager
def compiling_said(say: Callable[[str], None]) -> Iterator[None]:
    """Call ``say`` with each sentence on loops that are compiled within the block, once."""
    said: set[str] = set()

    def say_once(module: str) -> None:
        if (sentence := compiling_sentence(module)) not in said:
            said.add(sentence)
            say(sentence)

    with notified_of_compiling(say_once):
        yield
