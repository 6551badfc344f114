"""A kind of hierarchy that the product does not know is one entry: schema, plan, release, report and docs find it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.hierarchies.levels import Ladder, labelled
from docs.reference_pages import job_page
from schemas.errors.base import JobError
from schemas.hierarchies.hierarchy import HierarchySpec
from schemas.hierarchies.kinds import HIERARCHIES, HierarchyKind
from schemas.job.job import job_json_schema, load_job
from schemas.reading.registry import Code
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import released, two_column_job
from tests.registries.shown import shown_plan, shown_report

TABLE = pa.table({"q": list(range(20)) * 2, "s": ["a", "b"] * 20})


class ParityHierarchy(HierarchySpec):
    """Even and odd numbers."""

    kind: ClassVar[str] = "parity"
    parity: Literal["words", "digits"]
    """How the two are written."""


def parity_ladder(_qid: str, domain: Domain, spec: ParityHierarchy, _folder: Path) -> Ladder:
    """Groups numbers by what is left when they are halved."""
    odd = np.asarray(domain.values.to_numpy(zero_copy_only=False)) % 2 == 1
    names = ("even", "odd") if spec.parity == "words" else ("0", "1")
    return Ladder((labelled(pa.array(np.where(odd, names[1], names[0]))),), len(domain.values))


TOY = HierarchyKind(
    name="parity",
    schema=ParityHierarchy,
    ladder=Code("tests.registries.test_toy_hierarchy:parity_ladder"),
    words=lambda spec: "even and odd numbers",
    steps=lambda spec: [f"even or odd, in {spec.parity}"],
)


def test_a_kind_of_hierarchy_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with HIERARCHIES.having(TOY):
        job = two_column_job(tmp_path, TABLE, {"parity": "words"})
        assert job_json_schema()["$defs"]["ParityHierarchy"]["properties"]["parity"]
        assert "## hierarchy: parity" in job_page()
        assert "20 → 2 → 1 even and odd numbers" in shown_plan(job)
        made = anonymise(job)
        assert set(released(made.folder)["q"]) == {"even", "odd"}
        assert "even or odd, in words" in shown_report(made)
        assert made.manifest.asked is not None
        assert made.manifest.asked.quasi_identifiers[0].hierarchy == "even and odd numbers"
        verify_release(load_job(job), made.folder)
    assert "ParityHierarchy" not in str(job_json_schema())
    with pytest.raises(JobError, match="names no kind of hierarchy"):
        load_job(job)


def test_closeness_along_a_toy_is_the_jobs_too(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": [1, 2] * 20, "s": list(range(4)) * 10})
    closeness = {"s": {"t": 0.5, "distance": "hierarchical", "hierarchy": {"parity": "digits"}}}
    with HIERARCHIES.having(TOY):
        job = two_column_job(tmp_path, table, {"widths": [1, 2]}, privacy={"k": 5, "t": closeness})
        verify_release(load_job(job), anonymise(job).folder)
