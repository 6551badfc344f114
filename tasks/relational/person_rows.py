"""Reader of a release's persons and of their rows in all tables, as numbers and digests."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised, working_type
from core.formats.published import read_published_values
from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.relational.histories import NOWHERE
from core.units.digests import NOBODY, Digests, digests_of
from schemas.relational.table_jobs import column_of_persons
from tasks.relational.making.linking import ORPHAN
from tasks.relational.making.writing import ReleasedTables
from tasks.store.store import Store

BATCH_ROWS = 1 << 17


class OfTable(NamedTuple):
    """Names of a table and of one of its columns."""

    table: str
    column: str


class RowBatch(NamedTuple):
    """A batch of rows of one table, with their persons and digests.

    Attributes:
        whose: Shape (rows,), the person of each row, -1 for orphans.
        digests: Shape (rows,) for each column that was asked for.
    """

    first: int
    whose: NDArray[np.int64]
    digests: list[Digests]

    def released_rows(self, gone: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Return a mask of the rows that belong to a person and are not withheld, shape (rows,).

        ``gone`` marks the withheld rows among all rows of the table.
        """
        known = self.whose >= 0
        return known if gone is None else known & ~gone[self.first : self.first + len(self.whose)]


@dataclass(frozen=True)
class PersonRows:
    """Reader of a release's persons and their rows in all tables, as numbers and digests.

    Attributes:
        given: The tables, and what is published of them.
    """

    given: ReleasedTables

    @property
    def store(self) -> Store:
        """The store that holds the artefacts of the released tables."""
        return self.given.store

    @cached_property
    def columns(self) -> Mapping[str, OfTable]:
        """The table and column behind each column name of all tables joined by person."""
        found = {}
        for name, table in self.given.tables.items():
            linking = table.table.linking if name == self.given.job.tree.unit else ()
            for column in (*linking, *table.qids, *table.table.source.payload):
                found[column_of_persons(self.given.job, name, column)] = OfTable(name, column)
        return found

    @property
    def key(self) -> list[object]:
        """The key of the persons and of all artefacts made of them."""
        given = self.given
        values = [[name, sorted((column, one.sha256) for column, one in made.items())] for name, made in given.values.items()]
        linked = [artifact.sha256 for artifact in given.linked.values()]
        levels = [given.node, sorted((name, artifact.sha256) for name, artifact in given.matched.items())]
        return [given.key, given.key_of(given.job.tree.tables), linked, given.chosen.sha256, levels, values]

    def withheld(self) -> dict[str, NDArray[np.bool_]]:
        """Return by table a mask of rows withheld although their person may be published, shape (rows,)."""
        given, chosen = self.given, pq.read_table(self.store.path(self.given.chosen))
        gone = dict[str, NDArray[np.bool_]]()
        for table in given.job.tree.tables:
            numbers = given.numbers(table)
            mine = numbers[1] == NOWHERE
            if given.chain(table):
                mine[chosen.filter(pc.field("table") == table)["row"].to_numpy()] = True
            for depth, above in enumerate(given.chain(table)):
                if depth:
                    below = np.flatnonzero((numbers[0] == depth) & ~mine)
                    mine[below] = gone[above][numbers[1][below]]
            gone[table] = mine
        return gone

    @cached_property
    def published(self) -> NDArray[np.bool_]:
        """Mask of the published persons, shape (persons + 1,); the last entry is for rows of nobody."""
        return np.isin(np.arange(self.given.persons + 1), self.given.persons_kept())

    def persons_of_rows(self, table: str) -> NDArray[np.int64]:
        """Return the person of each row of a table, -1 for orphans, shape (rows,)."""
        return np.concatenate([np.zeros(0, np.int64), *(batch.whose for batch in self.rows_of(table, []))])

    def count_beyond_bounds(self, table: str, rows: NDArray[np.bool_]) -> int:
        """Return how many rows of a mask ``rows: {most: n}`` withholds; the mask has no orphans."""
        return int((rows & (self.given.numbers(table)[1] == NOWHERE)).sum()) if self.given.chain(table) else 0

    def rows_of(self, table: str, columns: Sequence[str], *, published: bool = False, folded: Container[str] = ()) -> Iterator[RowBatch]:
        """Yield a table's rows in order, in batches, with persons and digests of the given columns.

        Args:
            columns: Of which columns there are digests.
            published: Whether of what is published of their values; else of the source's values.
            folded: Columns whose spelling does not matter.
        """
        given, places = self.given, [self._place(table, column) for column in columns]
        files = [given.linked[table]] if table in given.linked else given.tables[table].chunks
        digested = [self._digester(table, column, published=published, folded=column in folded) for column in columns]
        above, first = ["a0", "status"] if table in given.linked else [], 0
        for artifact in files:
            with pq.ParquetFile(self.store.path(artifact)) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=[*above, *(places or ([] if above else file.schema_arrow.names[:1]))]):
                    whose = np.arange(first, first + batch.num_rows)
                    if above:
                        nobody = batch.column("status").to_numpy() == ORPHAN
                        whose = np.where(nobody, -1, batch.column("a0").fill_null(-1).to_numpy())
                    yield RowBatch(first, whose, [make(batch.column(place)) for make, place in zip(digested, places, strict=True)])
                    first += batch.num_rows

    def labels_by_row(self, table: str, columns: Sequence[str]) -> list[Digests]:
        """Return digests of the published labels of all rows, which have levels of their own, by column."""
        given, found = self.given, list[Digests]()
        levels = pq.read_table(self.store.path(given.matched[table]))
        for place in map(given.tables[table].qids.index, columns):
            hierarchy = given.codings[table].hierarchies[place]
            by_level = np.stack([_digests_of_level(hierarchy, level) for level in range(hierarchy.levels)])
            found.append(by_level[levels[f"level_{place}"].to_numpy(), given.numbers(table)[3 + place]])
        return found

    def _digester(self, table: str, column: str, *, published: bool, folded: bool) -> Callable[[pa.Array], Digests]:
        """Return the function that computes digests of a column's carried values."""
        given, own, steps = self.given, self.given.tables[table], ALL if folded else ()
        if column in own.qids:
            place = own.qids.index(column)
            if published and given.node:
                hierarchy, level = given.codings[table].hierarchies[place], given.levels_of(given.node, table)[place]
                shown = _digests_of_level(hierarchy, level)
                return lambda codes: shown[codes.to_numpy()]
            domain = given.codings[table].domains[place]
            # Of each code, that of a null last.
            entries = np.append(digests_of([normalised(domain.values, steps)], len(domain.values)), NOBODY)
            return lambda codes: entries[codes.to_numpy()]
        kind = working_type(own.table.source.columns.field(column).type)
        decided = given.values.get(table, {}).get(column) if published else None
        if decided is None:
            return lambda values: digests_of([normalised(values.cast(kind), steps)], len(values))
        known = read_published_values(self.store.path(decided))
        return lambda values: digests_of([normalised(known.apply(values.cast(kind)), steps)], len(values))

    def _place(self, table: str, column: str) -> str:
        own = self.given.tables[table]
        if column in own.table.linking:
            return own.encoded_name(column)
        return f"q{own.qids.index(column)}" if column in own.qids else f"p{own.table.source.payload.index(column)}"

    def persons(self, key: Sequence[str]) -> Digests:
        """Return the digest of each person's key columns, shape (persons,).

        It equals that of any release that names persons by the same columns.
        """
        own, parts = self.given.tables[self.given.job.tree.unit], []
        places = [own.encoded_name(column) for column in key]
        kinds = [working_type(own.table.source.columns.field(column).type) for column in key]
        for artifact in own.chunks:
            table = pq.read_table(self.store.path(artifact), columns=places)
            columns = [table[place].combine_chunks().cast(kind) for place, kind in zip(places, kinds, strict=True)]
            parts.append(digests_of(columns, len(table)))
        return np.concatenate(parts)


def _digests_of_level(hierarchy: Hierarchy, level: int) -> Digests:
    """Return the digest of the label of each code at a level."""
    labels = as_text(hierarchy.labels[level]).take(pa.array(hierarchy.groups[level]))
    return digests_of([labels], len(labels))
