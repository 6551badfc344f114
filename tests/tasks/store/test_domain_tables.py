"""Domain tables of many values are written in pieces and read column by column, and are those that fit into one piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import QidValueCounts, domain_blocks, read_domains
from core.histograms.domain_counts import DomainCounter, merge_domain_tables
from schemas.errors.base import StorageError
from tasks.store.keys import Key
from tasks.store.store import Artifact, Store
from tasks.store.tables import TableSchema, chunk_domain_types, domain_schema, load_domains, load_value_counts, write_domains
from tests.house.replaced import DOMAIN_COUNTS_COMPACT_ROWS, DOMAINS_BLOCK_ROWS

NAMES, TYPES = ["word", "number", "share"], [pa.string(), pa.int64(), pa.float64()]
VALUES = ["value_0", "value_1", "value_2"]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "", None]), st.integers(-4, 9) | st.none(), st.sampled_from([0.5, -1.5, 1e9, None])),
    min_size=1,
    max_size=30,
)
Rows = list[tuple[object, ...]]


def batch(rows: Rows) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], dtype) for place, dtype in enumerate(TYPES)]
    return pa.RecordBatch.from_arrays(columns, names=NAMES)


def counter_of(rows: Rows) -> DomainCounter:
    counter = DomainCounter(TYPES)
    counter.add(batch(rows))
    return counter


def written(store: Store, blocks: Iterable[pa.Table], schema: TableSchema) -> Artifact:
    return store.make("domain", Key("a" * 64), ".parquet", lambda path: write_domains(path, blocks, schema, "domain"))


@given(rows=ROWS, block=st.integers(1, 12), compact=st.integers(1, 40))
def test_in_pieces_a_domain_table_reads_as_what_python_counts(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, block: int, compact: int
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    with patch(DOMAINS_BLOCK_ROWS, block), patch(DOMAIN_COUNTS_COMPACT_ROWS, compact):
        counter = merge_domain_tables([counter_of(rows[start : start + 4]).table() for start in range(0, len(rows), 4)], TYPES)
        made = written(store, counter.blocks(), domain_schema(VALUES))
    whole = read_domains(counter_of(rows).table(), NAMES)
    read = load_domains(store, made, NAMES)
    for place, (mine, theirs) in enumerate(zip(read, whole, strict=True)):
        found = Counter(row[place] for row in rows)
        assert mine.values.equals(theirs.values)
        assert mine.values.to_pylist() == sorted(value for value in found if value is not None)  # type: ignore[type-var]
        assert mine.counts.tolist() == theirs.counts.tolist() == [found[value] for value in mine.values.to_pylist()]
        assert mine.nulls == theirs.nulls == found[None]
    assert made.rows == sum(len(axis.counts) for axis in load_value_counts(store, made, len(NAMES)))


@pytest.mark.parametrize("block", [2, 100])
def test_persons_go_with_their_values(tmp_path: Path, block: int) -> None:
    axes = [QidValueCounts(pa.array([1, 2, 5, None]), pa.array([3, 1, 4, 2]).to_numpy(), pa.array([2, 1, 0, 0]).to_numpy())]
    schema = domain_schema(["value_0"], with_persons=True)
    store = Store(tmp_path)
    with patch(DOMAINS_BLOCK_ROWS, block):
        made = written(store, domain_blocks(axes, [pa.int64()]), schema)
    [domain] = load_domains(store, made, ["x"])
    assert domain.persons is not None
    assert (domain.values.to_pylist(), domain.counts.tolist(), domain.persons.tolist(), domain.nulls) == (
        [1, 2, 5],
        [3, 1, 4],
        [2, 1, 0],
        2,
    )


def pieces(*rows: list[tuple[int, int, int | None]]) -> list[pa.Table]:
    schema = pa.schema([("qid", pa.int16()), ("count", pa.int64()), ("value_0", pa.int64())])
    return [pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in some], schema) for some in rows]


@pytest.mark.parametrize(
    "blocks",
    [
        pieces([(0, 1, 1), (0, 1, 2)], [(0, 1, 2), (0, 1, 3)]),
        pieces([(0, 1, 5)], [(0, 1, 3)]),
        pieces([(0, 1, None)], [(0, 1, 3)]),
        pieces([(0, 1, 1), (0, 1, 1)]),
        pieces([(0, 1, 1)], [(0, 0, 2)]),
    ],
    ids=["again", "back", "after null", "twice", "none counted"],
)
def test_pieces_that_are_no_domain_table_together_are_refused(tmp_path: Path, blocks: list[pa.Table]) -> None:
    with pytest.raises(StorageError):
        write_domains(tmp_path / "table.parquet", blocks, domain_schema(["value_0"]), "domain")


def test_of_a_chunk_the_types_are_looked_at(tmp_path: Path) -> None:
    block = pieces([(0, 1, 1)])
    assert write_domains(tmp_path / "table.parquet", block, chunk_domain_types(["value_0"], [pa.int64()]), "bundles") == 1
    assert pq.read_table(tmp_path / "table.parquet").equals(block[0])
    with pytest.raises(StorageError):
        write_domains(tmp_path / "other.parquet", block, chunk_domain_types(["value_0"], [pa.string()]), "bundles")
