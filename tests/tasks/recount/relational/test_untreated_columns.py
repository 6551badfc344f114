"""Which columns of several tables are published untreated, and what is carried to count them, follows from the job and the files."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from core.recount.histories import ReadTable
from schemas.relational.tables_job import load_tables_job
from tasks.recount.untreated_tables import UntreatedTables
from tests.flows.relational.hospital import JOB, hospital_job

COLUMNS = {
    "person": ["person_id", "age", "income", "note"],
    "visit": ["visit_id", "person_id", "ward", "nights"],
    "condition": ["person_id", "visit_id", "chronic", "icd"],
}


def untreated(folder: Path) -> UntreatedTables:
    """The hospital, where incomes are published in a way of their own and notes as they are."""
    described = deepcopy(JOB["tables"])
    described["person"]["columns"] |= {"sensitive": [{"name": "income", "publish": "shared"}], "insensitive": ["note"]}
    return UntreatedTables.of_job(load_tables_job(hospital_job(folder, {}, tables=described)), COLUMNS)


def test_columns_that_are_neither_keys_nor_treated_are_passed_and_those_not_sensitive_count_together(tmp_path: Path) -> None:
    found = untreated(tmp_path)
    assert found.passed == {"person": ["note"], "visit": ["nights"], "condition": ["icd"]}
    assert found.insensitive == {"person": ["note"], "visit": ["nights"], "condition": []}
    assert found.sensitive == {"person": ["income"], "visit": [], "condition": ["icd"]}


def test_rows_carry_their_untreated_columns_and_labels_where_these_are_counted_together(tmp_path: Path) -> None:
    found = untreated(tmp_path)
    person = ReadTable("person", "person", ('"age"',), ('"person_id"',), {}, ('"income"',))
    condition = ReadTable("condition", "condition", ('"chronic"',), (), {"person": ('"person_id"',)}, ('"icd"',))
    assert found.carried(person, is_unit=True).sensitive == ('"income"', '"note"', '"age"')
    assert found.carried(condition, is_unit=False).sensitive == ('"icd"', '"chronic"')
    # Who knows a row of another table may know the labels of its person.
    none = {"person": [], "visit": [], "condition": []}
    for kinds in ((none | {"visit": ["nights"]}, none), (none, none | {"visit": ["nights"]})):
        alone = UntreatedTables(found.passed, *kinds)
        assert alone.carried(person, is_unit=True).sensitive == ('"income"', '"note"', '"age"')
        assert alone.carried(person, is_unit=False).sensitive == ('"income"', '"note"')
    nothing = UntreatedTables({}, none, none)
    assert nothing.carried(person, is_unit=True) == person
