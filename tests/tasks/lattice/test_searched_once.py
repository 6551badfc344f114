"""What a search of the lattice found is kept, and local recoding begins with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.lattice import recodings
from tests.conftest import Anonymise
from tests.jobs import people, people_job


@pytest.mark.ci
def test_a_kept_search_is_not_made_again(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(tmp_path, people(60))
    treatment = "suppression={limit: 0.5, treatment: cell}"
    first = anonymise(job, treatment)
    assert first.manifest.remainder is not None
    monkeypatch.setattr(recodings, "find_best_node", None)
    again = anonymise(job, treatment, "output.format=csv")
    assert again.folder != first.folder
    assert again.manifest.node == first.manifest.node
