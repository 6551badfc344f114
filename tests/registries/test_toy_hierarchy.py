"""A kind of hierarchy that the product does not know is one entry: schema, plan, release, report and docs find it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.hierarchies.levels import DraftLevels, level_of_labels
from core.recount.labels.group_levels import GroupLevel, Levels, level_of
from core.recount.labels.label_readers import LabelAxis, label_axis
from core.recount.labels.label_spans import read_labels
from docs.reference_pages import job_page
from schemas.errors.base import JobError, VerificationError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import load_job
from schemas.reading.registry import Code
from schemas.registry.hierarchies import HierarchySpec
from schemas.registry.hierarchy_kinds import HIERARCHIES, HierarchyKind
from schemas.relational.tables_job import jobs_json_schema
from tasks.recount.recount import verify_release
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.jobs import data_files, released, two_column_job
from tests.registries.shown import shown_plan, shown_report

TABLE = pa.table({"q": list(range(20)) * 2, "s": ["a", "b"] * 20})


class ParityHierarchy(HierarchySpec):
    """Even and odd numbers."""

    kind: ClassVar[str] = "parity"
    parity: Literal["words", "digits"]
    """How the two are written."""


def parity_ladder(_qid: str, domain: Domain, spec: ParityHierarchy, _folder: Path) -> DraftLevels:
    """Group numbers by what is left when they are halved."""
    odd = np.asarray(domain.values.to_numpy(zero_copy_only=False)) % 2 == 1
    names = ("even", "odd") if spec.parity == "words" else ("0", "1")
    return DraftLevels((level_of_labels(pa.array(np.where(odd, names[1], names[0]))),), len(domain.values))


def parity_levels(_name: str, spec: ParityHierarchy, values: pa.Array, _folder: Path) -> Levels:
    """Label numbers by their last digit, as the recount does: by nothing that the ladder uses."""
    odd, even = ("odd", "even") if spec.parity == "words" else ("1", "0")
    return [level_of(odd if str(value)[-1] in "13579" else even for value in values.to_pylist())]


def parity_axis(_name: str, spec: ParityHierarchy, values: pa.Array, _folder: Path) -> LabelAxis:
    """Read labels: even numbers stand before odd ones."""
    numbers = values.to_pylist()
    order = sorted(numbers, key=lambda value: (str(value)[-1] in "13579", value))
    even = sum(str(value)[-1] not in "13579" for value in numbers)
    spans = {"even": (0, even), "0": (0, even), "odd": (even, len(order)), "1": (even, len(order))}
    values_at = {str(value): (place, place + 1) for place, value in enumerate(order)}
    return LabelAxis(np.array([order.index(value) for value in numbers], np.int64), values_at.get, (spans.get,))


TOY = HierarchyKind(
    name="parity",
    schema=ParityHierarchy,
    ladder=Code("tests.registries.test_toy_hierarchy:parity_ladder"),
    words=lambda spec: "even and odd numbers",
    steps=lambda spec: [f"even or odd, in {spec.parity}"],
    recount_levels=Code("tests.registries.test_toy_hierarchy:parity_levels"),
    recount_axis=Code("tests.registries.test_toy_hierarchy:parity_axis"),
)


@pytest.mark.slow
def test_a_kind_of_hierarchy_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with HIERARCHIES.having(TOY):
        job = two_column_job(tmp_path, TABLE, {"parity": "words"})
        assert jobs_json_schema()["$defs"]["ParityHierarchy"]["properties"]["parity"]
        assert "## hierarchy: parity" in job_page()
        assert "q even and odd numbers 20 0" in shown_plan(job)
        made = anonymise(job)
        assert set(released(made.folder)["q"]) == {"even", "odd"}
        assert "even or odd, in words" in shown_report(made)
        assert made.manifest.asked.quasi_identifiers[0].hierarchy == "even and odd numbers"
        verify_release(load_job(job), made.folder)
        [file] = data_files(made.folder)
        frame = pl.read_parquet(file)
        frame.with_columns(pl.Series("q", ["odd"] * 15 + ["even"] * 25)).write_parquet(file)
        with pytest.raises(VerificationError, match="'q'"):
            verify_release(load_job(job), made.folder)
    assert "ParityHierarchy" not in str(jobs_json_schema())
    with pytest.raises(JobError, match="names no kind of hierarchy"):
        load_job(job)


def test_a_kind_that_the_recount_cannot_read_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    job = two_column_job(tmp_path, TABLE, {"widths": [1, 2]})
    settings = ("columns.quasi_identifiers=[{name: q, hierarchy: {parity: words}}]",)
    with HIERARCHIES.having(replace(TOY, recount_levels=None)):
        with pytest.raises(HierarchyError, match="'q': the recount cannot read hierarchies of the kind parity"):
            anonymise(job, *settings)
        assert not (tmp_path / "releases").exists()
    with HIERARCHIES.having(TOY):
        folder = anonymise(job, *settings).folder
    # Published while there was a reader, and verified where there is none.
    with HIERARCHIES.having(replace(TOY, recount_levels=None, recount_axis=None)), pytest.raises(HierarchyError, match="'q'"):
        verify_published(load_job(job, settings), folder, VerificationContext(str(folder)))


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("method", ["skald", "mondrian", "kmember"])
def test_levels_alone_tell_what_labels_cover(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    settings = (f"method={{name: {method}}}", "privacy.k=15", "suppression.limit=1")
    with HIERARCHIES.having(replace(TOY, recount_axis=None)):
        job = two_column_job(tmp_path, TABLE, {"parity": "words"})
        folder = anonymise(job, *settings).folder
        assert verify_published(load_job(job, settings), folder, VerificationContext(str(folder))).recount.unproved == ()


def test_labels_of_a_kind_without_a_reader_cover_what_its_levels_say() -> None:
    """A group may be listed that no value is in, or published as a null."""

    def levels(_name: str, _spec: ParityHierarchy, _values: pa.Array, _folder: Path) -> Levels:
        halves = GroupLevel(np.array([0, 0, 0, 1, 1, 1]), ["low", None])
        return [GroupLevel(np.array([2, 0, 2, 0, 2, 0]), ["even", "neither", "odd"]), halves]

    with HIERARCHIES.having(replace(TOY, recount_axis=None, recount_levels=levels)):
        qid = QuasiIdentifier.model_validate({"name": "q", "hierarchy": {"parity": "words"}})
        axis = label_axis(qid, pa.array(range(1, 7)), Path(), ranges=False, prefixes=False)
        read = read_labels(axis, ["odd", "even", "neither", "low", "3", None])
    places = axis.positions.tolist()
    covered = [{places.index(place) + 1 for place in read.covered(label).tolist() if place < 6} for label in range(6)]
    # Odd and even numbers stand beside one another within the half that is coarser, so that either covers what lies between.
    assert [len(mine) for mine in covered] == [5, 5, 0, 3, 1, 0]
    assert ({1, 3, 5} <= covered[0], {2, 4, 6} <= covered[1], covered[3:5]) == (True, True, [{1, 2, 3}, {3}])


def test_values_that_are_hidden_need_a_rule(anonymise: Anonymise, tmp_path: Path) -> None:
    with HIERARCHIES.having(TOY), pytest.raises(HierarchyError, match="'q'"):
        anonymise(
            two_column_job(tmp_path, TABLE, {"parity": "words"}),
            "columns.quasi_identifiers=[{name: q, exact: false, hierarchy: {parity: words}}]",
        )


def test_closeness_along_a_toy_is_the_jobs_too(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": [1, 2] * 20, "s": list(range(4)) * 10})
    closeness = {"s": {"t": 0.5, "distance": "hierarchical", "hierarchy": {"parity": "digits"}}}
    with HIERARCHIES.having(TOY):
        job = two_column_job(tmp_path, table, {"widths": [1, 2]}, privacy={"k": 5, "t": closeness})
        verify_release(load_job(job), anonymise(job).folder)
