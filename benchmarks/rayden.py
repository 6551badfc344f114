"""The experiments of papers/rayden.txt and more.

They are losses by k on Adult, outliers at n = 10,000, and the time that 1 M records take.

    python -m benchmarks.rayden ADULT [--medical FILE] [--scale] [--pictures FOLDER]

ADULT is a folder with adult.csv and its hierarchies, as the ARX project has them. Kernels are compiled before anything is measured; times
are CPU seconds of the algorithm and of its labels, without start-up, reading and writing.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.pictures.rayden import picture, seconds, share
from core.charts.chart import short_figure
from core.clustering.gower import gower_points
from core.clustering.merged_classes import ClassPublication, recode_records
from core.clustering.outlier_step import MondrianCut, OutlierResult, OutlierStep, separate_outliers
from core.clustering.semantic import Clustering
from core.clustering.vptree import VantageTree, canon_partition
from core.columns.coding import Coder
from core.columns.domains import Domain, read_domains
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.histograms.cells import packing_of, roll_up
from core.histograms.domain_counts import DomainCounter
from core.histograms.histogram import Histogram, count_cells
from core.lattice.search import Search
from core.mondrian.ranks import axis_of
from core.privacy.promise import Promise
from core.recoding.labels import gcp_of_class_values
from core.recoding.release_order import canonical_record_order
from core.units.losses import c_avg, certainty_penalty, dm
from schemas.job.columns import QuasiIdentifier

ADULT_QIDS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
KS = (5, 10, 20, 50, 100)
JOB = Path(__file__).parent.parent / "data" / "jobs" / "medical.yaml"


@dataclass(frozen=True, eq=False)
class Table:
    """Records as codes in canonical order, with all that is known of their QIDs."""

    codes: NDArray[np.integer]
    qids: Sequence[QuasiIdentifier]
    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]
    folder: Path

    def first(self, rows: int) -> Table:
        """A sample of the records, over domains of its own."""
        picked = np.sort(np.random.default_rng(0).permutation(len(self.codes))[:rows])
        columns = []
        for qid, domain in enumerate(self.domains):
            columns.append(domain.values.take(pa.array(self.codes[picked, qid])))
        return coded(columns, self.qids, self.folder)

    def mondrian(self, k: int) -> MondrianCut:
        """Strict Mondrian over the records."""
        qids = zip(self.qids, self.domains, self.hierarchies, strict=True)
        return MondrianCut(self.codes, [axis_of(*qid, self.folder) for qid in qids], k)


def coded(columns: Sequence[pa.Array], qids: Sequence[QuasiIdentifier], folder: Path) -> Table:
    names = [qid.name for qid in qids]
    counter = DomainCounter([column.type for column in columns])
    counter.add(pa.RecordBatch.from_arrays(columns, names=names))
    domains = read_domains(counter.table(), names)
    codes = [Coder(domain).code(column) for domain, column in zip(domains, columns, strict=True)]
    order = canonical_record_order(codes, [domain.size for domain in domains], np.zeros(len(codes[0]), np.uint64))
    hierarchies = tuple(build_hierarchy(qid, domain, folder) for qid, domain in zip(qids, domains, strict=True))
    return Table(np.column_stack(codes)[order], qids, domains, hierarchies, folder)


def adult(folder: Path) -> Table:
    with (folder / "adult.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file, delimiter=";"))
    texts = [pa.array([record[name] for record in records]) for name in ADULT_QIDS]
    columns = [text.cast(pa.int64()) if name == "age" else text for name, text in zip(ADULT_QIDS, texts, strict=True)]
    qids = [QuasiIdentifier.model_validate({"name": name, "hierarchy": {"csv": f"hierarchy_{name}.csv"}}) for name in ADULT_QIDS]
    return coded(columns, qids, folder)


def medical(file: Path) -> Table:
    from schemas.job.job import load_job

    job = load_job(JOB)
    qids = job.columns.quasi_identifiers
    table = pq.read_table(file, columns=[qid.name for qid in qids]).combine_chunks()
    return coded([table[qid.name].combine_chunks() for qid in qids], qids, job.folder)


Row = tuple[float, float, float, float, float, float]
Method = Callable[[Table, int], Row]


def labelled(table: Table, k: int, classes: NDArray[np.int32], started: float) -> Row:
    """Return DM and C_avg, GCP of labels and of sets, suppressed records, and CPU seconds.

    DM and C_avg are those of the algorithm's partitions; labels and sets are the published ones.
    """
    recoded = recode_records(table.codes, classes, table.domains, table.hierarchies, ClassPublication(k))
    spent = time.process_time() - started
    loss = recoded.loss
    return loss["dm_partitions"], loss["c_avg_partitions"], loss["gcp"], loss["gcp_held"], recoded.suppressed, spent


def rayden_step(table: Table, k: int, step: OutlierStep, tree: VantageTree, *, by_hierarchy: bool) -> OutlierResult:
    points = gower_points(table.codes, table.domains, hierarchies=table.hierarchies if by_hierarchy else None)
    return separate_outliers(points, tree.partition(points), step, lambda rows, groups: tree.partition(points.take(rows), groups))


def rayden(table: Table, k: int) -> Row:
    started = time.process_time()
    return labelled(table, k, rayden_step(table, k, OutlierStep(k, leave="bounded"), VantageTree(k), by_hierarchy=True).classes, started)


def rayden_as_published(table: Table, k: int) -> Row:
    started = time.process_time()
    handled = rayden_step(table, k, OutlierStep(k, pool="suppress"), VantageTree(k, "median"), by_hierarchy=False)
    return labelled(table, k, handled.classes, started)


def canon_row(table: Table, k: int) -> Row:
    started = time.process_time()
    return labelled(table, k, canon_partition(table.codes, table.domains, VantageTree(k)), started)


def mondrian_row(table: Table, k: int) -> Row:
    started = time.process_time()
    return labelled(table, k, table.mondrian(k).partition(), started)


def mondrian_cof(table: Table, k: int) -> Row:
    started = time.process_time()
    cut = table.mondrian(k)
    points = gower_points(table.codes, table.domains)
    return labelled(table, k, separate_outliers(points, cut.partition(), OutlierStep(k), cut).classes, started)


def clustering(table: Table, k: int) -> Row:
    started = time.process_time()
    return labelled(table, k, Clustering(k).blocks(table.codes, table.domains, table.hierarchies).classes, started)


def full_domain(table: Table, k: int) -> Row:
    started = time.process_time()
    node = (0,) * len(table.domains)
    packing = packing_of(node, table.hierarchies)
    root = Histogram(node, packing, *count_cells(packing.pack(list(table.codes.T)), packing.product))
    most = len(table.codes) // 100
    found = Search(root, table.hierarchies, Promise(k), most).run()
    assert found is not None
    chosen = roll_up(root, found.node, table.hierarchies)
    kept = chosen.counts >= k
    counts, lost = chosen.counts[kept], int(chosen.counts[~kept].sum())
    penalties = [
        certainty_penalty(hierarchy, domain, level, codes[kept], counts, lost)
        for hierarchy, domain, level, codes in zip(table.hierarchies, table.domains, found.node, chosen.groups, strict=True)
    ]
    gcp, spent = float(np.mean(penalties)), time.process_time() - started
    held = gcp_of_class_values(root, chosen, ~kept, table.domains, table.hierarchies)
    return dm(counts, lost, len(table.codes)), c_avg(len(table.codes) - lost, len(counts), k), gcp, held, lost, spent


METHODS: dict[str, Method] = {
    "skald (limit 0.01)": full_domain,
    "mondrian, strict": mondrian_row,
    "canon": canon_row,
    "mondrian + cof": mondrian_cof,
    "rayden, the paper's": rayden_as_published,
    "rayden": rayden,
    "clustering": clustering,
}


def losses(table: Table, folder: Path | None) -> Iterator[str]:
    """DM, C_avg and GCP by k: the paper's first experiment, a picture per measure."""
    yield f"\nLosses, {len(table.codes):,} records\n"
    yield f"{'k':>4} {'method':<21}{'DM':>12}{'C_avg':>8}{'GCP':>8}{'GCP of sets':>13}{'suppressed':>12}{'CPU s':>8}"
    found: dict[str, list[Row]] = {name: [] for name in METHODS}
    for k in KS:
        for name, method in METHODS.items():
            found[name].append(method(table, k))
            loss, size, gcp, sets, lost, spent = found[name][-1]
            yield f"{k:>4} {name:<21}{loss:>12,.0f}{size:>8.3f}{gcp:>8.4f}{sets:>13.4f}{lost:>12,.0f}{spent:>8.3f}"
    for place, (name, title, note) in enumerate(MEASURES):
        series = {method: [row[place] for row in rows] for method, rows in found.items()}
        picture(folder, name, f"{title}, Adult", f"{note}; less is better", series, [str(k) for k in KS], "k")


MEASURES = (
    ("dm", "DM", "sum of squared partition sizes, and s·N"),
    ("c_avg", "C_avg", "records per partition in units of k"),
    ("gcp", "GCP", "of what is published: ranges and common ancestors"),
    ("gcp-of-sets", "GCP of values held", "as if partitions published the values in them"),
)
"""The first figures of a row: the name of the picture, its title, and what is measured."""


def outliers(table: Table, folder: Path | None) -> Iterator[str]:
    """Table 3: detected, recovered, suppressed and merged partitions at n = 10,000."""
    sample, ks = table.first(10_000), (5, 10, 15, 20, 25)
    yield "\nOutliers, 10,000 records (the paper's Table 3 has 3.1–4.2 % detected and 90.7–97.1 % of them recovered)\n"
    yield f"{'k':>4} {'method':<34}{'detected':>16}{'left':>7}{'recovered':>11}{'suppressed':>12}{'merged':>8}"
    shares: dict[str, dict[str, list[float | None]]] = {"detected": {}, "recovered": {}}
    for k in ks:
        points, cut = gower_points(sample.codes, sample.domains), sample.mondrian(k)
        rows = {
            "mondrian + cof": separate_outliers(points, cut.partition(), OutlierStep(k, pool="suppress"), cut),
            "median, paper": rayden_step(sample, k, OutlierStep(k, pool="suppress"), VantageTree(k, "median"), by_hierarchy=False),
            "median, Tang": rayden_step(
                sample, k, OutlierStep(k, chaining="tang", pool="suppress"), VantageTree(k, "median"), by_hierarchy=False
            ),
            "bounded": rayden_step(sample, k, OutlierStep(k, leave="bounded"), VantageTree(k), by_hierarchy=True),
        }
        for name, found in rows.items():
            detected = f"{found.detected:,} ({found.detected / len(sample.codes):.1%})"
            recovered = f"{found.recovered / found.records_left:.1%}" if found.records_left else "–"
            yield f"{k:>4} {NAMES[name]:<34}{detected:>16}{found.records_left:>7,}{recovered:>11}{found.suppressed:>12,}{found.merged:>8,}"
            shares["detected"].setdefault(name, []).append(found.detected / len(sample.codes))
            shares["recovered"].setdefault(name, []).append(found.recovered / found.records_left if found.records_left else None)
    notes = {"detected": "share of 10,000 records of Adult", "recovered": "share of the outliers that left their partition"}
    for what, series in shares.items():
        picture(folder, f"outliers-{what}", f"Outliers {what}", notes[what], series, [str(k) for k in ks], "k", share)


NAMES = {
    "mondrian + cof": "mondrian + cof",
    "median, paper": "rayden, median, paper's weights",
    "median, Tang": "rayden, median, Tang's weights",
    "bounded": "rayden, multiples of k, bounded",
}
"""What the short names of the picture stand for in the table."""


def speed(table: Table, title: str, k: int = 10) -> Iterator[tuple[str, float, str]]:
    """Yield the CPU seconds of every method that recodes single records.

    Each has its name, what it took, and a line of the table.
    """
    yield "", 0.0, f"\n{title}, {len(table.codes):,} records, k = {k}\n\n{'method':<21}{'CPU s':>8}{'GCP':>8}{'C_avg':>8}"
    for name, method in METHODS.items():
        if method is not full_domain:
            _, size, gcp, _, _, spent = method(table, k)
            yield name, spent, f"{name:<21}{spent:>8.2f}{gcp:>8.4f}{size:>8.3f}"


def scale(table: Table, folder: Path | None) -> Iterator[str]:
    """Run time over the number of records, up to all of them: the paper's third experiment."""
    sizes = (1_000, 1_500, 5_000, 10_000, 20_000, len(table.codes))
    series: dict[str, list[float | None]] = {}
    for rows in sizes:
        for name, spent, line in speed(table.first(rows), "Adult"):
            yield line
            if name:
                series.setdefault(name, []).append(spent)
    note = "without start-up, reading and writing; k = 10; less is better"
    picture(folder, "cpu", "CPU time, Adult", note, series, [short_figure(rows) for rows in sizes], "records", seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adult", type=Path)
    parser.add_argument("--medical", type=Path, help="a Parquet file from skald make-data medical")
    parser.add_argument("--scale", action="store_true", help="1,000 records of Adult to all of them, as in the paper's third experiment")
    parser.add_argument("--pictures", type=Path, help="a folder that gets a picture (SVG) of every measure")
    asked = parser.parse_args()
    table = adult(asked.adult)
    # The first call of every kernel compiles it or reads what was compiled.
    for method in METHODS.values():
        method(table, 50)
    for line in [*losses(table, asked.pictures), *outliers(table, asked.pictures)]:
        print(line)
    if asked.scale:
        for line in scale(table, asked.pictures):
            print(line)
    if asked.medical:
        for _, _, line in speed(medical(asked.medical), "Medical"):
            print(line)


if __name__ == "__main__":
    main()
