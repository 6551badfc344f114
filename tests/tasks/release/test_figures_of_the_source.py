"""What a manifest says of its source is held against the source, and what nobody may be told is not said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.classes import risk_of_files
from schemas.errors.base import VerificationError
from schemas.release.evidence import MANIFEST
from tasks.engine.runs import versions
from tasks.recount.original import SourceFigures
from tasks.release.files import Csv
from tasks.report.report import bands
from tasks.verification import release
from tasks.verification.release import FORMAT, VerificationContext, verify_published
from tests.core.recount.test_classes import job, manifest

SIZES = {1: 4, 6: 16}
PERSONS = {"columns": ("person",), "source": 90, "released": 80, "smallest_class": 5, "most_records": 2}


@contextmanager
def no_folder(_job: Any, _name: str) -> Iterator[Path]:
    yield Path()


def faults(monkeypatch: pytest.MonkeyPatch, found: SourceFigures, **said: Any) -> list[str]:
    monkeypatch.setattr(release, "source_figures", lambda *_: found)
    monkeypatch.setattr(release, "temporary_folder_of", no_folder)
    original: Any = None
    named = release._source_faults(job(), manifest(**said), original)
    return [fault.removeprefix("the manifest's ").split()[0] for fault in named]


def test_classes_of_the_source_are_those_that_were_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    true = {"risk": {"before": risk_of_files(SIZES, 0, 0, 0)}, "source_sizes": bands(SIZES, 5)}
    assert faults(monkeypatch, SourceFigures(SIZES), **true) == faults(monkeypatch, SourceFigures(SIZES)) == []
    assert faults(monkeypatch, SourceFigures(SIZES), **true | {"source_sizes": bands({1: 5, 6: 16}, 5)}) == ["source_sizes"]
    assert faults(monkeypatch, SourceFigures({1: 5, 6: 16}), **true) == ["risk.before", "source_sizes"]
    assert faults(monkeypatch, SourceFigures(SIZES, 90), **true, persons=PERSONS) == [], "of persons classes are not told"


@pytest.mark.parametrize(
    ("said", "found", "is_right"), [(90, 90, True), (91, 90, False), (None, 90, False), (None, 84, True), (84, 84, True)]
)
def test_persons_of_the_source_are_told_unless_fewer_than_k_are_left_out(
    monkeypatch: pytest.MonkeyPatch, said: int | None, found: int, is_right: bool
) -> None:
    assert faults(monkeypatch, SourceFigures(persons=found), persons=PERSONS | {"source": said}) == ([] if is_right else ["persons.source"])


@pytest.mark.parametrize(
    ("said", "found", "is_right"),
    [
        (None, None, True),
        (7, None, False),
        (40, (40, 5), True),
        (41, (40, 5), False),
        (None, (40, 4), True),
        (40, (40, 4), False),
        (None, (40, 5), False),
    ],
)
def test_records_beyond_the_bound_are_told_unless_fewer_than_k_persons_lost_them(
    monkeypatch: pytest.MonkeyPatch, said: int | None, found: tuple[int, int] | None, is_right: bool
) -> None:
    named = faults(monkeypatch, SourceFigures(persons=90, withheld=found), persons=PERSONS | {"withheld": said})
    assert named == ([] if is_right else ["persons.withheld"])


@pytest.mark.parametrize("with_job", [True, False])
def test_files_are_held_against_the_source_of_the_job_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, with_job: bool
) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    held: list[Any] = []

    def counted(_job: Any, _release: Path, _manifest: Any, files: Any, original: Any, *_: Any) -> None:
        held.append((files, original))
        raise VerificationError("it", ["found"])

    monkeypatch.setattr(release, "_read", lambda *_: (b"", SimpleNamespace(format=FORMAT, job="", method="skald", privacy={})))
    monkeypatch.setattr(release, "_evidence_faults", lambda *_: ["known", "found"])
    monkeypatch.setattr(release, "data_files", lambda _release: "files")
    monkeypatch.setattr(release, "source_at_hand", lambda _job: nullcontext("source"))
    monkeypatch.setattr(release, "_counted", counted)
    with pytest.raises(VerificationError) as refused:
        verify_published(job() if with_job else None, tmp_path, VerificationContext(str(tmp_path)))
    assert held == [("files", "source" if with_job else None)]
    assert list(refused.value.faults) == ["known", "found"]


@pytest.mark.parametrize(("version", "is_same"), [(None, False), ("0", False), (versions()["pyarrow"], True)])
def test_bytes_of_files_are_compared_where_the_same_library_wrote_them_and_else_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, is_same: bool
) -> None:
    path, asked = tmp_path / "data" / "0.parquet", list[bool]()
    path.parent.mkdir()
    pq.write_table(pa.table({"q": [1, 2]}), path)

    def noted(_files: Any, _spill: Path, *, same_library: bool) -> list[str]:
        asked.append(same_library)
        return []

    monkeypatch.setattr(release, "parquet_faults", noted)
    said: Any = SimpleNamespace(
        versions={"pyarrow": version}, files=[SimpleNamespace(path="data/0.parquet", rows=2)], asked=SimpleNamespace(memory=1 << 28)
    )
    faults, notes = release._form_faults([path], said, Csv(",", {}), None)
    assert (faults, asked, bool(notes)) == ([], [is_same], not is_same)
