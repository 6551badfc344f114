"""Two releases of some records are compared as by a look at each of these, whoever's they are and however they are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.composition.joint_classes import ARRANGEMENTS
from core.composition.joint_figures import SETS
from schemas.job.job import Job
from tasks.composition.by_contents import OLDER, OTHERWISE_READ, ComparedContents, Side, _load_sets, _persons, compare_by_contents
from tasks.composition.joint_values import Promises
from tasks.engine.remote.call_queues import FolderQueue, decoded, encoded
from tasks.store.store import Artifact, Store
from tasks.writing.people import KeptRecords
from tests.core.composition.every_record import HIDDEN, Seen, told_together, without_values
from tests.core.composition.test_joint_classes import Row
from tests.jobs import job_of

SAID = {"distinct": 2}
MINE, THEIRS = [(("both", 6), ("mine", 5)), (("again", 4),)], [(("theirs", 7), ("both", 6))]
"""The files of each part of a release, with their records."""


def job_with(*persons: str) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"], "person": list(persons) or "none"}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2, "l": {"s": SAID}}))


def drawn_releases(seed: int) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """The records of each file; of those that only one release has some hold what a record of the other does, or of both."""
    drawn = np.random.default_rng(seed)

    def some(count: int, *, shared: bool = False) -> list[Row]:
        contents = [int(one) for one in drawn.integers(1 << 40, 1 << 62, count)]
        return [Row(one, int(drawn.integers(-1, 2)), shared, int(drawn.integers(0, 4)), 0, one % 3) for one in contents]

    both, mine, again, theirs = some(6, shared=True), some(5), some(4), some(3)
    alike = [row._replace(group=int(drawn.integers(-1, 2)), shared=False) for row in mine[:2] + again[:1] + both[:1]]
    seen_there = [row._replace(group=int(drawn.integers(-1, 2))) for row in both]
    return {"both": both, "mine": mine, "again": again}, {"both": seen_there, "theirs": alike + theirs}


def kept(store: Store, name: str, rows: list[Row], columns: list[str]) -> Artifact:
    types = {"class": pa.int32()}
    held = {"class": "group", "value_0": "value"}
    table = pa.table({one: pa.array([getattr(row, held.get(one, one)) for row in rows], types.get(one, pa.uint64())) for one in columns})
    write: Callable[[Path], int] = lambda path: pq.write_table(table, path) or len(table)  # noqa: E731
    return store.make("kept", store_key(name), ".parquet", write)


def store_key(name: str) -> Any:
    return name.encode().hex().ljust(32, "0")


def side(store: Store, files: dict[str, list[Row]], parts: list[tuple[tuple[str, int], ...]], *, persons: bool, fragments: bool) -> Side:
    digests, made = ["content", *(["person"] if persons else []), "value_0"], []
    for number, part in enumerate(parts):
        rows = [row for name, _ in part for row in files[name]]
        members = kept(store, f"members {number}", rows, ["class", *digests] if fragments else ["class"])
        contents = None if fragments else kept(store, f"contents {number}", rows, digests)
        made.append(KeptRecords(files=() if fragments else part, members=members, contents=contents))
    return Side(tuple(made), False, (0,))


def seen(files: dict[str, list[Row]], parts: list[tuple[tuple[str, int], ...]], *, persons: bool, fragments: bool) -> list[Seen]:
    rows = [row for part in parts for name, _ in part for row in files[name]]
    return [
        Seen(
            (row.content, row.shared and not fragments), HIDDEN if row.group < 0 else row.group, row.person or None if persons else None,
            row.value or None,
        )
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("seed", [0, 3])
def test_records_at_risk_are_those_of_a_look_at_each(tmp_path: Path, persons: bool, fragments: bool, seed: int) -> None:
    job, (mine, theirs) = job_with(*["who"] * persons), drawn_releases(seed)
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    how: dict[str, bool] = {"persons": persons, "fragments": fragments}
    sides = side(stores[0], mine, MINE, **how), side(stores[1], theirs, THEIRS, **how)
    promises = Promises({"l": {"s": SAID}}, {}, ("s",), None)
    compared = ComparedContents(*sides, True, persons, 3, promises)
    answer: Any = compare_by_contents(job, compared, *stores, tmp_path / "spill")
    figures, records = answer[0], (seen(mine, MINE, **how), seen(theirs, THEIRS, **how))
    expected = told_together(*records, 3, persons=persons, again=persons)
    assert {part: (figures[part], figures[f"{part}_at_risk"]) for part in expected} == expected
    assert figures["values_at_risk"] == without_values(*records, 2, persons=persons, again=persons)
    said = ("persons", "person") if persons else ("contents", "record")
    assert (figures["by"], figures["unit"]) == said
    # Whose other values are published now left and came; without persons they are other records.
    assert (figures["changed"] > 0) == persons


def test_a_release_that_names_nobody_has_a_person_of_its_own_in_each_record(tmp_path: Path) -> None:
    """The job names persons, and the other release knew of none."""
    mine, theirs = drawn_releases(0)
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    # In two parts, of which each begins to count anew.
    parts = [(("both", 6),), (("theirs", 7),)]
    sides = (
        side(stores[0], mine, MINE, persons=True, fragments=True),
        side(stores[1], theirs, parts, persons=False, fragments=True),
    )
    compared = ComparedContents(*sides, True, False, 3, Promises({}, {}, ("s",), None))
    answer: Any = compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill")
    there = seen(theirs, parts, persons=False, fragments=True)
    own = [one._replace(person=1000 + number) for number, one in enumerate(there)]
    expected = told_together(seen(mine, MINE, persons=True, fragments=True), own, 3, persons=True, again=False)
    assert {part: (answer[0][part], answer[0][f"{part}_at_risk"]) for part in expected} == expected


def test_nobody_is_no_person_and_every_record_without_a_name_is_another_one() -> None:
    table = pa.table({"content": [7, 7, 7], "person": pa.array([5, 0, 5], pa.uint64())})
    nameless = table.drop_columns("person")
    own = [person for first in (0, 3) for person in _persons(nameless, first, named=True).to_pylist()]
    assert (len(set(own)), 0 in own) == (6, False)
    assert _persons(table, 0, named=True).to_pylist() == [5, 0, 5]
    assert _persons(table, 0, named=False).to_pylist() == _persons(nameless, 3, named=False).to_pylist() == [0, 0, 0]


@pytest.mark.parametrize("values", [(0, 0), (None, 0), (0, None)])
@pytest.mark.parametrize("republished", [(), (0,), (1,)])
def test_values_that_either_release_publishes_otherwise_or_that_only_one_has_tell_no_records_apart(
    tmp_path: Path, values: tuple[int | None, int | None], republished: tuple[int, ...]
) -> None:
    """The other release has other values in the file that both are made of."""
    mine, theirs = drawn_releases(0)
    theirs["both"] = [row._replace(value=row.value + 90) for row in theirs["both"]]
    stores, how = (Store(tmp_path / "mine"), Store(tmp_path / "theirs")), {"persons": False, "fragments": True}
    of = side(stores[0], mine, MINE, **how), side(stores[1], theirs, THEIRS, **how)
    sides = [one._replace(values=(place,)) for one, place in zip(of, values, strict=True)]
    compared = ComparedContents(sides[0], sides[1], True, False, 3, Promises({}, {}, ("s",), None, republished), in_files=6)
    answer: Any = compare_by_contents(job_with(), compared, *stores, tmp_path / "spill")
    assert (answer == [None, OTHERWISE_READ]) is (values == (0, 0) and 0 not in republished)


def test_sets_of_values_are_those_of_the_columns_that_are_compared_by_their_numbers(tmp_path: Path) -> None:
    def made(store: Store, name: str, rows: list[tuple[int, int, int]]) -> Side:
        table = pa.table({"column": [row[0] for row in rows]} | {
            one: pa.array([row[place] for row in rows], pa.uint64()) for place, one in enumerate(("digest", "value"), start=1)
        })  # fmt: skip
        artifact = store.make("sets", store_key(name), ".parquet", lambda path: pq.write_table(table, path) or len(table))
        part = KeptRecords(files=(), members=artifact, sets=artifact)
        return Side((part, part.model_copy(update={"sets": None}), part), False, ())

    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    mine = made(stores[0], "a", [(0, 10, 1), (0, 10, 2), (1, 20, 3), (2, 30, 4)])
    theirs = made(stores[1], "b", [(0, 20, 3), (0, 40, 5), (1, 10, 1), (1, 50, 6)])
    compared = ComparedContents(
        mine._replace(values=(1, None, 0)), theirs._replace(values=(0, 2, 1)), True, False, 3, Promises({}, {}, ("s", "r", "u"), None)
    )
    with duckdb.connect() as database:
        _load_sets(database, compared, *stores)
        found = database.execute(f"FROM {SETS}").fetchall()
    assert sorted(found) == [(0, 20, 3), (0, 40, 5), (2, 10, 1), (2, 10, 2), (2, 50, 6)]


@pytest.mark.parametrize("linked", ["contents", "both", "persons", "neither"])
@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("field", ["", "content", "person", "value"])
def test_records_of_the_same_file_are_all_in_both_or_nothing_is_said_of_them(
    tmp_path: Path, linked: str, fragments: bool, field: str
) -> None:
    """The other release has read other values of the file that both are made of."""
    mine, theirs = drawn_releases(0)
    mine["both"], theirs["both"] = ([row._replace(person=7 + number) for number, row in enumerate(side["both"])] for side in (mine, theirs))
    if field:
        theirs["both"] = [row._replace(**{field: getattr(row, field) + 90}) for row in theirs["both"]]
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    sides = (
        side(stores[0], mine, MINE, persons=True, fragments=fragments),
        side(stores[1], theirs, THEIRS, persons=True, fragments=fragments),
    )
    by = linked in {"contents", "both"}, linked in {"persons", "both"}

    def answer(in_files: int) -> Any:
        compared = ComparedContents(*sides, *by, 3, Promises({}, {}, ("s",), None), in_files=in_files)
        return compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill")

    looked_at = {"value", "content"} if linked == "contents" else {"value", "person", *["content"] * by[0]}
    # Releases of one file are never taken for those of other records, though nothing links these.
    assert answer(6) == ([None, OTHERWISE_READ] if field in looked_at or linked == "neither" else answer(0))
    # More than there are can never be in both.
    assert answer(16) == [None, OTHERWISE_READ]


def test_one_record_of_the_same_file_that_reads_otherwise_is_enough(tmp_path: Path) -> None:
    mine, theirs = drawn_releases(0)
    first, *others = theirs["both"]
    store, how = Store(tmp_path), {"persons": False, "fragments": False}
    sides = [side(store, mine, MINE, **how)]
    store = Store(tmp_path / "theirs")
    sides.append(side(store, theirs | {"both": [first._replace(content=1), *others]}, THEIRS, **how))
    compared = ComparedContents(sides[0], sides[1], True, False, 3, Promises({}, {}, ("s",), None), in_files=6)
    assert compare_by_contents(job_with(), compared, Store(tmp_path), store, tmp_path / "spill") == [None, OTHERWISE_READ]


def test_a_comparison_goes_to_a_worker_and_comes_there_as_it_was(tmp_path: Path) -> None:
    queue = FolderQueue(tmp_path)
    sides = side(Store(tmp_path / "mine"), drawn_releases(0)[0], MINE, persons=True, fragments=False), Side((), True, (None, 0))
    promises = Promises({"l": {"s": SAID}}, {}, ("s",), None, (0,))
    for more in ({}, {"in_files": 6}):
        compared = ComparedContents(*sides, True, True, 3, promises, **more)
        assert decoded(encoded(compare_by_contents, (compared,), queue), queue) == (compare_by_contents, (compared,))


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("field", ["", "content", "person", "value"])
def test_of_several_tables_the_persons_of_the_same_file_are_all_in_both_or_nothing_is_said_of_them(
    tmp_path: Path, persons: bool, field: str
) -> None:
    """What other tables hold of a person may have changed; releases that are not compared by persons say nothing of them."""
    mine, theirs = (
        {name: [row._replace(person=7 + number if name == "both" else 0) for number, row in enumerate(rows)] for name, rows in one.items()}
        for one in drawn_releases(0)
    )
    if field:
        theirs["both"] = [row._replace(**{field: getattr(row, field) + 90}) for row in theirs["both"]]
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    sides = (side(stores[0], mine, MINE, persons=True, fragments=True), side(stores[1], theirs, THEIRS, persons=True, fragments=True))
    job = job_with("who")
    job._method_of_several = "skald"
    compared = ComparedContents(*sides, not persons, persons, 3, Promises({}, {}, ("s",), None), in_files=6)
    refused = persons and field == "person"
    assert (compare_by_contents(job, compared, *stores, tmp_path / "spill") == [None, OTHERWISE_READ]) is refused


@pytest.mark.parametrize("by_contents", [True, False])
@pytest.mark.parametrize("by_persons", [True, False])
@pytest.mark.parametrize(("alike", "common"), [(True, True), (True, False), (False, True), (False, False)])
def test_records_are_matched_by_what_links_both_releases_and_only_where_they_have_some_of_it_in_common(
    tmp_path: Path, by_contents: bool, by_persons: bool, alike: bool, common: bool
) -> None:
    """Other persons may hold alike records, and one person others by now."""
    drawn = drawn_releases(0)[0]["mine"]
    mine = {"mine": [row._replace(person=1 + number, value=1) for number, row in enumerate(drawn)]}
    moved = {"content": 0 if alike else 1, "person": 4 if common else 90}
    theirs = {"mine": [row._replace(**{name: getattr(row, name) + more for name, more in moved.items()}) for row in mine["mine"]]}
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    of: Any = [
        side(store, files, [(("mine", 5),)], persons=True, fragments=True) for store, files in zip(stores, (mine, theirs), strict=True)
    ]
    compared = ComparedContents(*of, by_contents, by_persons, 3, Promises({}, {}, ("s",), None))
    figures, reason = compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill")
    assert reason == ""
    by = "persons" if by_persons and common else "contents" if by_contents and alike else None
    assert (figures and figures["by"]) == by


@pytest.mark.parametrize("lacking", ["shared", "added", "removed"])
def test_where_no_record_stayed_came_or_left_none_is_counted(tmp_path: Path, lacking: str) -> None:
    mine, theirs = drawn_releases(0)
    theirs["theirs"] = [row._replace(content=row.content % 1000) for row in theirs["theirs"]]
    if lacking == "shared":
        mine["both"], theirs["both"] = [], []
    parts = [(("both", len(mine["both"])), *files) for files in ((("mine", 5),), (("theirs", 7),))]
    of_mine, of_theirs = [parts[0][:1] if lacking == "added" else parts[0]], [parts[1][:1] if lacking == "removed" else parts[1]]
    stores, how = (Store(tmp_path / "mine"), Store(tmp_path / "theirs")), {"persons": False, "fragments": False}
    sides = side(stores[0], mine, of_mine, **how), side(stores[1], theirs, of_theirs, **how)
    compared = ComparedContents(*sides, True, False, 3, Promises({}, {}, ("s",), None))
    figures, reason = compare_by_contents(job_with(), compared, *stores, tmp_path / "spill")
    expected = told_together(seen(mine, of_mine, **how), seen(theirs, of_theirs, **how), 3, persons=False, again=False)
    assert (reason, expected[lacking]) == ("", (0, 0))
    assert figures is not None
    assert {part: (figures[part], figures[f"{part}_at_risk"]) for part in expected} == expected
    assert figures["changed"] == 0


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("fragments", [False, True])
def test_where_persons_alone_link_two_releases_no_record_is_known_by_its_file(tmp_path: Path, seed: int, fragments: bool) -> None:
    """What either holds of a file is linked by other columns, so that equal digests of these are no equal records."""
    stores, how = (Store(tmp_path / "mine"), Store(tmp_path / "theirs")), {"persons": True, "fragments": fragments}
    files = drawn_releases(seed)
    sides = side(stores[0], files[0], MINE, **how), side(stores[1], files[1], THEIRS, **how)
    compared = ComparedContents(*sides, False, True, 3, Promises({"l": {"s": SAID}}, {}, ("s",), None))
    figures, reason = compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill")
    records = [
        [one._replace(identity=(name, number)) for number, one in enumerate(seen(one, parts, **how))]
        for name, one, parts in zip(("mine", "theirs"), files, (MINE, THEIRS), strict=True)
    ]
    expected = told_together(*records, 3, persons=True, again=True)
    assert (reason, figures and figures["by"]) == ("", "persons")
    assert figures is not None
    assert {part: (figures[part], figures[f"{part}_at_risk"]) for part in expected} == expected
    assert figures["values_at_risk"] == without_values(*records, 2, persons=True, again=True)


def test_a_release_that_kept_less_of_how_values_stand_together_is_not_compared(tmp_path: Path) -> None:
    stores, how = (Store(tmp_path / "mine"), Store(tmp_path / "theirs")), {"persons": True, "fragments": False}
    mine, theirs = (side(*given, **how) for given in zip(stores, drawn_releases(0), (MINE, THEIRS), strict=True))
    compared = ComparedContents(mine, theirs._replace(arranged=ARRANGEMENTS), True, True, 3, Promises({}, {}, ("s",), None))
    assert compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill") == [None, OLDER]


@pytest.mark.parametrize("by_contents", [True, False])
def test_releases_of_one_file_are_compared_though_nobody_is_in_both_only_where_contents_link_them(
    tmp_path: Path, by_contents: bool
) -> None:
    drawn = drawn_releases(0)[0]["both"]
    files = [{"both": [row._replace(person=first + number) for number, row in enumerate(drawn)]} for first in (1, 90)]
    stores = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    sides: Any = [side(store, mine, [(("both", 6),)], persons=True, fragments=False) for store, mine in zip(stores, files, strict=True)]
    compared = ComparedContents(*sides, by_contents, True, 3, Promises({}, {}, ("s",), None))
    figures, reason = compare_by_contents(job_with("who"), compared, *stores, tmp_path / "spill")
    assert (reason, figures and figures["by"]) == ("", "files" if by_contents else None)
