"""SIGKILL at any moment: the target is untouched, and the same command ends in the release of an undisturbed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Anonymise, CommandLine
from tests.jobs import digests, people, people_job

SETTINGS = ("--set", "chunk_rows=60", "--set", "rows_per_file=200", "--set", "privacy.k=4")
STEPS = ["values", "passthrough", "domains", "domain", "histograms", "histogram", "outcome", "runs", "files"]
TABLE = people(900)


def release(folder: Path) -> Path:
    return folder / "releases" / (folder / "releases" / "CURRENT").read_text().strip()


def artifacts(folder: Path) -> dict[Path, tuple[int, int]]:
    """Finished artefacts, by path, with inode and time: what a continued run must not make again."""
    records = (folder / ".skald" / "people" / "artifacts").glob("*/*.record")
    files = [path for record in records for path in record.parent.glob(f"{record.stem}.*")]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


@pytest.fixture(scope="module")
def undisturbed(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    made = anonymise(people_job(tmp_path_factory.mktemp("undisturbed"), TABLE), *SETTINGS[1::2])
    return digests(made.folder)


@pytest.mark.slow_under_prefect
def test_killed_in_every_phase_in_turn_a_run_continues_and_ends_in_the_same_bytes(
    skald: CommandLine, tmp_path: Path, undisturbed: list[str]
) -> None:
    people_job(tmp_path, TABLE)
    kept: dict[Path, tuple[int, int]] = {}
    for step in STEPS:
        skald.killed(f"{step}/*.record", "run", "job.yaml", *SETTINGS)
        assert not list((tmp_path / "releases").glob("people-*"))
        now = artifacts(tmp_path)
        assert now.items() >= kept.items(), "a finished artefact was made again"
        assert any(path.parent.name == step for path in now)
        kept = now
    done = skald("run", "job.yaml", *SETTINGS)
    assert done.returncode == 0, done.stderr
    assert digests(release(tmp_path)) == undisturbed
    assert not list((tmp_path / "releases").glob(".staging-*"))
    assert not (tmp_path / ".skald" / "people" / "spill").exists()


@pytest.mark.slow_under_prefect
def test_another_k_reuses_the_counts_and_damaged_artefacts_are_made_again(
    skald: CommandLine, tmp_path: Path, undisturbed: list[str]
) -> None:
    people_job(tmp_path, TABLE)
    assert skald("run", "job.yaml", *SETTINGS).returncode == 0
    counted = {
        path: state for path, state in artifacts(tmp_path).items() if path.parent.name in {"domains", "domain", "histograms", "histogram"}
    }
    assert counted
    again = skald("run", "job.yaml", *SETTINGS, "--set", "privacy.k=7")
    assert again.returncode == 0, again.stderr
    assert artifacts(tmp_path).items() >= counted.items()
    for number, path in enumerate(sorted(path for path in counted if path.suffix == ".parquet")):
        if number % 3 == 0:
            path.unlink()
        elif number % 3 == 1:
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    for published in (tmp_path / "releases").iterdir():
        published.rename(tmp_path / f"moved-{published.name}")
    done = skald("run", "job.yaml", *SETTINGS)
    assert done.returncode == 0, done.stderr
    assert digests(release(tmp_path)) == undisturbed
