"""Where persons have several values and records in several classes, every search finds what an enumeration finds, and claims no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.search import Search, SearchResult
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from tests.core.units.tables_of_people import People, tables_of_people
from tests.laws import tried
from tests.oracles.lattice import all_nodes, class_sizes
from tests.oracles.persons import safe_for_people, too_many_hold

UNLIMITED = 1 << 40
LIMITS = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 1, max_denominator=10)
ASKED: list[dict[str, Any]] = [
    {"l": {"x": {"distinct": 2}}},
    {"l": {"x": {"distinct": 3}}},
    {"l": {"x": {"entropy": 1.5}}},
    {"l": {"x": {"recursive": {"c": 2, "l": 2}}}},
    {"t": {"x": {"t": 0.2}}},
]
TABLES = tables_of_people(3).filter(lambda table: len(table.example.domains) > 1 and len(set(table.people) - {None}) > 1)


def model_of(table: People, k: int, asked: dict[str, Any]) -> PrivacyModel:
    domain = table.example.domains[-1]
    root = (0,) * len(table.example.domains)
    codes = table.example.histogram(root).codes[:, -1].astype(np.int64)
    of_column: PrivacyModel
    match asked:
        case {"l": {"x": {"distinct": least}}}:
            of_column = DistinctDiversity(domain.qid, least)
        case {"l": {"x": {"entropy": least}}}:
            of_column = EntropyDiversity(domain.qid, least)
        case {"l": {"x": {"recursive": {"c": c, "l": least}}}}:
            of_column = RecursiveDiversity(domain.qid, Fraction(c), least)
        case _:
            of_column = Closeness(domain.qid, asked["t"]["x"]["t"])
    people = len(set(table.people) - {None})
    return Promise(k, (of_column,)).of_people({domain.qid: table.persons(root).count(codes, domain.size)}, people)


def costs(table: People, k: int, asked: dict[str, Any]) -> dict[Node, tuple[int, int]]:
    """Records in classes that fail, and Σ|E|² over the others + s², of every node: by nested loops over people."""
    asked = {section: {column: one | ({"nulls": "value"} if section == "l" else {}) for column, one in columns.items()}
             for section, columns in asked.items()}  # fmt: skip
    rows, ladders = table.example.rows, table.example.ladders[:-1]
    everyone = [(person, row[-1]) for person, row in zip(table.people, rows, strict=True)]
    found = {}
    for node in all_nodes(ladders):
        classes: dict[Any, list[Any]] = defaultdict(list)
        for row, pair in zip(rows, everyone, strict=True):
            classes[tuple(ladder[level][value] for ladder, level, value in zip(ladders, node, row, strict=False))].append(pair)
        lost = squares = 0
        for members in classes.values():
            safe = len({person for person, _ in members} - {None}) >= k
            safe = safe and safe_for_people(members, everyone, asked) and not too_many_hold(members, everyone, asked)
            lost, squares = lost + len(members) * (not safe), squares + len(members) ** 2 * safe
        found[node] = lost, squares + lost**2
    return found


def check(found: SearchResult | None, table: People, k: int, limit: Fraction, asked: dict[str, Any]) -> None:
    known, everything, most = costs(table, k, asked), len(table.people), floor(limit * len(table.people))
    passing = [(lost == everything, 0 if lost == everything else squares) for lost, squares in known.values() if lost <= most]
    assert (found is None) == (not passing)
    if found:
        assert known[found.node[:-1]] == (found.loss.suppressed, found.loss.dm_star)
        nothing = found.loss.suppressed == everything
        mine = nothing, 0 if nothing else found.loss.dm_star
        assert mine == min(passing) if not found.unexamined else mine >= min(passing)


@pytest.mark.ci
@tried(300)
@given(st.data(), TABLES, st.integers(1, 3), st.sampled_from(ASKED), LIMITS, st.booleans())
def test_the_best_node_lets_too_many_hold_no_value(
    data: st.DataObject, table: People, k: int, asked: dict[str, Any], limit: Fraction, branched: bool
) -> None:
    domain, most = table.example.domains[-1], floor(limit * len(table.people))
    axes, root = (*table.example.hierarchies[:-1], exact_hierarchy(domain)), (0,) * len(table.example.domains)
    given_ = table.example.histogram(root), axes, model_of(table, k, asked), most, "dm_star"
    persons = table.persons(root, 2)
    if branched:
        found = BranchAndBound(
            Evaluations(*given_, effort=UNLIMITED, most_cached_cells=data.draw(st.integers(0, 50)), sensitive=[domain], persons=persons)
        ).run()
    else:
        found = Search(*given_, sensitive=[domain], persons=persons).run()
    check(found, table, k, limit, asked)


@tried(150)
@given(st.data(), TABLES, st.integers(1, 3), st.sampled_from(ASKED), LIMITS, st.sampled_from([1, 2, 24]))
def test_a_certificate_over_several_roots_is_never_false(
    data: st.DataObject, table: People, k: int, asked: dict[str, Any], limit: Fraction, most_roots: int
) -> None:
    domain, rows, ladders = table.example.domains[-1], table.example.rows, table.example.ladders
    axes, most_cells = (*table.example.hierarchies[:-1], exact_hierarchy(domain)), data.draw(st.integers(4, 60))

    def product_of(node: Node) -> int:
        return prod(len(hierarchy.labels[level]) for hierarchy, level in zip(axes, node, strict=True))

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        return (table.example.histogram(root) for root in roots)

    def has_too_many_cells(nodes: Sequence[Node], most: int) -> list[bool]:
        return [len(class_sizes([row[:-1] for row in rows], ladders[:-1], node[:-1])) > most for node in nodes]

    nodes = [(*node, 0) for node in all_nodes(ladders[:-1])]
    small = [node for node in nodes if product_of(node) <= most_cells]
    examination = Examination(
        axes, model_of(table, k, asked), len(rows), k, floor(limit * len(rows)), "dm_star", most_cells, 30, most_roots, [domain],
        persons_of=table.persons_of,
    )  # fmt: skip
    found = examination.run(table.example.histogram(data.draw(st.sampled_from(small or nodes[-1:]))), count, has_too_many_cells)
    if found is None:
        # Nothing was found above the roots that were examined.
        return
    check(found, table, k, limit, asked)
