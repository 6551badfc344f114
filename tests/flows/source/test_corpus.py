"""Every input of the corpus ends as it says, in one sentence without a value; what is published of it is verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.corpus.entries import CANARY, Entry, corpus


@pytest.mark.few(32)
@pytest.mark.parametrize("entry", corpus(), ids=lambda entry: entry.name)
def test_an_input_ends_as_the_corpus_says(direct: CommandLine, tmp_path: Path, entry: Entry) -> None:
    folder = tmp_path / "here"
    entry.write(folder)
    done = direct("run", folder / "job.yaml")
    assert not entry.fault(done.returncode, done.stdout + done.stderr, folder)


def test_a_fault_of_an_entry_would_be_seen(tmp_path: Path) -> None:
    entry = Entry("one", "why", 2, "the words")
    assert not entry.fault(2, "in the\nwords", tmp_path)
    for code, said in ((1, "the words"), (2, "others"), (2, f"the words {CANARY}"), (2, "the words Traceback")):
        assert entry.fault(code, said, tmp_path)
    (tmp_path / "releases" / "people-1").mkdir(parents=True)
    assert entry.fault(2, "the words", tmp_path) == "published in spite of it"
