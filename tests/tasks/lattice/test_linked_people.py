"""What linked people lose at a node is what the rule says, set after set, and is written so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Node
from core.lattice.search import SearchResult
from core.privacy.promise import Promise
from core.units.class_table import SelectedPersons
from core.units.losses import Loss
from core.units.pairs import Pairs
from schemas.errors.methods import LevelsError
from schemas.job.job import Job
from tasks.lattice import linked_people
from tasks.lattice.linked_people import LinkedPeople, best_linked_node, linked_people_at, write_withheld
from tests.core.units.tables_of_people import People, tables_of_people
from tests.jobs import job_of
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.tables import nodes_of, observed


def digest_of(person: int) -> int:
    return (person + 1) * (2**61 + 12345) % 2**64


def kept_by_the_rule(classes: list[int], people: list[int | None], k: int) -> dict[int, tuple[int, ...]]:
    """The classes that each person keeps: from the longest set on, one that fewer than k people share loses its smallest class."""
    members = {one: {person for mine, person in zip(classes, people, strict=True) if mine == one} - {None} for one in set(classes)}
    safe = sorted((one for one in members if len(members[one]) >= k), key=lambda one: (-len(members[one]), one))
    left = {person: tuple(one for one in safe if person in members[one]) for person in people if person is not None}
    for length in range(len(safe), 0, -1):
        sharing = Counter(left.values())
        left = {person: mine[:-1] if len(mine) == length and sharing[mine] < k else mine for person, mine in left.items()}
    return left


def looked_at(table: People, root: tuple[int, ...], node: tuple[int, ...], k: int, shares: int) -> Any:
    digests = np.array([0 if person is None else digest_of(person) for person in table.people], np.uint64)
    pairs = Pairs.of(digests, table.cells(root))
    coding: Any = SimpleNamespace(hierarchies=table.example.hierarchies, sensitive=[])
    whose: Any = lambda cells, _: SelectedPersons.of(table.persons_of(cells), [cells], [])  # noqa: E731
    sought: Any = SimpleNamespace(promise=Promise(k), selected_persons=whose)
    job: Any = SimpleNamespace(privacy=SimpleNamespace(k=k))
    given_shares = [lambda number=number: pairs.share(number, shares) for number in range(shares)]
    return linked_people_at(job, coding, sought, table.example.histogram(root), node, given_shares)


@given(st.data(), st.integers(1, 4), st.integers(1, 3))
@tried(200)
def test_what_linked_people_lose_is_what_the_rule_says_set_after_set(data: st.DataObject, k: int, shares: int) -> None:
    table = data.draw(tables_of_people(3))
    root = data.draw(nodes_of(table.example))
    node = tuple(data.draw(st.integers(low, one.top)) for low, one in zip(root, table.example.hierarchies, strict=True))
    found = looked_at(table, root, node, k, shares)
    classes = table.cells(node).tolist()
    records, left = Counter(classes), kept_by_the_rule(classes, table.people, k)
    persons = [sum(one in mine for mine in left.values()) for one in sorted(records)]
    lost = [(mine, person) for mine, person in zip(classes, table.people, strict=True) if person is not None and mine not in left[person]]
    removed = Counter(mine for mine, _ in lost if persons[mine])
    published = [records[one] - removed[one] for one in sorted(records) if persons[one]]
    assert found.persons.tolist() == persons
    assert found.failing.tolist() == [not count for count in persons]
    assert found.persons_lost.tolist() == [removed[one] for one in sorted(records)]
    suppressed = len(classes) - sum(published)
    assert (found.loss.suppressed, found.loss.dm_star) == (suppressed, sum(size**2 for size in published) + suppressed**2)
    numbers = {one: number for number, one in enumerate(one for one in sorted(records) if persons[one])}
    expected = sorted({(digest_of(person), numbers[mine]) for mine, person in lost if persons[mine]})
    with TemporaryDirectory() as folder:
        assert write_withheld(found, Path(folder, "withheld.npy")) == len(expected)
        assert np.load(Path(folder, "withheld.npy")).tolist() == expected


COSTS = {(0, 0): (9, 1), (1, 0): (9, 5), (0, 1): (9, 4), (1, 1): (0, 8), (0, 2): (2, 6), (0, 3): (0, 9)}
CHEAPER_BELOW = {
    (1, 1): (3, 8),
    (0, 1): (3, 7),
    (1, 0): (3, 7),
    (2, 1): (3, 6),
    (0, 0): (4, 1),
    (3, 1): (3, 7),
    (2, 0): (3, 6),
    (2, 2): (3, 6),
}


class Chosen:
    """The node that is chosen where nodes lose given records and cost so much, all others none and 99; and how often each was looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, costs: dict[Node, tuple[int, int]], found: Node, lost: int, **said: Any) -> None:
        domains = tuple(observed(f"q{place}", list(range(8)), pa.int64()) for place in range(2))
        axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
        self.looked, most = Counter[Node](), said.pop("most", 3)
        qids = [{"name": domain.qid, "hierarchy": {"widths": [2, 4]}} for domain in domains]
        method = {"name": "skald"} | said
        job = Job.model_validate(job_of(columns={"quasi_identifiers": qids, "sensitive": ["s"]}, method=method))
        coding: Any = SimpleNamespace(hierarchies=axes, axes=axes, domains=domains, sensitive=(), records=20)
        sought: Any = SimpleNamespace(people=object())
        counted: Any = SimpleNamespace(node=(0, 0))
        shares: Any = [object()]

        def at(*given: Any) -> LinkedPeople:
            *known, node, of_people = given
            for mine, expected in zip([*known, of_people], [job, coding, sought, counted, shares], strict=True):
                assert mine is expected
            self.looked[node] += 1
            suppressed, dm_star = costs.get(node, (0, 99))
            loss: Any = SimpleNamespace(suppressed=suppressed, dm_star=dm_star)
            nothing: Any = np.zeros(0, np.int64)
            return LinkedPeople(node, nothing, nothing, nothing, nothing, loss, [], 0)

        monkeypatch.setattr(linked_people, "linked_people_at", at)
        monkeypatch.setattr(linked_people, "pairs_by_share", lambda *given: shares if given == (sought.people, counted) else None)
        monkeypatch.setattr(linked_people, "most_suppressed", lambda *given: most if given == (job, 20) else None)
        best: Any = SimpleNamespace(node=found, loss=SimpleNamespace(suppressed=lost))
        self.node = best_linked_node(job, coding, sought, best, counted).node


def test_of_nodes_that_suppress_no_more_than_allowed_the_cheapest_near_the_best_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Chosen(monkeypatch, COSTS, (0, 0), 2)
    # The search's best loses nine records: one up it is still too many, two up it is not.
    assert chosen.node == (0, 2)
    # The one that is taken is looked at again, for what it loses; no other is.
    assert {node for node, times in chosen.looked.items() if times > 1} == {(0, 2)}


def test_cheaper_nodes_beside_the_best_are_looked_for_where_linked_records_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # A neighbour above is cheaper, and those beside it cost as much as it does.
    assert Chosen(monkeypatch, CHEAPER_BELOW, (1, 1), 2).node == (2, 1)
    assert Chosen(monkeypatch, CHEAPER_BELOW | {(2, 1): (3, 8)}, (1, 1), 2).node == (0, 1), (
        "below it are two alike, and one that loses too many"
    )
    # Where the best loses no more than was known, it stays.
    assert Chosen(monkeypatch, CHEAPER_BELOW, (1, 1), 3).node == (1, 1)


def test_records_are_left_and_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for lost, most, stays in ((3, 3, True), (4, 3, False), (19, 20, True), (20, 20, False)):
        costs = {(1, 1): (lost, 1), (1, 2): (0, 5)}
        assert Chosen(monkeypatch, costs, (1, 1), lost, most=most).node == ((1, 1) if stays else (1, 2))


def test_a_node_that_the_job_names_is_taken_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Chosen(monkeypatch, CHEAPER_BELOW, (1, 1), 0, node=[1, 1]).node == (1, 1)
    with pytest.raises(LevelsError, match="4"):
        Chosen(monkeypatch, CHEAPER_BELOW | {(1, 1): (4, 1)}, (1, 1), 4, node=[1, 1])


def test_levels_within_which_too_many_records_are_lost_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = {"q0": [0, 1], "q1": [0, 0]}
    assert Chosen(monkeypatch, {(0, 0): (9, 1)}, (0, 0), 0, levels=levels).node == (1, 0)
    with pytest.raises(LevelsError):
        Chosen(monkeypatch, {(0, 0): (9, 1), (1, 0): (9, 1)}, (0, 0), 0, levels=levels)


def test_what_is_withheld_of_each_share_of_the_people_stands_after_that_of_the_one_before(tmp_path: Path) -> None:
    """Pairs of the cell that publishes nothing are left out, and the published ones are numbered without it."""
    shares = [([1, 1, 4], [0, 3, 2]), ([5], [1]), ([6, 7, 7], [3, 0, 2])]
    pairs = [Pairs(np.array(people, np.uint64), np.array(cells), np.ones(len(cells), np.int64)) for people, cells in shares]
    failing, nothing = np.array([False, True, False, False]), np.zeros(4, np.int64)
    parts: Any = ((0, 0), nothing, failing, nothing, nothing, nothing)
    linked = LinkedPeople(*parts, [lambda mine=mine: mine for mine in pairs], 6)
    assert write_withheld(linked, tmp_path / "withheld.npy") == 6
    assert np.load(tmp_path / "withheld.npy").tolist() == [(1, 0), (1, 2), (4, 1), (6, 2), (7, 0), (7, 1)]
    assert write_withheld(LinkedPeople(*parts, [], 0), tmp_path / "none.npy") == 0
    assert np.load(tmp_path / "none.npy").tolist() == []


@pytest.mark.parametrize(("node", "suppressed", "same"), [((0, 1), 3, True), ((0, 1), 4, False), ((1, 1), 3, False)])
def test_a_search_stands_as_it_was_where_neither_the_node_nor_what_is_suppressed_is_another(
    node: Node, suppressed: int, same: bool
) -> None:
    nothing: Any = None
    loss, before = Loss(suppressed, 20, 30), SearchResult((0, 1), Loss(3, 10, 30), 5, 12, 7, 0, ((0, 0),), measured={"gcp": 0.5}, bound=9)
    linked = LinkedPeople(node, nothing, nothing, nothing, nothing, loss, [], 0, evaluated=4)
    found = linked.with_linked_loss(before)
    assert (found is before) is same
    assert same or found == replace(before, node=node, loss=loss, measured={}, evaluated=11)


@pytest.mark.parametrize(("near", "node"), [((1, 1), (1, 1)), ((2, 1), (3, 1)), ((1, 2), (1, 3)), ((0, 1), (0, 1)), ((1, 0), (1, 0))])
def test_nodes_are_gone_to_one_level_at_a_time(monkeypatch: pytest.MonkeyPatch, near: Node, node: Node) -> None:
    """Two levels up it is cheaper still, beyond nodes that cost more unless they are the one near by."""
    costs: dict[Node, tuple[int, int]] = {(level, other): (3, 9) for level in range(4) for other in range(4)}
    assert Chosen(monkeypatch, costs | {(1, 1): (3, 8), (3, 1): (3, 1), (1, 3): (3, 1), near: (3, 7)}, (1, 1), 2).node == node
