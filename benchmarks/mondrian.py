"""Mondrian: tables of papers/distributed-mondrian.txt (Fig. 10 and 11), speed, and utility by score.

Speed is compared with that of a plain recursion.

    python -m benchmarks.mondrian fig11 [--runs 5]     DP and NCP, centralised and distributed, under both definitions of NCP
    python -m benchmarks.mondrian fig10                seconds by number of workers
    python -m benchmarks.mondrian speed                against the recursion of tests/oracles, class for class the same
    python -m benchmarks.mondrian gcp [--adult DIR]    GCP at k = 10 for every score and order of siblings
    python -m benchmarks.mondrian scale [--rows 1000000 40000000 125000000] [--memory 1GB]
                                                       whole runs on files of a million patients, beside a DuckDB copy of the same columns

DIR holds adult.csv and hierarchy_<qid>.csv. Data are made in ``benchmarks/.data`` (or ``--data``) and kept for the next time. ``scale``
ends with 1 if the process tree of a run ever holds more than 1.5 times the job's memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from benchmarks.scale import MOST, PER_FILE, anonymised, copied, prepare
from core.columns.coding import Coder
from core.columns.domains import read_domains
from core.hierarchies.hierarchy import build_hierarchy
from core.histograms.domain_counts import DomainCounter
from core.mondrian.fragments import cut_tree_by_mondrian, cut_tree_by_quantiles, merge_thin, sample_mask
from core.mondrian.partition import SCORES, Rules
from core.mondrian.ranks import CutAxis, axis_of
from core.mondrian.recoding import Cutting, label_partition, total_losses
from core.privacy.models import DistinctDiversity
from core.privacy.promise import Promise
from data.tables import JOBS, maker
from schemas.job.columns import QuasiIdentifier
from schemas.reading.model import memory_bytes
from tests.oracles.mondrian import Column, Mondrian

DATA = Path(__file__).parent / ".data"
ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
PLAIN_SIZES = (3_000, 30_000, 100_000)
Losses = dict[str, int | float]


@dataclass(frozen=True)
class Table:
    """Coded records: shape (n, QIDs), or with the sensitive column as the last one.

    It also has how they are cut, and in which order by NCP.
    """

    codes: NDArray[Any]
    cutting: Cutting
    learnt: tuple[CutAxis, ...]

    @property
    def ones(self) -> NDArray[np.int64]:
        return np.ones(len(self.codes), np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subjects = {"fig11": fig11, "fig10": fig10, "speed": speed, "gcp": gcp, "scale": scale}
    parser.add_argument("what", choices=subjects)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="more than one size is for scale alone")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    subjects[given.what](given)


def coded(table: pa.Table, qids: Sequence[QuasiIdentifier], folder: Path, sensitive: str | None = None) -> Table:
    names = [*(qid.name for qid in qids), *([sensitive] if sensitive else [])]
    columns = [table[name].combine_chunks() for name in names]
    counter = DomainCounter([column.type.value_type if pa.types.is_dictionary(column.type) else column.type for column in columns])
    for batch in table.select(names).to_batches():
        counter.add(batch)
    domains = read_domains(counter.table(), names)
    codes = np.stack([Coder(domain).code(column) for domain, column in zip(domains, columns, strict=True)], axis=1)
    of = domains[: len(qids)]
    hierarchies = tuple(build_hierarchy(qid, domain, folder) for qid, domain in zip(qids, of, strict=True))
    listed, learnt = (
        tuple(axis_of(qid, domain, hierarchy, folder, order) for qid, domain, hierarchy in zip(qids, of, hierarchies, strict=True))
        for order in ("listed", "ends")
    )
    wholes = tuple(domain.counts for domain in domains[len(qids) :])
    rules = Rules(Promise(10), tuple(names[len(qids) :]), wholes)
    return Table(codes.astype(np.uint16), Cutting(listed, of, hierarchies, rules, (None,) * len(qids)), learnt)


def made(name: str, given: argparse.Namespace, sensitive: str | None = None) -> Table:
    rows = given.rows[0]
    folder = given.data / f"mondrian-{rows}" / name
    if not folder.exists():
        maker(name)(folder, rows)
    job = yaml.safe_load((JOBS / f"{name}.yaml").read_text())
    qids = [QuasiIdentifier.model_validate(qid) for qid in job["columns"]["quasi_identifiers"]]
    return coded(pq.read_table(folder), qids, JOBS, sensitive)


def asked(table: Table, k: int, diversity: int = 0, **changes: Any) -> Table:
    columns, wholes = table.cutting.rules.columns, table.cutting.rules.source_counts
    # As the paper does: by default a class whose best cut l refuses stays whole, which with rare hands is nearly all of them.
    rules = Rules(Promise(k, (DistinctDiversity(columns[0], diversity),)), columns, wholes, "next") if diversity else Rules(Promise(k))
    axes = table.learnt if changes.get("score") == "ncp" else table.cutting.axes
    return replace(table, cutting=replace(table.cutting, rules=rules, **{"axes": axes} | changes))


def costs(table: Table, rows: NDArray[np.intp]) -> Losses:
    """Return the losses of one fragment.

    Besides the product's there are ranges over the number of values in the domain: Fig. 11's centralised column.
    """
    codes, weights = table.codes[rows], np.ones(len(rows), np.int64)
    published = label_partition(table.cutting, codes, weights, table.cutting.cut(codes, weights))
    spans = {axis.qid: float(np.ptp(axis.numbers)) / axis.size for axis in table.cutting.axes if axis.numbers is not None}
    over = sum(penalty * spans.get(qid, 1.0) for qid, penalty in published.penalties.items())
    return dict(published.losses) | {"ncp_over_values": over}


def fragments(table: Table, count: int, way: str, share: float, seed: int) -> list[NDArray[np.intp]]:
    """The records of each fragment."""
    cutting, words = table.cutting, tuple(column.astype(np.int64) for column in table.codes.T)
    drawn = table.codes[sample_mask(words, share, seed)]
    ones = np.ones(len(drawn), np.int64)
    tree = (
        cut_tree_by_quantiles(cutting, drawn, ones, count)
        if way == "quantile"
        else cut_tree_by_mondrian(cutting, drawn, ones, count, share)
    )
    leaves = tree.leaf_of(cutting.ranks(table.codes))
    sizes = np.bincount(leaves, minlength=tree.leaves)
    groups = merge_thin(tree, lambda group: int(sizes[list(group)].sum()) >= cutting.rules.promise.k)
    return [np.flatnonzero(np.isin(leaves, group)) for group in groups]


def whole(table: Table, parts: Sequence[NDArray[np.intp]]) -> Losses:
    each = [costs(table, part) for part in parts]
    over = sum(part["ncp_over_values"] for part in each)
    return total_losses(each, len(table.cutting.axes), table.cutting.rules.promise.k, len(table.codes)) | {"ncp_over_values": over}


def fig11(given: argparse.Namespace) -> None:
    plain = made("poker", given, "hand")
    print(f"poker, {given.rows[0]:,} hands, l = 2, mean of {given.runs} runs; NCP: range over range (the paper's distributed columns),")
    print("range over the number of values in the domain (its centralised column), distinct values over the number in the domain")
    heads = f"{'NCP range':>11} {'over values':>12} {'NCP distinct':>12}"
    print(f"{'k':>3} {'sample':>8} {'fragments':>18} {'workers':>7} {'DP':>11} {heads} {'classes':>9}")
    for k in (5, 10, 20):
        table = asked(plain, k, 2, mode="median")
        for share in (0.001, 0.0001, 0.00001):
            for way in ("quantile", "multidimensional"):
                for workers in (5, 10):
                    runs = [whole(table, fragments(table, workers, way, share, seed)) for seed in range(given.runs)]
                    show(k, f"{share:.3%}", way, str(workers), runs, given.rows[0])
        everyone = [np.arange(given.rows[0])]
        show(k, "all", "centralised", "1", [whole(table, everyone)], given.rows[0])
        show(k, "all", "… or below median", "1", [whole(asked(plain, k, 2), everyone)], given.rows[0])
        show(k, "all", "… score: ncp", "1", [whole(asked(plain, k, 2, score="ncp"), everyone)], given.rows[0])


def show(k: int, share: str, way: str, workers: str, runs: Sequence[Losses], rows: int) -> None:
    means = [float(np.mean([run[name] for run in runs])) for name in ("dm_partitions", "ncp", "ncp_over_values", "ncp_distinct")]
    classes = np.mean([rows / (k * run["c_avg"]) for run in runs])
    figures = f"{means[0]:>11.4g} {means[1]:>11.4g} {means[2]:>12.4g} {means[3]:>12.4g} {classes:>9,.0f}"
    print(f"{k:>3} {share:>8} {way:>18} {workers:>7} {figures}", flush=True)


def fig10(given: argparse.Namespace) -> None:
    plain = made("poker", given, "hand")
    table = asked(plain, 10, 2)
    print(
        f"poker, {given.rows[0]:,} hands, k = 10, l = 2, sample 0.1%: sharing records out, then cuts and labels of fragments from a queue"
    )
    print(f"{'':>18}{'workers':>8}{'fragments':>11}{'sharing':>9}{'all':>7}{'busiest worker':>16}  CPU s{'wall s':>9} (threads)")
    for way in ("quantile", "multidimensional"):
        for workers in (1, 2, 4, 8):
            start = time.process_time()
            parts = fragments(table, workers, way, 0.001, 0)
            sharing, alone = time.process_time() - start, []
            for part in parts:
                start = time.process_time()
                costs(table, part)
                alone.append(time.process_time() - start)
            wall = time.perf_counter()
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda part: costs(table, part), parts))
            wall = time.perf_counter() - wall
            busiest = sharing + longest_queue(alone, workers)
            print(
                f"{way:>18}{workers:>8}{len(parts):>11}{sharing:>9.2f}{sharing + sum(alone):>7.2f}{busiest:>16.2f}{sharing + wall:>16.2f}",
                flush=True,
            )


def longest_queue(seconds: Sequence[float], workers: int) -> float:
    """How long the last of some workers is busy, each taking the next fragment as it becomes free."""
    busy = [0.0] * workers
    for second in seconds:
        busy[busy.index(min(busy))] += second
    return max(busy)


def speed(given: argparse.Namespace) -> None:
    table = asked(made("poker", given), 10)
    columns = [Column(range(axis.size), numerical=True) for axis in table.cutting.axes]
    table.cutting.cut(table.codes[:1000], table.ones[:1000])  # compiled before the clock runs
    print("poker, k = 10; the recursion is that of tests/oracles, on lists")
    print(f"{'hands':>12}{'CPU s':>9}{'recursion':>11}{'times':>7}  classes", flush=True)
    for rows in (*(size for size in PLAIN_SIZES if size < given.rows[0]), given.rows[0]):
        start = time.process_time()
        found = table.cutting.cut(table.codes[:rows], table.ones[:rows])
        cpu = time.process_time() - start
        slow = ""
        if rows in PLAIN_SIZES:
            records = [tuple(row) for row in table.cutting.ranks(table.codes[:rows]).tolist()]
            start = time.process_time()
            plain = Mondrian(columns, 10).classes(records)
            naive = time.process_time() - start
            same = sorted(map(sorted, plain)) == sorted(sorted(part.tolist()) for part in np.split(found.order, found.starts[1:-1]))
            slow = f"{naive:>11.2f}{naive / cpu:>7.0f}" if same else "  not the same classes"
        print(f"{rows:>12,}{cpu:>9.4f}{slow:<18}  {found.classes:,}", flush=True)


def gcp(given: argparse.Namespace) -> None:
    print("GCP at k = 10: of what is published, and of the values that classes hold (ranges, and sets of others)")
    for name, table in tables(given):
        for score in SCORES:
            start = time.process_time()
            loss = whole(asked(table, 10, score=score), [np.arange(len(table.codes))])
            cpu = time.process_time() - start
            print(f"{name:>16} {score:>17} {loss['gcp']:.4f} {loss['gcp_held']:.4f} C_avg {loss['c_avg']:.3f} {cpu:.2f} CPU s", flush=True)
        for order in ("listed", *range(5)):
            axes = table.cutting.axes if order == "listed" else shuffled(table, int(order))
            loss = whole(asked(table, 10, score="ncp", axes=axes), [np.arange(len(table.codes))])
            words = "ncp, as listed" if order == "listed" else f"ncp, at random {order}"
            print(f"{name:>16} {words:>17} {loss['gcp']:.4f} {loss['gcp_held']:.4f} C_avg {loss['c_avg']:.3f}", flush=True)


def shuffled(table: Table, seed: int) -> tuple[CutAxis, ...]:
    """The axes with the siblings of every hierarchy of words in an order at random."""
    drawn, axes = np.random.default_rng(seed), []
    for axis, hierarchy in zip(table.cutting.axes, table.cutting.hierarchies, strict=True):
        ranks = axis.ranks.copy()
        if axis.numbers is None:
            keys = [drawn.permutation(int(groups.max()) + 1)[groups[: axis.values]] for groups in hierarchy.groups]
            ranks[np.lexsort(keys)] = np.arange(axis.values)
        axes.append(replace(axis, ranks=ranks))
    return tuple(axes)


def tables(given: argparse.Namespace) -> Iterator[tuple[str, Table]]:
    if given.adult:
        read = pyarrow.csv.read_csv(given.adult / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
        qids = [QuasiIdentifier.model_validate({"name": name, "hierarchy": {"csv": f"hierarchy_{name}.csv"}}) for name in ADULT]
        yield "adult", coded(read, qids, given.adult)
    yield f"medical {given.rows[0]:,}", made("medical", given)


def scale(given: argparse.Namespace) -> None:
    print(f"medical, k = 10, memory {given.memory}; the copy is DuckDB's, of the same columns, in the same run")
    heads = f"{'records':>12}{'CPU s':>9}{'µs each':>9}{'peak MB':>9}{'fragments':>11}{'copy CPU s':>12}{'× copy':>8}"
    print(f"{heads}  classes, GCP", flush=True)
    data, peaks = prepare(given.data / "medical-scale", max(given.rows)), []
    settings: dict[str, int | str] = {"method": "{name: mondrian}", "privacy.k": 10}
    # Loops are compiled once and kept; that is no cost of a run.
    anonymised(sorted(data.glob("*.parquet"))[:1], given.memory, ["--direct"], **settings, **{"method.fragments.count": 2})
    for rows in given.rows:
        files = sorted(data.glob("*.parquet"))[: max(rows // PER_FILE, 1)]
        copy = copied(files, given.memory)
        cost, said = anonymised(files, given.memory, ["--direct"], **settings)
        peaks.append(cost.peak)
        print(
            f"{said['records']:>12,}{cost.cpu:>9.1f}{cost.cpu / said['records'] * 1e6:>9.2f}{cost.peak / 1e6:>9.0f}"
            f"{said['search']['fragments']:>11}{copy.cpu:>12.1f}{cost.cpu / copy.cpu:>8.2f}"
            f"  {said['classes']:,} {said['loss']['gcp']:.4f}  {said['seconds']}",
            flush=True,
        )
    if max(peaks) > MOST * memory_bytes(given.memory):
        sys.exit(f"A run held {max(peaks) / 1e6:,.0f} MB, more than {MOST} times its memory.")


if __name__ == "__main__":
    main()
