"""``skald reveal``: the command, which imports its modules when it runs."""

import sys
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import Settings
from flows.terminal.screen import Screen

# ruff: noqa: PLC0415 - each command imports what it needs


def reveal(
    job: Annotated[Path, typer.Argument(help="The job that the release was made by.", show_default=False)],
    column: Annotated[str, typer.Argument(help="A column of pseudonyms.", show_default=False)],
    to: Annotated[Path, typer.Option(metavar="FILE", help="Write pseudonyms and originals as CSV, for you alone.", show_default=False)],
    given: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A pseudonym in each line, for shifted dates subject,date; standard input if left out.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
) -> None:
    """Reverse pseudonyms with the job's key or vault.

    Originals go to a file and nowhere else.
    """
    from schemas.errors.base import counted, verb_of
    from schemas.errors.values import PseudonymError
    from schemas.job.job import load_job
    from tasks.store.files import restrict_new_files
    from tasks.store.work import read_only_store
    from tasks.writing.pseudonyms import needs_subjects, read_list, write_originals
    from tasks.writing.pseudonyms import reveal as originals_of

    restrict_new_files()
    loaded = load_job(job, settings or ())
    try:
        text = given.read_text("utf-8-sig") if given else sys.stdin.read()
    except (OSError, UnicodeDecodeError):
        raise PseudonymError.unreadable_list(f"'{given or 'standard input'}' is no text that is yours to read") from None
    pseudonyms, subjects = read_list(StringIO(text, newline=""), needs_subjects(loaded, column))
    with read_only_store(loaded):
        originals = originals_of(loaded, column, pseudonyms, subjects)
        write_originals(loaded, to, pseudonyms, originals, subjects)
    unknown = sum(original is None for original in originals)
    left = f"; {unknown:,} of them {verb_of(unknown, 'are')} none of '{column}'" if unknown else ""
    Screen(highlight=False).print(f"{counted(len(pseudonyms), 'pseudonym')} in {to}{left}")
