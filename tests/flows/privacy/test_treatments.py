"""What a release publishes, checked record by record against the hierarchies read off by hand."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Anonymise
from tests.covering import each_pair
from tests.jobs import LEVELS, PAYLOAD, QIDS, class_sizes, data_files, generalise, job_of, people, people_job, released, two_column_job

TABLE = people(400, seed=2)
STARS = ("*",) * len(QIDS)
Rows = Counter[tuple[Any, ...]]


def payload(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in PAYLOAD), strict=True))


def as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if value is None else {True: "true", False: "false"}.get(value, str(value)) for value in row)


def dropped(table: pa.Table, node: tuple[int, ...], k: int) -> Rows:
    """The records that a release with treatment drop must hold."""
    published = generalise(table, node)
    sizes = Counter(published)
    return Counter(row + rest for row, rest in zip(published, payload(table), strict=True) if sizes[row] >= k)


def masked(table: pa.Table, node: tuple[int, ...], k: int) -> tuple[Rows, int]:
    """The records that a release with treatment mask must hold, and how many of them are masked."""
    published = generalise(table, node)
    sizes = Counter(published)
    rows = [(as_text(row) if sizes[row] >= k else STARS) + rest for row, rest in zip(published, payload(table), strict=True)]
    found = sum(row[: len(QIDS)] == STARS for row in rows)
    return Counter(row for row in rows if found >= k or row[: len(QIDS)] != STARS), found if found >= k else 0


@pytest.mark.few(1)
@pytest.mark.parametrize(("limit", "objective"), [*product([0, 0.05, 0.2], ["dm_star", "dm_all"]), (1, "dm_star")])
def test_drop_publishes_exactly_the_records_of_passing_classes(anonymise: Anonymise, tmp_path: Path, limit: float, objective: str) -> None:
    made = anonymise(people_job(tmp_path, TABLE), f"suppression.limit={limit}", f"method.objective={objective}")
    manifest, frame = made.manifest, released(made.folder)
    assert Counter(frame.rows()) == dropped(TABLE, manifest.node, 5)
    assert (manifest.records, manifest.released, manifest.suppressed, manifest.masked) == (400, len(frame), 400 - len(frame), 0)
    assert manifest.suppressed <= limit * 400
    sizes = class_sizes(frame, QIDS)
    assert (manifest.classes, manifest.min_class) == (len(sizes), min(sizes.values()))


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("limit", [0.02, 0.05, 0.2])
def test_mask_publishes_every_other_record_with_stars(anonymise: Anonymise, tmp_path: Path, limit: float) -> None:
    made = anonymise(people_job(tmp_path, TABLE), f"suppression.limit={limit}", "suppression.treatment=mask")
    manifest, frame = made.manifest, released(made.folder)
    expected, stars = masked(TABLE, manifest.node, 5)
    assert Counter(frame.rows()) == expected
    assert all(frame.schema[qid] == pl.String for qid in QIDS)
    assert manifest.masked == stars
    assert manifest.released == len(frame) == manifest.records - manifest.suppressed + manifest.masked
    assert min(class_sizes(frame, QIDS).values()) == manifest.min_class >= 5


@pytest.mark.ci
def test_mask_of_fewer_than_k_records_is_dropped(anonymise: Anonymise, tmp_path: Path) -> None:
    made = []
    for rare in (3, 5):
        table = pa.table({"q": ["a"] * 10 + ["b"] * 10 + ["c"] * 3 + ["d"] * (rare - 3), "s": [str(number) for number in range(20 + rare)]})
        tree = {"tree": {"*": ["a", "b", "c", "d"]}}
        job = two_column_job(tmp_path / str(rare), table, tree, suppression={"limit": 0.2, "treatment": "mask"})
        made.append(anonymise(job, "privacy.k=4"))
    few, enough = (one.manifest for one in made)
    assert (few.suppressed, few.masked, few.released, few.classes) == (3, 0, 20, 2)
    assert (enough.suppressed, enough.masked, enough.released, enough.classes) == (5, 5, 25, 3)
    assert class_sizes(released(made[0].folder), ["q"]) == {("a",): 10, ("b",): 10}
    assert class_sizes(released(made[1].folder), ["q"]) == {("a",): 10, ("b",): 10, ("*",): 5}


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("objective", ["dm_all", "precision"])
def test_a_choice_that_would_suppress_everything_is_not_made_where_another_publishes(
    anonymise: Anonymise, tmp_path: Path, objective: str
) -> None:
    made = anonymise(people_job(tmp_path, TABLE), "suppression.limit=1", f"method.objective={objective}").manifest
    assert 0 < made.released < len(TABLE)
    assert made.min_class >= 5


TYPES = {
    "a": (pa.int32(), [-7, None], {"widths": [1, 10]}), "b": (pa.decimal128(6, 2), [Decimal("1.25"), None], {"widths": [1, 10]}),
    "c": (pa.bool_(), [True, None], {"csv": "smoker.csv"}), "d": (pa.date32(), [date(2020, 2, 29), None], {"date": ["month"]}),
    "e": (pa.timestamp("us"), [datetime(2020, 2, 29, 12), None], {"date": ["day"]}), "f": (pa.string(), ["ü 1", None], {"prefix": [1]}),
    "g": (pa.float64(), [0.1, None], {"widths": [0.1, 1]}), "h": (pa.uint8(), [255, None], {"widths": [1, 16]}),
    "i": (pa.large_string(), ["x", None], {"tree": {"*": ["x"]}}),
}  # fmt: skip


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("names", ["abc", "def", "ghi"])
def test_level_zero_keeps_the_values_their_type_and_their_nulls(anonymise: Anonymise, tmp_path: Path, names: str) -> None:
    types = {name: TYPES[name] for name in names}
    table = pa.table({name: pa.array(values * 5, dtype) for name, (dtype, values, _) in types.items()} | {"s": list(range(10))})
    qids = [{"name": name, "hierarchy": hierarchy} for name, (_, _, hierarchy) in types.items()]
    made = anonymise(people_job(tmp_path, table, columns={"quasi_identifiers": qids, "sensitive": ["s"]}))
    assert set(made.manifest.node) == {0}
    written = pq.read_table(data_files(made.folder)[0])
    assert {name: written.schema.field(name).type for name in types} == {name: dtype for name, (dtype, _, _) in types.items()}
    assert {name: set(written[name].to_pylist()) for name in types} == {name: set(values) for name, (_, values, _) in types.items()}
    assert written.column_names == [*types, "s"]


def test_null_stays_a_group_of_its_own_below_the_last_level(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": pa.array([None] * 4 + [21, 22, 23, 24] + [31, 32, 33, 34], pa.int64()), "s": [1] * 12})
    made = anonymise(two_column_job(tmp_path, table, {"widths": [1, 10]}), "privacy.k=4")
    assert class_sizes(released(made.folder), ["q"]) == {(None,): 4, ("[20 - 29]",): 4, ("[30 - 39]",): 4}
    top = anonymise(tmp_path / "job.yaml", "privacy.k=5")
    assert class_sizes(released(top.folder), ["q"]) == {("*",): 12}


@pytest.mark.ci
def test_empty_text_is_not_null(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": [None] * 3 + [""] * 3, "s": ["", None, "x"] * 2})
    made = anonymise(two_column_job(tmp_path, table, {"prefix": [1]}), "privacy.k=3")
    assert Counter(released(made.folder).rows()) == Counter(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.ci
def test_bounds_are_two_numerical_columns_in_the_place_of_one(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": pa.array([21, 22, 23, 31, 35, 39, None, None, None], pa.int64()), "s": [1] * 9})
    made = anonymise(two_column_job(tmp_path, table, {"widths": [1, 10]}, intervals="bounds"), "privacy.k=3")
    frame = released(made.folder)
    assert frame.columns == ["q_low", "q_high", "s"]
    assert class_sizes(frame, ["q_low", "q_high"]) == {(20, 29): 3, (30, 39): 3, (None, None): 3}
    exact = anonymise(two_column_job(tmp_path / "exact", pa.table({"q": [5] * 5, "s": [1] * 5}), {"widths": [1]}, intervals="bounds"))
    assert released(exact.folder).rows() == [(5, 5, 1)] * 5


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("intervals", ["text", "bounds"])
def test_ranks_are_published_as_observed_values(anonymise: Anonymise, tmp_path: Path, intervals: str) -> None:
    table = pa.table({"q": pa.array([1, 500, 501, 9000] * 2, pa.int64()), "s": [1] * 8})
    made = anonymise(two_column_job(tmp_path, table, {"widths": [2], "encode": True}, intervals=intervals), "privacy.k=4")
    classes = set(class_sizes(released(made.folder).drop("s"), released(made.folder).drop("s").columns))
    assert classes == ({(1, 500), (501, 9000)} if intervals == "bounds" else {("[1 - 500]",), ("[501 - 9000]",)})


@pytest.mark.ci
def test_rest_publishes_all_columns_that_no_role_names(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = job_of()["columns"] | {"insensitive": "rest"}
    made = anonymise(people_job(tmp_path, TABLE, columns=columns))
    assert released(made.folder).columns == [*QIDS, *PAYLOAD]
    assert Counter(released(made.folder).rows()) == dropped(TABLE, made.manifest.node, 5)


@pytest.mark.ci
def test_k_of_one_changes_nothing_but_the_identifiers(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path, TABLE), "privacy.k=1", "suppression.limit=0")
    assert made.manifest.node == (0,) * len(QIDS)
    assert Counter(released(made.folder).rows()) == Counter(rows_of(TABLE))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select([*QIDS, *PAYLOAD]).to_pylist()]


def test_k_of_all_records_makes_one_class(anonymise: Anonymise, tmp_path: Path) -> None:
    manifest = anonymise(people_job(tmp_path, TABLE), "privacy.k=400", "suppression.limit=0").manifest
    assert (manifest.classes, manifest.min_class, manifest.suppressed) == (1, 400, 0)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize(("k", "limit", "objective"), each_pair([2, 5, 20], [0, 0.1, 0.5], ["dm_star", "dm_all"]))
def test_node_is_the_best_of_all_by_exhaustive_search(anonymise: Anonymise, tmp_path: Path, k: int, limit: float, objective: str) -> None:
    names = ["sex", "age", "zip"]
    qids = [qid for qid in job_of()["columns"]["quasi_identifiers"] if qid["name"] in names]
    table = TABLE.select([*names, "disease"]).slice(0, 150)
    job = people_job(tmp_path, table, columns={"quasi_identifiers": qids, "sensitive": ["disease"]})
    made = anonymise(job, f"privacy.k={k}", f"suppression.limit={limit}", f"method.objective={objective}")
    manifest, found = made.manifest, {}
    for node in product(*(range(len(LEVELS[name])) for name in names)):
        sizes = Counter(generalise(table, node, names)).values()
        lost = sum(size for size in sizes if size < k)
        if lost <= limit * 150 and lost < 150:
            kept = sum(size * size for size in sizes if size >= k or objective == "dm_all")
            found[node] = kept + (lost * lost if objective == "dm_star" else 0)
    assert manifest.optimal == "certified"
    assert made.untold.loss[objective] == min(found.values()) == found[manifest.node]
    assert made.untold.search["passing"] >= len(found)
