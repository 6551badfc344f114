"""The registry of releases: private, without a value, and never a reason to warn of nothing."""

from __future__ import annotations

import json
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.units.source_digests import contents_of
from schemas.errors.base import StorageError
from schemas.errors.refusals import OverlapError
from schemas.errors.storage import AfterPublicationError
from schemas.job.job import load_job
from schemas.reading.regular_files import scratch_job
from tasks.composition.earlier import Earlier, KnownRecords
from tasks.composition.overlaps import overlaps_of
from tasks.composition.registry import ReleaseRegistry, open_registry
from tasks.publication.target import Target
from tasks.publication.verify_and_publish import read_or_recall
from tasks.source.extracts import open_run
from tests.conftest import Anonymise, CommandLine
from tests.flows.composition.several_jobs import LATER, TABLE, job_in, other_job
from tests.house.replaced import CONTENTS_KEPT
from tests.jobs import QIDS, write_parquet

GROWN = pa.concat_tables([TABLE, LATER.slice(0, 5)])


def registry(folder: Path) -> Path:
    return folder / ".skald" / ".releases"


@pytest.mark.ci
def test_the_registry_is_private_and_holds_no_value_no_path_of_a_source_and_no_plain_digest(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    anonymise(job)
    folder = registry(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [path for path in folder.iterdir() if path.is_file()]
    assert {path.suffix for path in files} >= {".record", ".sketch"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    [record] = folder.glob("*.record")
    text = record.read_text()
    for value in {str(value) for name in ("zip", "disease", "born", "note") for value in TABLE[name].to_pylist() if value is not None}:
        # As a word: five digits may stand in any digest or time.
        assert not re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.])", text)
    assert "parquet" not in text
    [sketch] = folder.glob("*.sketch")
    known = [TABLE[name].combine_chunks() for name in sorted([*QIDS, "disease"])]
    plain = set(contents_of(known, len(TABLE)).tolist())
    kept = set(pq.read_table(sketch, filters=[("person", "=", False)])["digest"].to_pylist())
    assert len(kept) == len(plain)
    assert not kept & plain


@pytest.mark.ci
def test_a_sketch_is_of_the_same_size_whatever_the_source(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONTENTS_KEPT, 64)
    job = job_in(tmp_path)
    anonymise(job)
    [sketch] = registry(tmp_path).glob("*.sketch")
    assert pq.read_metadata(sketch).num_rows == 64
    write_parquet(tmp_path / "people", GROWN)
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.shared, overlap.added) == (len(TABLE), 5)


@pytest.mark.ci
def test_few_records_that_no_sketch_holds_are_found_all_the_same(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONTENTS_KEPT, 2)
    job = job_in(tmp_path, TABLE.slice(0, 250))
    anonymise(job)
    write_parquet(tmp_path / "people", TABLE.slice(247))
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.shared, overlap.added, overlap.removed) == (3, len(TABLE) - 250, 247)
    assert overlap.shared_at_risk == 3


Damage = Callable[[Path], object]


def cut(pattern: str) -> Damage:
    def damage(folder: Path) -> None:
        [path] = folder.glob(pattern)
        path.write_bytes(path.read_bytes()[:-9])

    return damage


def gone(pattern: str) -> Damage:
    return lambda folder: [path.unlink() for path in folder.glob(pattern)]


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut("*.record"), "its entry in the registry is damaged"),
        (gone("*.record"), "the registry does not know it"),
        (cut("*.sketch"), "the sketch of its records is gone or damaged"),
        (gone("*.sketch"), "the sketch of its records is gone or damaged"),
        (cut("key"), "the key of the registry is another one now"),
        (gone("key"), "the key of the registry is another one now"),
        (gone("*"), "the registry does not know it"),
    ],
    ids=["damaged entry", "lost entry", "damaged sketch", "lost sketch", "damaged key", "lost key", "lost registry"],
)
def test_what_is_damaged_or_lost_makes_a_release_one_that_cannot_be_compared(
    anonymise: Anonymise, tmp_path: Path, damage: Damage, reason: str
) -> None:
    job = job_in(tmp_path)
    then = anonymise(job)
    damage(registry(tmp_path))
    write_parquet(tmp_path / "people", GROWN)
    with pytest.raises(OverlapError, match=reason):
        anonymise(job, "overlaps=refuse")
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.release, overlap.shared) == (then.manifest.release, None)
    assert reason in overlap.sentence()


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("step", ["members", "contents"])
def test_artefacts_that_are_damaged_are_not_compared(anonymise: Anonymise, tmp_path: Path, step: str) -> None:
    job = job_in(tmp_path)
    anonymise(job)
    for path in (tmp_path / ".skald/people/artifacts" / step).glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    write_parquet(tmp_path / "people", GROWN)
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.shared, overlap.unmeasured) == (None, "its artefacts are gone")


@pytest.mark.ci
def test_a_link_in_the_place_of_the_registry_is_not_followed(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere").chmod(0o755)
    (tmp_path / ".skald").mkdir()
    registry(tmp_path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        anonymise(job)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o755
    assert not list((tmp_path / "releases").glob("people-*"))


@pytest.mark.ci
def test_a_file_in_the_place_of_the_registry_is_told_in_a_sentence(direct: CommandLine, tmp_path: Path) -> None:
    job_in(tmp_path)
    (tmp_path / ".skald").mkdir()
    registry(tmp_path).write_text("mine")
    done = direct("run", "job.yaml")
    assert done.returncode == 2
    assert ".releases" in done.stderr
    assert registry(tmp_path).read_text() == "mine"


@pytest.mark.ci
def test_of_two_runs_at_once_the_second_knows_of_the_first(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = job_in(tmp_path), other_job(tmp_path, "second")
    looked, done, manifests = threading.Event(), threading.Event(), {}

    def slow(*arguments: Any) -> dict[str, Any]:
        found = overlaps_of(*arguments)
        if not looked.is_set():
            looked.set()
            # The other run comes to where it waits for this one; it cannot be done before.
            assert not done.wait(1)
        return found

    monkeypatch.setattr("tasks.composition.overlaps.overlaps_of", slow)

    def one(name: str, job: Path) -> None:
        manifests[name] = anonymise(job).manifest
        done.set()

    threads = [threading.Thread(target=one, args=("first", first))]
    threads[0].start()
    assert looked.wait(60)
    threads.append(threading.Thread(target=one, args=("second", second)))
    threads[1].start()
    for thread in threads:
        thread.join()
    assert not manifests["first"].overlaps
    [overlap] = manifests["second"].overlaps
    assert (overlap.release, overlap.shared) == (manifests["first"].release, len(TABLE))


@pytest.mark.ci
def test_a_release_that_was_entered_and_never_published_is_none(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    job = job_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Target, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            anonymise(job)
    assert list(registry(tmp_path).glob("*.record"))
    write_parquet(tmp_path / "people", GROWN)
    assert not anonymise(job).untold.overlaps


@pytest.mark.ci
def test_a_release_that_was_moved_away_or_whose_job_was_cleaned_is_known(direct: CommandLine, tmp_path: Path) -> None:
    job_in(tmp_path)
    first = json.loads(direct("run", "job.yaml", "--json").stdout)["release"]
    (tmp_path / "releases").rename(tmp_path / "handed on")
    write_parquet(tmp_path / "people", GROWN)
    second = json.loads(direct("run", "job.yaml", "--json").stdout)
    assert [(one["release"], one["added"]) for one in second["overlaps"]] == [(first, 5)]
    assert direct("clean", "job.yaml").returncode == 0
    # What is left of them is a sketch: they are named, and cannot be compared.
    write_parquet(tmp_path / "people", GROWN.slice(1))
    third = json.loads(direct("run", "job.yaml", "--json").stdout)
    named = [(one["release"], one["shared"]) for one in third["overlaps"]]
    assert named == [(second["release"], None), (first, None)]


@pytest.mark.slow
def test_a_comparison_of_methods_leaves_no_trace_in_the_registry(direct: CommandLine, tmp_path: Path) -> None:
    job_in(tmp_path)
    done = direct("compare", "job.yaml", "--methods", "skald")
    assert done.returncode == 0, done.stderr
    assert not list(registry(tmp_path).glob("*.record"))


@pytest.mark.ci
def test_where_the_folder_of_jobs_cannot_be_written_a_job_knows_its_own_releases(anonymise: Anonymise, tmp_path: Path) -> None:
    job = job_in(tmp_path, work=str(tmp_path / "work"))
    (tmp_path / ".skald").write_text("no folder can be made here")
    then = anonymise(job)
    write_parquet(tmp_path / "people", GROWN)
    [overlap] = anonymise(job).untold.overlaps
    assert (overlap.release, overlap.added) == (then.manifest.release, 5)
    assert list((tmp_path / "work" / "registry").glob("*.record"))


def test_where_no_registry_is_open_a_job_that_refuses_overlaps_is_refused(tmp_path: Path) -> None:
    job = load_job(scratch_job(job_in(tmp_path, overlaps="refuse")))
    with open_registry(job) as none, open_run(job) as run:
        assert none is None
        source, _ = read_or_recall(run)
        with pytest.raises(OverlapError, match="earlier releases are not looked for here"):
            overlaps_of(KnownRecords(run, source), "people-0", none)


def test_a_release_with_nothing_in_common_that_cannot_be_compared_is_neither_named_nor_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a job of every night on other people would be refused as soon as a release is older than what is kept of it."""
    monkeypatch.setattr("tasks.composition.overlaps.earlier_releases", lambda *_: [Earlier("before", 5, 9, doubtful=True)])
    for settings in ((), ("overlaps=refuse",)):
        job = load_job(job_in(tmp_path), settings)
        with open_run(job) as run, open_registry(job) as open_one:
            source, _ = read_or_recall(run)
            found = overlaps_of(KnownRecords(run, source), "people-0", open_one)
            assert found == {"overlaps": (), "unmeasured_overlaps": 0, "joined": ()}


@pytest.mark.ci
def test_a_release_whose_manifest_cannot_be_read_is_named_and_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    (tmp_path / "releases" / "before").mkdir(parents=True)
    (tmp_path / "releases" / "before" / "manifest.json").write_text("{")
    job = job_in(tmp_path)
    with pytest.raises(OverlapError, match="its manifest cannot be read"):
        anonymise(job, "overlaps=refuse")
    [overlap] = anonymise(job).untold.overlaps or ()
    assert (overlap.release, overlap.unmeasured) == ("before", "its manifest cannot be read")


@pytest.mark.ci
def test_a_registry_that_fails_after_the_publication_does_not_unsay_it(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise StorageError.not_writable("here", "No space left on device")

    job = job_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(ReleaseRegistry, "record_publication", full)
        with pytest.raises(AfterPublicationError, match="is published, verified and whole, but the registry") as told:
            anonymise(job)
    assert "Nothing was published" not in str(told.value)
    done = anonymise(job)
    assert (done.new, done.manifest.release in str(told.value)) == (False, True)
