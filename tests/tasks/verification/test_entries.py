"""What lies in a release's folder is what its manifest lists, and each thing that is not is told of once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from schemas.release.evidence import ALTERED, DOCUMENTS, MANIFEST, SIGNATURE, complete_manifest
from schemas.release.manifest import Manifest
from tasks.store.work_folder import CURRENT
from tasks.verification.entries import OTHER_FORM, content_faults, entry_faults, pointer_faults
from tests.core.recount.test_classes import job, manifest

NAMED = "people-0123456789abcdef"
OTHER = [f"{CURRENT} does not name a release that is there"]
LISTED = [f"data/{number}.parquet" for number in range(3)]
NOT_AS_IT_SHOULD = "the manifest does not list the report as it should"


def release_at(folder: Path, **changes: Any) -> Manifest:
    """A release of three data files and two documents, with its manifest."""
    (folder / "data").mkdir()
    for name in [*LISTED, *DOCUMENTS, MANIFEST]:
        (folder / name).write_text(f"content of {name}")
    documents = [
        {"path": name, "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(), "code": "", "bytes": 11 + len(name)}
        for name in DOCUMENTS
    ]
    files = [{"path": name, "rows": 1, "sha256": "", "bytes": 3} for name in LISTED]
    return manifest(**({"documents": documents, "files": files} | changes))


def test_a_folder_that_holds_what_is_listed_has_no_fault(tmp_path: Path) -> None:
    assert entry_faults(tmp_path, release_at(tmp_path)) == []


@pytest.mark.parametrize("kept", [(), (0,), (1,), (1, 0), (0, 1, 1)])
def test_a_report_that_is_not_listed_once_is_a_fault_and_none_that_is_not_listed_is_taken_for_ours(
    tmp_path: Path, kept: tuple[int, ...]
) -> None:
    whole = release_at(tmp_path)
    said = whole.model_copy(update={"documents": tuple(whole.documents[place] for place in kept)})
    missing = [name for name in DOCUMENTS if name not in {one.path for one in said.documents}]
    listing = [NOT_AS_IT_SHOULD] if kept != (1, 0) else []
    unlisted = {0: [], 1: ["1 entry not in the manifest"], 2: ["2 entries not in the manifest"]}[len(missing)]
    assert entry_faults(tmp_path, said) == [*unlisted, *listing, *(f"{name} was altered since publication" for name in missing)]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(("content", "fault"), [("content of another", "was altered since publication"), (None, "is missing")])
def test_a_document_that_is_gone_or_another_is_a_fault(tmp_path: Path, name: str, content: str | None, fault: str) -> None:
    said = release_at(tmp_path)
    (tmp_path / name).unlink()
    if content:
        (tmp_path / name).write_text(content)
    assert entry_faults(tmp_path, said) == [f"{name} {fault}"]


@pytest.mark.parametrize("signed_by", [None, "a key"])
@pytest.mark.parametrize("there", [True, False])
def test_a_signature_is_there_just_where_the_manifest_says_so(tmp_path: Path, signed_by: str | None, there: bool) -> None:
    said = release_at(tmp_path, signed_by=signed_by)
    if there:
        (tmp_path / SIGNATURE).touch()
    expected = {(True, False): [f"{SIGNATURE} is missing"], (False, True): ["1 entry not in the manifest"]}
    assert entry_faults(tmp_path, said) == expected.get((signed_by is not None, there), [])


@pytest.mark.parametrize(
    ("names", "is_fault"),
    [
        (LISTED, False), (LISTED[::-1], True), ([*LISTED, LISTED[2]], True), ([*LISTED, "data/notes.txt"], True),
        ([*LISTED, "others/3.parquet"], True),
        # Of partitions or tables files are in the order in which these come.
        (["data/b/0.parquet", "data/a/0.parquet"], False), (["data/b.parquet", "data/a/0.parquet"], False),
        (["data/b/0.parquet", "data/b/0.parquet"], True), (["data/b/0.parquet", "data/a/0.txt"], True),
    ],
)  # fmt: skip
def test_data_files_are_listed_once_in_their_folder_and_in_order(tmp_path: Path, names: list[str], is_fault: bool) -> None:
    said = release_at(tmp_path, files=[{"path": name, "rows": 1, "sha256": "", "bytes": 3} for name in names])
    assert entry_faults(tmp_path, said) == ["the manifest does not list the data files as it should"] * is_fault


def test_of_what_is_not_listed_everything_counts_but_data_files_of_which_others_tell(tmp_path: Path) -> None:
    said = release_at(tmp_path)
    (tmp_path / "data" / "9.parquet").touch()
    assert entry_faults(tmp_path, said) == []
    (tmp_path / "data" / "notes.txt").touch()
    assert entry_faults(tmp_path, said) == ["1 entry not in the manifest"]
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "0.parquet").touch()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert entry_faults(tmp_path, said) == ["4 entries not in the manifest"]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (f"{NAMED}\n", []), (NAMED, OTHER), (f"{NAMED}\n\n", OTHER), (f"{NAMED[:-1]}\n", OTHER), (f"{NAMED[:-1]}d\n", OTHER),
        ("é\n", OTHER), (None, [f"{CURRENT} is missing from the target"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["in the target", "elsewhere", "without a job"])
def test_what_is_current_is_named_in_one_line_which_may_be_missing_outside_the_target(
    tmp_path: Path, content: str | None, faults: list[str], where: str
) -> None:
    target = tmp_path / "releases"
    release = (target if where == "in the target" else tmp_path / "copies") / NAMED
    release.mkdir(parents=True)
    (release / MANIFEST).touch()
    if content is not None:
        (release.parent / CURRENT).write_text(content, "utf-8")
    known = None if where == "without a job" else job(target=str(target))
    expected = [] if content is None and where != "in the target" else faults
    assert pointer_faults(str(release), release, known) == expected


@pytest.mark.parametrize(("content", "there"), [(f"{NAMED}x", NAMED), ("other\n", "other"), ("\n", "None"), ("", ""), ("é\n", "None")])
def test_what_is_no_name_of_a_release_in_one_line_names_none_whatever_lies_there(tmp_path: Path, content: str, there: str) -> None:
    (tmp_path / there).mkdir(exist_ok=True)
    (tmp_path / there / MANIFEST).touch()
    (tmp_path / CURRENT).write_text(content, "utf-8")
    assert pointer_faults(str(tmp_path / NAMED), tmp_path / NAMED, None) == OTHER


def test_a_manifest_has_the_seal_of_its_content_and_the_form_it_is_written_in() -> None:
    made, text = complete_manifest(manifest(), (), None)
    content = text.encode()
    spaced = content.replace(b'"name": "', b'"name":  "', 1)
    assert content_faults(content, made) == []
    assert content_faults(content.replace(made.seal.encode(), b"0" * 64), made.model_copy(update={"seal": "0" * 64})) == [ALTERED]
    assert content_faults(spaced, made) == [ALTERED, OTHER_FORM]
    digest = hashlib.sha256(spaced.replace(made.seal.encode(), b"")).hexdigest()
    assert content_faults(spaced.replace(made.seal.encode(), digest.encode()), made.model_copy(update={"seal": digest})) == [OTHER_FORM]
