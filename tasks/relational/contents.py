"""Digests of each person's rows, and persons' histories, kept for comparisons and never published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.composition.joint_classes import ARRANGEMENTS, LABELLED, PAIRED, SOURCED, WITHOUT
from core.units.digests import Digests, combine, digests_of
from core.units.source_digests import RowSums, ValueSets, row_digests
from tasks.counting.contents import DigestedColumns, high_bits
from tasks.relational.person_rows import OfTable, PersonRows
from tasks.store.step import FileStep

NOBODY_HERE = -1
"""The number of no history: of persons who are not published."""
MOST_PAIRS = 15
"""Pairs of columns below the unit of which there are digests at most: all of six columns."""


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
        found: dict[str, NDArray[np.unsignedinteger[Any]] | pa.Array] = {"content": self._together(self.digested.names)}
        if self.key:
            found["person"] = self.rows.persons(self.key)
        if self.digested.untreated:
            found["untreated"] = self._together(self.digested.untreated, published=True)
        for number, names in enumerate(self.digested.single_columns):
            found[f"untreated_{number}"] = high_bits(self._together(names, published=True))
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
    """Return by kind a digest of each person's rows as they are joined below the unit, shape (persons,).

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
    numbered = {rows.columns[name]: number for number, name in enumerate(digested.shown)}
    hang = [number for (table, _), number in numbered.items() if given.chain(table)]
    some = paired_columns(rows, digested.shown)
    kinds = [*ARRANGEMENTS, *(f"{kind}_{number}" for kind in (WITHOUT, LABELLED, SOURCED) for number in hang), *some]
    whole: dict[str, list[Digests]] = {kind: [] for kind in kinds}
    for table in reversed(given.job.tree.tables):
        children, chain = below.pop(table), given.chain(table)
        # A person has one row of the unit: its labels and values stand with all others, and are compared by themselves.
        labels, values = (_columns(rows, table, names) if chain else [] for names in (digested.labels, digested.shown))
        if chain and not (labels or values or children):
            continue
        parents = {parent: chain.index(parent) for parent in given.job.tables[table].referring}
        depths, above = given.numbers(table)[:2] if chain else np.empty((2, 0), np.uint32)
        for parent in parents:
            below[parent][table] = {kind: np.zeros(given.tables[parent].rows, np.uint64) for kind in kinds}
        by_row = rows.labels_by_row(table, labels) if labels and table in given.matched else []
        # Labels of two releases differ wherever their levels do, so that quasi-identifiers are digested as in the source too.
        for batch, unlabelled in zip(rows.rows_of(table, [*labels, *values], published=True), rows.rows_of(table, labels), strict=True):
            shown, own, qids = batch.digests[: len(labels)], batch.digests[len(labels) :], unlabelled.digests
            these = slice(batch.first, batch.first + len(batch.whose))
            shown = [one[these] for one in by_row] or shown
            hanging = {parent: np.flatnonzero((depths[these] == depth) & ~withheld[table][these]) for parent, depth in parents.items()}
            parts = dict(zip(ARRANGEMENTS, (own, shown, qids + own, shown + own), strict=True))
            each = {numbered[OfTable(table, column)]: digest for column, digest in zip(values, own, strict=True)}
            for number in hang:
                alone = [each[number]] if number in each else []
                parts[f"{WITHOUT}_{number}"] = [digest for other, digest in each.items() if other != number]
                parts |= {f"{LABELLED}_{number}": shown + alone, f"{SOURCED}_{number}": qids + alone}
            parts |= {kind: [each[number] for number in numbers if number in each] for kind, numbers in some.items()}
            for kind in kinds:
                digests = row_digests(parts[kind], len(batch.whose))
                for child in sorted(children):
                    combine(digests, children[child][kind][these])
                if not chain:
                    whole[kind].append(digests)
                for parent, mine in hanging.items():
                    np.add.at(below[parent][table][kind], above[these][mine], digests[mine])
    nothing = pa.nulls(given.persons, pa.uint64())
    # Of the unit's columns there is nothing.
    absent = [f"{kind}_{number}" for kind in (WITHOUT, LABELLED, SOURCED) for number in numbered.values() if number not in hang]
    return {kind: np.concatenate(digests) for kind, digests in whole.items()} | dict.fromkeys(absent, nothing)


def paired_columns(rows: PersonRows, shown: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the columns, as numbers, of each digest of one or two columns of rows, by its name.

    They are those that other digests leave out. Of single columns these are how they stand below rows of other tables. Two columns of two
    branches do not stand together, and of three any two are all but one. So where nine exchange two columns of four, another one, who
    exchanges two others, is not hidden among them.
    """
    tables = [rows.columns[name].table for name in shown]
    chains = {number: (table, *rows.given.chain(table)) for number, table in enumerate(tables)}
    hang = [number for number, (_, *chain) in chains.items() if chain]
    alone = [(number,) for number in hang if len(hang) > 2 and len(chains[number]) > 2]
    pairs = [(one, other) for one, other in combinations(hang, 2) if chains[one][0] in chains[other] or chains[other][0] in chains[one]]
    return {"_".join(map(str, (PAIRED, *numbers))): numbers for numbers in (*alone, *(pairs[:MOST_PAIRS] if len(hang) > 3 else ()))}


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
