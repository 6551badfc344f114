"""What several tables publish untreated is measured, told and counted in persons, and the rest takes in nothing that tells who they are."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.tables import tables
from schemas.errors.refusals import PassthroughError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.plan import plan_tables
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables

pytestmark = pytest.mark.ci
PERSONS = 100


def with_columns(source: dict[str, pa.Table], table: str, **columns: list[Any]) -> dict[str, pa.Table]:
    """Return tables of which one has more columns."""
    made = source[table]
    for name, values in columns.items():
        made = made.append_column(name, pa.array(values))
    return source | {table: made}


def spec_of(*rest: str, **roles: dict[str, Any]) -> dict[str, Any]:
    """Return the job's tables, of which some take in the rest and others have other roles."""
    made = deepcopy(JOB["tables"])
    for name in rest:
        made[name]["columns"]["insensitive"] = "rest"
    for name, columns in roles.items():
        made[name]["columns"] |= columns
    return made


def test_the_rest_of_no_table_takes_in_what_may_tell_who_people_are(tmp_path: Path) -> None:
    source = hospital_tables(PERSONS, 3)
    mails = [f"canary{number % 7}@example.org" for number in range(len(source["visit"]))]
    codes = [number * 37 for number in range(PERSONS)]
    source = with_columns(with_columns(source, "visit", contact=mails), "person", code=codes)
    path = hospital_job(tmp_path, source, tables=spec_of("person", "visit"))
    for command in (lambda: tables(path, ()), lambda: plan_tables(load_tables_job(path), quick=True)):
        with pytest.raises(PassthroughError) as refused:
            command()
        assert refused.value.exit_code == 2
        assert "2 columns" in str(refused.value)
        assert "'code' of 'person': nearly unique" in str(refused.value)
        assert "'contact' of 'visit': e-mail addresses" in str(refused.value)
        assert "canary" not in str(refused.value)
    assert not (tmp_path / "releases").exists()
    by_name = spec_of(visit={"insensitive": ["nights", "contact"]}, person={"insensitive": ["code"]})
    planned = plan_tables(load_tables_job(hospital_job(tmp_path / "named", source, tables=by_name)), quick=True)
    assert planned.tables["visit"].passthrough["contact"].reasons == ("e-mail addresses",)
    assert list(planned.tables["person"].passthrough) == ["income", "code"]


@pytest.mark.parametrize(("distinct", "refused"), [(0.95, True), (0.5, False)])
def test_values_of_a_table_below_are_compared_with_its_persons_and_not_with_its_rows(
    tmp_path: Path, distinct: float, refused: bool
) -> None:
    source = hospital_tables(PERSONS, 3)
    whose = source["visit"]["person_id"].to_pylist()
    having = sorted(set(whose))
    assert len(whose) > 1.2 * len(having) > 0
    # Each person's own value in all of the person's rows, so that no row is alone with one.
    numbers = [having.index(person) % int(distinct * len(having)) for person in whose]
    source = with_columns(source, "visit", place=[number * 3 for number in numbers])
    source["visit"] = pa.concat_tables([source["visit"], source["visit"].set_column(
        0, "visit_id", pa.array([f"w{number}" for number in range(len(whose))]))])  # fmt: skip
    path = hospital_job(tmp_path, source, tables=spec_of("visit"))
    if not refused:
        plan_tables(load_tables_job(path), quick=True)
        return
    with pytest.raises(PassthroughError, match=r"1 column .*'place' of 'visit': nearly unique"):
        plan_tables(load_tables_job(path), quick=True)


def test_what_says_how_it_is_published_is_not_untreated(tmp_path: Path) -> None:
    source = hospital_tables(PERSONS, 3)
    shared = spec_of("visit", person={"sensitive": [{"name": "income", "publish": "shared"}]})
    planned = plan_tables(load_tables_job(hospital_job(tmp_path, source, tables=shared)), quick=True)
    assert {name: list(table.passthrough) for name, table in planned.tables.items()} == {
        "person": [], "visit": ["nights"], "condition": ["icd"],
    }  # fmt: skip
