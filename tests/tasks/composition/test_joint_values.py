"""Values at risk in the joint classes of two releases are those that a look at every record finds, whoever promises them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Domain
from core.composition.joint_classes import THEIRS, RecordMatching, joined_records_sql
from core.composition.joint_figures import sets_table_sql
from core.units.digests import NOBODY, digests_of
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from tasks.composition import joint_values
from tasks.composition.joint_values import Promises, units_at_risk_by_values
from tasks.store.store import Store
from tests.core.composition.every_record import without_values
from tests.core.composition.test_joint_classes import Row, loaded, seen
from tests.jobs import job_of

BY_CONTENTS = RecordMatching(contents=True, persons=False, untreated=False, values=1, same=(0,))


def job_with(promised: dict[str, Any] | None) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2} | ({"l": {"s": promised}} if promised else {})))


def drawn_releases(seed: int) -> tuple[list[Row], list[Row]]:
    """Two releases of which half of the records are the same; what records are linked by holds their value."""
    drawn = np.random.default_rng(seed)

    def some(count: int) -> list[Row]:
        contents = [int(one) for one in drawn.integers(0, 1 << 62, count)]
        return [Row(one, int(drawn.integers(-1, 3)), False, 0, 0, one % 4) for one in contents]

    both, mine, theirs = some(12), some(5), some(4)
    return both + mine, [row._replace(group=int(drawn.integers(-1, 3))) for row in both] + theirs


def at_risk(
    job: Job, promises: Promises, both: tuple[list[Row], list[Row]], folder: Path, identity: RecordMatching = BY_CONTENTS
) -> int | None:
    with duckdb.connect() as database:
        loaded(database, *both)
        database.execute(joined_records_sql(identity))
        database.execute(sets_table_sql())
        return units_at_risk_by_values(database, job, promises, Store(folder), count_persons=False)


@pytest.mark.parametrize("mine", [None, {"distinct": 2}])
@pytest.mark.parametrize("theirs", [None, {"distinct": 3, "nulls": None}])
def test_values_at_risk_are_those_of_a_look_at_every_record(
    tmp_path: Path, mine: dict[str, Any] | None, theirs: dict[str, Any] | None
) -> None:
    least = max((one["distinct"] for one in (mine, theirs) if one), default=None)
    promises = Promises({"l": {"s": mine}} if mine else {}, {"l": {"s": theirs}} if theirs else {}, ("s",), None)
    counts = set()
    for seed in range(4):
        both = drawn_releases(seed)
        found = at_risk(job_with(mine), promises, both, tmp_path)
        sides = seen(both[0], "mine", BY_CONTENTS), seen(both[1], "theirs", BY_CONTENTS)
        assert found == (without_values(*sides, least) if least else None)
        counts.add(found)
    assert least is None or len(counts) > 1


@pytest.mark.parametrize("coarse", ["mine", "theirs"])
@pytest.mark.parametrize("promising", ["mine", "theirs", "both"])
def test_each_promise_is_of_what_its_own_release_publishes(tmp_path: Path, coarse: str, promising: str) -> None:
    """Of the values of one source one release publishes fewer different ones, as texts in lower case or rare ones as other."""
    said, identity = {"distinct": 2}, BY_CONTENTS._replace(same=())
    mine, theirs = ({"l": {"s": said}} if promising in {one, "both"} else {} for one in ("mine", "theirs"))
    promises, counts = Promises(mine, theirs, ("s",), None, (0,)), set()
    for seed in range(8):
        fine = [[row for row in side if row.value][:9] for side in drawn_releases(seed)]
        few = [[row._replace(value=1) for row in side] for side in fine]
        both = (few[0], fine[1]) if coarse == "mine" else (fine[0], few[1])
        found = at_risk(job_with(said if mine else None), promises, both, tmp_path, identity)
        seen_by = few if promising in {coarse, "both"} else fine
        sides = seen(seen_by[0], "mine", identity), seen(seen_by[1], "theirs", identity)
        assert found == without_values(*sides, 2)
        counts.add(found)
    assert max(counts) > 0


def test_what_both_promise_alike_is_asked_once_however_it_is_said() -> None:
    said, same = {"distinct": 2}, {"distinct": 2, "nulls": None}
    assert len(Promises({"l": {"s": said}}, {"l": {"s": same}}, ("s",), None).models_promised) == 1
    assert len(Promises({"l": {"s": said}}, {"l": {"s": same | {"nulls": "value"}}}, ("s",), None).models_promised) == 2
    assert len(Promises({"l": {"s": said}}, {"l": {"s": same}}, ("s",), None, (0,)).models_promised) == 2
    # What is compared with the whole source is asked of both sources, unless it is along an order.
    near = {"t": 0.2, "distance": "equal"}
    assert len(Promises({"t": {"s": near}}, {"t": {"s": near}}, ("s",), None).models_promised) == 2


def test_values_in_an_order_that_is_not_kept_are_not_measured(tmp_path: Path) -> None:
    near = {"t": 0.2, "distance": "ordered"}
    promises = Promises({"t": {"s": near}}, {}, ("s",), None)
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2, "t": {"s": near}}))
    with pytest.raises(UnmeasuredError, match="in no order that both have in common"):
        at_risk(job, promises, drawn_releases(0), tmp_path)


@pytest.mark.parametrize("nulls", [0, 1])
def test_an_order_of_values_is_that_of_the_domain_wherever_their_digests_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nulls: int
) -> None:
    own = Domain("s", pa.array(["a", "b", "c"]), np.array([1, 1, 1]), nulls)
    first, second, third = digests_of([own.values], 3)
    monkeypatch.setattr(joint_values, "_own_domain", lambda *_: own)
    near = {"t": 0.2, "distance": "ordered"}
    promises = Promises({"t": {"s": near}}, {}, ("s",), None)
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"]}
    job = Job.model_validate(job_of(columns=columns, privacy={"k": 2, "t": {"s": near}}))
    [(kind, *asked)] = promises.models_promised
    digests = np.array([third, first, second, *[NOBODY] * nulls], np.uint64)
    model: Any = joint_values._model(job, promises, kind, tuple(asked), digests, Store(tmp_path))
    assert (model.column, model.ranks.tolist()) == ("s", [2, 0, 1, 3][: 3 + nulls])
    for others in (digests[:-1], np.array([third, first, second, *[NOBODY] * (not nulls)], np.uint64)):
        with pytest.raises(UnmeasuredError):
            joint_values._model(job, promises, kind, tuple(asked), others, Store(tmp_path))
    # What the other promises in its own way is in the order of its own source.
    apart = Promises({"t": {"s": near}}, {"t": {"s": near | {"t": 0.3}}}, ("s",), None)
    [(_, *theirs)] = [one for one in apart.models_promised if one[3] == THEIRS]
    with pytest.raises(UnmeasuredError):
        joint_values._model(job, apart, kind, tuple(theirs), digests, Store(tmp_path))


def test_where_neither_release_publishes_a_value_none_is_at_risk(tmp_path: Path) -> None:
    said = {"distinct": 2}
    nothing: Any = None
    unknown = tuple([row._replace(value=nothing) for row in side] for side in drawn_releases(0))
    assert at_risk(job_with(said), Promises({"l": {"s": said}}, {}, ("s",), None), (unknown[0], unknown[1]), tmp_path) == 0


def test_values_of_joint_classes_are_measured_where_all_of_them_fit_into_memory(tmp_path: Path) -> None:
    """Each class of this release is a joint class, and holds two values and nulls."""
    row = Row(0, 0, False, 0, 0, 0)
    mine = [row._replace(content=number, group=number // 4, value=number % 3) for number in range(8)]
    theirs = [one._replace(group=0) for one in mine]
    promises, job = Promises({"l": {"s": {"distinct": 2}}}, {}, ("s",), None), job_with({"distinct": 2})
    counts = {(one.group, one.value) for one in mine}
    enough = len(counts) * joint_values.BYTES_PER_VALUE
    assert at_risk(job.model_copy(update={"memory": enough}), promises, (mine, theirs), tmp_path) == 0
    for less in (enough - 1, joint_values.BYTES_PER_VALUE):
        with pytest.raises(UnmeasuredError, match="memory"):
            at_risk(job.model_copy(update={"memory": less}), promises, (mine, theirs), tmp_path)
