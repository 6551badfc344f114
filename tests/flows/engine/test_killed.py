"""SIGKILL at any moment: the target is untouched, and the same command ends in the release of an undisturbed run."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from schemas.errors.storage import PointerError
from tasks.composition.release_history import MOST_RELEASES
from tasks.engine.progress import listening
from tests.conftest import Anonymise, CommandLine
from tests.jobs import digests, people, people_job, write_parquet
from tests.laws import THOROUGHLY

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


@pytest.mark.slow
@pytest.mark.promise
def test_killed_in_every_phase_in_turn_a_run_continues_and_ends_in_the_same_bytes(
    skald: CommandLine, tmp_path: Path, undisturbed: list[str]
) -> None:
    people_job(tmp_path, TABLE)
    kept: dict[Path, tuple[int, int]] = {}
    # Prefect starts for seconds, each time anew: in CI it is killed in three of the phases.
    for step in STEPS if skald.mode == "direct" or THOROUGHLY else STEPS[::4]:
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


@pytest.mark.ci
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


@pytest.mark.ci
@pytest.mark.slow_under_prefect
def test_records_that_were_swapped_are_noticed_and_made_again(skald: CommandLine, tmp_path: Path, undisturbed: list[str]) -> None:
    people_job(tmp_path, TABLE)
    for k in (9, 4):
        done = skald("run", "job.yaml", *SETTINGS, "--set", f"privacy.k={k}")
        assert done.returncode == 0, done.stderr
    work = tmp_path / ".skald" / "people"
    for step in ("outcome", "cells", "classes", "histograms", "domains"):
        first, *_, last = sorted((work / "artifacts" / step).glob("*.record"))
        swap(first, last)
    results = [sorted((work / "results").glob(f"{kind}-*")) for kind in ("domains", "histograms")]
    assert all(results) == (skald.mode == "prefect")
    if all(results):
        swap(results[0][0], results[1][0])
        assert len(list((work / "results").glob("outcome-*"))) <= 1
    for published in (tmp_path / "releases").iterdir():
        published.rename(tmp_path / f"moved-{published.name}")
    done = skald("run", "job.yaml", *SETTINGS)
    assert done.returncode == 0, done.stderr
    assert digests(release(tmp_path)) == undisturbed


def swap(one: Path, other: Path) -> None:
    texts = one.read_bytes(), other.read_bytes()
    one.write_bytes(texts[1])
    other.write_bytes(texts[0])


@pytest.mark.slow
@pytest.mark.promise
def test_killed_after_the_rename_the_next_run_does_what_was_left_to_do(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, TABLE, artifacts="delete")
    direct.killed("people-????????????????", "run", "job.yaml")
    [made] = (tmp_path / "releases").glob("people-*")
    assert list((tmp_path / ".skald" / "people" / "artifacts").iterdir())
    assert not (tmp_path / "releases" / "CURRENT").exists()
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert release(tmp_path) == made
    assert sorted(path.name for path in (tmp_path / ".skald" / "people").iterdir()) == [".skald-work", "run.lock"]


KILLED_WITHIN = """
import os, signal
from pathlib import Path
whole = Path.write_text
def write(path, text, *options):
    if path.match("*CURRENT*"):
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(path, text, *options)
Path.write_text = write
from flows import cli
cli.main()
"""


@pytest.mark.slow
@pytest.mark.promise
def test_killed_while_it_writes_the_pointer_it_leaves_nothing_beside_the_next_run(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, TABLE)
    assert direct.ended([sys.executable, "-c", KILLED_WITHIN, "run", "job.yaml"]).returncode == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "releases").glob(".*.part")]
    assert direct("run", "job.yaml").returncode == 0
    assert sorted(path.name for path in (tmp_path / "releases").iterdir()) == ["CURRENT", release(tmp_path).name]
    assert json.loads((tmp_path / ".skald" / "people" / "untold.json").read_text())["release"] == release(tmp_path).name


@pytest.mark.ci
def test_a_release_whose_pointer_cannot_be_written_is_said_to_be_published(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path
) -> None:
    job, pointer = people_job(tmp_path, TABLE), tmp_path / "releases" / "CURRENT"

    def lay_a_folder_in_the_way(phase: str, _done: int, _total: int) -> None:
        if phase == "verify":
            (pointer / "in the way").mkdir(parents=True, exist_ok=True)

    with listening(lay_a_folder_in_the_way), pytest.raises(PointerError) as refused:
        anonymise(job)
    [made] = (tmp_path / "releases").glob("people-*")
    assert f"'{made.name}' is published, verified and whole, but 'CURRENT'" in str(refused.value)
    shutil.rmtree(pointer)
    assert direct("run", "job.yaml").returncode == 0
    assert release(tmp_path) == made


def test_a_folder_in_the_place_of_the_pointer_is_refused_before_any_work(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, TABLE)
    (tmp_path / "releases" / "CURRENT").mkdir(parents=True)
    refused = direct("run", "job.yaml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'CURRENT' in the target" in refused.stderr
    assert not (tmp_path / ".skald").exists()


@pytest.mark.ci
@pytest.mark.slow_under_prefect
def test_a_run_that_is_told_to_end_ends_as_after_an_interrupt(skald: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, people(1200))
    settings = ("--set", "chunk_rows=20")
    stopped = skald.signalled(signal.SIGTERM, "domains/*.record", "run", "job.yaml", *settings)
    assert (stopped.returncode, stopped.stdout) == (143, "")
    assert stopped.stderr == "Interrupted. What is finished stays, and the same command continues from there.\n"
    assert not list(tmp_path.glob(".skald/**/*.part"))
    assert not (tmp_path / ".skald" / "people" / "spill").exists()
    assert not (tmp_path / "releases").exists()
    assert skald("run", "job.yaml", *settings).returncode == 0


@pytest.mark.slow
def test_of_past_nights_only_what_can_be_used_again_is_kept(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    for night in range(MOST_RELEASES + 2):
        write_parquet(tmp_path / "people" / f"{night}", people(30, seed=night))
        made = anonymise(job, "source.path=people/**/*.parquet")
    kept = {step.name: len(list(step.glob("*.record"))) for step in (tmp_path / ".skald" / "people" / "artifacts").iterdir()}
    # The two files of the first night share a chunk, those of later nights have one each.
    assert (kept["domains"], kept["histograms"]) == (MOST_RELEASES + 2, MOST_RELEASES + 2)
    assert kept["releases"] == MOST_RELEASES
    assert kept["histogram"] == kept["sizes"] == kept["lattice"] == 1
    assert max(kept["domain"], kept["cells"], kept["classes"]) <= MOST_RELEASES
    assert [overlap.unmeasured for overlap in made.manifest.overlaps] == [""] * 3
    again = anonymise(job, "source.path=people/**/*.parquet", "privacy.k=7")
    assert again.manifest.increment is not None
    assert again.manifest.increment.histograms_reused == again.manifest.increment.chunks
