"""Persons whom their numbers of rows set apart are those that plain Python finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.relational.fitting import TableTree
from tasks.planning import profiles
from tasks.relational.draft import RowsOfPersons, draft_tables
from tests.laws import tried

TREE = TableTree("person", {"person": (), "visit": ("person",), "condition": ("person", "visit")})
KEYS = {"person": "id", "visit": "id", "condition": ""}
REFERENCES = {"person": {}, "visit": {"of": "person"}, "condition": {"of": "person", "at": "visit"}}

visits = st.lists(st.integers(0, 5), max_size=8)
conditions = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 7)), max_size=10)


def rows_of(whose: list[int], held: list[tuple[int, int | None]]) -> RowsOfPersons:
    connection = duckdb.connect()
    tables: dict[str, dict[str, Any]] = {
        "person": {"id": pa.array(range(6), pa.int64())},
        "visit": {"id": pa.array(range(len(whose)), pa.int64()), "of": pa.array(whose, pa.int64())},
        "condition": {"of": pa.array([of for of, _ in held], pa.int64()), "at": pa.array([at for _, at in held], pa.int64())},
    }
    for name, columns in tables.items():
        connection.register(name, pa.table(columns))
    return RowsOfPersons(connection, {name: name for name in tables}, KEYS, REFERENCES, TREE)


@tried(60)
@given(visits, conditions, st.integers(1, 4))
def test_persons_are_set_apart_by_the_rows_below_each_row(whose: list[int], held: list[tuple[int, int | None]], k: int) -> None:
    # A condition at a visit is of whoever that was.
    held = [(of if at is None else whose[at], at) for of, at in held if at is None or at < len(whose)]
    shapes = Counter(
        (
            sum(of == person and at is None for of, at in held),
            tuple(sorted(sum(at == visit for _, at in held) for visit, of in enumerate(whose) if of == person)),
        )
        for person in range(6)
    )
    assert rows_of(whose, held).count_rare_persons(100, k) == sum(persons for persons in shapes.values() if persons < k)


@tried(60)
@given(visits, conditions, st.integers(1, 3))
def test_rows_beyond_a_bound_go_with_what_hangs_from_them(whose: list[int], held: list[tuple[int, int | None]], most: int) -> None:
    held = [(of if at is None else whose[at], at) for of, at in held if at is None or at < len(whose)]
    kept = {visit for visit, of in enumerate(whose) if sum(one == of for one in whose[:visit]) < most}
    left = Counter(of for of, at in held if at is None or at in kept)
    expected = {"visit": len(whose) - len(kept), "condition": len(held) - sum(min(rows, most) for rows in left.values())}
    assert rows_of(whose, held).count_rows_beyond(most) == expected


@pytest.mark.parametrize(("share", "bound"), [(0.0, 2), (0.2, None), (1.0, None)])
def test_rows_are_bounded_where_too_many_are_set_apart(share: float, bound: int | None) -> None:
    # Five persons have two visits, one has four.
    whose = [person for person in range(5) for _ in range(2)] + [5] * 4
    assert rows_of(whose, []).bound(5, share) == bound


def test_no_bound_is_told_where_none_helps() -> None:
    assert rows_of([0], []).bound(6, 0.0) is None


def write_tables(folder: Path, visit: Mapping[str, Sequence[Any]]) -> None:
    """Write a table of sixty persons and one of their visits."""
    for name, columns in {"person": {"person_id": range(60), "age": [one % 3 for one in range(60)]}, "visit": visit}.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table({column: list(values) for column, values in columns.items()}), folder / name / "0.parquet")


def test_a_folder_above_the_tables_names_no_column_of_theirs(tmp_path: Path) -> None:
    folder = tmp_path / "person_id=7"
    write_tables(folder, {"person_id": [*range(60)] * 2, "ward": ["a", "b"] * 60})
    person, visit = draft_tables([folder / "person", folder / "visit"], tmp_path / "job.yaml").tables
    assert (person.key, visit.references) == ("person_id", {"person_id": "person"})


def test_a_draft_counts_rows_beyond_a_bound_among_all_though_it_judges_columns_by_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten of sixty persons have up to thirty visits, the others one."""
    whose = [person for person in range(60) for _ in range(person + 21 if person < 10 else 1)]
    visit = {"visit_id": range(1000, 1000 + len(whose)), "person_id": whose, "ward": ["ab"[one % 2] for one in whose]}
    write_tables(tmp_path, visit)
    monkeypatch.setattr(profiles, "MOST_RECORDS", 50)
    person, visits = draft_tables([tmp_path / "person", tmp_path / "visit"], tmp_path / "job.yaml").tables
    assert (person.rows, visits.rows) == (60, len(whose))
    assert 50 < visits.rows_beyond < visits.rows
