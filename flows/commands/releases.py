"""``skald verify``, ``attack``, ``report`` and ``reveal``, which import their modules when they run."""

import sys
from contextlib import nullcontext
from io import StringIO
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


def attack(
    release: Annotated[str, typer.Argument(help="A release folder, or its address in an object store.", show_default=False)],
    job: Annotated[Path, typer.Option("--job", help="The job that made it.", show_default=False)],
    settings: Settings = None,
    everybody: Annotated[bool, typer.Option("--all", help="Attack everybody, and not a sample.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a release and run simulated attacks on it.

    Singling out, linkage, inference, membership, downcoding and joins.

    Exits with 0 if nothing is to be refused, and with 4 if the release does not verify. Exits with 3 if an attack wins more than the job
    accepts and the job or the policy says to refuse that. The figures follow from the source: do not hand them on with the release.
    """
    from flows.attacking import attacked_release, attacked_tables, check_attacked
    from flows.terminal.runs import attack_summary
    from flows.verification import is_about_tables
    from schemas.job.job import load_job
    from schemas.relational.table_jobs import unit_job
    from schemas.relational.tables_job import load_tables_job
    from tasks.verification.published_releases import release_folder

    if is_about_tables(release, job, settings or ()):
        of_tables = load_tables_job(job, settings or ())
        with release_folder(release) as folder:
            loaded, attacked = unit_job(of_tables), attacked_tables(of_tables, folder)
    else:
        loaded = load_job(job, settings or ())
        attacked = attacked_release(loaded, release, everybody=everybody)
    if as_json:
        print_json(attacked.content())
    else:
        Screen().print(attack_summary(attacked.attacks, attacked.basis))
    check_attacked(loaded, attacked)


def report(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    job: Annotated[Path | None, typer.Option("--job", help="The job that made it, with which it is compared.", show_default=False)] = None,
    settings: Settings = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the report goes; back into the release if left out.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json, and write files only with --to.")] = False,
) -> None:
    """Rebuild the report of a release from its manifest and files alone.

    Exits with 4 if they do not agree.
    """
    from schemas.job.job import load_job
    from tasks.publication.staging import documents_of, restore_documents, write_texts
    from tasks.release.manifest import is_of_tables_as_its_job, read_manifest
    from tasks.report.report import rebuild_report
    from tasks.store.files import check_takes_files, open_folder
    from tasks.store.work import read_only_store

    if to:
        check_takes_files(to)
    if is_of_tables_as_its_job(release, job, settings or ()):
        from flows.commands.tables import report_of_tables

        return report_of_tables(release, job, settings or (), to, as_json=as_json)
    loaded = load_job(job, settings or ()) if job else None
    with read_only_store(loaded) if loaded else nullcontext():
        made = rebuild_report(release, loaded)
    written = []
    if to or not as_json:
        texts = documents_of(made)
        written = write_texts(open_folder(to), texts) if to else restore_documents(release, read_manifest(release), texts)
    if as_json:
        sys.stdout.write(made.model_dump_json(indent=2) + "\n")
    else:
        Screen(highlight=False).print(f"Made again from manifest.json and the data files: {' and '.join(map(str, written))}")


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
    from schemas.relational.table_jobs import persons_job
    from schemas.relational.tables_job import TablesJob, load_any_job
    from tasks.store.files import restrict_new_files
    from tasks.store.work import read_only_store
    from tasks.writing.pseudonyms import needs_subjects, read_list, write_originals
    from tasks.writing.pseudonyms import reveal as originals_of

    restrict_new_files()
    given_job = load_any_job(job, settings or ())
    loaded = persons_job(given_job) if isinstance(given_job, TablesJob) else given_job
    try:
        text = given.read_text("utf-8-sig") if given else sys.stdin.read()
    except (OSError, UnicodeDecodeError):
        raise PseudonymError.unreadable_list(f"'{given or 'standard input'}' is no text that is yours to read") from None
    pseudonyms, subjects = read_list(StringIO(text, newline=""), needs_subjects(loaded, column))
    with read_only_store(loaded):
        originals = originals_of(loaded, column, pseudonyms, subjects)
        write_originals(loaded, to, pseudonyms, originals, subjects)
    unknown = sum(original is None and pseudonym != "" for pseudonym, original in zip(pseudonyms, originals, strict=True))
    left = f"; {unknown:,} of them {verb_of(unknown, 'are')} none of '{column}'" if unknown else ""
    Screen(highlight=False).print(f"{counted(len(pseudonyms), 'pseudonym')} in {to}{left}")
