"""``skald verify``: the command alone; imports what it needs when it runs."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from schemas.job.job import Job
    from tasks.verification.release import Known, Verified

# ruff: noqa: PLC0415 - each command imports what it needs


def verify(
    release: Annotated[str, typer.Argument(help="A release folder, or its address in an object store.", show_default=False)],
    job: Annotated[Path | None, typer.Option("--job", help="The job whose promise is checked.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replaces a setting of the job, as in privacy.k=10.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="PUBLIC.pem", help="The public key that must have signed it.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Prints JSON as the last thing on standard output.")] = False,
) -> None:
    """Recounts the files of a release and looks at every byte of it; exits with 4 if anything is not as it was published."""
    from flows.terminal.runs import verification_summary
    from schemas.job.job import load_job
    from tasks.publication.remote_target import at_hand
    from tasks.verification.release import verify_published

    loaded = load_job(job, settings or ()) if job else None
    trusted = _public_key(key) if key else None
    with at_hand(release) as folder:
        verified = verify_published(loaded, folder, _known(loaded, release, folder, trusted))
    recount, manifest = verified.recount, verified.manifest
    if as_json:
        sys.stdout.write(json.dumps(_figures(verified), indent=2) + "\n")
    else:
        k = loaded.privacy.k if loaded else int(manifest.privacy["k"]) if manifest else 1
        summary = verification_summary(recount, manifest, k, verified.notes, trusted=trusted is not None)
        Console(soft_wrap=True).print("Verified.", summary)


def _public_key(path: Path) -> bytes:
    from tasks.release.signatures import read_public_key

    return read_public_key(path)


def _known(job: "Job | None", place: str, folder: Path, key: bytes | None) -> "Known":
    """Returns what is known of a release from elsewhere than its folder: the run folder keeps persons and the seal."""
    from tasks.composition.ledger import people_of_release, seal_of_release
    from tasks.store.store import Store
    from tasks.verification.release import Known

    if job is None:
        return Known(place, key=key)
    name, store = folder.resolve().name, Store(job.work_path / "artifacts")
    return Known(place, people_of_release(name, store), seal_of_release(name, store), key)


def _figures(verified: "Verified") -> dict[str, object]:
    from core.recount.risk import risk_in
    from tasks.publication.manifests import risk_after

    recount, manifest = verified.recount, verified.manifest
    suppressed, masked = (manifest.suppressed, manifest.masked) if manifest else (0, 0)
    figures = {name: value for name, value in vars(recount).items() if name not in {"sizes", "persons", "linked", "population"}}
    persons = {name: value for name, value in vars(recount.persons).items() if name != "sizes"} if recount.persons else None
    linked = [vars(one) for one in recount.linked]
    population = risk_in(*recount.population) if recount.population else None
    evidence = {"signed_by": manifest.signed_by if manifest else None, "notes": verified.notes}
    return (
        figures
        | {"population": population, "persons": persons, "linked": linked, "risk": risk_after(recount, suppressed, masked)}
        | evidence
    )
