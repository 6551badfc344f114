"""A release of any part of the lattice is verified, with its job and without, and no other picture of the lattice is."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.figures import nodes_by_height
from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.flows.lattice.test_objectives import job
from tests.jobs import job_of, people_job
from tests.tampering.kinds import anew

QIDS: Any = [
    {"name": "age", "hierarchy": {"widths": [10, 20], "top": 60}},
    {"name": "zip", "exact": False, "hierarchy": {"prefix": [3, 1]}},
]
HIDING = job_of()["columns"] | {"quasi_identifiers": QIDS, "identifiers": ["person", "height", "smoker", "born", "sex"]}
PARTS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "fewer coarse levels": ({}, ["method.levels={age: [0, 2]}"]),
    "fewer fine levels": ({}, ["method.levels={age: [1, 3]}"]),
    "few levels": ({}, ["method.levels={sex: [0, 0], age: [1, 2], zip: [1, 2]}", "suppression.limit=1"]),
    "above one root": ({}, ["method.root=dense", "method.roots=1"]),
    "hidden values": ({"columns": HIDING}, []),
    "hidden values above one root": ({"columns": HIDING}, ["method.root=dense", "method.roots=1"]),
}


def more(said: dict[str, Any]) -> None:
    """One node more at the height with most."""
    heights = said["lattice"]["heights"]
    most = max(range(len(heights["passes"])), key=lambda height: sum(counts[height] for counts in heights.values()))
    heights["passes"][most] += 1


def longer(said: dict[str, Any]) -> None:
    """One level more of the last column."""
    said["lattice"]["levels"][-1] += 1


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("part", PARTS)
def test_what_was_searched_is_what_is_drawn(anonymise: Anonymise, tmp_path: Path, part: str) -> None:
    parts, settings = PARTS[part]
    path = people_job(tmp_path, **parts) if parts else job(tmp_path)
    made = anonymise(path, "privacy.k=4", *settings)
    known = VerificationContext(str(made.folder))
    asked = load_job(path, ("privacy.k=4", *settings))
    verify_published(asked, made.folder, known)
    verify_published(None, made.folder, known)
    # No release of this version has a picture of the search; one of an earlier version has.
    assert made.untold is not None and made.untold.lattice is not None
    drawn = made.untold.lattice.model_dump(mode="json")
    for change in (more, longer):
        anew(made.folder, lambda said: said.update(lattice=deepcopy(drawn)))
        verify_published(asked, made.folder, known)
        anew(made.folder, change)
        with pytest.raises(VerificationError, match=r"lattice.* cannot be"):
            verify_published(asked, made.folder, known)
    anew(made.folder, lambda said: said.update(lattice=None))
    verify_published(asked, made.folder, known)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda span: (min(span), max(span))), max_size=4))
def test_nodes_are_counted_by_their_height(spans: list[tuple[int, int]]) -> None:
    found = nodes_by_height(spans)
    by_hand = [sum(node) for node in product(*(range(least, most + 1) for least, most in spans))]
    assert found == [by_hand.count(height) for height in range(sum(most for _, most in spans) + 1)]
