"""``skald verify``: the command, which imports its modules when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import AsJson, Settings
from flows.terminal.screen import Screen, print_json

UNVERIFIED = 5
"""The exit code where nothing speaks against a release, and not all that was promised of k, l and t could be counted."""

# ruff: noqa: PLC0415 - each command imports what it needs


def verify(
    release: Annotated[str, typer.Argument(help="A release folder, or its address in an object store.", show_default=False)],
    job: Annotated[Path | None, typer.Option("--job", help="The job whose promise is checked.", show_default=False)] = None,
    settings: Settings = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="PUBLIC.pem", help="The public key that must have signed it.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a release: recount its files and check every byte.

    Exits with 0 if all that was promised holds, and with 4 if anything is not as it was published. Exits with 5 if nothing speaks against
    it, but k, l or t could not be counted as it was promised; what was not is said first.
    """
    from flows.terminal.runs import verification_summary
    from flows.verification import figures_of, is_about_tables, verified_release
    from schemas.job.job import load_job

    if is_about_tables(release, job, settings or ()):
        from flows.commands.tables import verify_release_of_tables

        if not verify_release_of_tables(release, job, settings or (), key, as_json=as_json):
            raise typer.Exit(UNVERIFIED)
        return
    loaded = load_job(job, settings or ()) if job else None
    verified = verified_release(loaded, release, key)
    recount, manifest = verified.recount, verified.manifest
    if as_json:
        print_json(figures_of(verified))
    else:
        k = loaded.privacy.k if loaded else int(manifest.privacy["k"]) if manifest else 1
        screen = Screen()
        for sentence in verified.unverified:
            screen.print(f"Not verified: {sentence}")
        trusted = key is not None
        summary = verification_summary(recount, manifest, k, verified.notes, verified.on_trust, newer=verified.newer, trusted=trusted)
        screen.print("Not verified in full: nothing speaks against the rest." if verified.unverified else "Verified.", summary)
    if verified.unverified:
        raise typer.Exit(UNVERIFIED)
