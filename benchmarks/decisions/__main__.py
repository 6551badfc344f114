"""The figures behind docs/decisions: the compared choices, measured again on this machine.

    python -m benchmarks.decisions counting [--rows 1000000]   cells of records, and roll-ups of cells: DuckDB, NumPy, compiled loops
    python -m benchmarks.decisions bitmaps                     how often a HyperLogLog says too many cells, and how often shared marks do
    python -m benchmarks.decisions cells [--rows 1000000]      strict Mondrian on records and on distinct combinations
    python -m benchmarks.decisions optimum [--rows 1000000]    how much of a lattice the exact search rolls up
    python -m benchmarks.decisions persons                     classes of k records that hold fewer than k persons
    python -m benchmarks.decisions repeats                     what it costs to see that identifiers repeat, and how right it is
    python -m benchmarks.decisions pictures                    what the charts of a report cost
    python -m benchmarks.decisions keys                        what it costs a run to see its own code
    python -m benchmarks.decisions promise                     what it costs to ask a promise in loops for the first time
    python -m benchmarks.decisions walk                        how much of the code one job runs
    python -m benchmarks.decisions sorting                     whole numbers in order: libraries that compare, and digit by digit

Seconds are CPU seconds on one thread. Data are made in ``benchmarks/.data`` and kept for the next time.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.decisions.promise import promise
from benchmarks.decisions.sorting import sorting
from benchmarks.decisions.walk import walk
from benchmarks.mondrian import DATA, Table, asked, made
from core.charts.chart import Chart, bar_chart
from core.columns.coding import Packing
from core.columns.kernels import number_distinct
from core.histograms.histogram import Histogram, HistogramCounter, count_cells
from core.histograms.projections import Bundles, LinearCounting
from core.histograms.record_rollups import RecordRollUps
from core.lattice.search import Search
from core.privacy.promise import Promise
from core.units.digests import digests_of
from core.units.repeats import NOTHING, ValueCounts
from tasks.source.reading import BATCH_ROWS
from tasks.store.keys import code_of, module_with_imports

REGISTERS = 1 << 14
NODES = 40
STEPS = [
    *(f"tasks.counting.{module}" for module in ("chunk_counts", "histograms", "source_sizes")),
    *("tasks.lattice.recodings", "tasks.lattice.kept_recodings", "tasks.writing.cells"),
]
PEOPLE, VISITS = 20_000, 6


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return what some work costs, and what it returns."""
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def root_of(table: Table) -> Histogram:
    """The cells of all records at the finest node."""
    packing = Packing(tuple(domain.size for domain in table.cutting.domains))
    words, counts = count_cells(packing.pack(list(table.codes.T)), packing.product)
    return Histogram((0,) * len(packing.sizes), packing, words, counts)


def counting(given: argparse.Namespace) -> None:
    table = made("medical", given)
    packing = Packing(tuple(domain.size for domain in table.cutting.domains))
    codes = list(table.codes.T)
    (words,) = packing.pack(codes)
    values = {
        domain.qid: domain.values.take(pa.array(np.minimum(column, len(domain.values) - 1)))
        for domain, column in zip(table.cutting.domains, codes, strict=True)
    }
    connection = duckdb.connect(config={"threads": 1})
    connection.register("packed", pa.table({"cell": words}))
    connection.register("plain", pa.table(values))
    qids = ", ".join(f'"{domain.qid}"' for domain in table.cutting.domains)

    def by_counter() -> int:
        counter = HistogramCounter(packing)
        counter.add(packing.pack(codes))
        return len(counter.result()[1])

    print(f"medical, {len(table.codes):,} records into cells, five quasi-identifiers")
    for name, work in {
        "packed code, sorted (ours)": by_counter,
        "packed code, DuckDB": lambda: len(connection.execute("SELECT cell, count(*) FROM packed GROUP BY cell").fetchnumpy()["cell"]),
        "five columns, DuckDB": lambda: connection.execute(f"SELECT count(*) FROM (SELECT count(*) FROM plain GROUP BY {qids})").fetchall()[
            0
        ][0],
    }.items():
        spent, cells = cpu(work)
        print(f"{name:<40}{spent:>8.2f} CPU s  {cells:,} cells", flush=True)
    roll_up(table, connection)


def roll_up(table: Table, connection: duckdb.DuckDBPyConnection) -> None:
    root, hierarchies = root_of(table), table.cutting.hierarchies
    random = np.random.default_rng(0)
    nodes = [tuple(int(random.integers(0, one.levels)) for one in hierarchies) for _ in range(NODES)]
    connection.register("root", pa.table({f"q{qid}": codes for qid, codes in enumerate(root.groups)} | {"n": root.counts}))

    def grouped(node: tuple[int, ...]) -> NDArray[np.int64]:
        for qid, (hierarchy, level) in enumerate(zip(hierarchies, node, strict=True)):
            groups = hierarchy.rolled(0, level)
            connection.register(f"m{qid}", pa.table({"code": np.arange(len(groups)), "to": groups.astype(np.int64)}))
        joins = " ".join(f"JOIN m{qid} ON m{qid}.code = q{qid}" for qid in range(len(node)))
        groups_of = ", ".join(f"m{qid}.to" for qid in range(len(node)))
        counts: NDArray[np.int64] = connection.execute(f"SELECT sum(n)::BIGINT AS n FROM root {joins} GROUP BY {groups_of}").fetchnumpy()[
            "n"
        ]
        return counts

    def plain(node: tuple[int, ...]) -> NDArray[np.int64]:
        maps = [hierarchy.rolled(0, level) for hierarchy, level in zip(hierarchies, node, strict=True)]
        packing = Packing(tuple(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))
        return count_cells(packing.pack_mapped(root.groups, maps), packing.product, root.counts)[1]

    def nothing_known() -> RecordRollUps:
        return RecordRollUps(root, hierarchies, 4_000_000, np.zeros([one.levels for one in hierarchies], np.int8))

    nothing_known().counts(nodes[0])  # compiled before the clock runs
    ours = nothing_known()
    print(f"\nthe same {root.cells:,} cells rolled up to {NODES} nodes")
    sizes = []
    for name, work in {"compiled loops (ours)": ours.counts, "NumPy, sorted": plain, "DuckDB": grouped}.items():
        spent, counts = cpu(lambda work=work: [np.sort(work(node)) for node in nodes])  # type: ignore[misc]
        sizes.append(counts)
        print(f"{name:<40}{spent:>8.2f} CPU s", flush=True)
    assert all(np.array_equal(one, other) for found in sizes[1:] for one, other in zip(sizes[0], found, strict=True))


def hyperloglog(hashes: NDArray[np.uint64]) -> float:
    """The estimate of Flajolet et al. 2007 with its correction for few values, from 64-bit hashes."""
    places, rest = hashes % np.uint64(REGISTERS), hashes // np.uint64(REGISTERS)
    # Trailing zeros stand for leading ones; hashes are as random at either end.
    zeros = np.log2((rest & (~rest + np.uint64(1))).astype(np.float64)) + 1
    registers = np.zeros(REGISTERS)
    np.maximum.at(registers, places.astype(np.int64), zeros)
    estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / np.sum(2.0**-registers)
    empty = int((registers == 0).sum())
    return REGISTERS * log(REGISTERS / empty) if estimate <= 2.5 * REGISTERS and empty else float(estimate)


def counting_bitmaps(given: argparse.Namespace) -> None:
    table = made("medical", given)
    root, hierarchies = root_of(table), table.cutting.hierarchies
    bundles = Bundles(root.packing)
    random = np.random.default_rng(1)
    nodes = [tuple(int(random.integers(0, one.levels)) for one in hierarchies) for _ in range(200)]
    wrong = {"HyperLogLog": 0, "marks": 0}
    off: dict[str, list[float]] = {"HyperLogLog": [], "marks": []}
    for node in nodes:
        maps = [hierarchy.rolled(0, level) for hierarchy, level in zip(hierarchies, node, strict=True)]
        packing = Packing(tuple(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))
        words = packing.pack_mapped(root.groups, maps)[0]
        truth = number_distinct(words.copy(), np.full(1 << (2 * len(words)).bit_length(), -1, np.int32))
        counting_bitmap = LinearCounting(root.node, node, hierarchies, truth)
        counting_bitmap.add(bundles, bundles.codes(root.words))
        salt = np.uint64(random.integers(1, 1 << 62))
        mixed = splitmix(words.astype(np.uint64) + salt)
        for name, found in (("HyperLogLog", hyperloglog(mixed)), ("marks", counting_bitmap.at_least)):
            wrong[name] += found > truth + 0.5
            off[name].append(found / truth - 1)
    print(f"medical, {len(table.codes):,} records, {len(nodes)} random nodes; asked: are there more cells than there are?")
    for name, errors in off.items():
        print(f"{name:<14} says so wrongly for {wrong[name]:>3} nodes; off by {min(errors):+.3%} to {max(errors):+.3%}")


def splitmix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash words (Steele et al. 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


def cells(given: argparse.Namespace) -> None:
    table = asked(made("medical", given), 10)
    table.cutting.cut(table.codes[:1000], table.ones[:1000])  # compiled before the clock runs
    print(f"medical, {len(table.codes):,} records, k = 10; counted: cells are made of the records first")
    for kept in range(len(table.codes.T), 1, -1):
        fewer = Table(table.codes[:, :kept], narrowed(table, kept), table.learnt[:kept])
        alone, records = cpu(lambda fewer=fewer: fewer.cutting.cut(fewer.codes, fewer.ones))  # type: ignore[misc]
        counted, root = cpu(lambda fewer=fewer: root_of(fewer))  # type: ignore[misc]
        cut, parts = cpu(lambda fewer=fewer, root=root: fewer.cutting.cut(root.codes, root.counts))  # type: ignore[misc]
        assert records.classes == parts.classes
        share = root.cells / len(table.codes)
        print(
            f"{kept} QIDs, {share:>6.1%} distinct: records {alone:.2f} CPU s, cells {counted:.2f} + {cut:.2f}; {parts.classes:,} classes",
            flush=True,
        )


def narrowed(table: Table, kept: int) -> Any:
    cutting = table.cutting
    first = {name: getattr(cutting, name)[:kept] for name in ("axes", "domains", "hierarchies", "ways")}
    return replace(cutting, **first)


def optimum(given: argparse.Namespace) -> None:
    table = made("medical", given)
    root = root_of(table)
    print(f"medical, {len(table.codes):,} records, objective dm_star, one root")
    for k in (10, 50, 250):
        for limit in (0, 0.01):
            search = Search(root, table.cutting.hierarchies, Promise(k), int(limit * len(table.codes)), "dm_star")
            spent, found = cpu(search.run)
            print(
                f"k = {k}, limit {limit}: {found.nodes:,} nodes, {found.nodes_passing:,} pass, "
                f"{found.evaluated:,} rolled up, {spent:.2f} CPU s",
                flush=True,
            )


def persons(given: argparse.Namespace) -> None:
    """Print what classes of visits hold, in people, if k counts records.

    The quasi-identifiers of a person's visits are the same but for the BMI, which moves by up to 0.3.
    """
    table, k = made("medical", given), 10
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(PEOPLE), random.geometric(1 / VISITS, PEOPLE))
    visits = table.codes[:PEOPLE][who]
    sizes = [domain.size for domain in table.cutting.domains]
    visits[:, 3] = np.clip(visits[:, 3].astype(np.int64) + random.integers(-3, 4, len(who)), 0, sizes[3] - 1)
    some = asked(Table(visits, table.cutting, table.learnt), k)
    print(f"{len(who):,} visits of {PEOPLE:,} people, k = {k} counted in records")
    root = root_of(some)
    found = Search(root, some.cutting.hierarchies, Promise(k), len(who) // 100, "dm_star").run()
    assert found is not None, "the top holds everybody"
    maps = [hierarchy.rolled(0, level) for hierarchy, level in zip(some.cutting.hierarchies, found.node, strict=True)]
    packing = Packing(tuple(len(one.labels[level]) for one, level in zip(some.cutting.hierarchies, found.node, strict=True)))
    numbers = some.cutting.cut(some.codes, some.ones).of_rows()
    for name, classes in (("skald", packing.pack_mapped(list(visits.T), maps)[0]), ("mondrian", numbers)):
        _, of, records = np.unique(classes, return_inverse=True, return_counts=True)
        pairs = np.unique(of.astype(np.int64) * PEOPLE + who) // PEOPLE
        people = np.bincount(pairs, minlength=len(records))[records >= k]
        few, one = f"{(people < k).mean():.1%}", int((people == 1).sum())
        print(f"{name:<10}{len(people):>7,} classes, {few} of them of fewer than {k} people, {one:,} of one")


def repeats(_: argparse.Namespace) -> None:
    """Print duplicates per identifier, estimated and counted, of a million records.

    The values are those of people who come four times on average, then one for each record.
    """
    records = 1_000_000
    random = np.random.default_rng(0)
    for whose in (random.integers(0, records // 4, records), np.arange(records)):
        digests = digests_of([pa.array(whose)], records)
        spent, found = cpu(lambda digests=digests: repeats_of(digests))  # type: ignore[misc]
        print(
            f"{records:,} records, {len(np.unique(whose)):,} values: {spent:.2f} CPU s, {found.mean:.2f} records of a value on average, "
            f"{records / len(np.unique(whose)):.2f} by counting all; {found.most} at most, {np.bincount(whose).max()} by counting all"
        )


def repeats_of(digests: Any) -> ValueCounts:
    found = NOTHING
    for first in range(0, len(digests), BATCH_ROWS):
        found = found.with_records(digests[first : first + BATCH_ROWS])
    return found


def pictures(_: argparse.Namespace) -> None:
    chart = Chart("NCP", "", {"Source": [0.5] * 8, "Release": [0.25] * 8})
    spent, _drawn = cpu(lambda: [bar_chart(chart, [f"column {number}" for number in range(8)]).inline() for _ in range(1000)])
    print(f"a chart of eight columns, before and after: {spent:.3f} ms of CPU")


def keys(_: argparse.Namespace) -> None:
    spent, _codes = cpu(lambda: [code_of(module) for module in STEPS])
    files = [Path(f"{module.replace('.', '/')}.py") for module in set().union(*map(module_with_imports, STEPS))]
    print(f"the code of all steps of a run by the lattice, {len(files)} modules: {spent * 1000:.0f} ms of CPU")
    spent, _trees = cpu(lambda: [ast.parse(file.read_text()) for file in files])
    print(f"the same modules as syntax trees: {spent * 1000:.0f} ms")


Subject = Callable[[argparse.Namespace], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subjects: dict[str, Subject] = {
        "counting": counting,
        "bitmaps": counting_bitmaps,
        "cells": cells,
        "optimum": optimum,
        "persons": persons,
    }
    subjects |= {"pictures": pictures, "keys": keys, "promise": promise, "repeats": repeats, "sorting": sorting, "walk": walk}
    parser.add_argument("what", choices=subjects)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    subjects[given.what](given)


if __name__ == "__main__":
    main()
