"""What a job says about Mondrian is read strictly, and what does not fit is told with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import JobError
from schemas.job.job import job_digest, load_job
from schemas.job.record_methods import MondrianMethod
from tests.jobs import job_of, write_job


def method(tmp_path: Path, parts: dict[str, Any], **job: Any) -> MondrianMethod:
    found = load_job(write_job(tmp_path, job_of(method={"name": "mondrian"} | parts, **job))).method
    assert isinstance(found, MondrianMethod)
    return found


def test_what_is_left_out_has_its_usual_value(tmp_path: Path) -> None:
    found = method(tmp_path, {})
    assert (found.mode, found.score, found.spans) == ("strict", "representativity", "dataset")
    assert (found.fragments.count, found.fragments.cut, found.way_of("age")) == (1, "multidimensional", None)


def test_generalisation_is_one_for_all_or_one_for_each(tmp_path: Path) -> None:
    assert method(tmp_path, {"generalisation": "set"}).way_of("age") == "set"
    found = method(tmp_path, {"generalisation": {"zip": "prefix"}})
    assert (found.way_of("zip"), found.way_of("age")) == ("prefix", None)


@pytest.mark.parametrize(
    ("parts", "job", "said"),
    [
        ({"generalisation": "prefx"}, {}, "did you mean 'prefix'"),
        ({"generalisation": {"zipp": "prefix"}}, {}, "'zipp' is no quasi-identifier (did you mean 'zip'?)"),
        ({"generalisation": {"zip": "pre"}}, {}, "generalisation"),
        ({"score": "ncp", "mode": "relaxed"}, {}, "only mode: strict goes with it"),
        ({"generalisation": "set"}, {"intervals": "bounds"}, "'age' is published as bounds"),
        ({"fragments": {"sample": 0}}, {}, "above 0 and at most 1"),
        ({"fragments": {"count": 0}}, {}, "count"),
        ({"scores": "ncp"}, {}, "did you mean 'score'"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, parts: dict[str, Any], job: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as error:
        method(tmp_path, parts, **job)
    assert said in str(error.value)


@pytest.mark.parametrize("ways", [["interval"], {"age": ["set"]}, {"age": {"set": 1}}, {"zip": "prefix", "age": [["set"]]}, 3], ids=str)
@pytest.mark.parametrize("name", ["mondrian", "kmember"])
def test_ways_that_are_no_text_are_told_alike_whatever_else_the_job_says(tmp_path: Path, name: str, ways: Any) -> None:
    def told(**parts: Any) -> tuple[str, ...]:
        with pytest.raises(JobError) as error:
            load_job(write_job(tmp_path, job_of(method={"name": name, "generalisation": ways}, **parts)))
        return error.value.faults

    columns = job_of()["columns"]
    [age] = [qid for qid in columns["quasi_identifiers"] if qid["name"] == "age"]
    age["hierarchy"]["top"] = 90
    [fault] = told()
    assert fault.startswith("method.generalisation: must be 'hierarchy', 'prefix', 'set' or 'interval'")
    assert told(columns=columns) == told(intervals="bounds") == (fault,)


def test_settings_that_change_classes_change_the_digest(tmp_path: Path) -> None:
    jobs = [{}, {"score": "ncp"}, {"mode": "relaxed"}, {"fragments": {"seed": 1}}, {"generalisation": {"zip": "prefix"}}]
    loaded = [load_job(write_job(tmp_path, job_of(method={"name": "mondrian"} | parts))) for parts in jobs]
    assert len({job_digest(job) for job in loaded}) == len(jobs)
