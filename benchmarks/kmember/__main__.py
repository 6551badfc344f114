"""k-member clustering compared with Mondrian's ``score: ncp``.

Compared are loss, CPU, what effort buys, a lower bound, and the best partitions of few records.

    python -m benchmarks.kmember [--adult DIR] [--rows 100000] [--k 5 10 25 50 100] [--efforts 1 2 4 8]
    python -m benchmarks.kmember exact [--tables 40]
    python -m benchmarks.kmember runs [--rows 1000000 2000000] [--k 10 50] [--efforts 2]

The first prints GCP as published and as held for every k: Mondrian by NCP, k-member clustering at effort 1 and, at the first k, at other
efforts and with sets of text, and the bound by pairs, under the labels that are published: a record's class is at least as dear as the
record with its (k - 1)th nearest one. Ranges end at the values of a class. DIR holds adult.csv and hierarchy_<qid>.csv. CPU is of cuts and
clusters alone, compiled before. ``exact`` compares with the best of all partitions of a few records, found by branch and bound
(``tests.oracles.clustering``). ``runs`` measures whole ones, from the source to the verified release, of files of a million patients,
whose ranges end where k people are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.mondrian import DATA, Table, asked, made, tables, whole
from benchmarks.scale import PER_FILE, anonymised, prepare
from core.kmember.partition import Effort, RecordsToGroup
from core.kmember.set_labels import CodedRecords, block_of, kernel, price_with, set_label_arrays, start_set_label
from core.mondrian.partition import Partition
from core.mondrian.recoding import label_partition, total_losses
from core.recoding.classes import records_by_class
from core.recoding.price_kernels import EACH, SIZE, UNIT, WEIGHT, Prices
from core.recoding.prices import LabelPrices, label_prices
from tests.oracles import clustering as oracle
from tests.oracles.records import Records as Few

SAMPLE = 2_000
"""Records whose nearest are looked for; the mean is over these."""
WORDS_AND_AGE = 3
"""Columns of the patients that are told apart by the slow search: blood group, profession, age."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["loss", "exact", "runs"], nargs="?", default="loss")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--k", type=int, nargs="+", default=[10, 5, 25, 50, 100])
    parser.add_argument("--efforts", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    if given.what == "exact":
        return exact(given.tables)
    if given.what == "runs":
        return runs(given)
    print(f"{'':<18}{'k':>5}  {'method':<26}{'published':>10}{'held':>8}{'of ncp':>8}{'CPU s':>8}{'× ncp':>7}")
    for name, table in tables(given):
        for k in given.k:
            for line in lines(table, k, given.efforts if k == given.k[0] else []):
                print(f"{name:<18}{k:>5}  {line}", flush=True)


def runs(given: argparse.Namespace) -> None:
    """Print what whole runs lose, take and need beside those of cuts."""
    files = sorted(prepare(given.data / "medical-scale", max(*given.rows, PER_FILE)).glob("*.parquet"))
    print(f"{'records':>12}{'k':>5}  {'method':<20}{'published':>10}{'of ncp':>8}{'CPU s':>8}{'× ncp':>7}{'wall s':>8}{'peak MB':>9}")
    ways = {"mondrian ncp": "{name: mondrian, score: ncp}"}
    ways |= {f"kmember, effort {effort}": f"{{name: kmember, effort: {effort}}}" for effort in (1, *given.efforts)}
    for method in ways.values():
        # The first run compiles, where nothing did before.
        anonymised(files[:1], "1GB", ["--direct"], method=method, **{"suppression.limit": 0})
    for rows in given.rows:
        for k in given.k:
            base: tuple[float, float] | None = None
            for name, method in ways.items():
                settings: dict[str, int | str] = {"method": method, "suppression.limit": 0, "privacy.k": k}
                cost, manifest = anonymised(files[: max(rows // PER_FILE, 1)], "1GB", ["--direct"], **settings)
                gcp, records = manifest["loss"]["gcp"], manifest["records"]
                base = base or (gcp, cost.cpu)
                print(
                    f"{records:>12,}{k:>5}  {name:<20}{gcp:>10.4f}{gcp / base[0]:>8.2f}{cost.cpu:>8.1f}{cost.cpu / base[1]:>7.1f}"
                    f"{cost.wall:>8.1f}{cost.peak / 1e6:>9.0f}",
                    flush=True,
                )


def lines(table: Table, k: int, efforts: list[int]) -> Iterator[str]:
    """Yield what each way loses and takes."""
    yield from told(table, k, (1, *efforts))
    yield f"{'no partition below':<26}{bound(table, k):>10.4f}"
    if efforts:
        # What is published of numbers is a range in any case.
        sets = tuple(None if axis.numbers is not None else "set" for axis in table.cutting.axes)
        yield from told(asked(table, k, ways=sets), k, (1, *efforts), "sets: ")


def told(table: Table, k: int, efforts: Sequence[int], named: str = "") -> Iterator[str]:
    """Yield what cuts lose and take, and clusters at some efforts."""
    mondrian = asked(table, k, score="ncp")
    # Compiled before the clock runs.
    whole(replace(mondrian, codes=mondrian.codes[: 4 * k]), [np.arange(4 * k)])
    clustered(replace(table, codes=table.codes[: 4 * k]), k, 1)
    start = time.process_time()
    cut = mondrian.cutting.cut(table.codes, table.ones)
    first = time.process_time() - start
    base = losses(table, cut, k)
    yield f"{f'{named}mondrian ncp':<26}{base[0]:>10.4f}{base[1]:>8.4f}{1:>8.2f}{first:>8.2f}{1:>7.1f}"
    for effort in efforts:
        start = time.process_time()
        classes = clustered(table, k, effort)
        cpu = time.process_time() - start
        order, ends = records_by_class(classes)
        found = losses(table, Partition(order.astype(np.int32), ends), k)
        name = f"{named}kmember, effort {effort}"
        yield f"{name:<26}{found[0]:>10.4f}{found[1]:>8.4f}{found[0] / base[0]:>8.2f}{cpu:>8.2f}{cpu / first:>7.1f}"


def losses(table: Table, partition: Partition, k: int) -> tuple[float, float]:
    """Return GCP as published and as held."""
    found = label_partition(table.cutting, table.codes, table.ones, partition)
    loss = total_losses([found.losses], len(table.cutting.axes), k, len(table.codes))
    return loss["gcp"], loss["gcp_held"]


def labels(table: Table) -> list[LabelPrices]:
    cutting = table.cutting
    return [LabelPrices(*label) for label in zip(cutting.ways, cutting.domains, cutting.hierarchies, strict=True)]


def clustered(table: Table, k: int, effort: int) -> NDArray[np.int32]:
    return RecordsToGroup(table.codes, table.learnt, labels(table), k).clustered(Effort.of(len(table.codes), k, effort))[0]


def bound(table: Table, k: int) -> float:
    """Return the mean of what some records pay with their (k - 1)th nearest, by the labels of both.

    It is the mean over the columns too.
    """
    prices, places, _ = label_prices(labels(table))
    columns = np.ascontiguousarray(np.column_stack([place[table.codes[:, qid]] for qid, place in enumerate(places)]))
    # Published labels alone: values that are held are not counted.
    terms = prices.terms.copy()
    terms[:, WEIGHT], terms[:, EACH] = 1, 0
    told = prices._replace(terms=terms)
    drawn = np.random.default_rng(0).permutation(len(columns))[:SAMPLE]
    scratch = np.zeros(int(terms[:, SIZE].max()) + 1, np.int32)
    records = block_of(columns, np.empty(0, np.int32), np.zeros(columns.shape[1], np.bool_), told, scratch)
    return float(_with_nearest(records, drawn, told, k).mean() / UNIT / len(places))


@kernel
def _with_nearest(records: CodedRecords, drawn: NDArray[np.int64], prices: Prices, k: int) -> NDArray[np.int64]:
    set_label, costs = set_label_arrays(1, records.positions.shape[1], 1), np.zeros(records.positions.shape[0], np.int64)
    found = np.zeros(drawn.shape[0], np.int64)
    for at in range(drawn.shape[0]):
        start_set_label(set_label, 0, records, drawn[at])
        for row in range(costs.shape[0]):
            costs[row] = price_with(set_label, 0, records, row, prices)
        # The record itself is among them and costs nothing.
        found[at] = np.partition(costs, k - 1)[k - 1]
    return found


def exact(count: int) -> None:
    """Print how often the best of all partitions of a few records is found, and what is lost otherwise."""
    print(f"{'records':>8}{'k':>4}{'tables':>8}{'best found':>12}{'mean excess':>13}{'worst':>8}")
    table = made("medical", argparse.Namespace(rows=[10_000], data=DATA))
    for size, k in ((6, 2), (8, 2), (9, 3), (10, 3), (10, 4)):
        excess = np.array([missed(table, size, k, seed) for seed in range(count)])
        found = int(np.count_nonzero(excess <= 0))
        print(f"{size:>8}{k:>4}{count:>8}{found:>12}{excess.mean():>13.1%}{excess.max():>8.1%}", flush=True)


def missed(table: Table, size: int, k: int, seed: int) -> float:
    """Return by how much the classes of some records, drawn anew, cost more than the best ones."""
    codes = table.codes[np.sort(np.random.default_rng(seed).choice(len(table.codes), size, replace=False)), :WORDS_AND_AGE]
    cutting = table.cutting
    domains, hierarchies = cutting.domains[:WORDS_AND_AGE], cutting.hierarchies[:WORDS_AND_AGE]
    rows = [tuple(domain.values[int(code)].as_py() for domain, code in zip(domains, row, strict=True)) for row in codes]
    few, ways = Few(rows, domains, hierarchies, codes.astype(np.int64)), (None,) * WORDS_AND_AGE

    def cost(members_of: Sequence[int]) -> int:
        return oracle.cost_of(few, ways, members_of)

    named = [LabelPrices(None, *of) for of in zip(domains, hierarchies, strict=True)]
    classes, _ = RecordsToGroup(codes, cutting.axes[:WORDS_AND_AGE], named, k).clustered(Effort.of(size, k, 1))
    parts = [np.flatnonzero(classes == number).tolist() for number in range(int(classes.max()) + 1)]
    least = oracle.fewest(range(size), k, cost)
    return sum(len(part) * cost(part) for part in parts) / least - 1 if least else 0.0


if __name__ == "__main__":
    main()
