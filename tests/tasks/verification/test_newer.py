"""Newer releases of a job beside one that is verified are found in a folder and in a store alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from schemas.release.evidence import MANIFEST, SIGNATURE
from tasks.verification import published_releases
from tasks.verification.published_releases import MOST_BYTES, newer_releases, newer_releases_sentence
from tests.core.recount.test_classes import manifest

NAMES = [f"people-{number:016x}" for number in range(4)]
MADE = dict(zip(NAMES, ["2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00", None, "2026-02-01T00:00:00+00:00"], strict=True))


def texts() -> dict[str, str]:
    """Manifests by folder: of this job, of another one in a folder of this one's form, of a folder of another name, and none at all."""
    found = {name: manifest(release=name, created=made).model_dump_json() for name, made in MADE.items()}
    other = f"people-{9:016x}"
    found[other] = manifest(release=other, name="others", created="2026-09-01T00:00:00+00:00").model_dump_json()
    found[f"people-{8:016x}"] = manifest(release=NAMES[1], created="2026-08-01T00:00:00+00:00").model_dump_json()
    found[f"people-{7:016x}"] = "no manifest"
    found["people-later"] = manifest(release="people-later", created="2026-07-01T00:00:00+00:00").model_dump_json()
    return found


@pytest.fixture
def store() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name, text in texts().items():
        system.pipe(f"/newer/{name}/{MANIFEST}", text.encode())
    yield "memory://newer"
    system.rm("/newer", recursive=True)


EXPECTED = [(NAMES[0], (NAMES[1], NAMES[3])), (NAMES[3], (NAMES[1],)), (NAMES[1], ()), (NAMES[2], (NAMES[1], NAMES[3], NAMES[0]))]


@pytest.mark.parametrize(("name", "newer"), EXPECTED)
def test_newer_releases_lie_in_a_store(store: str, tmp_path: Path, name: str, newer: tuple[str, ...]) -> None:
    assert newer_releases(f"{store}/{name}/", tmp_path, manifest(release=name, created=MADE[name])) == newer


@pytest.mark.parametrize(("name", "newer"), EXPECTED)
def test_newer_releases_lie_in_a_folder(tmp_path: Path, name: str, newer: tuple[str, ...]) -> None:
    for folder, text in texts().items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / MANIFEST).write_text(text)
    assert newer_releases(str(tmp_path / name), tmp_path / name, manifest(release=name, created=MADE[name])) == newer


def test_the_newest_of_several_is_named_and_the_others_are_counted() -> None:
    told = [newer_releases_sentence(tuple(NAMES[:many])) for many in (1, 2, 3)]
    beside = [f"lies '{NAMES[0]}'{more}, made later." for more in ("", " and 1 more", " and 2 more")]
    assert [one in sentence for one, sentence in zip(beside, told, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("size", "listed", "key", "is_worth"),
    [
        (9, None, "data/0.parquet", True), (9, {"data/0.parquet": 9}, "data/0.parquet", True),
        (9, {"data/0.parquet": 8}, "data/0.parquet", False), (9, {"data/0.parquet": None}, "data/0.parquet", True),
        (9, {}, "data/0.parquet", False), (MOST_BYTES, {}, MANIFEST, True), (MOST_BYTES + 1, None, MANIFEST, False),
        (MOST_BYTES, {}, SIGNATURE, True), (MOST_BYTES + 1, {SIGNATURE: None}, SIGNATURE, False),
    ],
)  # fmt: skip
def test_objects_are_copied_that_can_be_what_the_manifest_lists(
    size: int, listed: dict[str, int | None] | None, key: str, is_worth: bool
) -> None:
    assert published_releases._is_worth_copying(size, listed, key) is is_worth


def test_a_release_of_the_same_moment_is_no_newer_one(tmp_path: Path) -> None:
    for name in NAMES[:2]:
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).write_text(manifest(release=name, created=MADE[NAMES[0]]).model_dump_json())
    assert newer_releases(str(tmp_path / NAMES[0]), tmp_path / NAMES[0], manifest(release=NAMES[0], created=MADE[NAMES[0]])) == ()
