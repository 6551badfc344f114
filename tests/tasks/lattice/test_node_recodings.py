"""A node is published as its classes say, and what fails at it is taken up again at finer levels, with whose it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Node
from core.lattice.search import SearchResult
from core.local_suppression.local_transformation import NodeEvaluator
from core.local_suppression.residual import Residual, ResidualLevel
from core.privacy.models import DistinctDiversity
from core.privacy.promise import Promise
from core.recoding.recoding import DROPPED, SUPPRESSED
from core.units.class_table import joined_members, table_at
from core.units.losses import Loss
from core.units.pairs import Pairs
from schemas.job.job import Job
from tasks.counting.chunk_counts import write_cells, write_pairs
from tasks.counting.coding import CellCoder, Coding
from tasks.counting.person_cells import PersonsOfSource
from tasks.lattice import node_recodings
from tasks.lattice.node_recodings import recode_locally, recode_node
from tasks.lattice.optimum import SearchRequirements
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store
from tests.jobs import job_of
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed

ROWS = [
    (0, 0, "a"), (1, 1, "a"), (0, 1, "b"), (0, 5, "a"), (1, 5, "b"), (2, 2, "a"), (3, 3, "a"), (5, 0, "a"), (5, 0, "b"), (4, 1, "a"),
    (5, 3, "a"), (7, 6, "b"), (6, 7, "a"), (7, 6, "b"), (7, 0, "a"),
]  # fmt: skip
WHOSE = [1, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 9, 9, 1]
"""Of the classes of widths of two, four have two persons or more."""
DOMAINS = tuple(observed(name, [row[place] for row in ROWS], pa.int64()) for place, name in enumerate(("x", "y")))
AXES = tuple(built({"widths": [2, 4]}, domain) for domain in DOMAINS)
SENSITIVE = observed("s", [row[2] for row in ROWS], pa.string())
CODING = Coding(DOMAINS, AXES, ("d", "h"), (SENSITIVE,))
EXAMPLE = Example(ROWS, (*DOMAINS, SENSITIVE), CODING.axes)
NODE, K = (1, 1), 2


def class_of(row: tuple[Any, ...]) -> tuple[int, int]:
    return row[0] // 2, row[1] // 2


class Rest(NamedTuple):
    """What fails at the node, and where it is taken up."""

    first: ResidualLevel
    left: Residual
    promise: Promise
    counted: Residual


class Chunks(NamedTuple):
    """Two chunks of the table in a store."""

    store: Store
    parts: list[Artifact]
    pairs: list[Artifact]

    @classmethod
    def of(cls, folder: Path) -> Chunks:
        store, step, made = Store(folder), StepCode("bundles", node_recodings.__name__), cls(Store(folder), [], [])
        for number, rows in enumerate((range(6), range(6, len(ROWS)))):
            columns = [pa.array([ROWS[row][axis] for row in rows], domain.values.type) for axis, domain in enumerate(EXAMPLE.domains)]
            words, cells = np.unique(CellCoder.at(CODING, CODING.finest).cells(columns)[0], return_inverse=True)
            key, counts = step.key(number), np.bincount(cells)
            made.parts.append(store.make("bundles", key, ".parquet", lambda path, w=words, c=counts: write_cells(path, (w,), c)))
            pairs = Pairs.of(np.array([WHOSE[row] for row in rows], np.uint64), cells)
            made.pairs.append(store.make("pairs", key, ".parquet", lambda path, made=pairs: write_pairs(path, made)))
        return made

    def sought(self, persons: bool) -> SearchRequirements:
        people = PersonsOfSource(CODING, self.parts, self.pairs, self.store, 1 << 28) if persons else None
        return SearchRequirements(Promise(K), people)

    def rest(self, job: Job, root: Node, persons: bool) -> Rest:
        sought, counted = self.sought(persons), EXAMPLE.histogram((*root, 0))
        evaluator = NodeEvaluator(AXES, CODING.sensitive, sought.promise)
        whole = Residual(counted, sought.selected_persons(counted, CODING.sensitive))
        first = evaluator.at(whole, NODE)
        return Rest(*node_recodings._left(job, CODING, evaluator, sought, first, whole, self.parts, self.store), sought.promise, whole)


def job(rounds: int = 1, limit: float = 1, memory: int = 1 << 28, treatment: str = "cell", **method: Any) -> Job:
    qids = [{"name": name, "hierarchy": {"widths": [2, 4]}} for name in ("x", "y")]
    suppression = {"limit": limit, "rounds": rounds, "treatment": treatment}
    columns = {"quasi_identifiers": qids, "sensitive": ["s"]}
    made = Job.model_validate(job_of(columns=columns, privacy={"k": K}, suppression=suppression, method={"name": "skald", **method}))
    return made.model_copy(update={"memory": memory})


def failing(persons: bool) -> list[int]:
    """The places of the records that are too few at the node, one class after the other."""
    members = defaultdict(list)
    for place, row in enumerate(ROWS):
        members[class_of(row)].append(place)
    few = [rows for rows in members.values() if len({WHOSE[row] if persons else row for row in rows}) < K]
    return [row for rows in few for row in rows]


def cells_of(rest: Residual) -> dict[tuple[Any, ...], int]:
    """The records of each cell by the labels of its groups."""
    labels = [
        [axis.labels[level][int(code)].as_py() for code in codes]
        for axis, level, codes in zip(CODING.axes, rest.cells.node, rest.cells.groups, strict=True)
    ]
    return dict(zip(zip(*labels, strict=True), rest.cells.counts.tolist(), strict=True))


def at(row: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    return tuple(EXAMPLE.ladders[axis][level][row[axis]] for axis, level in enumerate(node))


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize(
    ("given", "root", "node"),
    [
        ({}, (1, 0), (0, 0)), ({}, (1, 1), (0, 0)), ({"levels": {"y": [1, 2]}}, (1, 1), (0, 1)), ({"rounds": 0}, (1, 0), (1, 0)),
        ({"levels": {"y": [1, 2]}}, (0, 1), (0, 1)), ({}, (0, 0), (0, 0)), ({"limit": 0.4, "memory": 6 * 256}, (1, 1), (0, 0)),
        ({"limit": 0.4, "memory": 6 * 256 - 1}, (1, 1), (1, 1)),
    ],
)  # fmt: skip
def test_what_is_too_few_is_taken_up_as_finely_as_may_be_with_all_its_persons(
    tmp_path: Path, given: dict[str, Any], root: Node, node: Node, persons: bool
) -> None:
    first, left, promise, counted = Chunks.of(tmp_path).rest(job(**given), root, persons)
    rows = failing(persons)
    assert left.cells.node == (*node, 0)
    assert cells_of(left) == Counter(at(ROWS[row], (*node, 0)) for row in rows)
    assert np.array_equal(first.few, promise.too_few(first.classes.units))
    if not persons:
        assert (left.selected_persons, first.members) == (None, None)
        return
    assert left.selected_persons is not None
    assert first.members is not None
    whose = defaultdict(set)
    for row in rows:
        whose[at(ROWS[row], (*node, 0))].add(WHOSE[row])
    assert dict(zip(cells_of(left), left.selected_persons.persons.per_cell.tolist(), strict=True)) == {
        cell: len(people) for cell, people in whose.items()
    }
    # Who is taken up at other levels has left the node.
    units = first.classes.units if node == root else np.where(first.few, 0, first.classes.units)
    assert first.members.count(first.cells.cells).tolist() == units.tolist()
    assert first.members.selected_persons.persons.cells == counted.cells.cells
    # Who is in a class of the node and among the rest too is one person.
    kept = first.members.relabelled_without_outside(np.where(first.few, -1, 0))
    together = joined_members([kept, type(kept)(left.selected_persons, np.zeros(left.cells.cells, np.int64))])
    assert together.count(1).tolist() == [len(set(WHOSE))]
    holders = [len({one for one, row in zip(WHOSE, ROWS, strict=True) if row[2] == value}) for value in "ab"]
    assert together.spreads()["s"].source_counts.tolist() == together.spreads()["s"].counts.tolist() == holders


Classes = dict[tuple[Any, ...], list[int]]


def classes_at_node() -> Classes:
    """The places of the records of each class of the node, by its labels, in the order of the classes."""
    found = defaultdict(list)
    for place in sorted(range(len(ROWS)), key=lambda one: class_of(ROWS[one])):
        found[at(ROWS[place][:2], NODE)].append(place)
    return dict(found)


def units(places: list[int], persons: bool) -> int:
    return len({WHOSE[place] if persons else place for place in places})


def values(places: list[int]) -> set[str]:
    return {ROWS[place][2] for place in places}


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("treatment", ["drop", "mask"])
@pytest.mark.parametrize("diverse", [1, 2])
@pytest.mark.parametrize(("root", "linked"), [((0, 0), 0), ((1, 0), 0), ((0, 0), 1)])
def test_classes_that_fail_are_left_out_and_only_those_of_few_masked(
    tmp_path: Path, persons: bool, treatment: str, diverse: int, root: Node, linked: int
) -> None:
    """Who is linked loses a record of the last class, which has others."""
    promise, counted = Promise(K, (DistinctDiversity("s", diverse),)), EXAMPLE.histogram((*root, 0))
    members = Chunks.of(tmp_path).sought(persons).selected_persons(counted, CODING.sensitive)
    classes = classes_at_node()
    rare = {label for label, places in classes.items() if units(places, persons) < K}
    failing = rare | {label for label, places in classes.items() if len(values(places)) < diverse}
    sizes = {label: len(places) for label, places in classes.items()}
    few = sum(sizes[label] for label in rare)
    last = list(classes)[-1]
    assert last not in failing
    sizes[last] -= linked
    lost = sum(sizes[label] for label in failing) + linked
    found = SearchResult(NODE, Loss(lost, 77, 88), 1, 1, 1, 0, (NODE,), measured={"entropy": 0.5})
    people: Any = None
    if linked:
        table = table_at(counted, NODE, AXES, CODING.sensitive, members)
        less = np.array([linked * (label == last) for label in classes])
        people = SimpleNamespace(at=table, persons_lost=less, failing=table.classes.failing(promise), persons=table.classes.units - less)
    made = recode_node(job(rounds=0, treatment=treatment), CODING, promise, found, counted, None if linked else members, people)

    kept = {label: size for label, size in sizes.items() if label not in failing}
    union = [place for label in rare for place in classes[label]]
    masks = treatment == "mask" and units(union, persons) >= K and len(values(union)) >= diverse
    assert dict(zip(zip(*made.recoding.labels.to_pydict().values(), strict=True), made.recoding.sizes.tolist(), strict=True)) == (
        kept | ({("*", "*"): few} if masks else {})
    )
    assert (made.suppressed, made.masked, made.local) == (lost, few * masks, None)
    assert made.suppressed_for == {
        why: number for why, number in {"k": few, "linked" if linked else "spread": lost - few}.items() if number
    }
    # Each range is a seventh of all values, and each level one of three.
    ncp = (sum(kept.values()) / 7 + lost) / len(ROWS)
    assert made.ncp == pytest.approx({"x": ncp, "y": ncp})
    held = made.loss.pop("gcp_held", None)
    assert (held is not None) == (not linked and root == (0, 0))
    assert held is None or lost / len(ROWS) <= held <= ncp
    assert made.loss == pytest.approx({
        "dm": sum(size**2 for size in kept.values()) + lost * len(ROWS), "dm_star": 77, "dm_all": 88, "gcp": ncp, "precision": 2 / 3,
        "c_avg": (sum(units(classes[label], persons) for label in kept) - linked) / len(kept) / K, "suppression_rate": lost / len(ROWS),
        "entropy": 0.5,
    })  # fmt: skip


def published(made: Any) -> list[tuple[int, int] | None]:
    """The stage and the class of each record, looked up stage by stage; None of those that are not published."""
    found = list[tuple[int, int] | None]()
    for row in ROWS:
        classes = []
        for stage in made.recoding.stages:
            columns = [pa.array([value], pa.int64()) for value in row[:2]]
            classes += stage.assigner.assign(CellCoder.at(CODING, stage.node).cells(columns)).tolist()
        first = next((stage for stage in enumerate(classes) if stage[1] != SUPPRESSED), (0, int(DROPPED)))
        found.append(None if first[1] == DROPPED else first)
    return found


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("treatment", ["drop", "mask", "cell"])
@pytest.mark.parametrize("rounds", [0, 2])
@pytest.mark.parametrize(("diverse", "root"), [(1, (0, 0)), (2, (0, 0)), (1, (1, 0))])
def test_what_is_published_of_failing_records_is_in_classes_of_k_and_counted_as_it_is(
    tmp_path: Path, persons: bool, treatment: str, rounds: int, diverse: int, root: Node
) -> None:
    chunks, counted = Chunks.of(tmp_path), EXAMPLE.histogram((*root, 0))
    promise = Promise(K, (DistinctDiversity("s", diverse),) if diverse > 1 else ())
    sought, given = chunks.sought(persons)._replace(promise=promise), SearchResult(NODE, Loss(7, 77, 88), 1, 1, 1, 0, (NODE,))
    made = recode_locally(
        job(rounds, treatment=treatment, objective="gcp", weights={"x": 3}), CODING, sought, given, counted, chunks.parts, chunks.store
    )
    labels, members = made.recoding.labels.to_pylist(), defaultdict(list)
    stages = Counter[int]()
    for place, found in enumerate(published(made)):
        if found is not None:
            members[found[1]].append(place)
            stages[found[0]] += "*" not in labels[found[1]].values()
    assert made.recoding.sizes.tolist() == [len(members[number]) for number in range(len(labels))]
    assert all(units(places, persons) >= K and len(values(places)) >= diverse for places in members.values())
    for number, places in members.items():
        for place in places:
            covered = [[ladder[value] for ladder in levels] for levels, value in zip(EXAMPLE.ladders, ROWS[place][:2], strict=False)]
            assert all(label in ladder for label, ladder in zip(map(as_label, labels[number].values()), covered, strict=True))
    stars = [list(labels[number].values()).count("*") for number, places in members.items() for _ in places]
    masked = stars.count(2)
    assert (made.suppressed, made.masked) == (len(ROWS) - len(stars) + masked, masked)
    assert sum(made.suppressed_for.values()) == made.suppressed
    assert all(made.suppressed_for.values())
    local = made.local
    assert local is not None
    assert (local.records, local.dm_star) == (7, 77)
    assert sum(local.withheld.values()) == sum(stars)
    assert set(local.withheld) == {"x", "y"}
    if rounds == 0:
        assert (local.rounds, local.starred, local.stars) == ((), stars.count(1), sum(stars))
    assert len(local.rounds) <= rounds
    assert local.rounds or not rounds
    assert [one.node for one in local.rounds] == list(local.stages[: len(local.rounds)])
    assert [one.records for one in local.rounds] == [stages[number] for number in range(1, len(local.rounds) + 1)]
    assert made.loss["weighted"] == pytest.approx((3 * made.ncp["x"] + made.ncp["y"]) / 4)
    assert made.loss["suppression_rate"] == made.suppressed / len(ROWS)
    kept = {number: units(places, persons) for number, places in members.items() if set(labels[number].values()) != {"*"}}
    assert made.loss["c_avg"] == pytest.approx(sum(kept.values()) / len(kept) / K)
    assert made.loss["gcp"] == pytest.approx(sum(made.ncp.values()) / 2)


def as_label(label: Any) -> Any:
    """A label as the values of a column are, where it is one."""
    return int(label) if str(label).isdigit() else label


def test_a_null_is_no_star() -> None:
    labels = pa.chunked_array([["*", None], ["a", "*"]])
    assert node_recodings._records_with("*", labels, np.array([1, 2, 4, 8])) == 9
