"""Who a record belongs to is said by one column or several, and never where k would go on counting records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.errors.base import JobError
from schemas.job.job import Job, job_digest, load_job
from schemas.job.method import METHODS
from tests.house.replaced import FITTING_METHODS
from tests.schemas.job.test_job import SHORT


def loaded(folder: Path, person: object, **changes: Any) -> Job:
    data = yaml.safe_load(SHORT)
    data["columns"] |= {"identifiers": ["visitor"], "sensitive": ["illness"], "person": person}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(data | changes))
    return load_job(path)


@pytest.mark.parametrize(
    ("person", "columns"), [("visitor", ["visitor"]), (["site", "visitor", "year"], ["site", "visitor", "year"]), ([], [])]
)
def test_a_person_is_one_column_or_several(tmp_path: Path, person: object, columns: list[str]) -> None:
    job = loaded(tmp_path, person)
    assert job.columns.person == columns
    assert "person" not in job.columns.roles().values()


def test_one_column_alone_and_in_a_list_are_the_same_job_and_naming_none_changes_no_digest(tmp_path: Path) -> None:
    alone, listed, nobody = (loaded(tmp_path, person) for person in ("visitor", ["visitor"], []))
    assert job_digest(alone) == job_digest(listed) != job_digest(nobody)
    assert "person" not in nobody.canonical()["columns"]


@pytest.mark.parametrize("person", [7, "", ["visitor", "visitor"], ["visitor", None], {"visitor": 1}, "illness", ["illness"]])
def test_what_is_no_key_or_would_be_published_is_refused(tmp_path: Path, person: object) -> None:
    with pytest.raises(JobError, match="person"):
        loaded(tmp_path, person)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_counts_persons_and_one_that_would_count_records_refuses_them(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loaded(tmp_path, "visitor", method={"name": method}).columns.person == ["visitor"]
    monkeypatch.setattr(FITTING_METHODS, {method: replace(METHODS[method], counts_persons=False)})
    with pytest.raises(JobError, match="does not count persons"):
        loaded(tmp_path, "visitor", method={"name": method})


@pytest.mark.parametrize("fragments", [{"count": 2}, {"count": 8, "cut": "quantile"}])
def test_what_unions_of_classes_of_persons_may_break_is_not_promised_in_fragments(tmp_path: Path, fragments: dict[str, Any]) -> None:
    method, promised = {"name": "mondrian", "fragments": fragments}, {"k": 2, "l": {"illness": {"entropy": 2}}}
    with pytest.raises(JobError, match=r"method\.fragments: privacy\.l\.illness"):
        loaded(tmp_path, "visitor", method=method, privacy=promised)
    assert loaded(tmp_path, "visitor", method=method, privacy={"k": 2, "l": {"illness": {"distinct": 2}}}).columns.person
