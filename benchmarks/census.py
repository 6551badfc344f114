"""Branch and bound in lattices too large for memory, compared with a search like Lightning.

Both searches do the same number of roll-ups.

    python -m benchmarks.census [--qids 9,12,15] [--efforts 1000,10000] [--k 10] [--limit 0.01] [--objective dm_star]

The data are those of the UCI repository's "Census-Income (KDD)", 299,285 records, expected as ``census_kdd/census_kdd.parquet`` in the
folder that ``--data`` names, which is ``../shared/data`` beside this checkout if it is left out.

What is called Lightning here follows the paper (Prasser et al. 2016) in what it visits: best first by a monotone loss, from the finest node
upwards, with a greedy descent at every n-th expansion of n quasi-identifiers; top-down is the same from the coarsest node. It counts with
the same roll-ups and keeps as many histograms.
"""

from __future__ import annotations

import argparse
import heapq
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from math import floor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from core.columns.coding import Coder
from core.columns.domains import Domain, read_domains
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from core.histograms.cells import packing_of
from core.histograms.domain_counts import DomainCounter
from core.histograms.histogram import Histogram, count_cells
from core.lattice.bounded_evaluations import Evaluations, Steps
from core.lattice.branch_and_bound import BranchAndBound, with_step
from core.lattice.objectives import prices_of
from core.privacy.promise import Promise
from schemas.errors.signals import SpentError
from schemas.job.columns import QuasiIdentifier
from tasks.engine.progress import peak_rss

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
QIDS: dict[str, list[int] | None] = {
    "age": [5, 10, 20, 40],
    "education": None,
    "marital_stat": None,
    "weeks_worked_in_year": [2, 4, 12, 24],
    "major_industry_code": None,
    "country_of_birth_self": None,
    "detailed_occupation_recode": [2, 4, 8, 16],
    "wage_per_hour": [100, 500, 1000, 5000],
    "capital_gains": [1000, 5000, 10000, 50000],
    "detailed_industry_recode": [2, 4, 8, 16],
    "dividends_from_stocks": [100, 1000, 5000, 25000],
    "state_of_previous_residence": None,
    "capital_losses": [500, 1000, 2000, 4000],
    "detailed_household_and_family_stat": None,
    "major_occupation_code": None,
}
"""Bin widths; text without widths is grouped by 2, 4, 8 and 16 neighbours in the order of the alphabet. Six levels each."""
WAYS = {"ours": "branch and bound", "up": "Lightning, bottom-up", "down": "Lightning, top-down"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qids", default="9,12,15")
    parser.add_argument("--efforts", default="1000,10000")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--limit", type=float, default=0.01)
    parser.add_argument("--objective", choices=["dm_star", "dm_all", "gcp"], default="dm_star")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--one", choices=list(WAYS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    source = asked.data / "census_kdd" / "census_kdd.parquet"
    if not source.is_file():
        sys.exit(f"'{source}' is not there. Put the Census-Income (KDD) data there as Parquet, or name its folder by --data.")
    if asked.one:
        print(json.dumps(measured(asked, source)))
        return
    print(f"\nCensus-Income (KDD), 299,285 records, k = {asked.k}, limit {asked.limit}, {asked.objective}\n")
    print(f"{'QIDs':>4} {'nodes':>15} {'effort':>7}  {'search':<21}{'rolled up':>9} {'value':>15} {'gap':>8} {'CPU s':>7} {'peak MB':>8}")
    for qids in asked.qids.split(","):
        for effort in asked.efforts.split(","):
            for way, name in WAYS.items():
                found = alone(way, qids, effort)
                shown = f"{found['value'] or 0:,.4f}" if isinstance(found["value"], float) else f"{found['value'] or 0:,}"
                value = shown if found["value"] else "none"
                gap = "unknown" if found["gap"] is None else f"{found['gap']:.1%}" if found["gap"] else "0: proved"
                figures = f"{found['evaluated']:>9,} {value:>15} {gap:>9}{found['cpu']:>7.1f} {found['peak'] / 1e6:>8.0f}"
                print(f"{qids:>4} {found['nodes']:>15,} {int(effort):>7,}  {name:<21}{figures}", flush=True)


def alone(way: str, qids: str, effort: str) -> dict[str, Any]:
    """Run one search in a process of its own, whose peak memory is nobody else's."""
    given = [*sys.argv[1:], "--one", way, "--qids", qids, "--efforts", effort]
    done = subprocess.run([sys.executable, "-m", "benchmarks.census", *given], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(asked: argparse.Namespace, source: Path) -> dict[str, Any]:
    """Run one search and return its figures.

    Times leave out compiling and reading; the memory of both is counted.
    """
    root, hierarchies, domains = counted(source, int(asked.qids))
    model, most = Promise(asked.k), floor(asked.limit * root.records)
    prices = prices_of(asked.objective, hierarchies, domains, left=root)
    BranchAndBound(Evaluations(root, hierarchies, model, most, asked.objective, effort=30, prices=prices)).run()
    start = time.process_time()
    if asked.one == "ours":
        found = BranchAndBound(Evaluations(root, hierarchies, model, most, asked.objective, effort=int(asked.efforts), prices=prices)).run()
        assert found is not None
        counts = {"dm_star": found.loss.dm_star, "dm_all": found.loss.dm_all}
        # A price is told by its bound and how far it is above that.
        value = counts.get(asked.objective, (found.bound or 0) * (1 + (found.gap or 0)))
        figures = {"nodes": found.nodes, "evaluated": found.evaluated, "value": value, "gap": found.gap}
    else:
        nodes = Evaluations(root, hierarchies, model, most, asked.objective, effort=int(asked.efforts), prices=prices)
        lightning(nodes, 1 if asked.one == "up" else -1)
        figures = {"nodes": nodes.lattice.nodes, "evaluated": nodes.spent, "value": nodes.best and nodes.best[0], "gap": None}
    if prices and figures["value"]:
        figures["value"] /= root.records * len(hierarchies)
    return figures | {"cpu": time.process_time() - start, "peak": peak_rss()}


def counted(source: Path, qids: int) -> tuple[Histogram, list[Hierarchy], Sequence[Domain]]:
    """Count the cells of the finest node of the first so many QIDs.

    Return them with their hierarchies and domains.
    """
    table = pq.read_table(source, columns=list(QIDS)[:qids]).combine_chunks()
    counter = DomainCounter(table.schema.types)
    for batch in table.to_batches():
        counter.add(batch)
    domains = read_domains(counter.table(), table.column_names)
    hierarchies = [build_hierarchy(QuasiIdentifier(name=domain.qid, hierarchy=levels_of(domain)), domain, ROOT) for domain in domains]
    finest = (0,) * qids
    packing = packing_of(finest, hierarchies)
    coders = [Coder(domain, hierarchy.groups[0]) for domain, hierarchy in zip(domains, hierarchies, strict=True)]
    words = packing.pack([coder.code(table[domain.qid].combine_chunks()) for coder, domain in zip(coders, domains, strict=True)])
    return Histogram(finest, packing, *count_cells(words, packing.product)), hierarchies, domains


def levels_of(domain: Domain) -> Any:
    """Return the hierarchy of a QID as a job has it."""
    if widths := QIDS[domain.qid]:
        return {"widths": widths}

    def grouped(values: list[str], size: int) -> Any:
        parts = [values[first : first + size] for first in range(0, len(values), size)]
        return values if size == 1 else {f"{part[0]} and {size - 1} more": grouped(part, size // 2) for part in parts}

    return {"tree": {"*": grouped(domain.values.to_pylist(), 16)}}


def lightning(nodes: Evaluations, step: int) -> None:
    """Search best first until the effort is spent.

    Args:
        nodes: The lattice.
        step: 1 from the finest node to coarser ones, -1 from the coarsest to finer ones.
    """
    start = nodes.bottom if step == 1 else nodes.top
    queue, known, expanded = [(0.0, start)], {start}, 0

    def expand(steps: Steps) -> list[tuple[float, Steps]]:
        fresh = [other for other in neighbours(nodes, steps, step) if other not in known]
        known.update(fresh)
        values = [(nodes.cost(other) if step == 1 else float(nodes.evaluate(other).value), other) for other in fresh]
        return [pair for pair in values if (pair[0] <= nodes.value if step == 1 else nodes.passes(pair[1]))]

    try:
        nodes.evaluate(start)
        while queue:
            _, current = heapq.heappop(queue)
            expanded += 1
            while following := expand(current):
                for pair in following:
                    heapq.heappush(queue, pair)
                if expanded % len(nodes.top):
                    break
                current = min(following)[1]
    except SpentError:
        pass


def neighbours(nodes: Evaluations, steps: Steps, step: int) -> Iterator[Steps]:
    """Yield the nodes one level away on one QID."""
    for qid, top in enumerate(nodes.top):
        if 0 <= steps[qid] + step <= top:
            yield with_step(steps, qid, steps[qid] + step)


if __name__ == "__main__":
    main()
