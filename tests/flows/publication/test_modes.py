"""Who may read what: a release and the folders that are made for it as the user's umask says, the run folder its owner alone."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.jobs import people, people_job
from tests.servers import s3_bucket

MORE = [(0o027, "{format: csv}"), (0o077, "{format: duckdb}"), (0o002, "{partition_by: [sex]}")]
OUTPUTS = [(0o022, "{}"), *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE)]


def run_under(line: CommandLine, umask: int, *arguments: str, **environment: str) -> None:
    command = f"umask {umask:o}; exec {' '.join(line.command(*arguments))}"
    done = subprocess.run(["/bin/sh", "-c", command], **line.options(**environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def modes(folder: Path) -> dict[Path, int]:
    return {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.slow
@pytest.mark.parametrize(("umask", "output"), OUTPUTS)
def test_whoever_the_umask_lets_may_read_a_release_and_nobody_the_run_folder(direct: CommandLine, umask: int, output: str) -> None:
    people_job(direct.folder, people(120), target="made/for/releases")
    run_under(direct, umask, "run", "job.yaml", "--set", f"'output={output}'", "--set", "privacy.k=4")
    private = modes(direct.folder / ".skald" / "people")
    assert {(path.is_dir(), mode) for path, mode in private.items()} == {(True, 0o700), (False, 0o600)}
    # The target too, the folders above it that were made for it, and CURRENT.
    public = modes(direct.folder / "made")
    assert len(public) > 6
    assert {(path.is_dir(), mode) for path, mode in public.items()} == {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}
    [release] = (direct.folder / "made" / "for" / "releases").glob("people-*")
    run_under(direct, umask, "report", str(release), "--to", "reports/of/people")
    assert {(path.is_dir(), mode) for path, mode in modes(direct.folder / "reports").items()} == {
        (True, 0o777 & ~umask),
        (False, 0o666 & ~umask),
    }


@pytest.mark.slow
def test_a_target_that_is_there_keeps_the_mode_that_its_owner_gave_it(direct: CommandLine) -> None:
    people_job(direct.folder, people(120))
    (direct.folder / "releases").mkdir()
    (direct.folder / "releases").chmod(0o750)
    run_under(direct, 0o022, "run", "job.yaml", "--set", "privacy.k=4")
    found = modes(direct.folder / "releases")
    assert found.pop(direct.folder / "releases") == 0o750
    assert {(path.is_dir(), mode) for path, mode in found.items()} == {(True, 0o755), (False, 0o644)}


@pytest.mark.slow
def test_what_waits_for_a_bucket_lies_where_only_its_owner_may_enter(direct: CommandLine) -> None:
    with s3_bucket() as environment:
        people_job(direct.folder, people(120), target="s3://bucket/modes/")
        run_under(direct, 0o022, "run", "job.yaml", "--set", "privacy.k=4", **environment)
    found = modes(direct.folder / ".skald" / "people")
    assert {mode for path, mode in found.items() if path.is_dir() and "people-" not in path.parts[-1]} == {0o700}
