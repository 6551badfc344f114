"""The command line as a process of its own, which says what it leaves out before anything is loaded."""

from __future__ import annotations

from flows.loading import ended_at_once, load_less


def as_process() -> None:
    """Run the command line in a process that is there for nothing else."""
    load_less()
    ended_at_once(_command_line)


def _command_line() -> None:
    # Loaded here, so that what libraries register for the end of a process comes before its end.
    from flows.cli import main

    main()


if __name__ == "__main__":
    as_process()
