"""The command line as a process of its own: what it leaves out is left out before anything is loaded, and it ends without delay."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from flows.loading import load_less


def as_process() -> None:
    """Runs the command line in a process that is there for nothing else."""
    load_less()
    from flows.cli import main

    ended_at_once(main)


def ended_at_once(main: Callable[[], None]) -> None:
    """Runs what ends a process, and ends it at once where nothing waits for its end.

    Taking modules apart would cost a quarter of a small run.
    """
    try:
        main()
    except SystemExit as ended:
        waiting = {"prefect", "distributed"} & sys.modules.keys() or any(not one.daemon for one in threading.enumerate()[1:])
        if waiting or not isinstance(ended.code, int):
            raise
        with suppress(OSError):  # Python's own end tells of a pipe that nobody reads, or of a full disk
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended.code)
        raise


if __name__ == "__main__":
    as_process()
