"""Digests of each person's rows, and persons' histories, kept for comparisons and never published."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.column_types import ALL, normalised, working_type
from core.composition.joint_classes import ARRANGED_LABELS, ARRANGEMENTS
from core.formats.published import read_published_values
from core.hierarchies.levels import as_text
from core.relational.histories import NOWHERE
from core.units.digests import NOBODY, Digests, combine, digests_of
from core.units.source_digests import RowSums, ValueSets, row_digests
from schemas.relational.table_jobs import column_of_persons
from tasks.counting.contents import DigestedColumns
from tasks.relational.making.linking import ORPHAN
from tasks.relational.making.writing import ReleasedTables
from tasks.store.step import FileStep
from tasks.store.store import Store

BATCH_ROWS = 1 << 17
NOBODY_HERE = -1
"""The number of no history: of persons who are not published."""


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
        return [given.key, given.key_of(given.job.tree.tables), linked, given.chosen.sha256, values]

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

    def _digester(self, table: str, column: str, *, published: bool, folded: bool) -> Callable[[pa.Array], Digests]:
        """Return the function that computes digests of a column's carried values."""
        given, own, steps = self.given, self.given.tables[table], ALL if folded else ()
        if column in own.qids:
            place = own.qids.index(column)
            if published and given.node:
                hierarchy, level = given.codings[table].hierarchies[place], given.levels_of(given.node, table)[place]
                labels = as_text(hierarchy.labels[level]).take(pa.array(hierarchy.groups[level]))
                shown = digests_of([labels], len(labels))
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


@dataclass(frozen=True)
class PersonDigestTables:
    """Maker of the digest tables of all persons in some columns, computed on each call.

    Attributes:
        digested: The columns.
        key: The columns that name a person.
    """

    rows: PersonRows
    digested: DigestedColumns
    key: Sequence[str]

    def contents(self) -> pa.Table:
        """Return all persons' digests, suppressed ones too, in the row order of the unit's table; not cached.

        They are ``content``, ``person``, ``untreated``, ``value_0`` …, and those of how values stand together.
        """
        found = {"content": self._together(self.digested.names)}
        if self.key:
            found["person"] = self.rows.persons(self.key)
        if self.digested.untreated:
            found["untreated"] = self._together(self.digested.untreated, published=True)
        found |= {f"value_{number}": self._value(number) for number in range(len(self.digested.values))}
        if self.digested.shown:
            found |= arrangements(self.rows, self.digested, self._withheld)
        return pa.table(found)

    def sets(self) -> pa.Table:
        """Return a table ``column``, ``digest``, ``value`` of the values in each digested value set."""
        parts = [(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64))]
        for number, held in self._sets.items():
            digests, values = held.members()
            parts.append((np.full(len(digests), number, np.int64), digests, values))
        return pa.table(dict(zip(("column", "digest", "value"), map(np.concatenate, zip(*parts, strict=True)), strict=True)))

    def _together(self, names: Sequence[str], *, published: bool = False) -> Digests:
        """Return the digest of each person's values in some columns of all tables, shape (persons,).

        The unit's columns come first, then those of each other table.
        """
        given = self.rows.given
        unit, by_table, linking = given.job.tree.unit, dict[str, list[str]](), dict[str, list[str]]()
        for name in names:
            of_table = self.rows.columns[name]
            by_table.setdefault(of_table.table, []).append(of_table.column)
            if name in self.digested.names:
                linking.setdefault(of_table.table, []).append(of_table.column)
        batches = self.rows.rows_of(unit, by_table.pop(unit, []), published=published, folded=linking.get(unit, ()))
        total = np.concatenate([row_digests(batch.digests, len(batch.whose)) for batch in batches])
        gone = self._withheld if published else {}
        for table in sorted(by_table):
            sums = RowSums(given.persons)
            for batch in self.rows.rows_of(table, by_table[table], published=published, folded=linking.get(table, ())):
                known = batch.released_rows(gone.get(table))
                sums.add(batch.whose[known], row_digests(batch.digests, len(batch.whose))[known])
            total = sums.combine_into(total)
        return total

    @cached_property
    def _withheld(self) -> Mapping[str, NDArray[np.bool_]]:
        return self.rows.withheld()

    @cached_property
    def _sets(self) -> Mapping[int, ValueSets]:
        """The value sets of columns with several values per person, by the number of the column."""
        found = {}
        for number, name in enumerate(self.digested.values):
            column = self.rows.columns[name]
            if column.table != self.rows.given.job.tree.unit:
                held = ValueSets(self.rows.given.persons)
                for batch in self.rows.rows_of(column.table, [column.column], published=True):
                    known = batch.released_rows(self._withheld[column.table])
                    held.add(batch.whose[known], batch.digests[0][known])
                found[number] = held
        return found

    def _value(self, number: int) -> pa.Array:
        if held := self._sets.get(number):
            return pa.array(held.sets, mask=~held.there)
        table, column = self.rows.columns[self.digested.values[number]]
        return pa.array(np.concatenate([batch.digests[0] for batch in self.rows.rows_of(table, [column], published=True)]))


def arrangements(rows: PersonRows, digested: DigestedColumns, withheld: Mapping[str, NDArray[np.bool_]]) -> dict[str, Digests | pa.Array]:
    """Return by kind a digest of each person's joined rows (values, labels or both), shape (persons,).

    Whose values are all the same may still publish another history: where two visits exchange their nights, or a condition is another
    visit's. Whoever has both releases finds one history gone and one that is new, as if a value had changed.

    It is right because the digest of a row is made of its own values and of the sums of those below it, table by table, and a sum is a
    multiset's whatever the order of rows. Rows that are not published do not count.

    Args:
        digested: The columns: ``shown`` of published values, and ``labels`` of quasi-identifiers.
        withheld: Which rows of each table are not published, shape (rows,).
    """
    given = rows.given
    below: dict[str, dict[str, dict[str, Digests]]] = {table: {} for table in given.job.tree.tables}
    whole: dict[str, list[Digests]] = {kind: [] for kind in ARRANGEMENTS}
    for table in reversed(given.job.tree.tables):
        children, chain = below.pop(table), given.chain(table)
        # A person has one row of the unit: its labels stand with all others, and classes show them.
        labels, values = (_columns(rows, table, names) for names in (digested.labels if chain else (), digested.shown))
        if chain and not (labels or values or children):
            continue
        parents = {parent: chain.index(parent) for parent in given.job.tables[table].referring}
        depths, above = given.numbers(table)[:2] if chain else np.empty((2, 0), np.uint32)
        for parent in parents:
            below[parent][table] = {kind: np.zeros(given.tables[parent].rows, np.uint64) for kind in ARRANGEMENTS}
        # Labels of two releases differ wherever their levels do, so that quasi-identifiers are digested as in the source too.
        for batch, unlabelled in zip(rows.rows_of(table, [*labels, *values], published=True), rows.rows_of(table, labels), strict=True):
            shown, own, qids = batch.digests[: len(labels)], batch.digests[len(labels) :], unlabelled.digests
            these = slice(batch.first, batch.first + len(batch.whose))
            hanging = {parent: np.flatnonzero((depths[these] == depth) & ~withheld[table][these]) for parent, depth in parents.items()}
            for kind, parts in zip(ARRANGEMENTS, (own, shown, qids + own, shown + own), strict=True):
                digests = row_digests(parts, len(batch.whose))
                for child in sorted(children):
                    combine(digests, children[child][kind][these])
                if not chain:
                    whole[kind].append(digests)
                for parent, mine in hanging.items():
                    np.add.at(below[parent][table][kind], above[these][mine], digests[mine])
    found = {kind: np.concatenate(digests) for kind, digests in whole.items()}
    return found if given.node else found | {ARRANGED_LABELS: pa.nulls(given.persons, pa.uint64())}


def _columns(rows: PersonRows, table: str, names: Sequence[str]) -> list[str]:
    """Return the columns of a table among names of the job joined by person, in their order."""
    found = [rows.columns[name] for name in sorted(names)]
    return [one.column for one in found if one.table == table]


class ByColumns(NamedTuple):
    """The columns that are digested, and the columns that name a person."""

    digested: DigestedColumns
    key: tuple[str, ...]


def _contents(given: PersonRows, item: ByColumns, path: Path) -> int:
    return write_digests(PersonDigestTables(given, *item).contents(), path)


def _sets(given: PersonRows, item: ByColumns, path: Path) -> int:
    return write_digests(PersonDigestTables(given, *item).sets(), path)


def write_digests(table: pa.Table, path: Path) -> int:
    """Write a table of digests to a Parquet file, uncompressed; return the number of rows."""
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    return len(table)


PERSON_CONTENTS = FileStep(
    "person_contents",
    make=_contents,
    reads=lambda given, item: [given.key, [list(part) for part in item.digested], list(item.key)],
    phase="overlaps",
)
"""By what the persons of a release are linked with those of others."""
PERSON_SETS = FileStep(
    "person_sets",
    make=_sets,
    reads=lambda given, item: [given.key, [list(part) for part in item.digested], list(item.key)],
    phase="overlaps",
)
"""Which values each set of a person's values in one column has."""


class NumberedHistories(NamedTuple):
    """File of each person's history number from the recount, and digests of the data files.

    Attributes:
        path: Where they are, with the published keys of the unit.
        files: Digests of the release's data files.
    """

    path: Path
    files: tuple[str, ...]


def _classes(given: PersonRows, item: NumberedHistories, path: Path) -> int:
    """Write the history number of each person, in order of persons; -1 for persons not published."""
    tables = given.given
    keys = [f"k{place}" for place in range(len(tables.job.tables[tables.job.tree.unit].key))]
    known = pq.read_table(given.store.path(tables.keys[tables.job.tree.unit]), columns=["row", *keys])
    found = pq.read_table(item.path)
    # Of both sides in order, so that each is looked up near the one before.
    mine, theirs = (digests_of([side[key].combine_chunks() for key in keys], len(side)) for side in (known, found))
    by_mine, by_theirs = np.argsort(mine), np.argsort(theirs)
    texts, rows = np.full(tables.persons, NOBODY_HERE, np.int64), known["row"].to_numpy()
    rows = rows[by_mine[np.searchsorted(mine[by_mine], theirs[by_theirs])]]
    texts[rows] = found["text"].to_numpy()[by_theirs]
    there = np.flatnonzero(texts != NOBODY_HERE)
    _, first, inverse = np.unique(texts[there], return_index=True, return_inverse=True)
    classes = np.full(tables.persons, -1, np.int64)
    classes[there] = np.argsort(np.argsort(first))[inverse]
    pq.write_table(pa.table({"class": classes}), path, compression="lz4", use_dictionary=False, write_statistics=False)
    return len(classes)


PERSON_CLASSES = FileStep(
    "person_classes",
    make=_classes,
    reads=lambda given, item: [given.key, given.given.release, list(item.files)],
    phase="overlaps",
)
"""The history that each person has in a release."""
