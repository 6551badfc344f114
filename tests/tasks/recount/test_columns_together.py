"""Which columns are counted together, and what is said of each model, follows from the job and from what is published."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.recount.shares import ShareSpread
from schemas.job.job import Job
from tasks.recount.people import columns_of_job, count_together_of_people
from tasks.recount.spreads import spread_faults
from tests.jobs import job_of

SSN: dict[str, Any] = {"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}}}}


def job(**columns: Any) -> Job:
    qids = [{"name": "age", "hierarchy": {"widths": [10]}}]
    said = {"quasi_identifiers": qids, "identifiers": [SSN], "sensitive": ["disease"], "insensitive": ["note", "score"]}
    return Job.model_validate(job_of(columns=said | columns))


def test_what_is_published_is_told_apart_by_what_the_job_says_of_it() -> None:
    published = ["age", "disease", "note", "score", "ssn"]
    rows: Any = SimpleNamespace(types=lambda _side: dict.fromkeys(published, "VARCHAR"))
    assert columns_of_job(job(), rows) == {"insensitive": ["note", "score"], "sensitive": ["disease"], "pseudonyms": ["ssn"]}
    published.remove("ssn")
    assert columns_of_job(job(), rows) == {"insensitive": ["note", "score"], "sensitive": ["disease"]}


def test_persons_are_counted_together_only_where_they_are_named() -> None:
    nothing: Any = None
    files: Any = object()
    assert count_together_of_people(job(), nothing, files) == {}


def test_each_model_is_said_to_be_broken_by_its_own_classes() -> None:
    privacy = {"k": 2, "l": {"disease": {"distinct": 2}}, "t": {"disease": {"t": 0.5}}}
    qids = [{"name": "age", "hierarchy": {"widths": [10]}}]
    promised = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["disease"]}, privacy=privacy))

    def faults(*spreads: ShareSpread, unexpected: int = 0) -> tuple[list[str], Any, list[str]]:
        classes: Any = SimpleNamespace(unexpected={"disease": unexpected}, spreads=spreads)
        return spread_faults(promised, classes, by_people=False)

    good, near = ShareSpread(0, 9, 3.0), ShareSpread(0, 9, 0.25)
    assert faults(good, near) == ([], {"l": {"disease": 3.0}, "t": {"disease": 0.25}}, [])
    [broken] = faults(ShareSpread(4, 9, 1.0), ShareSpread(0, 9, None))[0]
    assert broken.startswith("4 of 9 classes ")
    assert faults(good, ShareSpread(0, 9, float("inf")))[1]["t"] == {"disease": 0.0}
    [held, values] = faults(good, ShareSpread(0, 9, 0.25, broken_by_holders=2), unexpected=3)[0][::-1]
    assert held == "in 2 of 9 classes too many persons hold the same value of 'disease' to keep the t that the job promises"
    assert values.startswith("in 3 of the classes the values of 'disease' are not those")
