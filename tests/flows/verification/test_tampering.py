"""Every way to tamper with a release that the corpus knows is noticed, and no message says what was laid there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.errors.base import SkaldError
from schemas.job.job import load_job
from tasks.release.signatures import read_public_key
from tasks.verification.release import Known, verify_published
from tests.conftest import Anonymise
from tests.jobs import people, people_job
from tests.tampering.kinds import Kind, all_kinds, private_key

LEAST = 88
"""Kinds that the corpus has at least."""
VALUES = ("Alice", "44", "Bob", "Smith")
LAYOUTS = {
    "parquet": ("rows_per_file=40",),
    "csv": ("rows_per_file=40", "output.format=csv"),
    "duckdb": ("output.format=duckdb",),
    "hive": ("output.partition_by=[zip]",),
}


@pytest.fixture(scope="module")
def finished(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with a job and its release, by layout; ``signed`` is that of Parquet with a signature, and another release beside it."""
    folders = {}
    for layout, settings in LAYOUTS.items():
        folders[layout] = tmp_path_factory.mktemp(layout) / "job"
        anonymise(people_job(folders[layout], people(120)), *settings)
    folders["signed"] = _signed(anonymise, tmp_path_factory.mktemp("signed"))
    return folders


def _signed(anonymise: Anonymise, folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKALD_SIGNING_KEY", str(private_key(folder)))
        job = people_job(folder / "job", people(120))
        other = anonymise(job, *LAYOUTS["parquet"], "privacy.k=7").folder
        shutil.copy(other / "manifest.json", folder / "job" / "other.json")
        shutil.copy(other / "manifest.sig", folder / "job" / "other.sig")
        shutil.move(other, folder / "job" / "other")
        anonymise(job, *LAYOUTS["parquet"])
    return folder / "job"


def release_of(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def copy_of(folder: Path, to: Path) -> Path:
    """Copies job, source and release, and nothing that the run folder keeps; returns the release."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(".skald"))
    return release_of(to)


def caught(one: Kind, finished: dict[str, Path], folder: Path) -> str:
    """Returns the message by which a kind is noticed, or why it is not."""
    base = finished["signed" if one.keyed else one.layout]
    release = copy_of(base, folder / "job")
    try:
        one.tamper(release)
    except Exception as error:
        return f"NOT CAUGHT: could not be played: {type(error).__name__}: {error}"
    if not release.exists():
        [release] = [path for path in release.parent.iterdir() if path.is_dir() and path.name != "people-fedcba9876543210"]
    key = read_public_key(base.parent / "public-signing.pem") if one.keyed else None
    job = load_job(folder / "job" / "job.yaml", LAYOUTS[one.layout])
    try:
        verify_published(job, release, Known(str(release), key=key))
    except SkaldError as error:
        told = str(error).replace(str(folder), "")
        if error.exit_code != 4:
            return f"NOT CAUGHT: exit code {error.exit_code}: {told}"
        return f"NOT CAUGHT: a value is told: {told}" if any(value in told for value in VALUES) else told
    except Exception as error:
        return f"NOT CAUGHT: {type(error).__name__}: {error}"
    return "NOT CAUGHT"


def test_every_kind_of_tampering_is_noticed(finished: dict[str, Path], tmp_path: Path) -> None:
    found: dict[str, str] = {}
    for number, one in enumerate(all_kinds()):
        found[one.name] = caught(one, finished, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number), ignore_errors=True)
    assert len(found) >= LEAST
    missed = [f"{name}: {told}" for name, told in found.items() if told.startswith("NOT CAUGHT")]
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize("layout", [*LAYOUTS, "signed"])
def test_what_is_not_tampered_with_is_verified(layout: str, finished: dict[str, Path], tmp_path: Path) -> None:
    release = copy_of(finished[layout], tmp_path / "job")
    job = load_job(tmp_path / "job" / "job.yaml", LAYOUTS.get(layout, LAYOUTS["parquet"]))
    key = read_public_key(finished[layout].parent / "public-signing.pem") if layout == "signed" else None
    assert verify_published(job, release, Known(str(release), key=key)).notes == ()
    assert verify_published(None, release, Known(str(release), key=key)).manifest is not None
