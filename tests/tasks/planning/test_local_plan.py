"""A plan of a method without a lattice tells what its run then does: on what it works, how much of that differs, in which fragments."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from flows.terminal.plans import plan_summary
from schemas.errors.base import PrivacyError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.planning.plan import make_plan
from tests.house.replaced import CELLS_BYTES_PER_ROW
from tests.jobs import QIDS, people, people_job

TABLE = people(120)
PARTED = {"count": 4, "sample": 0.5}
WAYS = [
    ({"name": "mondrian"}, "cells", "all fit the memory at once"),
    ({"name": "mondrian", "fragments": PARTED}, "cells", "as the job asks"),
    ({"name": "mondrian", "mode": "relaxed"}, "records", "relaxed cuts part equal records, which takes the records themselves"),
    ({"name": "rayden"}, "records", "all fit the memory at once"),
    ({"name": "kmember", "fragments": PARTED}, "records", "as the job asks"),
    ({"name": "clustering", "fragments": PARTED}, "records", "as the job asks"),
]


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("method", "rows", "reason"), WAYS, ids=["cells", "fragments", "relaxed", "records", "members in fragments", "records in fragments"]
)
def test_a_plan_tells_what_the_run_then_does(tmp_path: Path, method: dict, rows: str, reason: str) -> None:
    job = people_job(tmp_path, TABLE, method=method)
    plan = make_plan(load_job(job))
    assert plan.local
    assert (plan.nodes, plan.root, plan.cells, plan.bins) == (None, None, None, None)
    assert (plan.local.rows, plan.local.reason, plan.local.most_rows) == (rows, reason, 120)
    assert (plan.local.sampled, plan.local.samples_to_scan) == (120, 1)
    assert plan.local.distinct == len({tuple(row.values()) for row in TABLE.select(QIDS).to_pylist()}) / 120
    again = make_plan(load_job(job))
    assert again.local == plan.local.model_copy(update={"samples_to_scan": 0})
    assert not (tmp_path / "releases").exists()
    flow = METHODS[method["name"]].flow.load()
    done = getattr(flow, "fn", flow)(job, ())
    manifest, found = done.manifest, done.untold.search
    made = found["fragments"] + found["merged"] if plan.local.parted else found.get("fragments", 1)
    assert (made, "sampled" in found) == (plan.local.fragments, plan.local.parted)
    assert plan.release == manifest.release


@pytest.mark.ci
@pytest.mark.parametrize(("method", "said"), [({}, True), ({"refused": "next"}, False), ({"mode": "relaxed"}, False)], ids=str)
def test_a_plan_tells_what_to_write_where_l_keeps_classes_whole(tmp_path: Path, method: dict, said: bool) -> None:
    """The first column is the better one to cut by and tells the secret; the second does not."""
    rows = [(half, other, f"secret {half}") for half in range(2) for other in range(200) for _ in range(2)]
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(("half", "other", "secret"))})
    qids = [{"name": "half", "hierarchy": {"widths": [2]}}, {"name": "other", "hierarchy": {"widths": [100]}}]
    columns, privacy = {"quasi_identifiers": qids, "sensitive": ["secret"]}, {"k": 2, "l": {"secret": {"distinct": 2}}}
    job = people_job(tmp_path, table, method={"name": "mondrian", **method}, columns=columns, privacy=privacy, suppression={"limit": 0})
    plan = make_plan(load_job(job))
    assert plan.local
    written = StringIO()
    Console(file=written, width=300).print(plan_summary(plan))
    told = " ".join(written.getvalue().split())
    if said:
        assert plan.local.advice
        assert "A record of 800 sampled ones is in a class of 400 on average, where k asks for 2" in plan.local.advice
        assert "method.refused: next" in told
    else:
        assert plan.local.advice is None
        assert "where k asks" not in told


def test_a_plan_says_why_memory_asks_for_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CELLS_BYTES_PER_ROW, 1_000_000)
    plan = make_plan(load_job(people_job(tmp_path, TABLE, method={"name": "mondrian", "fragments": {"sample": 1}}, memory="64MB")))
    assert plan.local
    assert plan.local.fragments > 1
    assert plan.local.needed > plan.memory
    written = StringIO()
    Console(file=written, width=300).print(plan_summary(plan))
    said = " ".join(written.getvalue().split())
    assert f"fragments {plan.local.fragments}, each of {plan.local.most_records} records at most" in said
    assert "(all at once do not fit the memory)" in said
    assert "lattice" not in said


def test_a_plan_stops_where_the_run_would(tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, method={"name": "mondrian"}, privacy={"k": 3, "l": {"disease": {"distinct": 9}}})
    with pytest.raises(PrivacyError, match=r"All records in one class would not keep .*privacy\.l"):
        make_plan(load_job(job))
