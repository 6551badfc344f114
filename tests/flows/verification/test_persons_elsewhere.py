"""Without the private file of who is in which class, persons are counted from job and source; where they cannot be, that is said first."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.verification.release import VerificationContext, verify_published
from tests.command_line import CommandLine
from tests.conftest import Anonymise
from tests.jobs import people_job
from tests.tampering.files_anew import parquet
from tests.tampering.kinds import anew

K = 4
COLUMNS = {
    "person": "patient",
    "quasi_identifiers": [
        {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}},
        {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}},
    ],
    "sensitive": ["illness"],
    "insensitive": ["ward"],
}


def stays(people: int = 40) -> pa.Table:
    """Two or three stays of each patient, and one of nobody; ages of a patient differ by one at most, so that some are in two classes."""
    rows = [(person, stay) for person in range(people) for stay in range(2 + person % 2)]
    return pa.table(
        {
            "patient": pa.array([*(f"p{person}" for person, _ in rows), None]),
            "age": pa.array([*(20 + person % 8 + stay % 2 for person, stay in rows), 21]),
            "sex": pa.array([*("fm"[person // 8 % 2] if person % 11 else None for person, _ in rows), "f"]),
            "illness": pa.array([*(["flu", "gout", "asthma", None][(person + 3 * stay) % 4] for person, stay in rows), "flu"]),
            "ward": pa.array([*(f"ward {(person + stay) % 5}" for person, stay in rows), "ward 1"]),
        }
    )


def published(anonymise: Anonymise, folder: Path, *settings: str) -> tuple[Path, Path]:
    """Publish stays; return job and release, beside which there is no run folder any more."""
    path = people_job(folder, stays(), columns=COLUMNS, suppression={"limit": 1}, privacy={"k": K})
    release = anonymise(path, *settings).folder
    shutil.rmtree(folder / ".skald")
    return path, release


def persons_in(table: pa.Table, rows: Any) -> list[int]:
    """Persons of each class, one by one: wards and illnesses do not tell rows apart, but classes are of ages and sex."""
    classes: dict[tuple[Any, ...], set[str]] = {}
    for labels, person in zip(rows, table["patient"].to_pylist(), strict=True):
        classes.setdefault(labels, set()).update([] if person is None else [person])
    return sorted(len(who) for who in classes.values())


@pytest.mark.ci
@pytest.mark.parametrize("node", [[2, 0], [2, 1], [3, 0], [0, 2]])
@pytest.mark.parametrize("asked", ["{}", "{illness: {distinct: 2}}", "{illness: {entropy: 1.2}}"])
@pytest.mark.parametrize("output", ["parquet", "csv"])
@pytest.mark.few(1)
def test_persons_are_counted_from_job_and_source(anonymise: Anonymise, tmp_path: Path, node: list[int], asked: str, output: str) -> None:
    node = [min(node[0], 4), min(node[1], 1)]
    settings = (f"method={{name: skald, node: {node}}}", f"privacy.l={asked}", f"output.format={output}")
    path, release = published(anonymise, tmp_path, *settings)
    found = verify_published(load_job(path, settings), release, VerificationContext(str(release)))
    assert (found.unverified, found.recount.unproved) == ((), ())
    assert found.manifest is not None
    assert found.manifest.persons is not None
    assert found.recount.persons is not None
    assert found.recount.persons.smallest == found.manifest.persons.smallest_class >= K
    assert found.recount.measured == found.manifest.measured
    width = [None, 5, 10, 40, None][node[0]]
    table = stays()
    ages = [age if not node[0] else age // width if width else "*" for age in table["age"].to_pylist()]
    sexes = [sex if not node[1] else "*" for sex in table["sex"].to_pylist()]
    if asked == "{}":
        whole = [size for size in persons_in(table, zip(ages, sexes, strict=True)) if size >= K]
        assert sorted(size for size, many in found.recount.persons.sizes.items() for _ in range(many)) == whole


def shorter(rows: int) -> Callable[[pa.Table], pa.Table]:
    """Leave the first records of the first class out, which is how a file is ordered."""
    return lambda table: table.slice(rows)


@pytest.mark.ci
def test_two_records_less_are_missed(anonymise: Anonymise, tmp_path: Path) -> None:
    settings = ("method={name: skald, node: [2, 0]}",)
    path, release = published(anonymise, tmp_path, *settings)
    parquet(shorter(2))(release)

    def tell(said: dict[str, Any]) -> None:
        said.update(released=said["released"] - 2, suppressed=said["suppressed"] + 2)

    anew(release, tell)
    with pytest.raises(VerificationError, match="1 of the classes does not hold the records that the source has"):
        verify_published(load_job(path, settings), release, VerificationContext(str(release)))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("settings", "because"),
    [
        pytest.param(("method={name: mondrian}",), "labels overlap", marks=pytest.mark.slow),
        (("suppression.treatment=cell", "method={name: skald, node: [0, 0]}"), "labels overlap"),
        (("source.path=nowhere.parquet",), "the source is not at hand"),
    ],
)
def test_where_persons_cannot_be_counted_that_is_said_first_and_has_an_exit_code(
    direct: CommandLine, settings: tuple[str, ...], because: str
) -> None:
    privacy = {"k": 5, "l": {"illness": {"entropy": 1.1}}}
    path = people_job(direct.folder, stays(), columns=COLUMNS, suppression={"limit": 1}, privacy=privacy)
    made = [f"--set={one}" for one in settings if "nowhere" not in one]
    assert direct("run", path, *made).returncode == 0
    release = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    shutil.rmtree(direct.folder / ".skald")
    ended = direct("verify", release, "--job", path, *(f"--set={one}" for one in settings))
    assert ended.returncode == 5
    first, second = ended.stdout.splitlines()[:2]
    assert first.startswith("Not verified: The people in each class were not counted")
    assert because in first
    assert second.startswith("Not verified: Nor was how often the values of 'illness' occur in each class")
    assert "Verified." not in ended.stdout
    told = direct("verify", release, "--job", path, "--json", *(f"--set={one}" for one in settings))
    assert told.returncode == 5, told.stderr
    assert len(json.loads(told.stdout)["unverified"]) == 2


@pytest.mark.ci
def test_without_the_job_persons_are_not_verified(direct: CommandLine) -> None:
    path = people_job(direct.folder, stays(), columns=COLUMNS, suppression={"limit": 1}, privacy={"k": K})
    assert direct("run", path).returncode == 0
    release = direct.folder / "releases" / (direct.folder / "releases" / "CURRENT").read_text().strip()
    ended = direct("verify", release)
    assert ended.returncode == 5
    assert ended.stdout.startswith("Not verified: k is of persons, and records were counted")


@pytest.mark.ci
def test_what_nothing_at_hand_tells_is_named(anonymise: Anonymise, tmp_path: Path) -> None:
    path, release = published(anonymise, tmp_path)
    job = load_job(path)
    found = verify_published(job, release, VerificationContext(str(release)))
    assert {"created", "passthrough"} <= set(found.on_trust)
    assert not {"records", "loss.dm_star", "loss.gcp", "ncp"} & set(found.on_trust)
    said = json.loads((release / "manifest.json").read_text())

    def other(changed: dict[str, Any]) -> None:
        changed["policy"] = "0" * 64
        changed["passthrough"]["ward"]["unique_records"] = 0

    anew(release, other)
    found = verify_published(job, release, VerificationContext(str(release)))
    # What an insider can say otherwise unseen is listed, and nothing of it with the seal that the run folder keeps.
    assert {"policy", "passthrough"} <= set(found.on_trust)
    with pytest.raises(VerificationError):
        verify_published(job, release, VerificationContext(str(release), seal=said["seal"]))
