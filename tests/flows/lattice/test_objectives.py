"""For every objective the chosen node is the best of all, counted record by record over the whole lattice."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor, inf, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.histograms.cells import Cells
from core.lattice.lattice import Lattice
from core.lattice.node_classes import SuppressionPenalties, suppression_penalty_at
from core.lattice.objectives import Pricing, objective_of, prices_of
from schemas.job.method import OBJECTIVES
from tests.conftest import Anonymise
from tests.covering import each_pair
from tests.house.replaced import ROOTS_BYTES_PER_CELL
from tests.jobs import LEVELS, generalise, job_of, people, people_job
from tests.oracles.tables import Example, examples

PRICED = [name for name in OBJECTIVES if isinstance(objective_of(name), Pricing)]

TABLE, QIDS, K = people(240, seed=3), ["sex", "age", "zip"], 5
RECORDS = len(TABLE)
Node = tuple[int, ...]


@cache
def charges(qid: str, level: int, objective: str) -> tuple[list[float], list[float]]:
    """What every record is charged for one QID if it is published, and if it is suppressed."""
    label, top = LEVELS[qid][level], level == len(LEVELS[qid]) - 1
    counts = Counter(TABLE[qid].to_pylist())
    names = {value: label(value) if value is not None or top else None for value in counts}
    published, suppressed = {}, {}
    for value in counts:
        group = [other for other in counts if names[other] == names[value]]
        known = [other for other in group if other is not None]
        if objective == "entropy":
            published[value] = log2(sum(counts[other] for other in group) / counts[value])
            suppressed[value] = log2(RECORDS / counts[value])
            continue
        suppressed[value] = 1.0
        if len(group) == 1:
            published[value] = 0.0
        elif objective == "gcp" and qid == "age":
            ages = [age for age in counts if age is not None]
            published[value] = (max(known) - min(known)) / (max(ages) - min(ages))
        else:
            published[value] = len(group) / len(counts)
    values = TABLE[qid].to_pylist()
    return [published[value] for value in values], [suppressed[value] for value in values]


def cost(node: Node, objective: str) -> tuple[float, int]:
    """The objective's value of a node, and how many records are suppressed there."""
    rows = generalise(TABLE, node, QIDS)
    sizes = Counter(rows)
    lost = [sizes[row] < K for row in rows]
    classes = sum(size >= K for size in sizes.values())
    if objective == "precision":
        return sum(level / (len(LEVELS[qid]) - 1) for qid, level in zip(QIDS, node, strict=True)), sum(lost)
    if objective == "c_avg":
        return ((RECORDS - sum(lost)) / classes if classes else inf), sum(lost)
    total = 0.0
    for qid, level in zip(QIDS, node, strict=True):
        published, suppressed = charges(qid, level, objective)
        total += sum(gone if out else kept for kept, gone, out in zip(published, suppressed, lost, strict=True))
    return total, sum(lost)


def job(folder: Path, **parts: Any) -> Path:
    columns = job_of()["columns"]
    columns |= {"quasi_identifiers": columns["quasi_identifiers"][:3], "identifiers": ["person", "height", "smoker", "born"]}
    return people_job(folder, TABLE, columns=columns, **parts)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("objective", "limit", "small"), each_pair([*PRICED, "c_avg"], ["0", "0.1", "0.4"], [False, True]))
def test_node_is_the_best_of_all(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str, limit: str, small: bool
) -> None:
    if small:
        monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    made = anonymise(job(tmp_path), f"method.objective={objective}", f"suppression.limit={limit}", "method.roots=24")
    found, manifest = made.untold.loss, made.manifest
    costs = {node: cost(node, objective) for node in product(*(range(len(LEVELS[qid])) for qid in QIDS))}
    allowed = {node: value for node, (value, lost) in costs.items() if lost <= floor(Fraction(limit) * RECORDS)}
    assert manifest.node is not None
    assert allowed[manifest.node] == pytest.approx(min(allowed.values()))
    if objective == "gcp":
        assert found["gcp"] * RECORDS * len(QIDS) == pytest.approx(min(allowed.values()))
    if manifest.optimal != "certified":
        assert small


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("objective", ["gcp", "c_avg"])
def test_the_best_is_also_found_under_l_diversity_and_above_a_dense_root(anonymise: Anonymise, tmp_path: Path, objective: str) -> None:
    settings = [f"method.objective={objective}", "suppression.limit=0.2", "privacy.l={disease: {distinct: 2}}"]
    whole = anonymise(job(tmp_path / "occupied"), *settings).manifest
    dense = anonymise(job(tmp_path / "dense"), *settings, "method.root=dense").manifest
    assert (whole.node, whole.loss) == (dense.node, dense.loss)
    assert whole.optimal == "certified"


@given(examples(), st.sampled_from(PRICED))
def test_the_bound_of_a_node_is_monotone_and_no_higher_than_its_cost_whatever_is_suppressed(example: Example, objective: str) -> None:
    prices = prices_of(objective, example.hierarchies, example.domains)
    assert prices is not None
    lattice = Lattice.from_exact_values([hierarchy.levels for hierarchy in example.hierarchies])
    floors = prices.floor(lattice)
    for axis in range(floors.ndim):
        assert (np.diff(floors, axis=axis) >= -1e-9).all()
    for node in lattice:
        histogram = example.histogram(node)
        lost = np.arange(histogram.cells) % 2 == 0
        cells = Cells(node, histogram.codes[lost], histogram.counts[lost])
        added = suppression_penalty_at(node, SuppressionPenalties(prices, example.hierarchies).of(cells, node))
        assert floors[node] <= prices.cost(node) + added
