"""Work in a bucket: one run at a time, nothing lost with an answer, and nothing believed that is not what was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import JobError, StorageError
from schemas.errors.folders import WorkError
from schemas.errors.storage import ObjectStoreError
from schemas.job.job import Job, load_job
from tasks.store import lease as leases
from tasks.store import place
from tasks.store import work as held_work
from tasks.store.keys import Key, json_with_digest
from tasks.store.lease import Clock, Lease, take_lease
from tasks.store.place import Bucket
from tasks.store.store import Store
from tasks.store.work import BELOW, BucketWork, clear_bucket, read_only_store, work_in_bucket
from tasks.store.work_folder import MARK, staging_prefix
from tests.jobs import people, people_job
from tests.servers import Faulty, forget, objects, s3_bucket

SECONDS = 60.0


@dataclass
class Time:
    """A clock that goes on when somebody waits, and lets something else happen meanwhile."""

    now: float = 0.0
    meanwhile: Callable[[], object] = lambda: None

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.wait)


@pytest.fixture(scope="module")
def system() -> Iterator[Any]:
    """An S3 server with a bucket."""
    with s3_bucket():
        yield objects()


@pytest.fixture
def bucket(system: Any, request: pytest.FixtureRequest) -> Bucket:
    """A prefix of its own for each test."""
    return Bucket(f"s3://bucket/{request.node.name}")


def faulty(monkeypatch: pytest.MonkeyPatch, lost: Callable[[int], bool] = lambda _number: False, *, lagging: bool = False) -> None:
    opened = place.file_system

    def file_system(address: str) -> tuple[Any, str]:
        found, root = opened(address)
        return Faulty(found, lost, lagging=lagging), root

    monkeypatch.setattr(place, "file_system", file_system)


def wrote(content: bytes) -> Callable[[Path], int]:
    def write(part: Path) -> int:
        part.write_bytes(content)
        return 1

    return write


def job_in(bucket: Bucket, folder: Path, **parts: Any) -> Job:
    return load_job(people_job(folder, people(10), work=bucket.location, **parts))


def store_in(folder: Path, bucket: Bucket) -> Store:
    return Store(folder, bucket.below(BELOW))


@pytest.mark.ci
def test_of_two_runs_one_gets_the_lease_and_the_other_is_told(bucket: Bucket) -> None:
    time = Time()
    held = take_lease(bucket, time.clock, SECONDS)
    time.meanwhile = held.renew
    with pytest.raises(StorageError, match="Another run is at work in 's3://bucket"):
        take_lease(bucket, time.clock, SECONDS)
    held.renew()
    held.release()
    time.meanwhile = lambda: pytest.fail("a lease that was let go is waited for")
    assert take_lease(bucket, time.clock, SECONDS).generation == held.generation + 1


def test_the_lease_of_a_dead_run_is_taken_over_and_it_can_do_nothing_any_more(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    dead = take_lease(bucket, time.clock, SECONDS)
    assert caplog.messages == []
    heir = take_lease(bucket, time.clock, SECONDS)
    # Once, because whoever waits for a minute wants to know what for.
    assert caplog.messages == [f"Another run holds '{bucket.location}', or was killed there. This one watches for 60 s."]
    assert time.now > SECONDS
    assert heir.generation == dead.generation + 1
    for _ in range(2):
        with pytest.raises(WorkError, match="did not renew its lease"):
            dead.renew()
    assert not dead.renewed()
    dead.release()
    heir.renew()


def test_a_run_that_slept_past_its_lease_publishes_nothing_though_nobody_took_it(bucket: Bucket) -> None:
    time = Time()
    lease = take_lease(bucket, time.clock, SECONDS)
    time.now += SECONDS
    with pytest.raises(WorkError, match="did not renew"):
        lease.renew()


def test_a_run_whose_clock_stood_still_is_fenced_by_the_object_itself(bucket: Bucket) -> None:
    asleep, awake = Time(), Time()
    sleeper = take_lease(bucket, asleep.clock, SECONDS)
    heir = take_lease(bucket, awake.clock, SECONDS)
    with pytest.raises(WorkError, match="did not renew"):
        sleeper.renew()
    heir.renew()


def test_a_run_that_is_held_up_after_its_renewal_does_not_take_anothers_lease_for_its_own(bucket: Bucket) -> None:
    time = Time()
    lease, found = take_lease(bucket, time.clock, SECONDS), bucket.entry

    def slow(name: str) -> Any:
        # Between the put and the look at its tag another run waits, takes over and renews.
        bucket.entry = found  # type: ignore[method-assign]
        time.now += SECONDS
        others.append(take_lease(Bucket(bucket.location), Time(0.0).clock, SECONDS))
        others[0].renew()
        return found(name)

    others: list[Lease] = []
    bucket.entry = slow  # type: ignore[method-assign]
    with pytest.raises(WorkError, match="did not renew its lease"):
        lease.renew()
    lease.release()
    others[0].renew()


def test_puts_whose_answers_are_lost_have_happened_and_are_ours(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, lambda _number: True)
    one = Bucket(bucket.location)
    tag = one.create("a", b"one")
    assert tag
    assert one.create("a", b"two") is None
    assert one.replace("a", b"three", tag)
    assert one.replace("a", b"four", tag) is None
    assert bucket.read("a") == b"three"
    lease = take_lease(one, Time().clock, SECONDS)
    lease.renew()
    assert lease.renewed()


def test_a_damaged_lease_is_watched_like_any_other_and_taken_over(bucket: Bucket) -> None:
    bucket.write(leases.NAME, b"{")
    time = Time()
    # More than the seconds since then can be runs.
    assert take_lease(bucket, time.clock, SECONDS).generation > 1_700_000_000
    assert time.now > SECONDS


def test_an_artefact_is_found_by_another_machine_and_an_altered_one_is_made_again(bucket: Bucket, tmp_path: Path) -> None:
    here, there = store_in(tmp_path / "here", bucket), store_in(tmp_path / "there", bucket)
    made = here.make("step", Key("key"), ".txt", wrote(b"content"))
    assert there.find("step", Key("key")) == made
    assert there.path(made).read_bytes() == b"content"
    assert there.path_named(made.file) == there.path(made)
    [name] = [name for name in bucket.sizes() if name.endswith(".txt")]
    bucket.write(name, b"CONTENT")
    third = store_in(tmp_path / "third", bucket)
    assert third.find("step", Key("key")) is None
    assert third.make("step", Key("key"), ".txt", wrote(b"content")) == made
    assert store_in(tmp_path / "fourth", bucket).find("step", Key("key")) == made


def test_what_was_altered_after_it_was_found_is_not_used_and_made_again_next_time(bucket: Bucket, tmp_path: Path) -> None:
    made = store_in(tmp_path / "here", bucket).make("step", Key("key"), ".txt", wrote(b"content"))
    there = store_in(tmp_path / "there", bucket)
    assert there.is_complete(made)
    [name] = [name for name in bucket.sizes() if name.endswith(".txt")]
    bucket.write(name, b"CONTENT")
    with pytest.raises(WorkError, match="is not what was written"):
        there.path(made)
    assert there.find("step", Key("key")) is None
    assert not list((tmp_path / "there").rglob("*.txt"))


def test_a_record_that_was_put_in_anothers_place_is_none(bucket: Bucket, tmp_path: Path) -> None:
    store = store_in(tmp_path, bucket)
    store.make("step", Key("key"), ".txt", wrote(b"content"))
    bucket.write("artifacts/step/other.record", bucket.read("artifacts/step/key.record") or b"")
    assert store.find("step", Key("other")) is None
    bucket.write("artifacts/step/key.record", b'["x", "y"]')
    assert store_in(tmp_path / "there", bucket).find("step", Key("key")) is None


def test_artefacts_are_removed_by_step_by_use_and_altogether(bucket: Bucket, tmp_path: Path) -> None:
    store = store_in(tmp_path / "a", bucket)
    for step, key in product(("one", "two"), ("a", "b", "c")):
        store.make(step, Key(key), ".txt", wrote(key.encode()))
    later = store_in(tmp_path / "b", bucket)
    assert later.find("one", Key("a"))
    later.prune(["one"], {("one", "b")})
    assert later.recorded("one", [Key("a"), Key("b"), Key("c")]) == [True, True, False]
    later.remove("one")
    assert {name.split("/")[1] for name in bucket.sizes()} == {"two"}
    later.clear()
    assert not bucket.sizes()


def keep(work: BucketWork, name: str, content: str) -> None:
    path = work.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    work.keep()


def test_small_files_are_those_of_one_moment_on_whatever_machine(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty(monkeypatch, lagging=True)
    job = job_in(bucket, tmp_path)
    with work_in_bucket(job, bucket) as work:
        keep(work, "secret", "first")
        keep(work, "artifacts/releases/one.record", "an entry")
        keep(work, "secret", "second")
        (work.folder / "spill").mkdir()
        (work.folder / "spill/rows").write_text("not kept")
        scratch = work.folder
        assert scratch.stat().st_mode & 0o777 == 0o700
    assert not scratch.exists()
    with read_only_store(job) as store:
        assert (store.folder / "releases/one.record").read_text() == "an entry"
        assert (job.work_path / "secret").read_text() == "second"
        assert not (job.work_path / "spill").exists()
    with pytest.raises(JobError, match="does not work in a bucket yet"):
        _ = job.work_path


@pytest.mark.ci
def test_a_run_that_was_taken_over_changes_nothing_any_more(bucket: Bucket, tmp_path: Path) -> None:
    job, other = job_in(bucket, tmp_path / "a"), job_in(bucket, tmp_path / "b")
    with pytest.raises(WorkError, match="did not renew"), work_in_bucket(job, bucket) as work:
        keep(work, "secret", "first")
        fenced: Lease = take_lease(bucket, Time().clock, SECONDS)
        fenced.release()
        with work_in_bucket(other, bucket) as heir:
            assert (heir.folder / "secret").read_text() == "first"
            keep(heir, "secret", "second")
        keep(work, "secret", "third")
    with read_only_store(other):
        assert (other.work_path / "secret").read_text() == "second"


def test_a_run_that_was_taken_over_keeps_no_artefact_any_more(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="did not renew"), work_in_bucket(job_in(bucket, tmp_path), bucket) as work:
        work.raise_if_lost()
        take_lease(bucket, Time().clock, SECONDS).release()
        assert not work.lease.renewed()
        work.store.make("step", Key("0" * 40), ".txt", lambda part: part.write_text("raw"))
    assert not bucket.names("artifacts/step")


def test_a_list_that_names_what_is_none_of_it_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    job = job_in(bucket, tmp_path)
    for name in ("../outside", "secret/../../outside", "artifacts/x.parquet", "/etc/x", "vaults/.x.part"):
        bucket.write("kept.json", json_with_digest({name: ["0" * 64, 0]}).encode())
        with pytest.raises(WorkError, match="is not what was written"), read_only_store(job):
            pass


def test_a_prefix_that_holds_something_else_stays_as_it_is(bucket: Bucket, tmp_path: Path) -> None:
    bucket.write("somebody/else.txt", b"hers")
    job = job_in(bucket, tmp_path)
    with pytest.raises(WorkError, match="holds objects that are not SKALD's"), work_in_bucket(job, bucket):
        pass
    with pytest.raises(WorkError, match="holds objects that are not SKALD's"):
        clear_bucket(bucket, job)
    assert bucket.sizes() == {"somebody/else.txt": 4}


def test_clearing_removes_what_runs_keep_but_not_what_is_registered(bucket: Bucket, tmp_path: Path) -> None:
    job = job_in(bucket, tmp_path)
    with work_in_bucket(job, bucket) as work:
        keep(work, "secret", "secret")
        keep(work, "registry/one.record", "registered")
        work.store.make("step", Key("key"), ".txt", wrote(b"content"))
    bucket.write("notes.txt", b"hers")
    # A run that was killed had written this much of a release.
    staged = job.target_path / f"{staging_prefix(job)}people-1"
    (staged / "data").mkdir(parents=True)
    removed = clear_bucket(bucket, job)
    assert not staged.exists()
    assert removed.freed > 0
    assert removed.files_left == 1
    with read_only_store(job):
        assert not (job.work_path / "secret").exists()
        assert (job.work_path / "registry/one.record").read_text() == "registered"
    assert not any(name.startswith("artifacts/") for name in bucket.sizes())
    assert json.loads(bucket.read(leases.NAME) or b"")["owner"] == ""


@pytest.mark.ci
def test_the_generation_never_goes_back_however_often_work_is_cleared(bucket: Bucket, tmp_path: Path) -> None:
    job, generations = job_in(bucket, tmp_path), list[int]()
    for _ in range(3):
        with work_in_bucket(job, bucket) as work:
            keep(work, "secret", "secret")
            generations.append(work.generation)
        assert clear_bucket(bucket, job).freed > 0
        assert set(bucket.sizes()) == {MARK, leases.NAME}
    # Whoever clears holds the lease too.
    assert generations == [1, 3, 5]
    assert clear_bucket(bucket, job).freed == 0


def test_a_run_that_waits_while_work_is_cleared_finds_mark_and_lease(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(bucket, tmp_path)
    with work_in_bucket(job, bucket) as work:
        keep(work, "secret", "secret")

    def clears_first(at: Bucket) -> Lease:
        monkeypatch.setattr(held_work, "take_lease", take_lease)
        clear_bucket(bucket, job)
        return take_lease(at)

    monkeypatch.setattr(held_work, "take_lease", clears_first)
    with work_in_bucket(job, bucket) as work:
        assert (bool(bucket.entry(MARK)), work.generation) == (True, 3)
        work.check()


@pytest.mark.ci
def test_of_two_first_runs_neither_takes_what_the_other_lays_for_somebody_elses(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, sizes = job_in(bucket, tmp_path), Bucket.sizes

    def after_the_other(self: Bucket, below: str = "") -> dict[str, int]:
        monkeypatch.setattr(Bucket, "sizes", sizes)
        with work_in_bucket(job, bucket):
            pass
        return self.sizes(below)

    monkeypatch.setattr(Bucket, "sizes", after_the_other)
    with work_in_bucket(job, bucket) as work:
        assert work.generation == 2


@pytest.mark.parametrize(
    ("credentials", "words"),
    [({}, "no credentials were found"), ({"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "x"}, "nothing answers at the end point")],
)
def test_missing_credentials_and_a_wrong_end_point_are_told_in_words(
    credentials: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        "EC2_METADATA_DISABLED": "true",
        "SHARED_CREDENTIALS_FILE": "/nowhere",
        "ENDPOINT_URL": "http://127.0.0.1:1",
        "MAX_ATTEMPTS": "1",
    }
    for name, value in (settings | credentials).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    forget()
    try:
        with pytest.raises(ObjectStoreError, match=words):
            Bucket("s3://bucket/x").entry("y")
    finally:
        forget()
