"""Values of another form than a job has, and keys in a wrong place: the message shows the form, or names the place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.errors.base import JobError
from schemas.job.job import Job
from schemas.job.policy import Policy
from schemas.reading.faults import fault_lines, field_model, key_locations, locations_of_key
from schemas.reading.job_files import parse
from schemas.reading.model import StrictModel
from schemas.relational.tables_job import TablesJob, load_tables_job
from tests.schemas.job.test_job import SHORT, write
from tests.schemas.reading.test_faults import faults_of, with_role

TABLES = """
version: 2
name: several
tables:
  person: {source: {path: a.csv}, key: id, columns: {quasi_identifiers: [{name: age, hierarchy: {widths: [5]}}]}}
  visit: {source: {path: b.csv}, references: {id: person}, columns: {sensitive: [icd]}}
privacy: {k: 2}
memory: 64MB
target: out
"""


LONG_FORM = "must be a mapping (key: value), as in l: {visit: {diagnosis: {distinct: 3}}}"


def faults_of_tables(folder: Path, setting: str) -> tuple[str, ...]:
    """Return the faults of a job of several tables with a setting that it must not have."""
    with pytest.raises(JobError) as caught:
        load_tables_job(write(folder, TABLES), [setting])
    return caught.value.faults


def models_below(model: type[StrictModel]) -> Iterator[type[StrictModel]]:
    """Yield a model and all models of its fields."""
    yield model
    for field in model.model_fields.values():
        inner, choice, _ = field_model(field)
        for one in [*([inner] if inner else []), *(choice.models.values() if choice else ())]:
            yield from models_below(one)


MODELS = sorted({*models_below(Job), *models_below(TablesJob)}, key=lambda model: model.__name__)


def lines_of(model: type[StrictModel], key: str, value: object) -> list[str]:
    """Return the faults of one field's value, with those of other fields left out."""
    try:
        model.model_validate({key: value})
    except ValidationError as error:
        return fault_lines([one for one in error.errors(include_url=False) if one["loc"][:1] == (key,)], model, {})
    return []


@pytest.mark.parametrize("wrong", [-7.5, [[]], "q q"])
def test_every_field_says_in_our_words_what_it_takes_and_shows_a_mapping(wrong: Any) -> None:
    told = [
        (model.__name__, line)
        for model in MODELS
        for name, field in model.model_fields.items()
        for line in lines_of(model, field.alias or name, wrong)
    ]
    assert len(told) > 100
    assert not [one for one in told if "must be a mapping (" in one[1] and ", as in " not in one[1]]
    assert not [one for one in told if "has a wrong value" in one[1] or "literal[" in one[1] or "constrained" in one[1]]


def test_every_example_is_taken_where_it_is_shown() -> None:
    shown = [(model, field, example) for model in MODELS for field, example in model.examples.items()]
    assert len(shown) > 20
    for model, field, example in shown:
        data, unread = parse(example)
        assert isinstance(data, dict)
        inside = data if field in data else next(iter(data.values()))
        assert not unread
        assert lines_of(model, field, inside[field]) == [], example


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ("[dx, {name: income, publish: {round: -5}}]", "sensitive[1].publish.round: must be more than 0, as in publish: {round: 5}"),
        ("[{name: income, publish: {microaggregate: 1}}]", "must be at least 2, as in publish: {microaggregate: 10}"),
        ("[{name: income, publish: {}}]", "sensitive[0].publish: must say one of round, top or bottom (or both), and"),
        ("[{name: income, publish: {rounds: 5}}]", "sensitive[0].publish.rounds: unknown key (did you mean 'round'?)"),
        ("{income: {round: 5}}", "must be a list of column names or of entries, as in [diagnosis, {name: income, publish: shared}]"),
    ],
)
def test_an_entry_of_a_role_is_told_with_its_position_and_form(tmp_path: Path, entries: str, told: str) -> None:
    assert any(told in fault for fault in faults_of(tmp_path, with_role(f"sensitive: {entries}")))


@pytest.mark.parametrize(
    ("privacy", "told"),
    [
        ("l: {dx: 3}", "privacy.l.dx: must be a mapping (key: value), as in l: {diagnosis: {distinct: 3}}"),
        ("l: {dx: {l: 3}}", "privacy.l.dx: must say one of distinct, entropy and recursive, as in {distinct: 3}"),
        ("t: {dx: 0.2}", "privacy.t.dx: must be a mapping (key: value), as in t: {diagnosis: {t: 0.2}}"),
    ],
)
def test_short_forms_of_l_and_t_are_answered_with_the_long_one(tmp_path: Path, privacy: str, told: str) -> None:
    [fault] = faults_of(tmp_path, with_role("sensitive: [dx]").replace("{k: 2}", f"{{k: 2, {privacy}}}"))
    assert fault == told


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (
            "privacy.l={visit: {icd: 3}}",
            "privacy.l.visit.icd: must be a mapping (key: value), as in l: {visit: {diagnosis: {distinct: 3}}}",
        ),
        ("privacy.l={visit: {icd: {distinct: x}}}", "privacy.l.visit.icd.distinct: must be a whole number, without quotes"),
        ("privacy.l={visit: {icd: {distinct: 2, nul: x}}}", "privacy.l.visit.icd.nul: unknown key (did you mean 'nulls'?)"),
        ("privacy.knows=3", "privacy.knows: must be the word all, or the number of rows, as in knows: {rows: 2}"),
        ("privacy.knows.rows=9", "privacy.knows.rows: must be at most 4"),
        ("tables.visit.orphans=drop", "tables.visit.orphans: unknown key here; it belongs at the top level, beside 'version'"),
        ("suppression.orphans=drop", "suppression.orphans: unknown key here; it belongs at the top level, beside 'version'"),
        ("tables.visit.knows=all", "tables.visit.knows: unknown key here; it belongs under 'privacy'"),
        ("tables.visit.path=x", "tables.visit.path: unknown key here; it belongs under 'tables.visit.source'"),
        ("tables.visit.columns.rows={}", "tables.visit.columns.rows: unknown key here; it belongs under 'tables.visit'"),
        ("columns={}", "columns: unknown key here; it belongs under 'tables.NAME'"),
        ("privacy.limit=0", "privacy.limit: unknown key here; it belongs under 'suppression'"),
    ],
)
def test_several_tables_tell_the_place_of_a_fault_and_of_a_key(tmp_path: Path, setting: str, told: str) -> None:
    [fault] = faults_of_tables(tmp_path, setting)
    assert fault == f"{told} (given by --set {setting.partition('=')[0]})"


MISPLACED = {
    "seed": "it belongs under 'attacks' or under 'method' of 'rayden' or 'canon'",
    "limit": "it belongs under 'suppression'",
    "k": "it belongs under 'privacy'",
    "publish": "it belongs in an entry of 'columns.sensitive' or in an entry of 'columns.insensitive'",
}


@pytest.mark.parametrize("key", MISPLACED)
def test_a_key_at_the_top_that_belongs_elsewhere_is_told_where(tmp_path: Path, key: str) -> None:
    [fault] = faults_of(tmp_path, SHORT + f"{key}: 3\n")
    places = fault.partition("it belongs ")[2].split(" or ")
    assert fault.startswith(f"{key}: unknown key here; ")
    assert sorted(places) == sorted(MISPLACED[key].removeprefix("it belongs ").split(" or "))


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ("{name: skald}", "{name: skald, score: ncp}", "method.score: unknown key here; it belongs to 'mondrian'"),
        ("{widths: [5, 10]}", "{widths: [5, 10], sparse: hipaa}", "hierarchy.sparse: unknown key here; it belongs to 'prefix'"),
        ("memory: 64MB", "memory: 64MB\nsuppression: {target: x}", "suppression.target: unknown key here; it belongs at the top level"),
    ],
)
def test_a_key_of_another_kind_or_place_names_it(tmp_path: Path, wrong: str, right: str, told: str) -> None:
    [fault] = faults_of(tmp_path, SHORT.replace(wrong, right))
    assert told in fault


@pytest.mark.parametrize("root", [Job, TablesJob, Policy])
def test_a_key_of_the_top_level_alone_belongs_there_from_anywhere(root: type[StrictModel]) -> None:
    places: dict[str, set[tuple[str, ...]]] = {}
    for key, place in key_locations(root):
        places.setdefault(key, set()).add(place.steps)
    top = sorted(key for key, steps in places.items() if steps == {()})
    assert {"version", "attacks"} <= set(top) <= {field.alias or name for name, field in root.model_fields.items()}
    for key in top[:4]:
        assert locations_of_key(key, ("privacy", "l"), root) == ["at the top level, beside 'version'"]
    assert locations_of_key("no key of any job", ("privacy",), root) == []
