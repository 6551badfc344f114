"""Entries of the registry are those of published releases, whole and of this form, and keep their sketches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.units.source_digests import Sketch
from schemas.errors.base import StorageError
from schemas.errors.folders import FolderError
from schemas.job.job import load_job
from tasks.composition.registry import FOLDER, FORMAT, RECORD, SKETCH, Registered, ReleaseRegistry, open_registry
from tasks.counting.contents import Sketches
from tasks.store.keys import FolderSecret, json_with_digest, values_with_digest
from tests.jobs import job_of, write_job

SKETCHES = Sketches(
    Sketch(np.array([7, 3, 2**63 + 1], np.uint64), np.array([1, 2, 1]), is_complete=True),
    Sketch(np.array([5], np.uint64), np.array([2]), is_complete=False),
)


def entry(release: str, **changes: Any) -> Registered:
    said: dict[str, Any] = {
        "format": FORMAT, "release": release, "place": "", "work": "", "k": 2, "records": 3, "files": (), "known_by": (), "person": (),
        "columns": (), "qids": (), "sketch": "", "reach": (1.0, 0.5), "key": "", "made": 0.0,
    }  # fmt: skip
    return Registered.model_validate(said | changes)


@pytest.fixture
def registry(tmp_path: Path) -> ReleaseRegistry:
    return ReleaseRegistry(tmp_path, FolderSecret(b"of this folder"))


def names(registry: ReleaseRegistry) -> tuple[list[str], list[str]]:
    found, damaged = registry.entries()
    return [one.release for one in found], sorted(damaged)


def test_an_entry_gives_back_the_sketches_of_its_release_and_no_others(registry: ReleaseRegistry) -> None:
    made = registry.enter(entry("people-1"), SKETCHES)
    other = registry.enter(entry("people-2"), Sketches(SKETCHES.persons, SKETCHES.records))
    for one, expected in ((made, SKETCHES), (other, Sketches(SKETCHES.persons, SKETCHES.records))):
        found = registry.sketches_of(one)
        assert found is not None
        for mine, given, complete in zip(found, expected, (True, False), strict=True):
            assert (mine.digests.tolist(), mine.counts.tolist()) == (given.digests.tolist(), given.counts.tolist())
            assert mine.is_complete is complete
    assert registry.sketches_of(made.model_copy(update={"sketch": other.sketch})) is None
    (registry.folder / f"people-1{SKETCH}").unlink()
    assert registry.sketches_of(made) is None


def test_keyed_sketches_are_in_the_order_of_the_plain_ones_and_say_only_what_there_is_twice(registry: ReleaseRegistry) -> None:
    plain = Sketch(np.array([1, 2, 3, 2**64 - 1], np.uint64), np.array([1, 2, 9, 3]), is_complete=True)
    found = registry.keyed_sketches(Sketches(plain, plain))
    assert [one.counts.tolist() for one in found] == [[1, 2, 2, 2]] * 2
    for kind, one in zip(("record", "person"), found, strict=True):
        assert one.digests.tolist() == registry.secret.keyed_numbers(kind, plain.digests.tolist())
        assert one.is_complete


def test_releases_count_from_when_they_are_published_the_newest_first(registry: ReleaseRegistry, tmp_path: Path) -> None:
    made = [registry.enter(entry(f"people-{number}", place=str(tmp_path)), SKETCHES) for number in (2, 1, 3)]
    assert names(registry) == ([], [])
    for one in made:
        registry.record_publication(one)
    assert names(registry) == (["people-3", "people-1", "people-2"], [])
    registry.enter(entry("people-0", place=str(tmp_path)), SKETCHES)
    (tmp_path / "people-0").mkdir()
    assert names(registry)[0][0] == "people-0", "what lies in its target is published"


@pytest.mark.parametrize("changes", [{"format": FORMAT + 1}, {"release": "people-2"}, {"format": FORMAT - 1, "release": "people-2"}])
def test_an_entry_of_another_form_or_release_is_damaged(registry: ReleaseRegistry, changes: dict[str, Any]) -> None:
    registry.enter(entry("people-1"), SKETCHES)
    path = registry.folder / f"people-1{RECORD}"
    sealed = values_with_digest(path)
    path.write_text(json_with_digest(sealed | changes))
    assert names(registry) == ([], ["people-1"])
    path.write_text(json_with_digest(sealed))
    shutil.copy(path, registry.folder / f"people-9{RECORD}")
    assert names(registry) == (["people-1"], ["people-9"])
    path.write_text(path.read_text().replace("people-1", "people-2"))
    assert names(registry) == ([], ["people-1", "people-9"])


def test_the_registry_lies_beside_the_job_and_no_link_leads_it_to_another_place(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path / "jobs", job_of()))
    with open_registry(job) as opened:
        assert opened is not None
        assert opened.folder == tmp_path / "jobs" / ".skald" / FOLDER
    (tmp_path / "elsewhere").mkdir()
    shutil.move(opened.folder, tmp_path / "moved")
    opened.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="is a link"), open_registry(job):
        pass
    assert not list((tmp_path / "elsewhere").iterdir())


def test_where_no_folder_can_be_made_beside_the_job_its_work_has_the_registry_but_not_where_something_else_is_there(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path / "jobs", job_of(work=str(tmp_path / "work"))))
    beside = tmp_path / "jobs" / ".skald"
    beside.touch()
    with open_registry(job) as opened:
        assert opened is not None
        assert opened.folder.is_relative_to(tmp_path / "work")
    beside.unlink()
    beside.mkdir()
    (beside / FOLDER).touch()
    with pytest.raises(StorageError), open_registry(job):
        pass
