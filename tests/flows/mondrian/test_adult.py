"""Utility on the Adult set: what strict Mondrian reached in a prototype, and a fifth less with cuts chosen by what they lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.job.method import METHODS
from tests.flows.lattice.test_adult import ADULT, QIDS
from tests.jobs import class_sizes, released, write_job

pytestmark = pytest.mark.skipif(not ADULT.is_dir(), reason="the Adult set is not beside the checkout")
PROTOTYPE = 0.0725


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("score", "most"), [("representativity", PROTOTYPE), ("ncp", 0.8 * PROTOTYPE)])
def test_values_that_a_class_covers_are_few(tmp_path: Path, score: str, most: float) -> None:
    qids = [{"name": name, "hierarchy": {"csv": str(ADULT / f"hierarchy_{name}.csv")}} for name in QIDS]
    parts = {
        "version": 1,
        "name": "adult",
        "source": {"path": str(ADULT / "adult.csv"), "delimiter": ";", "types": {"age": "integer"}},
        "columns": {"quasi_identifiers": qids, "sensitive": ["salary-class"], "insensitive": []},
        "privacy": {"k": 10},
        "method": {"name": "mondrian", "score": score, "generalisation": {name: "set" for name in QIDS if name != "age"}},
        "memory": "512MB",
        "target": "releases",
        "endpoints": "observed",
    }
    flow = METHODS["mondrian"].flow.load()
    made = getattr(flow, "fn", flow)(write_job(tmp_path, parts), ())
    assert made.manifest.loss["gcp"] == pytest.approx(made.manifest.loss["gcp_held"])
    assert made.manifest.loss["gcp"] <= most
    sizes = class_sizes(released(made.folder), QIDS)
    assert (sum(sizes.values()), min(sizes.values()) >= 10) == (30_162, True)
