"""What is asked of single columns of the files is asked for at once, of each column that it concerns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.recount.groups import Groups, RecordRelation
from schemas.job.job import Job
from tasks.recount import verdict
from tests.jobs import job_of

HIDING: dict[str, Any] = {"name": "age", "hierarchy": {"widths": [10], "top": 90}}
PLAIN: dict[str, Any] = {"name": "zip", "hierarchy": {"prefix": [1]}}
SSN: dict[str, Any] = {"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}}}}


def asked(*qids: dict[str, Any], identifiers: list[Any]) -> list[str]:
    columns = {"quasi_identifiers": list(qids), "identifiers": identifiers, "sensitive": ["disease"]}
    expected: list[tuple[str, list[Groups]]] = []
    rows: Any = SimpleNamespace(
        release="release", countable_records=RecordRelation, expect=lambda side, groups: expected.append((side, groups))
    )
    verdict._expect(Job.model_validate(job_of(columns=columns)), rows)
    [(side, groups)] = expected
    assert side == "release"
    return [one.sql for one in groups]


def test_labels_of_columns_that_hide_values_and_the_form_of_pseudonyms_are_asked_for() -> None:
    assert asked(PLAIN, identifiers=["person"]) == []
    [labels] = asked(PLAIN, HIDING, identifiers=["person"])
    assert '"age"' in labels
    assert '"zip"' not in labels
    *_, form = asked(PLAIN, HIDING, identifiers=["person", SSN])
    assert '"ssn"' in form
    assert len(asked(PLAIN, identifiers=[SSN])) == 1
