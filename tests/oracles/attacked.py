"""Every way through the product as a function from everybody's sensitive values to who is together in which published class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.clustering.gower import gower_points
from core.clustering.merged_classes import Criteria, merge_failing, merge_unsafe_classes, without_failing
from core.clustering.outlier_step import MondrianCut, OutlierStep, separate_outliers
from core.clustering.semantic import Clustering
from core.clustering.vptree import VantageTree, canon_partition
from core.columns.coding import Coder
from core.kmember.partition import Effort, RecordsToGroup
from core.lattice.search import Search
from core.local_suppression.local_transformation import LIMIT, NodeEvaluator, transform_locally
from core.local_suppression.recoding import recode_parts
from core.local_suppression.residual import Residual
from core.local_suppression.suppressed_records import treat_suppressed
from core.mondrian.partition import Mode, Refused, Rules, Score, partition
from core.mondrian.ranks import CutAxis
from core.privacy.models import PrivacyModel
from core.privacy.promise import Promise
from core.recoding.prices import LabelPrices
from core.recoding.recoding import SUPPRESSED, Treatment
from core.units.class_table import exact_hierarchy
from core.units.persons import EVERY_RECORD, RowPersons
from core.units.unit import Unit
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed

Values = Sequence[Any]
Together = list[list[int]]
Model = Callable[[int | None], PrivacyModel]
"""Makes the model of a column, given the code of its null, if it has one."""


@dataclass(frozen=True)
class People:
    """Two columns of numbers that everybody knows, whose each record is, and what is promised.

    Attributes:
        rows: Their quasi-identifiers, in ascending order.
        whose: Whose each record is; None where every record counts.
        k: Fewest records or persons of a class.
        model: What a class must keep besides.
    """

    rows: list[tuple[int, int]]
    whose: list[int] | None
    k: int
    model: Model

    @cached_property
    def example(self) -> Example:
        """The table with hierarchies of widths."""
        domains = tuple(observed(f"qid {qid}", [row[qid] for row in self.rows], pa.int64()) for qid in range(2))
        return Example(list(self.rows), domains, tuple(built({"widths": [2, 4]}, domain) for domain in domains))

    @cached_property
    def unit(self) -> Unit:
        """Whose the records are."""
        return EVERY_RECORD if self.whose is None else RowPersons.of_records(np.array(self.whose, np.int32))

    def secret(self, values: Values) -> tuple[Any, NDArray[np.int64], PrivacyModel]:
        """Return the domain of some values, the code of each, and the model."""
        domain = observed("x", values, pa.int64())
        known = domain.values.to_pylist()
        codes = np.array([len(known) if value is None else known.index(value) for value in values], np.int64)
        return domain, codes, self.model(len(known) if domain.nulls else None)

    def promised(self, values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64], Promise]:
        """Return the code of each value, how many records or persons have each, and what classes must keep, with who may hold a value.

        Methods that hold single records are asked so.
        """
        domain, codes, model = self.secret(values)
        whole, figures = self.unit.count(codes, domain.size), self.unit.figures()
        promise = Promise(self.k, (model,))
        return codes, whole, promise if figures is None else promise.of_people({"x": whole}, figures[0])


def by_class(classes: NDArray[np.integer]) -> Together:
    """Who is together, people in no class left out."""
    return [np.flatnonzero(classes == number).tolist() for number in range(int(classes.max(initial=-1)) + 1)]


def by_levels(
    people: People, values: Values, treatment: Treatment, rounds: int, limit: float, node: tuple[int, int] | None = None
) -> tuple[Together, tuple[int, ...]]:
    """Method skald; the levels are searched for unless they are given, and returned too."""
    domain, _, model = people.secret(values)
    example, promise = people.example, Promise(people.k, (model,))
    rows = [(*row, value) for row, value in zip(example.rows, values, strict=True)]
    whole = Example(rows, (*example.domains, domain), (*example.hierarchies, exact_hierarchy(domain)))
    evaluator, root = NodeEvaluator(example.hierarchies, (domain,), promise), Residual(whole.histogram((0, 0, 0)))

    def find(rest: Residual, least: Promise, most: int) -> Any:
        return Search(rest.cells, evaluator.axes, least, most, sensitive=evaluator.sensitive, persons=rest.persons).run()

    if node is None:
        found = find(root, promise, floor(limit * len(rows)))
        if found is None or found.loss.suppressed == len(rows):
            return [], ()
        node = found.node[:2]
    first = evaluator.at(root, node)
    levels, left = transform_locally(
        first,
        evaluator.records_failing(root, first),
        rounds,
        evaluator,
        lambda rest: find(rest, evaluator.promise.of_size, floor(LIMIT * rest.records)),
    )
    treated = treat_suppressed(levels, left, treatment, evaluator, example.domains)
    recoding = recode_parts(treated.parts, example.hierarchies, treated.dropped)
    classes = np.full(len(rows), SUPPRESSED)
    for stage in (recoding, *recoding.later):
        parts = zip(example.domains, example.hierarchies, stage.node, strict=True)
        codes = [Coder(one, hierarchy.groups[level]).code(example.column(qid)) for qid, (one, hierarchy, level) in enumerate(parts)]
        classes = np.where(classes == SUPPRESSED, stage.assigner.assign(stage.packing.pack(codes)), classes)
    return by_class(classes), node


def by_cuts(
    people: People, values: Values, mode: Mode = "strict", score: Score = "representativity", refused: Refused = "stop"
) -> Together:
    """Method mondrian."""
    codes, whole, promise = people.promised(values)
    example = people.example
    rules = Rules(promise, ("x",), (whole,), refused)
    ranks = np.array(
        [[one.values.to_pylist().index(value) for value, one in zip(row, example.domains, strict=True)] for row in people.rows]
    )
    made = partition(
        ranks.astype(np.uint32), np.ones(len(values), np.int64), axes_of(example), rules, score, mode=mode,
        sensitive=codes.astype(np.int32)[:, None].copy(), unit=people.unit,
    )  # fmt: skip
    # The product refuses records that break the promise as one class, and that no cut has parted.
    broken = made.classes == 1 and Criteria(promise, {"x": codes}, {"x": whole}, people.unit).failing(made.of_rows())[0]
    return [] if broken else by_class(made.of_rows())


def axes_of(example: Example) -> list[CutAxis]:
    """The axes of two columns of numbers."""
    return [
        CutAxis(one.qid, np.arange(len(one.values)), one.values.to_numpy(zero_copy_only=False).astype(float), False)
        for one in example.domains
    ]


def by_records(people: People, values: Values, method: str, *, nearest: bool = False) -> Together:
    """A method on single records; with ``nearest`` as it was before classes were pooled, each that fails merged with the nearest."""
    codes, whole, promise = people.promised(values)
    example, unit = people.example, people.unit
    records = np.array(
        [[one.values.to_pylist().index(value) for value, one in zip(row, example.domains, strict=True)] for row in people.rows]
    )
    points, tree = gower_points(records, example.domains), VantageTree(people.k)
    if method == "canon":
        classes = canon_partition(records, example.domains, tree, unit.people)
    elif method == "kmember":
        labels = [LabelPrices(None, *of) for of in zip(example.domains, example.hierarchies, strict=True)]
        classes, _ = RecordsToGroup(records, axes_of(example), labels, people.k, unit).clustered(Effort.of(len(records), people.k, 1))
    elif method == "clustering":
        classes = Clustering(people.k).blocks(records, example.domains, example.hierarchies, unit).classes
    else:
        cut: Any = MondrianCut(records, axes_of(example), people.k, unit)
        if method == "rayden":

            def cut(rows: NDArray[np.intp], groups: NDArray[np.int32]) -> NDArray[np.int32]:
                return tree.partition(points.take(rows), groups, unit.take(rows).people)

        every = np.arange(len(values))
        classes = separate_outliers(points, cut(every, np.zeros(len(values), np.int32)), OutlierStep(people.k, 0.5), cut, unit).classes
    criteria = Criteria(promise, {"x": codes}, {"x": whole}, unit)
    made = merge_failing(points, classes, criteria.failing)[0] if nearest else merge_unsafe_classes(points, classes, criteria)[0]
    return by_class(without_failing(made, criteria.failing))
