"""Where a job names persons, ``skald plan`` tells how many there are and which of them stand out, as a plain count does."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from flows.terminal.plans import plan_summary
from schemas.errors.base import PrivacyError
from schemas.job.job import load_job
from tasks.counting import uniqueness
from tasks.planning.plan import make_plan
from tests.conftest import Anonymise, CommandLine
from tests.flows.lattice.test_persons import QIDS, TABLE, WHOSE, K, columns, job
from tests.house.replaced import CODING_WORD


def exposed(names: list[str]) -> tuple[int, int, int]:
    """Persons with a record in a class of one person, those with one in a class of fewer than k, and the records of these classes."""
    rows = [tuple(row[name] for name in names) for row in TABLE.select(names).to_pylist()] if names else [()] * len(TABLE)
    who: dict[tuple[object, ...], set[int]] = {}
    for row, person in zip(rows, WHOSE, strict=True):
        who.setdefault(row, set()).update([] if person is None else [person])
    alone, below = (set().union(*(mine for mine in who.values() if len(mine) < most)) for most in (2, K))
    mine = [row for row, person in zip(rows, WHOSE, strict=True) if person is not None and len(who[row]) < K]
    return len(alone), len(below), len(mine)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("word", [1 << 62, 40], ids=["one word", "several words"])
@pytest.mark.parametrize("settings", [[], ["chunk_rows=70"], ["privacy.l={disease: {distinct: 2}}", "chunk_rows=70"]])
def test_who_stands_out_is_what_a_plain_count_of_persons_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str], word: int
) -> None:
    monkeypatch.setattr(CODING_WORD, word)
    plan = make_plan(load_job(job(tmp_path, row_group=70), settings))
    counts = Counter(person for person in WHOSE if person is not None)
    assert plan.persons is not None
    assert (plan.persons.persons, plan.persons.most_records) == (len(counts), max(counts.values()))
    assert plan.exposed is not None
    assert (plan.exposed.unique, plan.exposed.below_k, plan.exposed.records) == exposed(QIDS)
    for qid in plan.qids:
        assert qid.without is not None
        without = qid.without.unique, qid.without.below_k, qid.without.records
        assert without == exposed([name for name in QIDS if name != qid.name])


@pytest.mark.ci
def test_a_run_tells_the_risk_of_its_plan(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path)
    plan = make_plan(load_job(path))
    assert anonymise(path).untold.risk == plan.risk


def test_persons_are_told_even_where_columns_are_too_many_to_leave_out_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniqueness, "MOST_PAIRS", 10)
    plan = make_plan(load_job(job(tmp_path)))
    assert plan.exposed is not None
    assert (plan.exposed.unique, plan.exposed.below_k, plan.exposed.records) == exposed(QIDS)
    assert not any(qid.without for qid in plan.qids)
    assert "too many combinations" in plan.not_counted


def test_a_plan_speaks_of_persons_and_of_records_where_it_means_them(direct: CommandLine) -> None:
    said = " ".join(direct("plan", job(direct.folder)).stdout.split())
    unique, below, records = exposed(QIDS)
    people = len(set(WHOSE) - {None})
    assert f"unique persons {unique} ({unique / people:.2%})" in said
    assert f"in classes below k {below} ({below / people:.2%}), with {records} records ({records / len(TABLE):.2%})" in said
    assert f"k-anonymity ≥ {K} persons" in said
    assert "unique records" not in said


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["skald", "mondrian", "kmember"])
def test_a_plan_says_that_no_record_names_a_person_and_a_run_is_refused(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    nobody = TABLE.set_column(TABLE.schema.get_field_index("person"), "person", pa.nulls(len(TABLE), TABLE["person"].type))
    path = job(tmp_path, nobody, method={"name": method})
    plan = make_plan(load_job(path))
    assert plan.persons is not None
    assert plan.persons.persons == 0
    written = StringIO()
    Console(file=written, width=300).print(plan_summary(plan))
    said = " ".join(written.getvalue().split())
    assert "No record names a person, and k counts persons: a run is refused." in said
    assert "Every combination" not in said
    with pytest.raises(PrivacyError, match=f"k = {K} cannot be met by 0 persons"):
        anonymise(path)


def test_a_plan_warns_of_identifiers_that_repeat(direct: CommandLine) -> None:
    path = job(direct.folder, columns=columns(person=[]))
    assert "repeat, with so many records for each value" in " ".join(direct("plan", path).stdout.split())
    assert "repeat" not in direct("plan", path, "--quick").stdout
