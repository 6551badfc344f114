"""``skald schema``: the command, which imports its modules when it runs."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

# ruff: noqa: PLC0415 - each command imports what it needs


def schema(
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Where it goes; standard output if left out.", show_default=False)] = None,
) -> None:
    """Print the JSON Schema of job files.

    Editors complete and check job files by it.
    """
    from schemas.relational.tables_job import jobs_json_schema
    from tasks.store.files import write_atomically

    text = json.dumps(jobs_json_schema(), indent=2) + "\n"
    if to is None:
        sys.stdout.write(text)
    else:
        write_atomically(to, lambda part: part.write_text(text, "utf-8"), 0o644)
