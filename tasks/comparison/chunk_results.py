"""What a comparison found: Table III and Fig. 3 as figures, and the folder that they are written to. They hold no cell value."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from core.columns.node import Node
from core.evaluation.per_chunk_baseline import Spread, pooled, ratio
from core.hierarchies.hierarchy import Hierarchy
from schemas.hierarchies.kinds import entry_of
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.reading.model import plain
from tasks.comparison.chunks import Optimum, Recounted
from tasks.counting.coding import Coding
from tasks.report.units import Unit
from tasks.source.chunks import Source
from tasks.store.files import USER_UMASK, open_folder, write_whole


class NodeShare(BaseModel):
    """A node, and how many chunks chose it."""

    model_config = ConfigDict(frozen=True)

    node: Node
    chunks: int


class Alone(BaseModel):
    """The releases of chunks that were anonymised alone, concatenated.

    Attributes:
        nodes: The chunks' nodes, most common first.
        lowest: Lowest level of each QID among them; None if no chunk could be released.
        highest: Highest level.
        lost_chunks: Chunks for which no node passes; all their records are suppressed.
        classes: Published classes of the concatenated table.
        suppressed: s, over all chunks.
        dm_star: Σ|E|² + s² of the concatenated table (the paper's way; see ``core.evaluation.per_chunk_baseline``).
        dm_star_summed: Σ over the chunks of each one's own DM*.
        gcp: Mean normalised certainty penalty; a suppressed record counts as 1.
        unexamined: Nodes that memory left out of the chunks' searches and that could be better, over all chunks; 0 certifies all optima.
    """

    model_config = ConfigDict(frozen=True)

    nodes: tuple[NodeShare, ...]
    lowest: Node | None
    highest: Node | None
    lost_chunks: int
    classes: int
    suppressed: int
    dm_star: int
    dm_star_summed: int
    gcp: float
    unexamined: int


class Case(BaseModel):
    """One bar of Fig. 3 and, at one k, one row of Table III.

    Attributes:
        chunks: Number of chunks.
        k: Least size of a class, in the comparison's unit.
        records: N, over all chunks.
        skald: One node for all chunks.
        alone: A node for each chunk.
        ratio: DM* ratio (eq. 5), classes recounted over all chunks; the ratio of losses per record (DM* / N) as well.
        ratio_summed: The same with each chunk's own DM*.
    """

    model_config = ConfigDict(frozen=True)

    chunks: int
    k: int
    records: int
    skald: Optimum
    alone: Alone
    ratio: float
    ratio_summed: float


class ComparedQid(BaseModel):
    """A QID and how its levels are spelt: bin widths, ``*`` for the last level, L0, L1, … for levels of other kinds."""

    model_config = ConfigDict(frozen=True)

    name: str
    levels: tuple[str, ...]


class Comparison(BaseModel):
    """An experiment and its outcome.

    Attributes:
        name: The job's name.
        inputs: Digest of the source files.
        data: ``growing``: chunks of one size, more data with more chunks (the paper's); ``cut``: the same data in more chunks.
        records: Of the whole source.
        limit: Share of the records that may be suppressed, in each chunk or in all.
        objective: What the searches minimise.
        memory: Bytes.
        unit: What k counts: ``record`` or ``person``.
        qids: In job order.
        cases: By number of chunks, then by k.
        seconds: Wall time per phase.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    inputs: str
    data: str
    records: int
    limit: str
    objective: str
    memory: int
    unit: str = "record"
    qids: tuple[ComparedQid, ...]
    cases: tuple[Case, ...]
    seconds: dict[str, float]


def make_case(skald: Optimum, alone: Sequence[Optimum], recounted: Recounted) -> Case:
    """Compares one node for all chunks with a node for each."""
    spread = Spread.of(optimum.node for optimum in alone if optimum.node is not None)
    suppressed, summed = sum(optimum.suppressed for optimum in alone), sum(optimum.dm_star for optimum in alone)
    concatenated = Alone(
        nodes=tuple(NodeShare(node=node, chunks=chunks) for node, chunks in spread.shares),
        lowest=spread.lowest,
        highest=spread.highest,
        lost_chunks=sum(optimum.node is None for optimum in alone),
        classes=recounted.classes,
        suppressed=suppressed,
        # Classes of several chunks may publish the same labels and are one then; suppressed records of all chunks simply add up.
        dm_star=recounted.squares + suppressed**2,
        dm_star_summed=summed,
        gcp=pooled([optimum.gcp for optimum in alone], [optimum.records for optimum in alone]),
        unexamined=sum(optimum.unexamined for optimum in alone),
    )
    return Case(
        chunks=len(alone), k=skald.k, records=skald.records, skald=skald, alone=concatenated,
        ratio=ratio(concatenated.dm_star, skald.dm_star), ratio_summed=ratio(summed, skald.dm_star),
    )  # fmt: skip


def make_comparison(job: Job, source: Source, coding: Coding, cases: Sequence[Case], seconds: dict[str, float], *, cut: bool) -> Comparison:
    """Puts the outcome together with what it was asked of."""
    return Comparison(
        name=job.name,
        inputs=source.digest,
        data="cut" if cut else "growing",
        records=source.records,
        # As text: as a number of JSON it would come back as the nearest binary fraction.
        limit=str(plain(job.suppression.limit)),
        objective=full_domain(job.method).objective,
        memory=job.memory,
        unit=Unit.of_job(job).one,
        qids=tuple(
            ComparedQid(name=qid.name, levels=spelt_levels(qid, hierarchy))
            for qid, hierarchy in zip(job.columns.quasi_identifiers, coding.hierarchies, strict=True)
        ),
        cases=tuple(cases),
        seconds={phase: round(duration, 3) for phase, duration in seconds.items()},
    )


def spelt_levels(qid: QuasiIdentifier, hierarchy: Hierarchy) -> tuple[str, ...]:
    """Returns how the levels of a QID are spelt: by bin width as in the paper's Table III, or by number."""
    widths = entry_of(qid.hierarchy).marks(qid.hierarchy)
    if not widths:
        return (*(f"L{level}" for level in range(hierarchy.top)), "*")
    # The first width is level 0 where it merges no values; else level 0 holds the values themselves.
    return (*(widths if len(widths) == hierarchy.top else ["values", *widths]), "*")


def comparison_folder(job: Job, to: Path | None) -> Path:
    """Returns where figures go: the folder that is asked for, or ``<target>-comparison``, beside the releases and never among them."""
    # An object store has no folder beside its releases: figures stay on this machine.
    beside = job.resolve(Path(job.name)) if job.target_address else job.target_path
    return to or beside.with_name(f"{beside.name}-comparison")


def write_comparison(folder: Path, comparison: Comparison) -> list[Path]:
    """Writes ``comparison.json`` and ``comparison.csv``, over those of an earlier comparison.

    Raises:
        StorageError: the folder cannot be written.
    """
    return [
        write_figure(folder / "comparison.json", lambda path: path.write_text(comparison.model_dump_json(indent=2) + "\n")),
        write_figure(folder / "comparison.csv", lambda path: _write_csv(path, comparison)),
    ]


def write_figure(path: Path, write: Callable[[Path], int]) -> Path:
    """Writes one file of a comparison, whole. It may be read by whom the user's umask lets, unlike artefacts.

    Raises:
        StorageError: a folder, the disk or another run stands in the way.
    """
    open_folder(path.parent)
    write_whole(path, write, 0o666 & ~USER_UMASK)
    return path


def _write_csv(path: Path, comparison: Comparison) -> int:
    rows = [_row(case) for case in comparison.cases]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _row(case: Case) -> dict[str, object]:
    def spelt(node: Node | None) -> str:
        return " ".join(map(str, node)) if node else ""

    skald, alone = case.skald, case.alone
    common = alone.nodes[0] if alone.nodes else None
    return {
        "chunks": case.chunks,
        "k": case.k,
        "records": case.records,
        "ratio": case.ratio,
        "ratio_summed": case.ratio_summed,
        "skald_node": spelt(skald.node),
        "skald_classes": skald.classes,
        "skald_suppressed": skald.suppressed,
        "skald_dm_star": skald.dm_star,
        "skald_gcp": skald.gcp,
        "skald_unexamined": skald.unexamined,
        "alone_common_node": spelt(common.node if common else None),
        "alone_common_chunks": common.chunks if common else 0,
        "alone_nodes": len(alone.nodes),
        "alone_lowest_levels": spelt(alone.lowest),
        "alone_highest_levels": spelt(alone.highest),
        "alone_lost_chunks": alone.lost_chunks,
        "alone_classes": alone.classes,
        "alone_suppressed": alone.suppressed,
        "alone_dm_star": alone.dm_star,
        "alone_dm_star_summed": alone.dm_star_summed,
        "alone_gcp": alone.gcp,
        "alone_unexamined": alone.unexamined,
    }
