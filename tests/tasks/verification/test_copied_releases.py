"""A release in a bucket is copied with all files that can be its own, and under no name that leads elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import fsspec
import pytest

from schemas.errors.base import StorageError
from schemas.errors.folders import EscapeError
from schemas.job import source
from schemas.release.evidence import MANIFEST
from tasks.store.place import Bucket
from tasks.verification.published_releases import _listed_sizes, release_folder
from tests.core.recount.test_classes import manifest

RELEASE = f"people-{1:016x}"
LISTED = manifest(
    release=RELEASE, files=[{"path": f"data/{number}.parquet", "rows": 1, "sha256": "", "bytes": 3} for number in range(2)]
).model_dump_json()
FILES = {"a/deep/stranger": "not ours", "data/0.parquet": "one", "data/1.parquet": "two", "data/2.parquet": "not listed"}


@pytest.fixture(autouse=True)
def memory_is_a_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(source, "SCHEMES", (*source.SCHEMES, "memory"))
    yield
    system = fsspec.filesystem("memory")
    if system.exists("/copied"):
        system.rm("/copied", recursive=True)


def copied(files: Mapping[str, str], address: str = f"memory://copied/{RELEASE}") -> dict[str, str]:
    for name, text in files.items():
        fsspec.filesystem("memory").pipe(f"/copied/{RELEASE}/{name}", text.encode())
    with release_folder(address) as folder:
        assert folder.name == RELEASE
        found = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert not folder.exists()
    return found


@pytest.mark.parametrize("end", ["", "/"])
def test_files_that_the_manifest_lists_are_copied_and_others_are_there_without_content(end: str) -> None:
    files = FILES | {MANIFEST: LISTED}
    expected = files | {"a/deep/stranger": "", "data/2.parquet": ""}
    assert copied(files, f"memory://copied/{RELEASE}{end}") == expected
    assert copied({"data/0.parquet": "longer"})["data/0.parquet"] == ""


def test_without_a_manifest_everything_is_copied() -> None:
    assert copied(FILES) == FILES


def test_where_nothing_lies_the_address_is_named_and_no_folder_of_this_machine() -> None:
    with pytest.raises(StorageError, match=rf"'memory://copied/{RELEASE}' is not a release \(no object"):
        copied({})


def test_nothing_is_copied_under_a_name_that_leads_out() -> None:
    with pytest.raises(EscapeError):
        copied(FILES | {"data/../../0.parquet": "above"})


def test_an_address_with_a_credential_is_refused_and_not_repeated() -> None:
    with pytest.raises(StorageError) as refused, release_folder(f"s3://name:word@bucket/{RELEASE}"):
        pass
    assert "s3://…" in str(refused.value)
    assert "word" not in str(refused.value).replace("password", "")


def test_a_release_in_a_folder_is_read_where_it_lies(tmp_path: Path) -> None:
    with release_folder(str(tmp_path)) as folder:
        assert folder == tmp_path


def test_a_manifest_that_is_gone_since_it_was_listed_lists_nothing() -> None:
    assert _listed_sizes(Bucket(f"memory://copied/{RELEASE}"), {MANIFEST: 9}) == {}
