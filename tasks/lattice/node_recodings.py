"""The recoding of a node: labels, treatment of failing records, and loss."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import PackedWords
from core.columns.domains import Node
from core.histograms.cells import packing_of, positions_of_finer_cells, roll_up
from core.histograms.histogram import Histogram, count_cells
from core.lattice.lattice import Lattice
from core.lattice.search import SearchResult
from core.local_suppression.local_transformation import NodeEvaluator, RareCellLookup, members_of, transform_locally
from core.local_suppression.losses import costs_of, objective_value
from core.local_suppression.recoding import RecodedPart, recode_parts
from core.local_suppression.residual import Residual, ResidualLevel
from core.local_suppression.suppressed_records import treat_suppressed
from core.privacy.promise import Promise
from core.recoding.labels import SUPPRESSED_VALUE, gcp_of_class_values
from core.recoding.recoding import Recoding, recode
from core.units.class_table import ClassMembers, SelectedPersons, table_at, without_sensitive
from core.units.losses import c_avg, certainty_penalty, dm
from schemas.job.job import Job
from schemas.release.figures import Remainder, Round
from tasks.counting.coding import Coding, cells_in_source_coding
from tasks.counting.person_cells import CellPositions, PersonsOfSource, persons_among
from tasks.lattice.linked_people import LinkedPeople
from tasks.lattice.optimum import SearchRequirements, find_residual_node
from tasks.lattice.promises import most_suppressed, searched_axes
from tasks.store.store import Artifact, Store


class Local(Remainder):
    """Figures of locally treated records that fail at the node, and the nodes of later stages."""

    stages: tuple[Node, ...]


class RecodingWithLosses(NamedTuple):
    """A recoding with its losses, NCP per QID, suppressed records and the reasons for suppression.

    Attributes:
        suppressed: Records that are dropped or masked, and how many of them are ``masked``.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        suppressed_for: Suppressed records by the requirement that they failed, where that was counted.
        local: Figures of records treated locally; None where failing records are dropped or masked.
    """

    recoding: Recoding
    suppressed: int
    masked: int
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int]
    local: Local | None = None


def recode_node(
    job: Job,
    coding: Coding,
    promise: Promise,
    search_result: SearchResult,
    histogram: Histogram,
    persons: SelectedPersons | None,
    linked: LinkedPeople | None,
) -> RecodingWithLosses:
    """Return the recoding of all cells to one node with its losses; failing classes are dropped or masked.

    Only classes smaller than k may be masked, so that masks do not depend on sensitive values.

    Args:
        promise: The privacy requirements of every class.
        search_result: The node.
        histogram: Histogram of a root below it.
        persons: The persons of its cells; None where the job has no person column.
        linked: The node's records after suppression of linked ones; None without linking.
    """
    chosen, classes = linked.at if linked else table_at(histogram, search_result.node, coding.hierarchies, coding.sensitive, persons)
    rare, failing, units = promise.too_few(classes.units), classes.failing(promise), classes.units
    few = int(chosen.counts[rare].sum())
    if linked:
        chosen, failing, units = replace(chosen, counts=chosen.counts - linked.persons_lost), linked.failing, linked.persons
    masks = job.suppression.masks
    # Who is masked must not follow from sensitive values: what is large enough and fails is left out. A mask that is no safe class itself
    # would give its records away.
    masked = rare if masks and rare.any() and not classes.union(rare).failing(promise)[0] else None
    recoding = recode(chosen, coding.hierarchies, failing, job.intervals, masks=masks, masked=masked)
    kept, records, suppressed = np.flatnonzero(~failing), coding.records, search_result.loss.suppressed
    groups, counts = [codes[kept] for codes in chosen.groups], chosen.counts[kept]
    ncp = {
        hierarchy.qid: certainty_penalty(hierarchy, domain, level, codes, counts, suppressed)
        for hierarchy, domain, level, codes in zip(coding.hierarchies, coding.domains, chosen.node, groups, strict=True)
    }
    loss = {
        "dm": dm(counts, suppressed, records),
        "dm_star": search_result.loss.dm_star,
        "dm_all": search_result.loss.dm_all,
        "gcp": sum(ncp.values()) / len(ncp),
        "precision": float(Lattice.allowed(coding.hierarchies).precision(chosen.node)),
        "c_avg": c_avg(int(units[kept].sum()), len(counts), job.privacy.k),
        "suppression_rate": suppressed / records,
    } | search_result.measured
    if linked is None and not any(histogram.node):
        # Of cells at a coarser root nobody knows which values they hold.
        cells = without_sensitive(histogram, coding.hierarchies)
        loss["gcp_held"] = gcp_of_class_values(cells, chosen, failing, coding.domains, coding.hierarchies)
    why = {what: number for what, number in (("k", few), ("linked" if linked else "spread", suppressed - few)) if number}
    return RecodingWithLosses(recoding, suppressed, int(recoding.sizes.sum()) - (records - suppressed), loss, ncp, why)


BYTES_PER_RESIDUAL_CELL = 128


def recode_locally(
    job: Job,
    coding: Coding,
    requirements: SearchRequirements,
    search_result: SearchResult,
    histogram: Histogram,
    chunk_histograms: Sequence[Artifact],
    store: Store,
) -> RecodingWithLosses:
    """Return a recoding to one node whose failing records get local transformation and suppression.

    Args:
        requirements: The privacy requirements, and the persons of the records.
        search_result: The node.
        histogram: Histogram of a root below it.
    """
    evaluator = NodeEvaluator(coding.hierarchies, coding.sensitive, requirements.promise)
    all_of_it = Residual(histogram, requirements.selected_persons(histogram, coding.sensitive))
    first = evaluator.at(all_of_it, search_result.node)
    first, left = _left(job, coding, evaluator, requirements, first, all_of_it, chunk_histograms, store)
    few = evaluator.promise.of_size
    levels, left = transform_locally(
        first, left, job.suppression.rounds, evaluator, lambda rest: find_residual_node(job, coding, few, rest)
    )
    treated = treat_suppressed(levels, left, job.suppression.treatment, evaluator, coding.domains)
    recoding = recode_parts(treated.parts, coding.hierarchies, treated.dropped)
    classes = np.concatenate([stage.classes[stage.classes >= 0] for stage in recoding.stages])
    persons = _persons(treated.parts, classes, len(recoding.sizes))
    costs = costs_of(treated.parts, classes, coding.domains, coding.hierarchies, job.privacy.k, treated.unpublished, persons)
    method, dropped = job.full_domain, costs.suppressed - costs.masked
    weights = method.weights_of([domain.qid for domain in coding.domains])
    costs.loss.update(objective_value(method.objective, treated.parts, coding.domains, coding.hierarchies, dropped, weights))
    ncp = {hierarchy.qid: penalty for hierarchy, penalty in zip(coding.hierarchies, costs.ncp, strict=True)}
    local = Local(
        records=search_result.loss.suppressed,
        dm_star=search_result.loss.dm_star,
        rounds=tuple(_round(part) for part in treated.parts[1 : len(levels)]),
        starred=costs.records_with_suppressed_cells,
        stars=costs.suppressed_cells,
        least=treated.least,
        stages=tuple(stage.node for stage in recoding.later),
        withheld={name: _records_with(SUPPRESSED_VALUE, recoding.labels[name], recoding.sizes) for name in recoding.labels.column_names},
    )
    # What is tried again failed k, so that what is not published of it lacks k still, unless a later class was large enough and failed.
    why = {what: number for what, number in (("k", costs.suppressed - treated.uneven), ("spread", treated.uneven)) if number}
    return RecodingWithLosses(recoding, costs.suppressed, costs.masked, costs.loss, ncp, why, local)


def _persons(parts: Sequence[RecodedPart], classes: NDArray[np.int32], size: int) -> NDArray[np.int64] | None:
    """Return the number of persons of each class, shape (size,); None where the job has no person column."""
    if parts[0].members is None:
        return None
    members = members_of(parts)
    return members.relabelled(classes).count(size)


def _round(part: RecodedPart) -> Round:
    """Return the figures of one further pass, without records of which a value was suppressed later."""
    kept = part.cells.counts[~part.suppressed_cells.any(axis=1)]
    return Round(node=part.cells.node, records=int(kept.sum()), classes=len(kept))


def _records_with(label: str, labels: pa.ChunkedArray, sizes: NDArray[np.int64]) -> int:
    """Return the number of records of classes with a label."""
    return int(sizes[pc.fill_null(pc.equal(labels, label), fill_value=False).to_numpy()].sum())


def _left(
    job: Job,
    coding: Coding,
    evaluator: NodeEvaluator,
    requirements: SearchRequirements,
    first: ResidualLevel,
    counted: Residual,
    parts: Sequence[Artifact],
    store: Store,
) -> tuple[ResidualLevel, Residual]:
    """Return the node and the records that fail at it, at the finest allowed node if they fit in memory."""
    fits = most_suppressed(job, coding.records) * BYTES_PER_RESIDUAL_CELL <= job.memory // 2
    finest = Lattice.allowed(searched_axes(job, coding)).root
    if not job.suppression.rounds or not fits or counted.cells.node == finest:
        return first, evaluator.records_failing(counted, first)
    # A round may choose levels finer than the first root, so it starts from the chunks' own cells.
    lost, packing = RareCellLookup(first, coding.finest, coding.hierarchies), packing_of(coding.finest, coding.axes)
    words: list[PackedWords] = []
    counts: list[NDArray[np.int64]] = []
    for part in parts:
        cells, records = cells_in_source_coding(coding, part, store)
        rows = lost.positions_in(packing.unpack(cells))
        words.append(tuple(word[rows] for word in cells))
        counts.append(records[rows])
    joined = tuple(np.concatenate(word) for word in zip(*words, strict=True))
    left = Histogram(coding.finest, packing, *count_cells(joined, packing.product, np.concatenate(counts)))
    left = left if finest == coding.finest else roll_up(left, finest, coding.axes)
    if requirements.people is None or first.members is None:
        return first, Residual(left)
    return _whose_left(coding, requirements.people, first, first.members, lost, left, counted.cells)


def _whose_left(
    coding: Coding,
    people: PersonsOfSource,
    first: ResidualLevel,
    members: ClassMembers,
    lost: RareCellLookup,
    left: Histogram,
    counted: Histogram,
) -> tuple[ResidualLevel, Residual]:
    """Return the node and its failing records, with their persons indexed by cell.

    The persons of the root's cells follow those of the failing cells.
    """

    def places(parts: Sequence[Artifact]) -> Iterator[NDArray[np.int32]]:
        for part in parts:
            codes = coding.packing.unpack(cells_in_source_coding(coding, part, people.store)[0])
            found = left.cells + positions_of_finer_cells(counted, coding.finest, codes, coding.axes)
            rows = lost.positions_in(codes)
            found[rows] = positions_of_finer_cells(left, coding.finest, codes[rows], coding.axes)
            yield found.astype(np.int32)

    named = ["left", counted.node, left.node, [hashlib.sha256(word.tobytes()).hexdigest() for word in left.words]]
    persons = persons_among(people, CellPositions(left.cells + counted.cells, places, named)).of_cells
    whose = SelectedPersons.of(persons, [left, counted], coding.sensitive)
    of_root = replace(members, selected_persons=replace(whose, rows=np.arange(left.cells, persons.cells)))
    return replace(first, classes=replace(first.classes, members=of_root)), Residual(left, replace(whose, rows=np.arange(left.cells)))
