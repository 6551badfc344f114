"""``skald report`` puts the report of several tables back into their release, and touches nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flows.tables import tables
from tests.conftest import CommandLine
from tests.flows.relational.hospital import hospital_job, hospital_tables
from tests.flows.relational.test_tables import resealed

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables(hospital_job(tmp_path_factory.mktemp("made"), hospital_tables(60, 3), attacks="off"), ()).folder


@pytest.fixture
def release(direct: CommandLine, made: Path) -> Path:
    """A copy of a release, which bears its name."""
    return Path(shutil.copytree(made, direct.folder / made.name))


def content(release: Path) -> dict[str, bytes]:
    return {str(path.relative_to(release)): path.read_bytes() for path in release.rglob("*") if path.is_file()}


def test_a_lost_or_altered_report_is_put_back_byte_by_byte(direct: CommandLine, release: Path) -> None:
    before, name = content(release), str(release)
    (release / "report.html").unlink()
    (release / "report.json").write_text("{}")
    assert direct("verify", name).returncode == 4
    printed = direct("report", name, "--json")
    assert (printed.returncode, printed.stdout.encode()) == (0, before["report.json"])
    elsewhere = direct("report", name, "--to", "again")
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert content(direct.folder / "again") == {one: before[one] for one in ("report.html", "report.json")}
    assert content(release) == {one: b"{}" if one == "report.json" else whole for one, whole in before.items() if one != "report.html"}
    done = direct("report", name)
    assert done.returncode == 0, done.stderr
    assert content(release) == before


def test_the_job_that_is_given_must_be_the_one_that_made_the_release(direct: CommandLine, made: Path, release: Path) -> None:
    job, before = str(made.parents[1] / "job.yaml"), content(release)
    (release / "report.html").unlink()
    for setting in ("privacy.k=3", "suppression.limit=0.9"):
        refused = direct("report", str(release), "--job", job, "--set", setting)
        assert refused.returncode == 2
        assert "is not the one that made" in refused.stderr
        assert not (release / "report.html").exists()
    done = direct("report", str(release), "--job", job, "--set", "attacks=off")
    assert done.returncode == 0, done.stderr
    assert content(release) == before


@pytest.mark.parametrize("fault", ["data", "manifest", "figure", "entry"])
def test_nothing_is_put_back_into_a_release_that_was_altered_elsewhere(direct: CommandLine, release: Path, fault: str) -> None:
    (release / "report.html").unlink()
    manifest = release / "manifest.json"
    [part] = (release / "data" / "visit").iterdir()
    if fault == "data":
        part.write_bytes(part.read_bytes()[:-1] + b"?")
    elif fault == "manifest":
        manifest.write_text(manifest.read_text().replace('"k": 4', '"k": 3'))
    elif fault == "figure":
        resealed(release, histories=1)
    else:
        (release / "note.txt").write_text("")
    before = content(release)
    done = direct("report", str(release))
    assert (done.returncode, content(release)) == (4, before)
