"""``skald studio``: the command, which imports its modules when it runs."""

from typing import Annotated

import typer

# ruff: noqa: PLC0415 - each command imports what it needs


def studio(
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SOURCE | JOB]", help="What is anonymised, or a job file; the page asks if left out.", show_default=False),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Where it listens; any that is free if left out.", show_default=False)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; only print the address.")] = False,
) -> None:
    """Open a page on this machine to decide on a job.

    It has columns, hierarchies, choices, run and comparison. It ends with the terminal.
    """
    from flows.studio.serving import serve

    serve(tuple(source or ()), port, browser=not no_browser)
