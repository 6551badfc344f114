"""The recount counts what is there, and its rules let nothing pass that the job forbids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount import classes
from core.recount.classes import (
    Recount,
    class_size_faults,
    column_faults,
    contradicted_counts,
    follows_from_labels,
    manifest_faults,
    one_value_counts_agree,
    recount_sql,
    suppressed_record_faults,
    suppression_faults,
)
from core.recount.groups import TogetherCount
from core.recount.people import SHARES, PersonCount, records_of_k, share_at_most
from core.recount.shares import ShareClasses, merge_share_counts
from schemas.errors.base import verb_of
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from schemas.release.figures import Remainder, Round
from schemas.release.manifest import Manifest
from tests.jobs import JOB, PAYLOAD, QIDS, job_of
from tests.laws import tried

VALUES = st.sampled_from(["a", "b", "*", "", " a", "A"]) | st.none()
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=25)
NAMES = ['q "1"', "q,2"]


def job(**parts: Any) -> Job:
    return Job.model_validate(job_of(**parts))


def counted(files: list[list[tuple[Any, ...]]], k: int) -> Recount:
    """Recount rows that lie in several files."""
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        paths = [Path(folder, f"{number}.parquet") for number in range(len(files))]
        for path, rows in zip(paths, files, strict=True):
            columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(NAMES))]
            pq.write_table(pa.table(columns, names=NAMES), path)
        quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
        row = connection.execute(recount_sql(f"read_parquet({[str(path) for path in paths]})", quoted, k)).fetchone()
    assert row is not None
    *numbers, _, _ = row
    return Recount(*numbers)


@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(1, 8))
@tried(60)
def test_classes_are_what_shares_every_published_value_null_being_one(files: list[list[tuple[Any, ...]]], k: int) -> None:
    rows = [row for part in files for row in part]
    sizes = Counter(rows)
    failing = [size for size in sizes.values() if size < k]
    expected = Recount(
        len(rows), len(sizes), min(sizes.values(), default=0), len(failing), sum(failing), sizes[("*", "*")], Counter(sizes.values())
    )
    assert counted(files, k) == expected


def recount(**changes: int) -> Recount:
    return Recount(**({"records": 95, "classes": 7, "min_class": 5, "failing": 0, "exposed": 0, "masked": 0} | changes))


def test_a_recount_without_failing_classes_keeps_the_promise() -> None:
    assert class_size_faults(job(), recount()) == []


@given(st.integers(1, 7), st.integers(1, 95))
def test_any_failing_class_breaks_the_promise(failing: int, exposed: int) -> None:
    [fault] = class_size_faults(job(), recount(failing=failing, exposed=exposed, min_class=1))
    assert fault.startswith(f"{failing} of 7 classes {verb_of(failing, 'have')} fewer than k = 5 records: {exposed} record")


def test_no_record_at_all_breaks_the_promise() -> None:
    assert class_size_faults(job(), recount(records=0, classes=0, min_class=0)) == ["the data files hold no record"]


@given(st.integers(0, 100), st.integers(1, 1000), st.integers(0, 1000))
def test_the_limit_is_kept_exactly(hundredths: int, records: int, suppressed: int) -> None:
    one = job(suppression={"limit": hundredths / 100})
    assert bool(suppression_faults(one, suppressed, records)) == (suppressed * 100 > hundredths * records)


def manifest(**changes: Any) -> Manifest:
    made: dict[str, Any] = {
        "release": "people-0", "name": "people", "job": "0", "inputs": "0", "method": "skald", "privacy": {"k": 5}, "records": 100,
        "released": 95, "suppressed": 5, "masked": 0, "classes": 7, "min_class": 5, "node": None, "levels": None, "loss": {}, "ncp": {},
        "optimal": "certified", "search": {}, "files": (), "versions": {}, "seconds": {}, "peak_rss": 0,
        "asked": {
            "limit": "0.05", "treatment": "drop", "objective": None, "identifiers": (), "quasi_identifiers": (), "sensitive": (),
            "insensitive": (), "memory": 1,
        },
    }  # fmt: skip
    return Manifest.model_validate(made | changes)


PERSONS = {"columns": ["who"], "source": 95, "released": 90, "smallest_class": 5, "most_records": 2, "largest_share": 0.5}


def test_a_manifest_that_says_what_the_files_hold_has_no_fault() -> None:
    assert manifest_faults(job(), manifest(), recount()) == []
    masking = manifest(released=100, masked=5, classes=8)
    assert manifest_faults(job(), masking, recount(records=100, classes=8, masked=5)) == []
    assert manifest_faults(job(), masking, recount(records=100, classes=8, masked=9)) == [], "the top of all hierarchies is * too"


@pytest.mark.parametrize("name", ["records", "released", "suppressed", "masked", "classes", "min_class"])
@given(st.integers(-3, 3).filter(bool))
@tried(6)
def test_any_number_that_is_not_that_of_the_files_is_noticed(name: str, change: int) -> None:
    said = manifest()
    assert manifest_faults(job(), said.model_copy(update={name: getattr(said, name) + change}), recount())


def test_more_suppression_than_the_limit_is_noticed_though_all_numbers_agree() -> None:
    found = recount(records=94)
    assert manifest_faults(job(), manifest(released=94, suppressed=6), found) == [
        "6 records of 100 are suppressed, more than the limit of 0.05"
    ]


LEFT = Remainder(
    records=12, dm_star=0, rounds=(Round(node=(0,), records=3, classes=1), Round(node=(1,), records=2, classes=1)),
    starred=4, stars=9, least=None, withheld={"sex": 2, "age": 0},
)  # fmt: skip


def left(**changes: int) -> list[str]:
    said = manifest(remainder=LEFT.model_copy(update=changes), suppressed=3)
    return suppressed_record_faults(said, replace(recount(), withheld={"sex": 2}))


def test_what_became_of_the_records_that_fail_adds_up() -> None:
    assert left() == []
    assert left(records=13) == [], "what is left may be published with its own levels"
    assert left(records=11) == ["the manifest's records of rounds, starred and suppressed are more than fail at its levels"]
    assert left(starred=5) == left(records=11)


def test_every_value_that_is_withheld_is_counted() -> None:
    assert left(withheld={"sex": 2, "age": 1}) == ["the manifest says that 1 record publishes * in 'age', the files hold 0"]  # type: ignore[arg-type]
    assert len(left(withheld={"sex": 1, "age": 1})) == 2  # type: ignore[arg-type]
    assert suppressed_record_faults(manifest(), recount()) == [
        "the manifest does not say what became of the records that fail at its levels"
    ]


def test_the_columns_of_the_job_have_no_fault() -> None:
    assert column_faults(job(), [*QIDS, *PAYLOAD]) == []
    rest = job(columns=JOB["columns"] | {"insensitive": "rest"})
    assert column_faults(rest, [*QIDS, "disease", "whatever"]) == []


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ([*QIDS, *PAYLOAD, "person"], "'person' is an identifier and must not be published"),
        ([*QIDS, *PAYLOAD, "index"], "'index' is published, but the job does not say so"),
        ([*QIDS[1:], *PAYLOAD], "'sex' is missing from the data files"),
        ([*QIDS, *PAYLOAD[1:]], "'disease' is missing from the data files"),
    ],
)
def test_a_column_too_many_or_too_few_is_a_fault(columns: list[str], fault: str) -> None:
    assert column_faults(job(), columns) == [fault]


def test_an_identifier_is_a_fault_also_where_the_rest_is_published() -> None:
    rest = job(columns=JOB["columns"] | {"insensitive": "rest"})
    assert column_faults(rest, [*QIDS, "disease", "person"]) == ["'person' is an identifier and must not be published"]
    assert column_faults(rest, [*QIDS, "note"]) == ["'disease' is missing from the data files"]


def test_a_raw_column_beside_its_bounds_is_a_fault() -> None:
    bounds = job(intervals="bounds")
    published = ["sex", "age_low", "age_high", "zip", "height_low", "height_high", "smoker", "born", *PAYLOAD]
    assert column_faults(bounds, published) == []
    assert any("'age' is published beside its bounds" in fault for fault in column_faults(bounds, [*published, "age"]))
    assert "'age_low' and 'age_high' is missing" in column_faults(bounds, [name for name in published if "age_" not in name])[0]


def test_classes_by_persons_are_those_of_the_files_up_to_the_ends_of_each_band() -> None:
    counted = PersonCount(37, 1, 0, 5, 0, 0, 0, sizes={5: 2, 9: 1, 18: 1})
    persons = {"columns": ("person",), "source": 40, "released": 37, "smallest_class": 5, "most_records": 1}
    bands = [{"least": 5, "most": 9, "classes": 3, "records": 19}, {"least": 10, "most": None, "classes": 1, "records": 18}]

    def faults(person_sizes: list[dict[str, Any]]) -> list[str]:
        return contradicted_counts(manifest(persons=persons, person_sizes=person_sizes), replace(recount(), persons=counted))

    assert faults(bands) == []
    for wrong in ({"classes": 2}, {"records": 18}, {"least": 6}, {"most": 8}):
        assert faults([bands[0] | wrong, bands[1]]) == ["the manifest's classes by persons are not those of the files"]


def test_what_columns_tell_together_is_held_against_the_files_in_the_unit_that_was_counted() -> None:
    found = replace(recount(), together={"insensitive": TogetherCount(0, 7, 9, "")})
    said = {"unique_records": 0, "below_k": 7, "with_classes": 9, "unit": "record", "all": 95}
    assert manifest_faults(job(), manifest(passthrough_together=said), found) == []
    [fault] = manifest_faults(job(), manifest(passthrough_together=said | {"below_k": 8}), found)
    assert "untreated columns together" in fault


def test_figures_of_published_columns_are_those_of_the_files() -> None:
    figures = {"publish": "shared", "changed": 0.25, "error": None, "null": 0.5}
    columns = {"income": figures, "rent": figures | {"null": 0.0}}
    found = replace(recount(), published={name: ColumnPublication.model_validate(one) for name, one in columns.items()})

    def faults(**wrong: Any) -> list[str]:
        return manifest_faults(job(), manifest(published=columns | {"income": figures | wrong}), found)

    assert faults() == []
    for wrong in ({"null": 0.0}, {"null": 0.500001}, {"changed": 0.0}):
        [fault] = faults(**wrong)
        assert "what columns lost" in fault
    assert manifest_faults(job(), manifest(published={"rent": columns["rent"]}), found)


def test_of_records_that_fail_at_the_levels_of_a_local_job_the_manifest_says_what_became() -> None:
    said = ["the manifest does not say what became of the records that fail at its levels"]
    assert manifest_faults(job(suppression={"limit": 0.05, "treatment": "cell"}), manifest(), recount()) == said
    assert manifest_faults(job(), manifest(), recount()) == []


@pytest.mark.parametrize(
    ("said", "is_true", "at_least"),
    [
        ({"s": (2, 9)}, True, True), ({"s": (3, 9)}, False, True), ({"s": (2, 10)}, False, True), ({"s": (1, 9)}, False, False),
        ({"s": (2, 8)}, False, False), ({}, False, False), ({"s": (2, 9), "t": (0, 0)}, False, False),
    ],
)  # fmt: skip
def test_classes_of_one_value_are_as_many_as_is_said_or_at_least_so_many_by_persons(
    said: dict[str, tuple[int, int]], is_true: bool, at_least: bool
) -> None:
    counts = {name: {"classes": classes, "records": records, "share": 0.5} for name, (classes, records) in said.items()}
    found = replace(recount(), one_value={"s": (2, 9)})
    assert one_value_counts_agree(manifest(one_value=counts), found) == is_true
    assert one_value_counts_agree(manifest(one_value=counts, persons=PERSONS), found) == at_least


@example({}, 1)
@example({5: 1}, 1)
@example({5: 1}, 2)
@example({3: 1, 5: 2}, 2)
@example({3: 1, 5: 2}, 3)
@example({3: 1, 5: 2}, 4)
@given(st.dictionaries(st.integers(1, 9), st.integers(1, 5), max_size=5), st.integers(1, 12))
def test_k_persons_have_as_many_records_as_the_one_at_rank_k(persons: dict[int, int], k: int) -> None:
    falling = sorted((records for records, many in persons.items() for _ in range(many)), reverse=True)
    assert records_of_k(persons, k) == (falling[k - 1] if k <= len(falling) else 0)


def test_a_share_is_rounded_up_to_the_next_step_and_a_step_to_itself() -> None:
    assert [share_at_most(share) for share in SHARES] == list(SHARES)
    assert [share_at_most(share + 1e-9) for share in (0.0, *SHARES[:-1])] == list(SHARES)


def test_persons_of_shares_are_added_up_with_the_smallest_class_of_those_that_have_one() -> None:
    counts = [
        PersonCount(9, 2, 1, 3, 1, 4, 1, {3: 1, 5: 2}, 0.25, 6), PersonCount(4, 1, 0, 2, 2, 5, 0, {2: 1, 5: 1}, 0.5, 2),
        PersonCount(0, 0, 0, 0, 0, 0, 3),
    ]  # fmt: skip
    shares = [ShareClasses(recount(records=9, classes=classes, persons=one)) for one, classes in zip(counts, (3, 2, 0), strict=True)]
    whole = merge_share_counts(shares, ()).counts
    assert (whole.records, whole.classes) == (18, 5)
    assert whole.persons == PersonCount(0, 0, 1, 2, 3, 9, 4, {2: 1, 3: 1, 5: 3}, 0.5, 0)
    nothing = merge_share_counts(shares[2:], ()).counts
    assert nothing.persons == PersonCount(0, 0, 0, 0, 0, 0, 3)


@pytest.mark.parametrize(
    ("said", "found", "is_same"),
    [
        (None, {}, True), (None, {"risk": 0.5}, False), ({"risk": 0.5}, {}, False), ({"risk": 0.5}, {"risk": 0.5}, True),
        ({"risk": 0.5}, {"risk": 0.5 + 1e-12}, True), ({"risk": 0.5}, {"risk": 0.501}, False),
        ({"risk": 0.5, "classes": 3}, {"risk": 0.5, "classes": 4}, False), ({"risk": 0.5}, {"risk": 0.5, "classes": 4}, False),
    ],
)  # fmt: skip
def test_the_risk_in_the_population_is_that_of_the_files_but_for_rounding(
    said: dict[str, float] | None, found: dict[str, float], is_same: bool
) -> None:
    assert classes._same_risk(manifest().model_copy(update={"population": said}), found) is is_same


@pytest.mark.parametrize(("starred", "left"), [(9, 4), (10, 0)])
def test_figures_in_the_unit_of_k_are_those_of_persons_where_these_are_named(starred: int, left: int) -> None:
    by_records = replace(recount(masked=9), sizes={5: 4, 75: 1})
    assert (by_records.unit, by_records.units, by_records.unit_sizes) == ("record", 95, {5: 4, 75: 1})
    assert by_records.fully_suppressed_units(starred) == (9, starred)
    by_persons = replace(by_records, persons=PersonCount(37, 1, 4, 5, 0, 0, 0, sizes={5: 2, 27: 1}))
    assert (by_persons.unit, by_persons.units, by_persons.unit_sizes) == ("person", 37, {5: 2, 27: 1})
    assert by_persons.fully_suppressed_units(starred) == (4, left)


@pytest.mark.parametrize(("most", "records_of_one", "said"), [(None, 9, False), (3, 2, False), (3, 3, False), (3, 4, True)])
@pytest.mark.parametrize("failing", [0, 2])
def test_somebody_with_more_records_than_the_job_lets_be_published_is_told_of_before_small_classes(
    most: int | None, records_of_one: int, said: bool, failing: int
) -> None:
    columns = job_of()["columns"] | {"person": ["person"], "most_records": most}
    found = replace(recount(failing=failing, exposed=7), persons=PersonCount(37, 1, 0, 5, 0, 0, 0, records_of_one=records_of_one))
    small = "2 of 7 classes have fewer than k = 5 persons: 7 records exposed, 5 in the smallest class"
    expected = ["somebody has more than 3 records in the data files"] if said else [small] * bool(failing)
    assert class_size_faults(job(columns=columns), found) == expected


@pytest.mark.parametrize("failing", [0, 2])
def test_where_persons_are_not_counted_nobody_is_said_to_have_too_many_records(failing: int) -> None:
    columns = job_of()["columns"] | {"person": ["person"], "most_records": 1}
    found = class_size_faults(job(columns=columns), recount(failing=failing, exposed=7))
    small = "2 of 7 classes have fewer than k = 5 records: 7 records exposed, 5 in the smallest class"
    assert found == [small] * bool(failing)


@pytest.mark.parametrize("unexpected", [0, 3])
def test_classes_of_other_persons_than_a_run_kept_are_told_of_before_all_else(unexpected: int) -> None:
    found = replace(recount(failing=2, exposed=7), persons=PersonCount(37, 1, 0, 5, 0, 0, unexpected, records_of_one=9))
    columns = job_of()["columns"] | {"person": ["person"], "most_records": 3}
    many, other = "somebody has more than 3 records in the data files", "of 7 classes, 3 are not those whose persons the run folder keeps"
    assert class_size_faults(job(columns=columns), found) == [other if unexpected else many]


@pytest.mark.parametrize(
    ("search", "follows"),
    [
        ({}, True), ({"nodes": 3}, True), ({"nodes": 3, "orders_learnt": 2}, True), ({"nodes": 3, "evaluated": 2}, False),
        ({"roots": 1}, False),
    ],
)  # fmt: skip
def test_figures_follow_from_labels_unless_the_search_says_more_of_itself_than_how_many_nodes_there_are(
    search: dict[str, int], follows: bool
) -> None:
    assert follows_from_labels(manifest(search=search)) is follows
