"""Jobs of several tables: their tree, and all that is wrong with them at once."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import JobError
from schemas.job.job import load_job
from schemas.reading.job_files import is_of_tables
from schemas.reading.regular_files import given_job
from schemas.relational.fitting import TableTree, tree_of
from schemas.relational.table_jobs import nearest_of_tables, persons_job, table_job, tables_digest, unit_key_words
from schemas.relational.tables_job import TablesJob, load_tables_job
from tests.flows.relational.hospital import JOB
from tests.jobs import job_of


def loaded(job: dict[str, Any], *settings: str) -> TablesJob:
    return load_tables_job(given_job(job, Path.cwd()), settings)


def faults_of(job: dict[str, Any]) -> list[str]:
    with pytest.raises(JobError) as raised:
        loaded(job)
    return list(raised.value.faults)


def test_a_table_hangs_from_the_nearest_that_it_refers_to() -> None:
    tree, faults = tree_of({"c": ["a", "b"], "b": ["a"], "a": [], "d": ["a"], "e": ["c"]})
    assert not faults
    assert tree == TableTree("a", {"a": (), "b": ("a",), "d": ("a",), "c": ("a", "b"), "e": ("a", "b", "c")})
    assert (tree.branches, tree.branch_tables("b"), tree.tables_below("b")) == (["b", "d"], ["b", "c", "e"], ["c", "e"])


@pytest.mark.parametrize(
    ("references", "words"),
    [
        ({"a": ["b"], "b": ["a"]}, "every table refers to another"),
        ({"a": [], "b": ["c"], "c": ["b"]}, "lead in a circle"),
        ({"a": [], "b": []}, "one alone can be the unit"),
        ({"a": [], "b": ["a", "a"]}, "a row would be of several persons"),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, "of which none hangs from the other"),
        ({"a": [], "b": ["b"]}, "refers to itself"),
        ({"alpha": [], "b": ["alhpa"]}, "did you mean 'alpha'?"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(references: dict[str, list[str]], words: str) -> None:
    tree, faults = tree_of(references)
    assert tree is None
    assert [words in fault for fault in faults] == [True]


def test_a_version_in_quotes_is_the_only_fault_of_a_job_of_several_tables() -> None:
    job = given_job(JOB | {"version": "2"}, Path.cwd())
    assert is_of_tables(job)
    with pytest.raises(JobError) as raised:
        load_tables_job(job)
    assert raised.value.faults == ("version: must be 1 (one table) or 2 (several tables), without quotes",)


def test_all_that_is_wrong_is_told_at_once() -> None:
    job = deepcopy(JOB)
    del job["tables"]["person"]["key"]
    job["tables"]["visit"]["columns"]["person"] = ["person_id"]
    job["tables"]["condition"]["columns"]["withheld"] = ["visit_id"]
    job["suppression"]["limits"] = 1
    job["tables"]["visit"]["most_records"] = 5
    job["tables"]["visit"]["columns"]["most_record"] = 5
    treatment = {"hash": {"key": {"env": "KEY"}}}
    job["tables"]["visit"]["columns"]["identifiers"] = [{"name": "visit_id", "treatment": treatment}]
    told = faults_of(job)
    for words in (
        "tables.person: has no key",
        "is for jobs of one table",
        "'visit_id' is of the key",
        "did you mean 'limit'?",
        "tables.visit.most_records: unknown key; known here: 'source', ",
        "most_record: unknown key; known here: 'identifiers', 'withheld', 'quasi_identifiers', 'sensitive' and 'insensitive'",
        "'visit_id' has a treatment; only the unit's key",
    ):
        assert any(words in fault for fault in told), words


@pytest.mark.parametrize("kind", [None, "mask", "hash"])
def test_the_key_of_the_unit_lasts_by_what_names_rows(kind: str | None) -> None:
    job, settings = deepcopy(JOB), {"mask": {"keep": 1}, "hash": {"key": {"env": "KEY"}}}
    treatment = {kind: settings[kind]} if kind else "drop"
    job["tables"]["person"]["columns"]["identifiers"] = [{"name": "person_id", "treatment": treatment}]
    if kind == "hash":
        assert unit_key_words(loaded(job)) == {"person_id": "keyed hash (HMAC-SHA-256)"}
        assert persons_job(loaded(job)).columns.links == [("person_id",)]
        assert table_job(loaded(job), "person").columns.pseudonyms == []
    else:
        [fault] = faults_of(job)
        assert ("published by mask, which does not name rows" if kind else "is published as pseudonyms; leave it out here") in fault


@pytest.mark.parametrize(
    ("name", "meant"), [("vist.ward", "visit.ward"), ("ward", "visit.ward"), ("PERSON.Age", "person.age"), ("xyz", "")]
)
def test_a_column_of_several_tables_is_suggested_with_its_table(name: str, meant: str) -> None:
    assert nearest_of_tables(name, loaded(JOB), "quasi_identifiers") == (f" (did you mean '{meant}'?)" if meant else "")


def test_all_tables_are_one_of_persons() -> None:
    job = loaded(JOB | {"privacy": {"k": 4, "l": {"condition": {"icd": {"distinct": 2}}}}, "overlaps": "refuse"})
    of_persons = persons_job(job)
    assert [qid.name for qid in of_persons.columns.quasi_identifiers] == ["age", "visit.ward", "condition.chronic"]
    assert of_persons.columns.sensitive == ["income", "condition.icd"]
    assert (list(of_persons.privacy.l), of_persons.overlaps, of_persons.columns.person) == (["condition.icd"], "refuse", ["person_id"])
    assert tables_digest(job) == tables_digest(loaded(JOB | {"privacy": {"k": 4, "l": {"condition": {"icd": {"distinct": 2}}}}}))


def test_what_is_made_of_values_of_any_table_is_known_of_persons() -> None:
    job = deepcopy(JOB)
    job["tables"]["person"]["columns"]["sensitive"] = [{"name": "income", "publish": {"round": 10}}]
    job["tables"]["condition"]["columns"]["sensitive"] = [{"name": "icd", "publish": "shared", "normalise": ["case"]}]
    of_persons = persons_job(loaded(job)).columns
    assert list(of_persons.ways) == ["income", "condition.icd"]
    assert of_persons.normalised == {"condition.icd": ["case"]}


@pytest.mark.parametrize("name", ["people", "tables"])
def test_a_job_of_one_table_with_the_version_of_several_is_told_that_it_has_no_tables(name: str) -> None:
    # The word alone makes no job of several tables.
    job = given_job(job_of(name=name, version=2), Path.cwd())
    assert not is_of_tables(job)
    with pytest.raises(JobError) as refused:
        load_job(job)
    assert refused.value.faults == (
        "version: 2 is for jobs of several tables, and this one has no 'tables'; write 1, or list its tables under 'tables'",
    )


def test_settings_replace_those_of_the_file_and_versions_are_told_apart() -> None:
    job = given_job(JOB, Path.cwd())
    assert loaded(JOB, "privacy.k=3").privacy.k == 3
    assert is_of_tables(job)
    assert not is_of_tables(given_job(JOB | {"version": 1}, Path.cwd()))
    with pytest.raises(JobError, match="a job of several tables, which lattice does not take"):
        load_job(job)
