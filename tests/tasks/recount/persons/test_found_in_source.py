"""Who is in a class follows from the source where its labels say which records those of the class are, and classes are counted by them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.job import Job
from schemas.release.manifest import ClaimedLevels
from tasks.recount.original import Original
from tasks.recount.people_of_source import LACKING, OVERLAPPING, SINGLE, PeopleOfSource, people_of_source
from tasks.recount.recount import count_in_classes
from tasks.recount.rows import RowsInOneDatabase
from tasks.recount.spreads import source_values_relation
from tasks.release.files import TEXT
from tests.jobs import job_of

Row = tuple[int, int | None, str]
"""A record of the source: its number, whose it is, and what is sensitive of it."""
ROWS: list[Row] = [
    (0, 11, "a"), (0, 12, "a"), (1, 11, "a"), (1, 13, "b"),
    (2, 11, "a"), (2, None, "c"), (3, 14, "a"), (3, 14, "a"), (3, 14, "b"),
    (4, 15, "b"), (5, 16, "b"), (5, None, "b"),
]  # fmt: skip
DROPPED = {"treatment": "drop", "limit": 1}
MASKED = {"treatment": "mask", "limit": 1}


def job_with(**parts: Any) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [2, 4]}}], "sensitive": ["s"], "person": ["who"]}
    given: dict[str, Any] = {"columns": columns, "privacy": {"k": 2}, "suppression": DROPPED}
    return Job.model_validate(job_of(**(given | parts)))


def label_of(row: Row) -> str:
    return f"[{row[0] // 2 * 2} - {row[0] // 2 * 2 + 1}]"


def source_at(folder: Path, names: Sequence[str] = ("q", "who", "s")) -> Original:
    columns = zip(*ROWS, strict=True)
    table = pa.table({name: pa.array(values) for name, values in zip(("q", "who", "s"), columns, strict=True)}).select(list(names))
    pq.write_table(table, folder / "source.parquet")
    return Original(f"read_parquet('{folder / 'source.parquet'}')", table.schema)


def published(folder: Path, rows: Sequence[tuple[str, str]]) -> list[Path]:
    pq.write_table(pa.table({"q": [label for label, _ in rows], "s": [value for _, value in rows]}), folder / "0.parquet")
    return [folder / "0.parquet"]


def found(folder: Path, job: Job, rows: Sequence[tuple[str, str]], **parts: Any) -> PeopleOfSource:
    claim = ClaimedLevels(levels={"q": (1,)}, tops={}, starred=False)
    files = published(folder, rows)
    given = {"original": None, "claim": claim} | parts
    return people_of_source(job, files, TEXT, given["original"] or source_at(folder), given["claim"], folder)


def whole(*left_out: str) -> list[tuple[str, str]]:
    return [(label_of(row), row[2]) for row in ROWS if label_of(row) not in left_out]


def starred(*labels: str) -> list[tuple[str, str]]:
    return [("*" if label_of(row) in labels else label_of(row), row[2]) for row in ROWS]


def holdings(files: Any) -> tuple[Counter[Any], Counter[Any]]:
    """What each person holds, whoever they are, and what nobody does."""
    [people], [classes] = files
    labels = {row["class"]: row["label_0"] for row in pq.read_table(classes).to_pylist()}
    of_person = defaultdict[int, Counter[Any]](Counter)
    for row in pq.read_table(people).to_pylist():
        of_person[row["person"]][labels[row["class"]], row["value_0"]] += row["records"]
    nobody = of_person.pop(0, Counter())
    return Counter(frozenset(one.items()) for one in of_person.values()), nobody


def expected_holdings(rows: Sequence[tuple[str, str]]) -> tuple[Counter[Any], Counter[Any]]:
    there, of_person = {label for label, _ in rows}, defaultdict[int | None, Counter[Any]](Counter)
    for row in ROWS:
        if (label := label_of(row) if label_of(row) in there else "*") in there:
            of_person[row[1]][label, row[2]] += 1
    nobody = of_person.pop(None, Counter())
    return Counter(frozenset(one.items()) for one in of_person.values()), nobody


@pytest.mark.parametrize(("suppression", "linked"), [(DROPPED, "tell"), (DROPPED, "keep"), (MASKED, "tell")])
@pytest.mark.parametrize(
    "rows", [whole(), whole("[2 - 3]"), starred("[4 - 5]"), starred("[0 - 1]", "[2 - 3]")], ids=["all", "some", "1", "2"]
)
def test_persons_of_whole_classes_are_those_of_the_records_that_the_labels_cover(
    tmp_path: Path, rows: list[tuple[str, str]], linked: str, suppression: dict[str, Any]
) -> None:
    job, has_stars = job_with(suppression=suppression, method={"name": "skald", "linked": linked}), any(label == "*" for label, _ in rows)
    got = found(tmp_path, job, rows)
    if has_stars and suppression == DROPPED:
        assert got.files is None, "no record was masked, and no label of the level is *"
        return
    assert (got.because, got.lacking) == ("", 0)
    assert holdings(got.files) == expected_holdings(rows)


@pytest.mark.parametrize("linked", ["tell", "keep"])
@pytest.mark.parametrize(
    ("rows", "lacking"),
    [
        (whole(), 0), (whole()[1:], 1), ([whole()[0], *whole()], 1), (whole()[1:-1], 2), (whole("[2 - 3]")[1:], 1),
    ],
)  # fmt: skip
def test_classes_with_other_numbers_of_records_than_the_source_has_are_counted_unless_single_ones_may_be_withheld(
    tmp_path: Path, rows: list[tuple[str, str]], lacking: int, linked: str
) -> None:
    got = found(tmp_path, job_with(method={"name": "skald", "linked": linked}), rows)
    assert (got.files is None) is bool(lacking)
    assert got[1:] == (("", 0) if not lacking else (SINGLE, 0) if linked == "keep" else (LACKING, lacking))


@pytest.mark.parametrize("masked", [1, 3])
def test_where_fewer_records_are_masked_than_are_in_no_class_nobody_knows_which(tmp_path: Path, masked: int) -> None:
    """The last class has three records."""
    rows = whole("[4 - 5]") + [("*", "b")] * masked
    got = found(tmp_path, job_with(suppression=MASKED), rows)
    assert (got.files is None, got.because, got.lacking) == (masked < 3, SINGLE if masked < 3 else "", 0)


def test_nothing_is_concluded_of_labels_that_overlap_or_without_columns_of_the_source(tmp_path: Path) -> None:
    overlapping = [*whole(), ("[0 - 3]", "a")]
    assert found(tmp_path, job_with(), overlapping) == PeopleOfSource(because=OVERLAPPING)
    assert found(tmp_path, job_with(), whole(), claim=None) == PeopleOfSource(because=OVERLAPPING)
    lacking = source_at(tmp_path, ("q", "who"))
    assert found(tmp_path, job_with(), whole(), original=lacking) == PeopleOfSource(because="columns of the source are missing")


def values_of_owners(rows: Sequence[Row], *, by_person: bool) -> list[set[str]]:
    """The values of each person, or of each record."""
    owners = {row[1] for row in rows} - {None}
    return [{row[2] for row in rows if row[1] == one} for one in owners] if by_person else [{row[2]} for row in rows]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("known", [True, False])
def test_classes_are_counted_by_the_persons_who_are_found_and_else_by_records(tmp_path: Path, k: int, known: bool) -> None:
    job = job_with(privacy={"k": k, "l": {"s": {"distinct": 2}}})
    original, release = source_at(tmp_path), f"read_parquet('{tmp_path / '0.parquet'}')"
    people = found(tmp_path, job, whole()).files
    of_class = defaultdict[str, list[Row]](list)
    for row in ROWS:
        of_class[label_of(row)].append(row)
    persons = {label: {row[1] for row in held} - {None} for label, held in of_class.items()}
    units = {label: len(persons[label]) if known else len(held) for label, held in of_class.items()}
    few = [label for label, size in units.items() if size < k]
    with duckdb.connect() as connection:
        rows = RowsInOneDatabase(connection, release, original.relation)

        def values_of(column: str) -> str:
            return source_values_relation(job, rows, column, original, by_people=known)

        counted = count_in_classes(job, connection, release, people if known else None, original, values_of)
    counts = counted.counts
    assert (counts.records, counts.classes, counts.min_class) == (len(ROWS), len(of_class), min(units.values()))
    assert (counts.failing, counts.exposed) == (len(few), sum(len(of_class[label]) for label in few))
    assert counts.withheld == {"q": 0}
    assert bool(counts.persons) is known
    held = {label: values_of_owners(some, by_person=known) for label, some in of_class.items()}
    alone = [label for label, owned in held.items() if set.intersection(*owned)]
    assert counts.one_value == {"s": (len(alone), sum(len(of_class[label]) for label in alone))}
    assert counted.unexpected == ({"s": 0} if known else {})
    assert [(one.failing, one.classes) for one in counted.spreads] == [(sum(len(set.union(*owned)) < 2 for owned in held.values()), 3)]
    if counts.persons:
        assert counts.persons.sizes == Counter(map(len, persons.values()))
        assert (counts.persons.unexpected, counts.persons.released) == (0, len({row[1] for row in ROWS} - {None}))


def test_files_of_persons_count_nothing_for_a_job_that_names_none(tmp_path: Path) -> None:
    job, original = job_with(), source_at(tmp_path)
    people, release = found(tmp_path, job, whole()).files, f"read_parquet('{tmp_path / '0.parquet'}')"
    unnamed = job.model_copy(update={"columns": job.columns.model_copy(update={"person": []})})
    assert people is not None
    with duckdb.connect() as connection:
        counts = count_in_classes(unnamed, connection, release, people, original, lambda _: "nothing").counts
    assert (counts.persons, counts.records, counts.min_class) == (None, len(ROWS), 3)
