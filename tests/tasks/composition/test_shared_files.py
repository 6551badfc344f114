"""Records at risk in files that two releases share are those of a look at each record, whatever else each release knows."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.histograms.projections import Bundles
from core.recoding.recoding import recode
from schemas.errors.signals import UnmeasuredError
from tasks.composition import by_files
from tasks.composition.by_files import BYTES_PER_CELL, ReleaseView, _at_risk
from tasks.counting.coding import ChunkCells, Coding
from tests.oracles.hierarchies import built, published
from tests.oracles.tables import Example, observed

Row = tuple[int | None, int | None]
MEMORY = 1 << 20


class Seen:
    """A release of some records at a node, by the product and by labels."""

    def __init__(self, rows: list[Row], node: tuple[int, int], k: int) -> None:
        domains = tuple(observed(f"q{place}", [row[place] for row in rows], pa.int64()) for place in range(2))
        hierarchies = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
        self.example = Example(rows, domains, hierarchies)
        self.coding = Coding(domains, hierarchies, ("", ""))
        histogram = self.example.histogram(node)
        failing = histogram.counts < k
        self.view = ReleaseView(self.coding, recode(histogram, hierarchies, failing, "text", masks=False, masked=None))
        labels = [published(hierarchy, level) for hierarchy, level in zip(hierarchies, node, strict=True)]
        codes = [{value: code for code, value in enumerate([*domain.values.to_pylist(), None])} for domain in domains]
        self._label_of = lambda row: tuple(label[code[value]] for label, code, value in zip(labels, codes, row, strict=True))
        sizes = Counter(map(self._label_of, rows))
        self._kept = {label for label, size in sizes.items() if size >= k}

    def class_of(self, row: Row) -> Any:
        """What is published of a record; None if nothing is."""
        label = self._label_of(row)
        return label if label in self._kept else None

    def cells(self, rows: list[Row]) -> ChunkCells:
        """Some records as the histogram of a chunk."""
        bundles, sizes = Bundles(self.coding.packing), Counter(rows)
        places = [{value: code for code, value in enumerate([*one.values.to_pylist(), None])} for one in self.coding.domains]
        codes = [np.array([places[place][row[place]] for row in sizes], np.int64) for place in range(2)]
        return bundles, bundles.codes(self.coding.packing.pack(codes)), np.array(list(sizes.values()), np.int64)


def below(classes: list[tuple[Any, ...]], k: int) -> int:
    return sum(size for one, size in Counter(classes).items() if size < k and any(mine is not None for mine in one))


@pytest.mark.parametrize(("mine", "theirs"), [((0, 0), (0, 0)), ((1, 0), (0, 3)), ((0, 3), (2, 0)), ((1, 3), (0, 0))])
def test_records_of_shared_files_are_at_risk_by_their_classes_in_both_releases(mine: tuple[int, int], theirs: tuple[int, int]) -> None:
    drawn, k = np.random.default_rng(5), 3

    def some(count: int, values: int) -> list[Row]:
        return [(int(one) if one < values else None, int(two) if two else None) for one, two in drawn.integers(0, values + 1, (count, 2))]

    shared, added, removed = some(14, 5), some(30, 9), some(30, 9)
    now, then = Seen(shared + added, mine, k), Seen(removed + shared, theirs, k)
    expected = below([(now.class_of(row), then.class_of(row)) for row in shared], k)
    assert expected > 0
    assert _at_risk(now.coding, [now.view, then.view], iter([now.cells(shared)]), 1, MEMORY, k) == expected
    # Of files that went with others, those that stayed are taken off again.
    whole = [then.cells(removed), then.cells(shared), then.cells(shared)]
    assert _at_risk(then.coding, [then.view], iter(whole), 2, MEMORY, k) == below([(then.class_of(row),) for row in removed], k)


def test_more_cells_than_the_memory_holds_are_not_measured() -> None:
    """Six values are six cells at the finest level, of which each takes its bytes."""
    rows: list[Row] = [(number, 0) for number in range(6)]
    seen = Seen(rows, (0, 0), 1)
    assert _at_risk(seen.coding, [seen.view], [seen.cells(rows)], 1, 6 * BYTES_PER_CELL, 2) == 6
    with pytest.raises(UnmeasuredError, match="than the job's memory holds"):
        _at_risk(seen.coding, [seen.view], [seen.cells(rows)], 1, 6 * BYTES_PER_CELL - 1, 2)


class Kept(SimpleNamespace):
    """What is kept of a release, or of a run, with one part replaced by its dotted name."""

    def but(self, name: str, value: Any) -> Kept:
        first, _, rest = name.partition(".")
        return Kept(**vars(self) | {first: getattr(self, first).but(rest, value) if rest else value})


@pytest.mark.parametrize(
    ("side", "name", "value", "why"),
    [
        ("run", "recoded", None, "may come to different classes here"), ("run", "job.privacy.columns", ("s",), "is promised here"),
        ("run", "job.columns.means", ("pay",), "means are published here"),
        ("run", "recoded", (None, Kept(withheld="pairs")), "whose they are"), ("entry", "", None, "nothing is kept of it here"),
        ("entry", "promised", {"l": {}}, "is promised there"), ("entry", "promised", None, "is promised there"),
        ("entry", "is_readable", False, "another version"), ("entry", "recoded", None, "may have come to different classes there"),
        ("entry", "recoded.recoding.withheld", "pairs", "may have come to different classes there"),
        ("entry", "hierarchies", {"q": "another"}, "are not those of this job"),
        ("entry", "hierarchies", {"r": "1", "q": "2"}, "are not those"),
        ("entry", "recoded.domain", "gone", "its artefacts are gone"), ("entry", "recoded.recoding.parts", ["there", "gone"], "are gone"),
        ("entry", "k", 9, ""),
    ],
)  # fmt: skip
def test_files_are_compared_where_equal_records_come_to_one_class_in_both_releases(
    monkeypatch: pytest.MonkeyPatch, side: str, name: str, value: Any, why: str
) -> None:
    job, store = Kept(privacy=Kept(columns=()), columns=Kept(means=())), Kept(is_complete=lambda one: one != "gone")
    run = Kept(recoded=(None, Kept(withheld=None)), job=job, store=store)
    recoding = Kept(withheld=None, parts=["there"])
    entry: Any = Kept(
        promised={}, is_readable=True, recoded=Kept(recoding=recoding, domain="domain"), hierarchies={"q": "2", "r": "1"}, k=5
    )
    run = run.but(name, value) if side == "run" else run
    entry = entry if side == "run" else entry.but(name, value) if name else value
    monkeypatch.setattr(by_files, "read_entry", lambda *given: entry if given == ("people-1", run.store) else 1 / 0)
    monkeypatch.setattr(by_files, "hierarchy_digests", lambda _: {"q": "2", "r": "1"})
    monkeypatch.setattr(by_files, "artifacts_of", lambda of: of.parts)
    mine: Any = run
    if why:
        with pytest.raises(UnmeasuredError, match=why):
            by_files._comparable(mine, "people-1")
    else:
        assert by_files._comparable(mine, "people-1") is entry
