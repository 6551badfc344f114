"""What a run makes anew and what it finds: another k, other files, a source that changes, and the releases side by side."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError, StorageError
from tasks.engine.progress import listening
from tasks.publication.target import Target
from tests.conftest import Anonymise, snapshot
from tests.jobs import data_files, digests, job_of, people, people_job, released, write_parquet
from tests.patience import until

TABLE = people(400)
COUNTED = {"unpacked", "values", "passthrough", "domains", "domain", "histograms", "histogram", "sizes", "repeats", "contents"}
FOUND = {"outcome", "cells", "classes", "lattice", "members"}
Artefacts = Mapping[str, Sequence[int]]


def artefacts(folder: Path) -> Artefacts:
    """Inode and time of every artefact, by step and name."""
    made = snapshot(folder / ".skald" / "people" / "artifacts")
    return {name: state for name, state in made.items() if "/" in name and not name.endswith(".record")}


def new_steps(before: Artefacts, after: Artefacts) -> Counter[str]:
    """How many artefacts of each step were made, or made again."""
    return Counter(name.split("/")[0] for name, state in after.items() if before.get(name) != state)


def current(folder: Path) -> str:
    return (folder / "releases" / "CURRENT").read_text()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("settings", "made"),
    [
        (["privacy.k=9"], FOUND),
        (["suppression.limit=0.2"], FOUND),
        (["suppression.treatment=mask"], FOUND),
        (["suppression.rounds=2"], FOUND | {"later"}),
        (["method.objective=dm_all"], FOUND),
        (["intervals=bounds"], FOUND),
        (["rows_per_file=50"], set()),
        (["target=elsewhere"], set()),
        (["columns.quasi_identifiers.1.hierarchy.widths=[1, 2]"], FOUND | {"histogram", "sizes"}),
        (
            ["columns.insensitive=[note, score]", "columns.identifiers=[person, visits]"],
            {"values", "passthrough", "repeats", "contents"},
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_only_what_depends_on_a_setting_is_made_again(anonymise: Anonymise, tmp_path: Path, settings: list[str], made: set[str]) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    anonymise(job, "chunk_rows=100")
    before = artefacts(tmp_path)
    assert new_steps({}, before).keys() == COUNTED | FOUND
    assert new_steps({}, before)["domains"] == new_steps({}, before)["histograms"] == 4
    again = anonymise(job, "chunk_rows=100", *settings)
    after = artefacts(tmp_path)
    assert new_steps(before, after).keys() == made
    assert after.items() >= {name: state for name, state in before.items() if name in after}.items()
    assert again.new or settings == ["rows_per_file=50"]


@pytest.mark.ci
def test_another_k_gives_the_release_of_a_fresh_run(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path / "one", TABLE)
    anonymise(job)
    again = anonymise(job, "privacy.k=9")
    fresh = anonymise(people_job(tmp_path / "other", TABLE), "privacy.k=9")
    assert digests(again.folder) == digests(fresh.folder)
    assert again.manifest.release == fresh.manifest.release


@pytest.mark.slow
def test_a_new_file_is_counted_and_the_old_ones_are_not(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=3)
    first = anonymise(job)
    before = artefacts(tmp_path)
    pq.write_table(TABLE.slice(7, 90), tmp_path / "people" / "003.parquet")
    second = anonymise(job)
    counts = new_steps(before, artefacts(tmp_path))
    assert counts["domains"] == 1
    assert second.new
    assert second.manifest.release != first.manifest.release
    assert second.manifest.records == 490
    fresh = anonymise(people_job(tmp_path / "fresh", pa.concat_tables([TABLE, TABLE.slice(7, 90)])))
    assert digests(second.folder) == digests(fresh.folder)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("same_time", [True, False])
def test_a_file_that_was_changed_between_two_runs_gives_another_release(anonymise: Anonymise, tmp_path: Path, same_time: bool) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    first = anonymise(job)
    kept = snapshot(first.folder)
    path = tmp_path / "people" / "001.parquet"
    state = path.stat()
    pq.write_table(TABLE.slice(0, 150), path)
    if same_time:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    second = anonymise(job)
    assert second.new
    assert (second.manifest.release != first.manifest.release, second.manifest.records) == (True, 350)
    assert snapshot(first.folder) == kept
    assert current(tmp_path) == f"{second.manifest.release}\n"


def append(path: Path) -> None:
    pq.write_table(pa.concat_tables([pq.read_table(path), TABLE.slice(0, 10)]), path)


def other_values(path: Path) -> None:
    rows = pq.read_table(path)
    place = rows.column_names.index("age")
    pq.write_table(rows.set_column(place, "age", pa.array([99] * len(rows), pa.int64())), path)


def rewrite_alike(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("phase", ["domains", "histograms", "rewrite", "files"])
@pytest.mark.parametrize("change", [append, other_values, rewrite_alike, Path.unlink], ids=lambda change: change.__name__)
def test_a_source_that_changes_while_it_is_read_is_refused(
    anonymise: Anonymise, tmp_path: Path, phase: str, change: Callable[[Path], None]
) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    path = tmp_path / "people" / "001.parquet"
    done = []

    def disturb(step: str, finished: int, total: int) -> None:
        if step == phase and finished == total and not done:
            done.append(step)
            change(path)

    with listening(disturb), pytest.raises(SourceError, match=r"001\.parquet'") as refused:
        anonymise(job)
    assert done == [phase]
    assert "changed while it was being read" in str(refused.value) or "cannot be read" in str(refused.value)
    assert not [path for path in (tmp_path / "releases").glob("*") if path.name != "CURRENT"]
    assert not (tmp_path / "releases" / "CURRENT").exists()
    if path.exists():
        fresh = anonymise(people_job(tmp_path / "fresh", pa.concat_tables([TABLE.slice(0, 200), pq.read_table(path)])))
        assert digests(anonymise(job).folder) == digests(fresh.folder)


@pytest.mark.ci
def test_artifacts_delete_leaves_no_raw_value_and_changes_no_byte(anonymise: Anonymise, tmp_path: Path) -> None:
    kept = anonymise(people_job(tmp_path / "kept", TABLE))
    gone = anonymise(people_job(tmp_path / "gone", TABLE, artifacts="delete"))
    assert digests(gone.folder) == digests(kept.folder)
    assert gone.manifest.release == kept.manifest.release
    left = [path for path in (tmp_path / "gone" / ".skald").rglob("*") if path.is_file()]
    assert sorted({path.suffix or path.name for path in left}) == [".lock", ".record", ".skald-work", ".sketch", "key", "lock"]
    assert {path.parent.name for path in left if path.suffix in {".record", ".sketch"}} == {".releases"}
    again = anonymise(tmp_path / "gone" / "job.yaml")
    assert not again.new
    assert sorted(path for path in (tmp_path / "gone" / ".skald").rglob("*") if path.is_file()) == sorted(left)
    untold = tmp_path / "kept" / ".skald" / "people" / "untold.json"
    assert untold.is_file()
    assert not anonymise(people_job(tmp_path / "kept", TABLE, artifacts="delete")).new
    assert not untold.exists(), "an earlier run's unpublished figures stay"


@pytest.mark.ci
def test_what_only_a_release_needed_is_gone_after_its_publication(anonymise: Anonymise, tmp_path: Path) -> None:
    anonymise(people_job(tmp_path, TABLE))
    assert not [name for name in artefacts(tmp_path) if name.startswith(("runs/", "files/"))]


@pytest.mark.ci
def test_the_same_job_on_the_same_data_is_a_no_op_that_says_so(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, files=2)
    first = anonymise(job)
    published, counted = snapshot(first.folder), artefacts(tmp_path)
    for number, path in enumerate(sorted((tmp_path / "people").iterdir())):
        path.rename(path.with_name(f"renamed-{9 - number}.parquet"))
    again = anonymise(job, "chunk_rows=30", "threads=1")
    assert (first.new, again.new) == (True, False)
    assert (again.folder, again.manifest) == (first.folder, first.manifest)
    assert (snapshot(first.folder), artefacts(tmp_path)) == (published, counted)


@pytest.mark.ci
def test_current_names_the_release_that_was_asked_for_last(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    first, second = anonymise(job), anonymise(job, "privacy.k=8")
    assert first.folder != second.folder
    assert current(tmp_path) == f"{second.manifest.release}\n"
    anonymise(job)
    assert current(tmp_path) == f"{first.manifest.release}\n"
    assert {path.name for path in (tmp_path / "releases").iterdir()} == {first.folder.name, second.folder.name, "CURRENT"}


@pytest.mark.slow
def test_a_reader_sees_whole_releases_only_and_current_always_names_one(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE)
    anonymise(job)
    target, stop, seen, faults = tmp_path / "releases", threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            try:
                name = (target / "CURRENT").read_text().strip()
                seen.add(name)
                manifest = json.loads((target / name / "manifest.json").read_text())
                for release in target.glob("people-*"):
                    files = json.loads((release / "manifest.json").read_text())["files"]
                    assert all((release / file["path"]).stat().st_size for file in files)
                assert manifest["release"] == name
                time.sleep(0.001)
            except Exception as error:
                faults.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    made = [anonymise(job, f"privacy.k={k}", "rows_per_file=20").manifest.release for k in range(6, 10)]
    until(lambda: made[-1] in seen or not reader.is_alive())
    stop.set()
    reader.join()
    assert not faults
    assert seen <= {path.name for path in target.glob("people-*")}
    assert made[-1] in seen


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("damage", ["data", "longer", "manifest"])
def test_a_published_release_that_is_no_longer_whole_is_never_written_over(anonymise: Anonymise, tmp_path: Path, damage: str) -> None:
    job = people_job(tmp_path, TABLE)
    made = anonymise(job)
    data = data_files(made.folder)[0]
    if damage == "longer":
        data.write_bytes(data.read_bytes() + b"x")
    else:
        (data if damage == "data" else made.folder / "manifest.json").unlink()
    left = snapshot(made.folder)
    with pytest.raises(StorageError, match="missing or altered"):
        anonymise(job)
    assert snapshot(made.folder) == left
    made.folder.rename(tmp_path / "moved")
    again = anonymise(job)
    assert again.new
    assert [file.sha256 for file in again.manifest.files] == [file.sha256 for file in made.manifest.files] == digests(again.folder)


@pytest.mark.ci
def test_two_jobs_share_a_target_and_leave_each_other_alone(anonymise: Anonymise, tmp_path: Path) -> None:
    one = anonymise(people_job(tmp_path, TABLE))
    write_parquet(tmp_path / "more" / "people", TABLE)
    other = anonymise(people_job(tmp_path / "more", TABLE, **job_of(name="others", target="../releases")))
    assert one.folder.parent.resolve() == other.folder.parent.resolve()
    assert digests(one.folder) == digests(other.folder)
    assert current(tmp_path) == f"{other.manifest.release}\n"
    assert len(released(one.folder)) == len(released(other.folder))


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("setting", ["rows_per_file=50", "intervals=bounds", "columns.identifiers=[person, visits]"])
def test_what_a_run_left_that_published_nothing_is_taken_for_no_other_jobs(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    settings = (setting, *(["columns.insensitive=[note, score]"] if "visits" in setting else []))
    job = people_job(tmp_path / "left", TABLE)
    with monkeypatch.context() as patch:
        patch.setattr(Target, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            anonymise(job)
    kept = {name.split("/")[0] for name in artefacts(tmp_path / "left")}
    assert {"runs", "files"} <= kept
    fresh = anonymise(people_job(tmp_path / "fresh", TABLE), *settings)
    assert digests(anonymise(job, *settings).folder) == digests(fresh.folder)
