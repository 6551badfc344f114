"""draft"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import NamedTuple

import numpy as np

from core.domains import Domain
from core.hierarchy import Hierarchy
from core.histogram import Histogram
from core.lattice import Lattice
from core.losses import Loss, loss_of
from core.privacy import AllOf, KAnonymity, PrivacyModel, relaxed
from core.rollups import RollUps
from core.search import KEPT_CELLS, Objective, Rank

Steps = tuple[int, ...]
KEPT_NODES = 50_000
MOST_REGIONS = 50_000
SHARE = float(os.environ.get("SHARE", "0.5"))
SPLIT = os.environ.get("SPLIT", "both")


class Seen(NamedTuple):
    loss: Loss
    least: int
    floor: int
    spared: int


class Region(NamedTuple):
    bound: int
    low: Steps
    high: Steps
    tights: Steps = ()
    rises: Steps = ()


class Spent(Exception):
    pass


def changed(steps, q, step):
    return (*steps[:q], step, *steps[q + 1 :])


@dataclass
class Branching:
    root: Histogram
    hierarchies: Sequence[Hierarchy]
    model: PrivacyModel
    most_suppressed: int
    objective: Objective = "dm_star"
    effort: int = 20_000
    kept_cells: int = KEPT_CELLS
    sensitive: Sequence[Domain] = ()

    def __post_init__(self):
        self.levels = [
            [l for l in range(f, h.levels) if l == f or len(h.labels[l]) < len(h.labels[l - 1])]
            for f, h in zip(self.root.node, self.hierarchies, strict=True)
        ]
        self.top = tuple(len(l) - 1 for l in self.levels)
        self.lattice = Lattice(tuple(h.levels for h in self.hierarchies), self.root.node)
        self.k = least_class(self.model)
        self.tagged_by = self.model if not self.most_suppressed else relaxed(self.model)
        sizes = [h.levels for h in self.hierarchies]
        self.roll_ups = RollUps(self.root, self.hierarchies, self.kept_cells, lambda node: float(prod(a - b for a, b in zip(sizes, node))))
        self.seen = {}
        self.evaluated = 0
        self.best = None
        self.best_steps = None
        self.log = []

    def node(self, steps):
        return tuple(l[s] for l, s in zip(self.levels, steps))

    def see(self, steps, keep=False) -> Seen:
        if steps in self.seen:
            return self.seen[steps]
        if self.evaluated >= self.effort:
            raise Spent
        self.evaluated += 1
        node = self.node(steps)
        counts = self.roll_ups.counts(node, keep=keep)
        failing = self.model.fails(counts)
        loss = loss_of(counts, failing)
        small = counts[counts < self.k]
        least = loss.suppressed
        floor = loss.dm_all + int(np.dot(small, self.k - small))
        # spared
        of = np.bincount(small, minlength=self.k) * np.arange(self.k)
        before = np.minimum(np.cumsum(of), self.most_suppressed)
        taken = np.diff(before, prepend=0)
        spared = int(np.dot(taken, self.k - np.arange(self.k)))
        if len(self.seen) >= KEPT_NODES:
            for s in list(self.seen)[: KEPT_NODES // 2]:
                del self.seen[s]
        self.seen[steps] = seen = Seen(loss, least, floor, spared)
        if loss.suppressed <= self.most_suppressed:
            r = self.rank(steps, seen)
            if self.best is None or r < self.best:
                self.best = r
                self.best_steps = steps
                self.log.append((self.evaluated, r[0]))
        return seen

    def rank(self, steps, seen) -> Rank:
        node = self.node(steps)
        value = seen.loss.dm_star if self.objective == "dm_star" else seen.loss.dm_all
        unit = self.lattice.unit
        imp = sum(l * (unit // max(t, 1)) for l, t in zip(node, self.lattice.top))
        return value, seen.loss.suppressed, imp, node

    def passes(self, steps):
        return self.see(steps).least <= self.most_suppressed

    def bound(self, low, least):
        seen = self.see(low, keep=True)
        bound = seen.floor - seen.spared
        if self.objective == "dm_star":
            s = min(max(self.k // 2, least), self.most_suppressed, seen.least)
            bound = max(bound, seen.floor + s * (s - self.k))
        return bound

    def run(self):
        region = None
        self.heap = []
        done = None
        try:
            if not self.passes(self.top):
                return None
            bottom = tuple(0 for _ in self.top)
            self.dive(self.top, bottom)
            first = self.log[-1]
            hunt = self.hunt()
            hunting = True
            region = Region(self.bound(bottom, 0), bottom, self.top)
            self.region_spent = self.hunt_spent = 0
            while True:
                # hunting
                if hunting and self.hunt_spent * (1 - SHARE) <= self.region_spent * SHARE:
                    e = self.evaluated
                    hunting = next(hunt, None) is not None
                    self.hunt_spent += self.evaluated - e
                    continue
                if region is None:
                    if not self.heap:
                        break
                    region = heapq.heappop(self.heap)
                    if region.bound > self.best[0]:
                        region = None
                        break
                e = self.evaluated
                for child in self.branch(region):
                    heapq.heappush(self.heap, child)
                self.region_spent += self.evaluated - e
                region = None
        except Spent:
            pass
        opens = [r.bound for r in self.heap if r.bound <= self.best[0]] + ([region.bound] if region else [])
        return self.best, min(opens, default=self.best[0]), self.evaluated

    # ---- bound side
    def branch(self, region):
        t = self.tighten(*region)
        if t is None:
            return []
        bound, low, high, tights, rises = t
        if low == high:
            return []
        q, m = self.choose(low, high, rises)
        out = []
        # coarser child
        up = changed(low, q, m + 1)
        b = max(bound, self.bound(up, self.see(high).least))
        if b <= self.best[0]:
            out.append(Region(b, up, high, tights, rises))
        down = changed(high, q, m)
        if self.passes(down):
            b = max(bound, self.bound(low, self.see(down).least))
            if b <= self.best[0]:
                out.append(Region(b, low, down, tights, rises))
        return out

    def tighten(self, bound, low, high, tights, rises):
        A, B = float(os.environ.get('A', '0')), float(os.environ.get('B', '0'))
        tights = list(tights) or [self.most_suppressed] * len(low)
        rises = list(rises) or [self.best[0]] * len(low)
        once = int(os.environ.get('ONCE', '0'))
        while True:
            before = (low, high)
            for q in range(len(low)):
                # too fine
                if low[q] < high[q] and tights[q] >= A * self.most_suppressed:
                    s = self.see(changed(high, q, low[q])).least
                    tights[q] = s
                    if s > self.most_suppressed:
                        fails, ok = low[q], high[q]
                        while ok - fails > 1:
                            mid = (ok + fails) // 2
                            if self.passes(changed(high, q, mid)):
                                ok = mid
                            else:
                                fails = mid
                        low = changed(low, q, ok)
                        tights[q] = self.see(changed(high, q, ok)).least
            b = self.bound(low, self.see(high).least)
            bound = max(bound, b)
            if bound > self.best[0]:
                return None
            for q in range(len(low)):
                least = self.see(high).least
                if low[q] < high[q] and rises[q] >= B * self.best[0]:
                    b = self.bound(changed(low, q, high[q]), least)
                    rises[q] = b
                    if b > self.best[0]:
                        ok, bad = low[q], high[q]
                        while bad - ok > 1:
                            mid = (ok + bad) // 2
                            if self.bound(changed(low, q, mid), least) > self.best[0]:
                                bad = mid
                            else:
                                ok = mid
                        high = changed(high, q, ok)
                        rises[q] = self.bound(changed(low, q, ok), least)
                        if not self.passes(high):
                            return None
            if (low, high) == before or once:
                return bound, low, high, tights, rises

    def choose(self, low, high, rises):
        q = max((q for q in range(len(low)) if low[q] < high[q]), key=lambda q: (rises[q], -q))
        return q, high[q] - 1

    # ---- incumbents
    def dive(self, start, floor, frozen=-1, alpha=0.0):
        current = start
        seen = self.see(start)
        open_ = {q: float("inf") for q in range(len(start)) if start[q] > floor[q] and q != frozen}
        while open_:
            q = max(open_, key=lambda q: (open_[q], -q))
            finer = changed(current, q, current[q] - 1)
            s = self.see(finer)
            if s.least > self.most_suppressed:
                del open_[q]
                continue
            a, b = self.rank(current, seen), self.rank(finer, s)
            if b >= a:
                del open_[q]  # may come back?
                continue
            gain = log(a[0] / b[0]) + 1e-9
            if alpha:
                gain /= (max(s.least - seen.least, 0) / (self.most_suppressed + 1) + 0.001) ** alpha
            others = max((g for o, g in open_.items() if o != q), default=0)
            open_[q] = gain
            if gain >= others:
                current, seen = finer, s
                if current[q] == floor[q]:
                    del open_[q]
        return current, self.rank(current, seen)

    def climb(self, start, alpha):
        current = start
        seen = self.see(start)
        open_ = {q: 0.0 for q in range(len(start)) if start[q] < self.top[q]}
        while seen.least > self.most_suppressed:
            q = min(open_, key=lambda q: (open_[q], -q))
            coarser = changed(current, q, current[q] + 1)
            s = self.see(coarser)
            cost = log(s.loss.dm_all / seen.loss.dm_all) + 1e-9
            if alpha:
                cost /= ((seen.least - s.least) / (self.most_suppressed + 1) + 1e-6) ** alpha
            others = min((g for o, g in open_.items() if o != q), default=float("inf"))
            open_[q] = cost
            if cost <= others:
                current, seen = coarser, s
                if current[q] == self.top[q]:
                    del open_[q]
        return current

    def hunt(self) -> Iterator[bool]:
        bottom = tuple(0 for _ in self.top)
        for way in os.environ.get('WAYS', 'c0,c1,d0.5,d1').split(','):
            e = self.evaluated
            if way[0] == 'c':
                end = self.climb(bottom, float(way[1:]))
                r = self.dive(end, bottom)[1][0]
            else:
                r = self.dive(self.top, bottom, alpha=float(way[1:]))[1][0]
            if 'V' in os.environ: print(way, self.evaluated - e, r)
            yield True
        while True:
            start, was = self.best_steps, self.best
            for raise_ in range(1, max(self.top) + 1):
                for q in range(len(start)):
                    if start[q] + raise_ <= self.top[q]:
                        up = changed(start, q, start[q] + raise_)
                        for alpha in (0.0, 1.0):
                            end, _ = self.dive(up, bottom, frozen=q, alpha=alpha)
                            self.dive(end, bottom)
                            yield True
                            if self.best < was:
                                break
                        if self.best < was:
                            break
                if self.best < was:
                    break
            if self.best == was:
                return


def least_class(model):
    match model:
        case KAnonymity(k):
            return k
        case AllOf(models):
            return max(map(least_class, models), default=1)
    return 1
