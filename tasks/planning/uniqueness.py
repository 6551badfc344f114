"""Who stands out in the source as it is, counted for a plan, or why that is not known."""

from __future__ import annotations

from typing import NamedTuple

from core.privacy.risk import Figures
from tasks.counting.chunk_histograms import count_histograms
from tasks.counting.chunk_people import count_pairs
from tasks.counting.coding import DomainTable, load_coding
from tasks.counting.source_sizes import MOST_ROWS, CellFiles, count_sizes, merge_histograms
from tasks.counting.uniqueness import Contributors, uniqueness
from tasks.engine.runs import Run
from tasks.lattice.recodings import choose_root
from tasks.planning.forecast import Forecast, forecast_of
from tasks.planning.local_plan import LocalPlan
from tasks.source.chunks import ChunkedSource
from tasks.store.store import Artifact


class Uniqueness(NamedTuple):
    """Who stands out, the risk of that, what was not counted of it, and what ways to anonymise would lose."""

    contributors: Contributors | None
    risk: Figures
    not_counted: str
    forecast: Forecast | None = None


def uniqueness_of(run: Run, source: ChunkedSource, domain: Artifact, local: LocalPlan | None) -> Uniqueness:
    """Counts phase 2 and who stands out in it, or says why not.

    A search of the lattice would count it in any case. For other methods it is left alone where a sample says that it is too much.

    Raises:
        SkaldError: whatever a step raises.
    """
    coding = load_coding(run.job, domain, run.store)
    root = choose_root(run.job, coding)
    if local and local.distinct * source.records > MOST_ROWS:
        return Uniqueness(None, {}, _too_many(round(local.distinct * source.records)))
    pairs = count_pairs(run, source)
    parts = count_histograms(run, source)
    # At a coarser root records that differ look alike, so that who stands out is counted from the chunks' own cells.
    forecast = forecast_of(run.job, coding, parts, run.store)
    files = [merge_histograms(run, domain, root, parts)] if root == coding.finest and not pairs else parts
    sizes = count_sizes(run, domain, root, files[0], parts, pairs)
    if sizes is None:
        return Uniqueness(None, {}, _too_many(sum(part.rows for part in pairs or parts)), forecast)
    contributors, risk = uniqueness(DomainTable.of(run, domain), CellFiles(files, pairs), sizes)
    told = "" if contributors.without else "There are too many combinations to count them once more without each quasi-identifier."
    return Uniqueness(contributors, risk, told, forecast)


def _too_many(cells: int) -> str:
    return f"{cells:,} combinations, or about so many, are too many to add up, so how unique records are is not known."
