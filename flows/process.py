"""Entry point of the ``skald`` command, which leaves out unused packages before anything is loaded."""

from __future__ import annotations

from flows.loading import prepare_quick_start, run_and_exit


def as_process() -> None:
    """Run the command line with a quick start, and end this process with its exit code."""
    prepare_quick_start()
    run_and_exit(_command_line)


def _command_line() -> None:
    """Import and run the command line."""
    # Loaded here, so that what libraries register for the end of a process comes before its end.
    from flows.cli import main

    main()


if __name__ == "__main__":
    as_process()
