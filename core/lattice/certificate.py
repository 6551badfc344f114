"""The certified optimum of the complete lattice where no single root histogram fits the memory.

papers/skald.txt, III.B, goes as far as one root. A node that no counted root is finer than could still be the best. It is excluded where

- a coarser node fails: then it fails too;
- it surely holds more than N/k + limit·N cells: each published class holds k records, each cell of a suppressed class one at least;
- Σ|E|² is surely above the best value found: splitting a cell of c records into m leaves at least c²/m (Cauchy-Schwarz).

The nodes that are not excluded are covered by further roots, each as fine as the memory allows, until no node is left: then the optimum
is certified. None of the three is an estimate; a node is never excluded wrongly. A HyperLogLog would err to both sides; marks that
distinct cells may share (``LinearCounting``) err to one, the safe one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import WORD
from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.lattice.lattice import CUT, FAILS, PASSES, UNKNOWN, Lattice, join
from core.lattice.node_classes import ignore_progress
from core.lattice.objectives import LevelPrices
from core.lattice.search import BARRED, BOUNDED, FAILED, UNEXAMINED, Rank, Search, SearchResult
from core.privacy.promise import Promise
from core.units.persons import CellPersons

# One pass over the histograms of the chunks adds up as many: they are read once for all three.
ROOTS_PER_PASS = 3
MOST_ROOTS = 24

Count = Callable[[Sequence[Node]], Iterable[Histogram]]
HasTooManyCells = Callable[[Sequence[Node], int], Sequence[bool]]
PersonsOf = Callable[[Histogram], CellPersons | None]


@dataclass
class Examination:
    """Search of a complete lattice by several root histograms, one after the other.

    Attributes:
        hierarchies: One per QID in job order.
        promise: What a class must satisfy.
        records: N.
        k: Fewest records of a published class.
        most_suppressed: How many records of the whole dataset may be suppressed.
        objective: What is minimised.
        most_cells: Largest product of groups of a node that can be counted as a root.
        most_cached_cells: As for ``RootSearch``.
        most_roots: Roots that are counted before the rest is left unexamined, the first included.
        sensitive: As for ``RootSearch``.
        prices: As for ``RootSearch``.
        persons_of: Returns the persons of the cells of a root, or None where the job has no person column and every record counts as one.
        report_progress: As for ``RootSearch``.
    """

    hierarchies: Sequence[Hierarchy]
    promise: Promise
    records: int
    k: int
    most_suppressed: int
    objective: str
    most_cells: int
    most_cached_cells: int
    most_roots: int = MOST_ROOTS
    sensitive: Sequence[Domain] = ()
    prices: LevelPrices | None = None
    persons_of: PersonsOf = lambda root: None
    report_progress: Callable[[], None] = ignore_progress

    def __post_init__(self) -> None:
        self.lattice = Lattice.above_root(self.hierarchies, (0,) * len(self.hierarchies))
        self.roots: list[Node] = []
        allowed = Lattice.allowed(self.hierarchies)
        self._nodes, self._allowed = allowed.nodes, self.lattice.above(allowed.root)
        # What may not be published need not be examined: it fails.
        self._tags = np.full(self.lattice.shape, FAILS)
        self._tags[self._allowed] = UNKNOWN
        self._seen = np.zeros(self.lattice.shape, np.bool_)
        self._bounds = self.prices.floor(self.lattice) if self.prices else np.zeros(self.lattice.shape)
        self._statuses = np.full(self.lattice.shape, BOUNDED)
        self._evaluated = 0
        self._best: tuple[Rank, SearchResult] | None = None
        # As floats: a product of many axes passes 2^63, and an integer would wrap round to something that "fits".
        self._products = np.ones(())
        for sizes in np.ix_(*([float(len(labels)) for labels in hierarchy.labels] for hierarchy in self.hierarchies)):
            self._products = self._products * sizes
        self._parts = [_parts(hierarchy) for hierarchy in self.hierarchies]

    def run(self, first: Histogram, count: Count, has_too_many_cells: HasTooManyCells) -> SearchResult | None:
        """Return the best examined node, with the number of nodes left unexamined; None if none passes.

        It is the best of the complete lattice if no node is left.

        Args:
            first: Histogram of the first root.
            count: Counts the histograms of further roots, in the order given.
            has_too_many_cells: Returns for each node whether it surely has more than so many occupied cells.
        """
        for histogram in self._histograms(first, count, has_too_many_cells):
            search = self._search_above(histogram)
            self._record(search, search.run())
            # What it kept of this root must not be held while the next one is counted.
            del search
        if self._best is None:
            return None
        found = self._best[1]
        passing = int((self._tags == PASSES).sum())
        left = int(self._open().sum())
        known = np.where(self._tags == FAILS, FAILED, np.where(self._open(), UNEXAMINED, self._statuses))
        statuses = np.full(self.lattice.shape, BARRED)
        statuses[self._allowed] = known[self._allowed]
        return SearchResult(
            found.node, found.loss, passing, self._nodes, self._evaluated, left, tuple(self.roots), statuses, found.measured
        )

    def _histograms(self, first: Histogram, count: Count, has_too_many_cells: HasTooManyCells) -> Iterator[Histogram]:
        """Yield the histogram of the first root, and of more while nodes above them could be better."""
        yield first
        while (rest := self._open()).any() and len(self.roots) < self.most_roots:
            coverable = rest & (self._products <= self.most_cells)
            most = min(ROOTS_PER_PASS, self.most_roots - len(self.roots))
            roots = self._next_roots(coverable, most) if coverable.any() else self._sparse_roots(rest, has_too_many_cells, most)
            if roots is None:
                return
            yield from count(roots)

    def _search_above(self, histogram: Histogram) -> Search:
        """Return the search of the lattice above one root, which looks at no node whose verdict is known."""
        above = self.lattice.above(histogram.node)
        best = self._best[0] if self._best else None
        known = self._tags[above].copy()
        # Whatever is known to pass lies above an earlier root.
        known[known == PASSES] = CUT
        if best:
            known[(known != FAILS) & (self._bounds[above] > float(best[0]))] = CUT
        return Search(
            histogram,
            self.hierarchies,
            self.promise,
            self.most_suppressed,
            self.objective,
            self.most_cached_cells,
            self.sensitive,
            self.prices,
            self.persons_of(histogram),
            self.report_progress,
            known,
            best,
        )

    def _record(self, search: Search, found: SearchResult | None) -> None:
        """Record the verdicts and bounds of a search that has ended, and its best node."""
        above = self.lattice.above(search.root.node)
        self.roots.append(search.root.node)
        self._evaluated += search.evaluated
        looked, mine = search.statuses(), self._statuses[above]
        mine[looked != BOUNDED] = looked[looked != BOUNDED]
        if found:
            self._best = (search.rank(found.node), found)
        np.maximum(self._bounds[above], search.bounds, out=self._bounds[above])
        tags = search.tags
        # CUT only says that this search need not look; what was known of the node stays known.
        self._tags[above] = np.where(tags == CUT, self._tags[above], tags)
        self._seen[above] = True
        self._spread()
        self._bound_finer(search)

    def _spread(self) -> None:
        """Mark all nodes finer than a failing node as failing, and all coarser than a passing one as passing."""
        fails, passes = self._tags == FAILS, self._tags == PASSES
        for axis in range(fails.ndim):
            fails = np.flip(np.logical_or.accumulate(np.flip(fails, axis), axis), axis)
            passes = np.logical_or.accumulate(passes, axis)
        self._tags[fails] = FAILS
        self._tags[passes] = PASSES

    def _open(self) -> NDArray[np.bool_]:
        """Return a mask of the nodes that could still be better than the best node found."""
        rest: NDArray[np.bool_] = ~self._seen & (self._tags != FAILS)
        return rest & (self._bounds <= float(self._best[0][0])) if self._best else rest

    def _bound_finer(self, search: Search) -> None:
        """Bound the objective of open nodes by the bound of their join with a searched root.

        Objectives with prices are bounded beforehand. C_avg is no exception: m times the cells are at most m times the classes.
        """
        if self.prices:
            return
        # argwhere goes in C order, so which bounds are worked out first depends on the lattice alone.
        for position in np.argwhere(self._open()):
            node = tuple(int(level) for level in position)
            over = join(node, search.root.node)
            split = prod(parts[fine][coarse] for parts, fine, coarse in zip(self._parts, node, over, strict=True))
            bound = self._bounds[over] / split
            more = len(self.roots) < self.most_roots
            if more and self._best and bound <= float(self._best[0][0]):
                self._bounds[over] = max(self._bounds[over], search.bound(over))
                bound = self._bounds[over] / split
            # Two steps down outweigh the rounding of the division.
            self._bounds[node] = max(self._bounds[node], np.nextafter(np.nextafter(bound, 0), 0))

    def _next_roots(self, rest: NDArray[np.bool_], most: int) -> list[Node]:
        """Choose root nodes that fit the memory and cover as many open nodes as possible, greedily."""
        rest = rest.copy()
        roots: list[Node] = []
        fits = np.zeros(rest.shape, np.bool_)
        fits[self._allowed] = self._products[self._allowed] <= self.most_cells
        while rest.any() and len(roots) < most:
            # How many open nodes lie above each node: sums along every axis from the coarse end.
            covered = rest.astype(np.int64)
            for axis in range(covered.ndim):
                covered = np.flip(np.flip(covered, axis).cumsum(axis), axis)
            root = self.lattice.at(int(np.where(fits, covered, -1).argmax()))
            roots.append(root)
            rest[self.lattice.above(root)] = False
        return roots

    def _sparse_roots(self, rest: NDArray[np.bool_], has_too_many_cells: HasTooManyCells, most: int) -> list[Node] | None:
        """Exclude nodes with too many cells to pass, and return the others that fit as roots.

        The coarsest nodes come first.

        Returns:
            None if none of the rest can be counted: what is asked again has the same answer.
        """
        # Rounded down, because cells are whole: what has more than N/k + limit·N of them has more than this.
        bound = self.records // self.k + self.most_suppressed
        nodes = [tuple(int(level) for level in position) for position in np.argwhere(rest)]
        # A coarse node that is excluded takes everything finer with it, so one reading may settle many.
        coarsest = [node for node in nodes if not any(node != other and join(node, other) == other for other in nodes)]
        full = has_too_many_cells(coarsest, bound)
        for node, excluded in zip(coarsest, full, strict=True):
            if excluded:
                self._tags[self.lattice.below(node)] = FAILS
        if bound > self.most_cells:
            return None
        left = [node for node, excluded in zip(coarsest, full, strict=True) if not excluded and self._products[node] < WORD]
        return left[:most] or None


def _parts(hierarchy: Hierarchy) -> list[list[int]]:
    """Return the greatest number of groups that one group splits into, by finer and coarser level."""
    return [
        [int(np.bincount(hierarchy.rolled(fine, coarse)).max()) if fine < coarse else 1 for coarse in range(hierarchy.levels)]
        for fine in range(hierarchy.levels)
    ]
