"""Classes are held against what is published once rare values are the rest: as a plain look at the published rows finds them."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.columns.coding import Coder
from core.columns.domains import Domain, domain_as_published
from core.formats.published import PublishedValues
from core.units.digests import digests_of
from schemas.job.job import Job
from tasks.source.chunks import Chunk, SourceFile
from tasks.source.published_columns import make_value_table
from tasks.source.unpacked import LONG_BATCH
from tasks.writing.shared_values import (
    _coded,
    check_with_the_rest,
    classes_breaking,
    make_class_table,
    published_with_the_rest,
    released_values,
)
from tests.jobs import job_of
from tests.oracles.persons import safe_for_people, too_many_hold, values_of_few_by_force

TEXT, REST, CLASSES = pa.string(), "other", 8
VALUES = ["a", "b", "c", "d", REST, None]
PRIVACY: list[dict[str, Any]] = [
    {"l": {"s": {"distinct": 2, "nulls": "value"}}},
    {"l": {"s": {"distinct": 3, "nulls": "value"}}},
    {"l": {"s": {"entropy": 1.8, "nulls": "value"}}},
    {"l": {"s": {"recursive": {"c": 2, "l": 2}, "nulls": "value"}}},
    {"t": {"s": {"t": 0.3}}},
]


def breaking_by_force(
    values: list[str | None], people: list[int], classes: list[int], privacy: dict[str, Any], *, persons: bool
) -> set[int]:
    """Which classes of the published rows break the promise: what stays nowhere is the rest, in the source as well."""
    whose: list[int] = people if persons else list(range(1, len(values) + 1))
    released = [(value, person) for value, person, group in zip(values, whose, classes, strict=True) if group >= 0]
    gone = values_of_few_by_force(released, privacy["k"], REST, persons=persons)
    stays = {value for value, _ in released} - gone
    everyone = [(person, value if value in stays else REST) for value, person in zip(values, whose, strict=True)]
    rows: dict[int, list[tuple[Hashable, Hashable]]] = {group: [] for group in set(classes) - {-1}}
    for row, group in zip(everyone, classes, strict=True):
        if group >= 0:
            rows[group].append(row)
    few = {group for group, held in rows.items() if len({person for person, _ in held}) < privacy["k"]}
    return few | {
        group
        for group, held in rows.items()
        if not safe_for_people(held, everyone, privacy) or (persons and too_many_hold(held, everyone, privacy))
    }


@pytest.mark.parametrize("persons", [True, False])
def test_the_classes_that_break_are_those_that_a_look_at_the_published_rows_finds(persons: bool) -> None:
    drawn, seen = np.random.default_rng(11), [set[bool]() for _ in PRIVACY]
    known = PublishedValues(*[pa.array([], TEXT)] * 4, pa.array([REST], TEXT), pa.array([None], TEXT))
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": [{"name": "s", "publish": "shared"}]}
    columns |= {"person": ["who"]} if persons else {}
    with duckdb.connect(config={"threads": 1}) as database:
        for turn in range(6):
            rows, k = int(drawn.integers(14, 50)), turn // 2 + 1
            values = [VALUES[place] for place in np.minimum(drawn.geometric(0.4, rows) - 1, len(VALUES) - 1)]
            people, classes = drawn.integers(1, rows, rows).tolist(), drawn.integers(-1, CLASSES, rows).tolist()
            kept, whose, column = np.array(classes) >= 0, np.array(people, np.uint64), pa.array(values, TEXT)
            make_value_table(database, [([column.filter(pa.array(kept))], whose[kept] if persons else None)], 1)
            staying = released_values(database, 0, known, k, count_persons=persons).staying
            found = column.drop_null().unique().sort()
            observed = Domain("s", found, np.array([values.count(one) for one in found.to_pylist()], np.int64), column.null_count)
            published = published_with_the_rest(observed, staying, known.others_published_as)
            codes, domain = domain_as_published(observed, published)
            coded = Coder(observed, codes.astype(np.uint32)).code(column)
            batch = pa.record_batch({"class": pa.array(classes, pa.int32()), "person": whose, "value_0": pa.array(coded, pa.int32())})
            make_class_table(database, iter([batch.slice(0, rows // 2), batch.slice(rows // 2)]), 1)
            for number, asked in enumerate(PRIVACY):
                privacy = {"k": k} | asked
                job = Job.model_validate(job_of(columns=columns, privacy=privacy))
                parts = [part.tolist() for part in classes_breaking(database, 0, job, domain, count_persons=persons, at_a_time=5)]
                assert len(parts) == max(classes) // 5 + 1
                breaking = [group for part in parts for group in part]
                assert breaking == sorted(breaking_by_force(values, people, classes, privacy, persons=persons))
                if domain.size < observed.size:
                    seen[number] |= {group in breaking for group in set(classes) - {-1}}
    assert all(both == {True, False} for both in seen)


def test_records_of_nobody_give_no_class_a_value_or_a_person() -> None:
    """Half of the values are held by nobody in some class, whose records have them all the same."""
    drawn, rows, seen = np.random.default_rng(5), 60, [set[bool]() for _ in PRIVACY]
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": {"prefix": [1]}}], "sensitive": ["s"], "person": ["who"]}
    with duckdb.connect(config={"threads": 1}) as database:
        for k in (1, 2, 3):
            values, classes = drawn.integers(0, 4, rows), np.append(drawn.integers(-1, CLASSES, rows - 1), CLASSES - 1)
            people = np.where(drawn.integers(0, 2, rows) > 0, drawn.integers(1, 30, rows), 0)
            domain = Domain("s", pa.array(VALUES[:4], TEXT), np.bincount(values, minlength=4), 0)
            batch = pa.record_batch({"class": pa.array(classes, pa.int32()), "person": people.astype(np.uint64), "value_0": values})
            make_class_table(database, iter([batch]), 1)
            pairs = [(int(person) or None, int(value)) for person, value in zip(people, values, strict=True)]
            held = {group: [pairs[row] for row in np.flatnonzero(classes == group)] for group in set(classes.tolist()) - {-1}}
            for number, asked in enumerate(PRIVACY):
                privacy = {"k": k} | asked
                job = Job.model_validate(job_of(columns=columns, privacy=privacy))
                # The last part may be of one class, and none is empty.
                parts = list(classes_breaking(database, 0, job, domain, count_persons=True, at_a_time=CLASSES - 2 + k))
                assert len(parts) == (2 if k == 1 else 1)
                expected = {
                    group: len({person for person, _ in mine} - {None}) < k
                    or not safe_for_people(mine, pairs, privacy)
                    or too_many_hold(mine, pairs, privacy)
                    for group, mine in held.items()
                }
                assert np.concatenate(parts).tolist() == sorted(group for group, breaks in expected.items() if breaks)
                seen[number] |= set(expected.values())
    assert all(both == {True, False} for both in seen)


@pytest.mark.parametrize("persons", [["who"], []])
def test_each_record_goes_with_its_own_class_however_many_are_read_at_a_time(tmp_path: Path, persons: list[str]) -> None:
    rows, path = 11, tmp_path / "source.parquet"
    drawn = np.random.default_rng(2)
    values, who, classes = drawn.integers(0, 3, 2 * rows), drawn.integers(0, 9, 2 * rows), np.arange(2 * rows, dtype=np.int32)
    pq.write_table(pa.table({"who": who, "s": pa.array(VALUES[:3], TEXT).take(pa.array(values))}), path)
    # A text of this column may take so much that three are read at a time.
    file = SourceFile(name="source.parquet", path=path, digest="", stat=None, groups=(2 * rows,), long={"s": LONG_BATCH // 3})
    chunks = [Chunk.of(file, first, rows) for first in (0, rows)]
    given: Any = SimpleNamespace(
        source=SimpleNamespace(chunks=chunks), classes_of=lambda number, chunk: classes[number * rows : (number + 1) * rows]
    )
    observed = Domain("s", pa.array(VALUES[:3], TEXT), np.bincount(values, minlength=3), 0)
    batches = list(_coded(given, persons, ["s"], [Coder(observed, np.arange(4, dtype=np.uint32))]))
    assert max(batch.num_rows for batch in batches) == 3
    read = pa.Table.from_batches(batches)
    assert read["class"].to_pylist() == classes.tolist()
    assert read["value_0"].to_pylist() == values.tolist()
    whose = digests_of([pa.array(who)], 2 * rows) if persons else np.zeros(2 * rows, np.uint64)
    assert np.array_equal(read["person"], whose)


def test_nothing_is_counted_by_class_where_every_value_stays() -> None:
    observed = Domain("s", pa.array(["a", "b"], TEXT), np.array([2, 3], np.int64), 1)
    given: Any = SimpleNamespace(coding=SimpleNamespace(sensitive=(observed,)))
    nothing: Any = None
    stays = pa.array(["b", None, "a"], TEXT)
    check_with_the_rest(nothing, given, nothing, (), {"s": (stays, pa.array([REST], TEXT))})
    # It is, where one does not: of this source no chunk can be read.
    with pytest.raises(AttributeError):
        check_with_the_rest(nothing, given, nothing, (), {"s": (stays[:2], pa.array([REST], TEXT))})
