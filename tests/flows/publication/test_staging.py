"""What a release is made of while it is staged, on whatever file systems work folder and target lie."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import data_files, digests, people, people_job

TABLE = people(300)


def test_a_work_folder_on_another_file_system_gives_the_same_release(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(source: Path, destination: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, destination)

    linked = anonymise(people_job(tmp_path / "one", TABLE), "rows_per_file=60")
    monkeypatch.setattr(os, "link", across)
    job = people_job(tmp_path / "two", TABLE)
    copied = anonymise(job, "rows_per_file=60")
    assert copied.manifest.files == linked.manifest.files
    assert digests(copied.folder) == digests(linked.folder) == [file.sha256 for file in copied.manifest.files]
    assert len(copied.manifest.files) > 1
    verify_release(load_job(job, ["rows_per_file=60"]), copied.folder)
    modes = [[stat.S_IMODE(path.stat().st_mode) for path in data_files(made.folder)] for made in (linked, copied)]
    assert modes[0] == modes[1]
