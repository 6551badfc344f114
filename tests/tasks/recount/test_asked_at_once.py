"""What is asked of single columns of the files is asked for at once, of each column that it concerns."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.groups import Groups
from schemas.job.job import Job
from tasks.recount import people, verdict
from tasks.recount.people import one_values
from tests.jobs import job_of

HIDING: dict[str, Any] = {"name": "age", "hierarchy": {"widths": [10], "top": 90}}
PLAIN: dict[str, Any] = {"name": "zip", "hierarchy": {"prefix": [1]}}
SSN: dict[str, Any] = {"name": "ssn", "treatment": {"hash": {"key": {"env": "KEY"}}}}


def asked(*qids: dict[str, Any], identifiers: list[Any]) -> list[str]:
    columns = {"quasi_identifiers": list(qids), "identifiers": identifiers, "sensitive": ["disease"]}
    expected: list[tuple[str, list[Groups]]] = []
    rows: Any = SimpleNamespace(release="release", expect=lambda side, groups: expected.append((side, groups)))
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


def test_classes_of_one_value_are_counted_of_each_sensitive_column_whose_values_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"quasi_identifiers": [PLAIN], "identifiers": [], "person": ["person"], "sensitive": ["s", "t", "u"], "insensitive": ["v"]}
    job, files, stated = Job.model_validate(job_of(columns=columns)), ([], []), list[Any]()
    monkeypatch.setattr(people, "person_values_known", lambda *given: ["t", "v", "s"] if given == (job, files) else 1 / 0)
    monkeypatch.setattr(people, "_value", lambda of, column: f"value of {column}" if of is job else 1 / 0)
    monkeypatch.setattr(people, "one_value_sql", lambda *given: stated.append(given) or f"statement {len(stated)}")
    counts = {"statement 1": (3, 17), "statement 2": (0, 0)}
    connection: Any = SimpleNamespace(execute=lambda statement: SimpleNamespace(fetchall=lambda: [counts[statement]]))
    assert one_values(connection, job, files) == {"t": (3, 17), "s": (0, 0)}
    assert stated == [("value of t",), ("value of s",)]


@pytest.mark.parametrize("kept", [None, 0, 1, 2])
def test_values_of_persons_are_known_of_as_many_columns_as_their_files_have(tmp_path: Path, kept: int | None) -> None:
    columns = {"quasi_identifiers": [PLAIN], "person": ["person"], "sensitive": ["s", "t"]}
    job, path = Job.model_validate(job_of(columns=columns, privacy={"k": 2, "l": {"t": {"distinct": 2}}})), tmp_path / "people.parquet"
    pq.write_table(pa.table({"class": [0], "person": [1]} | {f"value_{number}": ["x"] for number in range(kept or 0)}), path)
    files = [path] if kept is not None else []
    assert people.person_values_known(job, (files, [path])) == ["t", "s"][: kept or 0]
