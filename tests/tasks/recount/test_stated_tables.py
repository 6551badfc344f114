"""What the manifest of several tables states is counted where it suffices, and nothing is made up where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import VerificationError
from schemas.relational.manifest import TablesManifest
from schemas.relational.tables_job import MOST_KNOWN_ROWS
from schemas.release.figures import PassedColumnOfPersons, Together
from tasks.recount.stated_tables import NO_JOB, NO_PUBLICATIONS, NO_ROLES, NOT_STATED, recount_stated
from tests.tasks.recount.test_written_tables import four_alike, write_rows

LEVELS: dict[str, dict[str, int | None]] = {"person": {"age": 2}, "visit": {"ward": 1}, "condition": {"chronic": 0}}


def stated(folder: Path, **changes: Any) -> TablesManifest:
    """Four persons with the same history, and what is said of them."""
    files = []
    for name, rows in four_alike().items():
        (folder / "data" / name).mkdir(parents=True)
        write_rows(folder / "data" / name / "0.parquet", name, rows)
        files.append({"path": f"data/{name}/0.parquet", "rows": len(rows), "sha256": ""})
    table = {"records": None, "released": 4, "withheld": 0, "suppressed": None, "orphans": 0, "passthrough": {}}
    said = {
        "release": "hospital-0", "name": "hospital", "job": "0", "inputs": "0", "method": "skald", "privacy": {"k": 4}, "unit": "person",
        "key_columns": {"person": ["person_id"], "visit": ["visit_id"]},
        "references": {"visit": {"person_id": "person"}, "condition": {"person_id": "person", "visit_id": "visit"}},
        "persons": {"source": None, "released": 4, "smallest_class": 4}, "histories": 1, "min_class": 4,
        "tables": {name: table | {"levels": levels} for name, levels in LEVELS.items()}, "loss": {"gcp": 0.0, "by_table": {}},
        "optimal": "certified", "search": {}, "files": files, "versions": {}, "seconds": {}, "peak_rss": 0,
    }  # fmt: skip
    return TablesManifest.model_validate(said | changes)


@pytest.mark.parametrize("knows", [None, "all", {"rows": 1}, {"rows": MOST_KNOWN_ROWS}])
def test_histories_are_counted_by_what_is_stated(tmp_path: Path, knows: Any) -> None:
    found = recount_stated(stated(tmp_path, privacy={"k": 4} | ({"knows": knows} if knows else {})), tmp_path, "it")
    assert found.unverified == (NO_JOB,)
    assert found.recount is not None
    assert (found.recount.persons, found.recount.smallest, found.recount.failing) == (4, 4, 0)


@pytest.mark.parametrize("knows", ["all", {"rows": 1}])
def test_persons_with_fewer_like_them_than_is_stated_are_a_fault(tmp_path: Path, knows: Any) -> None:
    with pytest.raises(VerificationError, match=r"fewer than 5 (share|persons)"):
        recount_stated(stated(tmp_path, privacy={"k": 5, "knows": knows}), tmp_path, "it")


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {}}, {"privacy": {"k": 0}}, {"privacy": {"k": True}}, {"privacy": {"k": "4"}}, {"unit": "visit"},
        {"privacy": {"k": 4, "knows": {"rows": MOST_KNOWN_ROWS + 1}}}, {"privacy": {"k": 4, "knows": {"rows": 0}}},
        {"privacy": {"k": 4, "knows": "much"}}, {"privacy": {"k": 4, "knows": {}}}, {"references": {}},
        {"references": {"visit": {"person_id": "person"}, "condition": {"person_id": "person"}, "nothing": {"a": "person"}}},
        {"references": {"visit": {"person_id": "person"}, "condition": {"person_id, visit_id": "visit"}}},
        {"privacy": {"k": 4, "knows": {"rows": 1}}, "key_columns": {"visit": ["visit_id"]}},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_suffice_for_a_recount_is_said_so(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert recount_stated(stated(tmp_path, **changes), tmp_path, "it") == (None, (NOT_STATED, NO_JOB))


def test_promises_beside_k_are_said_not_to_be_counted_column_by_column(tmp_path: Path) -> None:
    privacy = {
        "k": 4,
        "l": {"person": {"income": {"distinct": 2}}, "condition": {"icd": {"distinct": 3}}},
        "t": {"person": {"income": {"t": 1}}},
    }
    told = [one for one in recount_stated(stated(tmp_path, privacy=privacy), tmp_path, "it").unverified if one != NO_JOB]
    named = (("l-diversity", "income", "person"), ("l-diversity", "icd", "condition"), ("t-closeness", "income", "person"))
    assert told == [f"{model} of '{column}' of '{table}' was not counted: that takes the job." for model, column, table in named]


@pytest.mark.parametrize(("columns", "fails"), [(["income"], False), ([], False), (["income", "other"], True), (["age"], True)])
def test_columns_that_are_said_to_be_published_as_they_are_are_there_beside_the_labels(
    tmp_path: Path, columns: list[str], fails: bool
) -> None:
    said = stated(tmp_path)
    passed = {name: PassedColumnOfPersons(distinct=1, unique_records=0, values=4, looked_at=1, unique_persons=0) for name in columns}
    tables = dict(said.tables) | {"person": said.tables["person"].model_copy(update={"passthrough": passed})}
    changed = said.model_copy(update={"tables": tables})
    if fails:
        with pytest.raises(VerificationError, match="that the manifest states"):
            recount_stated(changed, tmp_path, "it")
    else:
        assert recount_stated(changed, tmp_path, "it").recount is not None


@pytest.mark.parametrize(("k", "fails"), [(4, False), (5, True)])
def test_of_persons_without_rows_in_other_tables_those_who_are_alike_are_counted(tmp_path: Path, k: int, fails: bool) -> None:
    said = stated(tmp_path, privacy={"k": k, "knows": {"rows": 1}})
    alone = said.model_copy(
        update={
            "tables": {"person": said.tables["person"]}, "references": {}, "key_columns": {"person": ["person_id"]},
            "files": tuple(file for file in said.files if file.path.startswith("data/person/")),
        }
    )  # fmt: skip
    if fails:
        with pytest.raises(VerificationError, match="fewer than 5 persons"):
            recount_stated(alone, tmp_path, "it")
    else:
        found = recount_stated(alone, tmp_path, "it").recount
        assert found is not None
        assert (found.persons, found.smallest, found.records) == (4, 4, {"person": 4})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ()),
        ({"passthrough_together": Together(unique_records=0, below_k=0, with_classes=0)}, (NO_ROLES,)),
        ({"published": {"person": {"income": {"publish": "shared", "changed": 0.5, "error": 0.0, "null": 0.0}}}}, (NO_PUBLICATIONS,)),
    ],
    ids=["nothing", "together", "published"],
)
def test_what_a_manifest_says_of_values_that_takes_their_roles_is_said_not_to_be_counted(
    tmp_path: Path, changes: dict[str, Any], told: tuple[str, ...]
) -> None:
    assert recount_stated(stated(tmp_path, **changes), tmp_path, "it").unverified == (*told, NO_JOB)
