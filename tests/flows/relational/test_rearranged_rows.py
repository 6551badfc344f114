"""Values of persons that stay the same and stand together in another way: whoever has both releases finds one history gone and one new."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flows.tables import tables
from schemas.errors.refusals import OverlapError
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables, read_release
from tests.flows.relational.test_earlier_releases import KEY, job_of_tables, pseudonym

pytestmark = pytest.mark.ci

Rows = dict[str, list[dict[str, Any]]]
CHANGED = 9


def rows_of(seed: int) -> Rows:
    """Return the rows of a hospital in which no two persons have the same income."""
    found = {name: table.to_pylist() for name, table in hospital_tables(240, seed).items()}
    for person in found["person"]:
        person["income"] = person["person_id"]
    return found


def owners(rows: Rows) -> dict[str, int]:
    """Return the person of each visit."""
    return {visit["visit_id"]: visit["person_id"] for visit in rows["visit"]}


def pairs(members: list[dict[str, Any]], whose: Callable[[dict[str, Any]], int], column: str) -> list[list[dict[str, Any]]]:
    """Return, of each of some persons, two rows that differ in a column."""
    by_person = defaultdict(list)
    for row in members:
        by_person[whose(row)].append(row)
    return [of_one[:2] for of_one in by_person.values() if len({row[column] for row in of_one[:2]}) == 2][:CHANGED]


def exchange_nights(rows: Rows) -> None:
    """Let two visits of a person exchange what is published of them as it is."""
    for first, other in pairs(rows["visit"], lambda row: row["person_id"], "nights"):
        first["nights"], other["nights"] = other["nights"], first["nights"]


def exchange_conditions(rows: Rows) -> None:
    """Let two visits of a person exchange what was found."""
    whose = owners(rows)
    for first, other in pairs([row for row in rows["condition"] if row["visit_id"]], lambda row: whose[row["visit_id"]], "icd"):
        first["icd"], other["icd"] = other["icd"], first["icd"]


def rename_visits(rows: Rows) -> None:
    """Give visits other keys, which nobody publishes."""
    for row in [*rows["visit"], *rows["condition"]]:
        row["visit_id"] = row["visit_id"] and f"other {row['visit_id']}"


def histories(rows: Rows) -> dict[int, Any]:
    """Return all that each person's rows say as they hang together, without keys."""

    def told(row: dict[str, Any], below: Any = ()) -> Any:
        return tuple(value for name, value in row.items() if not name.endswith("_id")), frozenset(Counter(below).items())

    whose, found, visits, alone = owners(rows), defaultdict(list), defaultdict(list), defaultdict(list)
    for row in rows["condition"]:
        (found[row["visit_id"]] if row["visit_id"] else alone[row["person_id"]]).append(told(row))
    for row in rows["visit"]:
        visits[whose[row["visit_id"]]].append(told(row, found[row["visit_id"]]))
    return {(own := row["person_id"]): (told(row, visits[own]), frozenset(Counter(alone[own]).items())) for row in rows["person"]}


def job_of(folder: Path, rows: Rows) -> Path:
    """Write rows and their job."""
    kinds = {name: table.schema for name, table in hospital_tables(10, 1).items()}
    made = {name: pa.Table.from_pylist(some, kinds[name]) for name, some in rows.items()}
    return job_of_tables(folder, {name: table.take(np.argsort(np.arange(len(table)) % 7)) for name, table in made.items()})


@pytest.mark.parametrize("change", [exchange_nights, exchange_conditions, rename_visits])
def test_a_person_whose_values_stand_together_otherwise_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Rows], None]
) -> None:
    """Of whom one release publishes nothing, no value is seen to change."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    before = rows_of(seed=2)
    after = deepcopy(before)
    change(after)
    earlier = tables(job_of(tmp_path, before), ("attacks=off",))
    first, later = histories(before), histories(after)
    path = job_of(tmp_path, after)
    if change is not rename_visits:
        with pytest.raises(OverlapError):
            tables(path, ("attacks=off", "overlaps=refuse"))
    made = tables(path, ("attacks=off",))
    both = set.intersection(*({row["person_id"] for row in read_release(one.folder)["person"]} for one in (earlier, made)))
    expected = sum(first[person] != later[person] and pseudonym(person) in both for person in first)
    assert made.manifest.overlaps is not None
    [overlap] = made.manifest.overlaps
    assert (overlap.shared, overlap.changed, overlap.added, overlap.removed) == (len(first), expected, expected, expected)
    assert bool(expected) == (change is not rename_visits)


@pytest.mark.parametrize("method", ["skald", "mondrian"])
@pytest.mark.parametrize(("age", "others"), [(30, (20, 21, 22)), (33, (20, 21, 22)), (30, (7, 8, 20))], ids=["alone", "age", "ward"])
def test_nights_that_are_exchanged_are_seen_though_the_later_release_has_other_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, age: int, others: tuple[int, ...]
) -> None:
    """Some visits in another inner ward make all wards coarser, and whoever makes the earlier ones as coarse finds two histories gone.

    Those in the other ward may have changed too, by all that is kept of them. They hide nobody.
    """
    monkeypatch.setenv("TABLES_KEY", KEY)
    persons = [{"person_id": one, "age": 38 if one == 39 else 30, "income": one} for one in range(40)]
    before: Rows = {"person": persons, "visit": [], "condition": []}
    for one in range(40):
        visits = [("a", 1), ("c", 2)]
        before["visit"] += [{"visit_id": f"{ward}{one}", "person_id": one, "ward": ward, "nights": nights} for ward, nights in visits]
    after = deepcopy(before)
    for one in (7, 8):
        own, other = after["visit"][2 * one], after["visit"][2 * one + 1]
        own["nights"], other["nights"] = other["nights"], own["nights"]
        after["person"][one]["age"] = age
    for one in others:
        after["visit"][2 * one]["ward"] = "b"
    said = ("attacks=off", "suppression.limit=0", f"method.name={method}")
    tables(job_of(tmp_path, before), said)
    path = job_of(tmp_path, after)
    with pytest.raises(OverlapError):
        tables(path, (*said, "overlaps=refuse"))
    [overlap] = tables(path, said).manifest.overlaps or ()
    assert "or perhaps changed behind labels that are others now" in overlap.sentence()
    stated = max(4, len({7, 8, *others}))
    assert (overlap.changed, overlap.added_at_risk, overlap.removed_at_risk) == (stated, stated, stated)


@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_another_age_of_a_person_rearranges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Labels of the unit stand with all rows of a person, whatever level they have."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    before: Rows = {"person": [{"person_id": one, "age": 30 + one % 2, "income": one} for one in range(40)], "visit": [], "condition": []}
    before["visit"] = [{"visit_id": f"{one}", "person_id": one, "ward": "a", "nights": one} for one in range(40)]
    after = deepcopy(before)
    for one in (7, 8):
        after["person"][one]["age"] = 32
    said = ("attacks=off", "suppression.limit=0", f"method.name={method}")
    tables(job_of(tmp_path, before), said)
    [overlap] = tables(job_of(tmp_path, after), said).manifest.overlaps or ()
    assert (overlap.shared, overlap.changed, overlap.added, overlap.removed) == (40, 0, 0, 0)


@pytest.mark.parametrize(("change", "changed"), [("ward", 0), ("nights", 1)])
def test_what_a_class_of_persons_shows_is_by_the_labels_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, changed: int
) -> None:
    """Five persons of each age are one class, with one label for their wards a and b. Another ward below it shows nothing."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    before: Rows = {"person": [{"person_id": one, "age": one // 5, "income": one} for one in range(40)], "visit": [], "condition": []}
    for one in range(40):
        visits = [("ab"[one in {10, 15}], 1), ("c", 2)]
        before["visit"] += [{"visit_id": f"{ward}{one}", "person_id": one, "ward": ward, "nights": nights} for ward, nights in visits]
    after = deepcopy(before)
    own, other = after["visit"][22:24]
    if change == "ward":
        own["ward"] = "b"
    else:
        own["nights"], other["nights"] = other["nights"], own["nights"]
    said = ("attacks=off", "suppression.limit=0", "method.name=mondrian")
    tables(job_of(tmp_path, before), said)
    [overlap] = tables(job_of(tmp_path, after), said).manifest.overlaps or ()
    stated = 4 * changed
    assert (overlap.changed, overlap.shared_at_risk, overlap.added_at_risk, overlap.removed_at_risk) == (stated, stated, stated, stated)


def test_labels_of_a_release_are_not_those_of_an_earlier_one_with_the_same_persons_and_another_k(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At k = 20 both wards are inner, and nights that are exchanged between them stand with the same labels. At k = 4 they do not."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    before: Rows = {"person": [{"person_id": one, "age": 30, "income": one} for one in range(40)], "visit": [], "condition": []}
    for one in range(40):
        visits = enumerate("bb" if one < 10 else "ab")
        before["visit"] += [{"visit_id": f"{number}-{one}", "person_id": one, "ward": ward, "nights": number} for number, ward in visits]
    after = deepcopy(before)
    own, other = after["visit"][40:42]
    own["nights"], other["nights"] = other["nights"], own["nights"]
    said = ("attacks=off", "suppression.limit=0")
    made = [tables(job_of(tmp_path, rows), (*said, f"privacy.k={k}")).manifest for rows in (before, after) for k in (20, 4)]
    pairs = zip(made[:2], made[2:], strict=True)
    found = [{one.release: one.changed for one in later.overlaps or ()}[first.release] for first, later in pairs]
    assert found == [0, 4]


def visit_of(person: int, kind: str, rows: Rows) -> None:
    """Change something of the first of two visits of a person, or exchange it with the other one."""
    first, other = (row for row in rows["visit"] if row["person_id"] == person)
    for column in kind.split():
        if column.startswith("exchange_"):
            name = column.removeprefix("exchange_")
            first[name], other[name] = other[name], first[name]
        elif column in {"town", "note"}:
            rows["person"][person][column] = "other"
        else:
            first[column] = 77


@pytest.mark.parametrize("method", ["skald", "mondrian"])
@pytest.mark.parametrize(
    ("others", "one"),
    [
        ("town", "note"), ("town", "nights"), ("nights", "cost"), ("nights", "exchange_cost"), ("nights", "nights exchange_cost"),
        ("nights cost", "nights cost exchange_beds"), ("exchange_nights", "exchange_cost"),
        ("exchange_nights exchange_cost", "exchange_nights exchange_beds"), ("nights", "nights"),
    ],
)  # fmt: skip
def test_changes_of_a_column_hide_nobody_of_whom_another_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, others: str, one: str
) -> None:
    """Of nine the same changed, and something else of one. Only who has the same columns changed is one of ten."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    assert is_safe_when_ten_changed(tmp_path, "ac", method, others, one) == (others == one)


@pytest.mark.parametrize("method", ["skald", "mondrian"])
@pytest.mark.parametrize("one", ["exchange_meals exchange_beds", "exchange_meals exchange_cost"])
def test_two_columns_that_are_exchanged_hide_nobody_of_whom_two_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, one: str
) -> None:
    """No label says which visit is which. Of any three of the four columns all ten changed, and of any two all or the nine or the one."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    others = "exchange_meals exchange_cost"
    assert is_safe_when_ten_changed(tmp_path, "aa", method, others, one) == (others == one)


@pytest.mark.parametrize("one", [(0, 1), (0, 2)], ids=["of one visit", "of two visits"])
def test_doses_of_two_visits_that_are_exchanged_hide_nobody_of_whom_two_of_one_visit_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: tuple[int, int]
) -> None:
    """With labels or other columns all ten changed, and of doses alone the nine: those of a visit are others."""
    monkeypatch.setenv("TABLES_KEY", KEY)
    before: Rows = {"person": [{"person_id": person, "age": 30, "income": 1} for person in range(40)], "visit": [], "condition": []}
    for person in range(40):
        before["visit"] += [{"visit_id": f"{number}-{person}", "person_id": person, "ward": "a", "nights": 1} for number in range(2)]
        for number, chronic in enumerate(("no", "yes", "no")):
            known = {"person_id": person, "visit_id": f"{number // 2}-{person}", "chronic": chronic}
            before["condition"].append(known | {"icd": "xyz"[number], "dose": 10 + number, "site": 20 + number})
    after = deepcopy(before)
    for person, (first, other) in {**dict.fromkeys(range(9), (0, 2)), 20: one}.items():
        mine, its = (after["condition"][3 * person + number] for number in (first, other))
        mine["dose"], its["dose"] = its["dose"], mine["dose"]
    of_tables = deepcopy(JOB["tables"])
    of_tables["visit"]["columns"] |= {"insensitive": [], "withheld": ["nights"]}
    of_tables["condition"]["columns"]["insensitive"] = ["dose", "site"]
    for rows in (before, after):
        for name in rows:
            rmtree(tmp_path / name, ignore_errors=True)
        path = hospital_job(tmp_path, {name: pa.Table.from_pylist(some) for name, some in rows.items()}, tables=of_tables)
        made = tables(path, ("attacks=off",))
    [overlap] = made.manifest.overlaps or ()
    assert (overlap.changed, overlap.is_safe) == (10, one == (0, 2))


def is_safe_when_ten_changed(folder: Path, wards: str, method: str, others: str, one: str) -> bool:
    """Return whether a release is safe with an earlier one, of whose persons nine and one changed, with visits to some wards."""
    nobody = {"age": 30, "income": 1, "town": "t", "note": "n"}
    before: Rows = {"person": [{"person_id": person, **nobody} for person in range(40)], "visit": [], "condition": []}
    for person in range(40):
        for number, ward in enumerate(wards):
            values = {"nights": number, "cost": 10 + number, "beds": 20 + number, "meals": 30 + number}
            before["visit"].append({"visit_id": f"{number}-{person}", "person_id": person, "ward": ward, **values})
    after = deepcopy(before)
    for person in range(9):
        visit_of(person, others, after)
    visit_of(20, one, after)
    path = job_with_columns(folder, before, method)
    tables(path, ("attacks=off",))
    path = job_with_columns(folder, after, method)
    [overlap] = tables(path, ("attacks=off",)).manifest.overlaps or ()
    assert overlap.changed == 10
    return overlap.is_safe


def job_with_columns(folder: Path, rows: Rows, method: str) -> Path:
    """Write rows with further columns that are published as they are, and their job, without lasting pseudonyms."""
    for name in rows:
        rmtree(folder / name, ignore_errors=True)
    of_tables = deepcopy(JOB["tables"])
    of_tables["person"]["columns"]["insensitive"] = ["town", "note"]
    of_tables["visit"]["columns"]["insensitive"] = ["nights", "cost", "beds", "meals"]
    schema = hospital_tables(10, 1)["condition"].schema
    made = {name: pa.Table.from_pylist(some, schema if name == "condition" else None) for name, some in rows.items()}
    return hospital_job(folder, made, tables=of_tables, method={"name": method}, suppression={"limit": 0.3, "rows": 0})
