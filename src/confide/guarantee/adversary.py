"""The largest loss over all choices of the adversary in the two-sided certificate, bounded by branch and bound.

The adversary chooses the mass K of the left candidates by index; how many points s share the bin of the first candidate
g beyond rank c; how the other points are put into bins right of it (rho, kappa); and whether a candidate lies exactly
at rank c (docs/theory-two-sided.md, sections 4 and 5). For ranges of s, for corners of the polygon of (rho, kappa) and
for ranges of W_0, the weight of all left candidates, the programs at the ends bound all between them. Parts of the
search with too large a bound are divided, all at once. The bound is valid whenever the search stops.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.guarantee.left_side import Array, Case, Indices, LeftSide, Rows
from confide.guarantee.right_side import corner_count, corners
from confide.guarantee.slope_noise import SlopeNoise

_TOLERANCE = 0.01, 0.003
"""Accuracy in ranks, and relative to the loss."""
_SCAN = 12
"""Number of values of W_0 that are tried to find the worst one."""
_CELLS = np.array([0.25, 0.6, 0.85, 1.2, 1.8, 4.0])
"""First division of W_0, relative to the worst value."""
_WIDTH = 0.35
"""First division of s: growth of r s over the first range."""
_MOST = 2000
"""Largest number of divisions per case; then the bound is returned as it is."""
_SPARE = 1e-7
"""Rounding lowers no line by more than this."""
_ALL = -1
"""Used in place of a corner: a point below all corners."""


class Parts(NamedTuple):
    """Parts of the search: a range of s, a corner or all of them, W_0 between two values, and the lines there.

    Values and slopes have shape (parts, ends of s, ends of W_0); `plain` holds both before lines are improved, shape
    (parts, value or slope, ends of s, ends of W_0). `loose` is about what the bound loses for s in between.
    """

    case: Indices
    first: Indices
    final: Indices
    corner: Indices
    loose: Array
    weight: Array
    value: Array
    slope: Array
    plain: Array

    def take(self, which: NDArray[np.bool_]) -> "Parts":
        """A subset of the parts."""
        return Parts._make(column[which] for column in self)

    def repeat(self, number: int) -> "Parts":
        """Each part repeated several times."""
        return Parts._make(np.repeat(column, number, axis=0) for column in self)

    def peak(self) -> Array:
        """The largest mixture of the lines at two values of W_0, each weighted by the distance to the other's end."""
        width = (self.weight[:, 1] - self.weight[:, 0])[:, None]
        start, bend = self.value[:, :, 0], self.slope[:, :, 1] - self.slope[:, :, 0]
        rise = self.value[:, :, 1] - start - bend * width
        inside = (bend < 0) & (rise > 0) & (rise < -2 * bend * width)
        top = start - np.divide(rise**2, 4 * bend * width, out=np.zeros_like(rise), where=inside)
        peak: Array = np.maximum(self.value.max(axis=2), top).max(axis=1)
        return peak


def accuracy(lost: float) -> float:
    """By how many ranks the bound may exceed the maximum."""
    return max(_TOLERANCE[0], _TOLERANCE[1] * lost)


def largest(noise: SlopeNoise, cases: list[Case], goal: float | None = None) -> float:
    """An upper bound on the largest L2(x) + x over the cases; the search ends when it meets the goal, or cannot."""
    return float(_Search(noise, cases, goal).run(together=True).max())


def each(noise: SlopeNoise, cases: list[Case], goal: float) -> Array:
    """An upper bound on L2(x) + x in each case, accurate enough to decide whether it meets the goal."""
    return _Search(noise, cases, goal).run(together=False)


class _Search:
    """The parts of a search, and the data that they share."""

    def __init__(self, noise: SlopeNoise, cases: list[Case], goal: float | None) -> None:
        self.noise, self.cases, self.goal = noise, cases, goal
        self.left = LeftSide(noise, cases)
        self.beyond = np.array([case.beyond for case in cases])
        self.exact = np.array([case.most is not None for case in cases])
        self.last = np.array([case.last for case in cases])
        self.high = np.array([case.high for case in cases])
        far = int(12 / noise.right) + 8  # where there can be more points, it represents all larger numbers
        self.most = np.array([far + 1 if case.most is None else case.most for case in cases])
        self.far = np.where(self.last, self.beyond, np.minimum(self.most, far))
        self.first = np.where(self.last, self.beyond, 0)
        self.least = self.high + 1 - self.left.own
        self.reached = self.least.copy()

    def run(self, together: bool) -> Array:
        """Divide until no bound is larger than the goal, or than the best value that dividing could still reach."""
        bounds, divided = self.least.copy(), 0
        edges = self._scan()
        if self.goal is not None and together and self.reached.max() > self.goal:
            return self.reached
        parts = self._start(edges)
        while True:
            self._count(parts)
            bound = parts.peak() + self.high[parts.case]
            active = bound > self._enough()[parts.case]
            if self.goal is not None:
                hopeless = self.reached > self.goal
                active &= ~(hopeless.any() if together else hopeless[parts.case])
            divided += int(active.sum())
            active &= divided <= _MOST * len(self.cases)
            np.maximum.at(bounds, parts.case[~active], bound[~active])
            if not active.any():
                return bounds + _SPARE
            parts = self._divide(parts.take(active))

    def _enough(self) -> Array:
        """The bound that is accurate enough in each case; deciding about a goal needs a higher accuracy."""
        if self.goal is None:
            best = float(self.reached.max())
            return np.full(len(self.cases), best + accuracy(best - 1))
        finer = [accuracy(reached - 1) / 8 for reached in self.reached.tolist()]
        return np.maximum(self.goal, self.reached + finer)

    def _count(self, parts: Parts) -> None:
        """Record the values that dividing can still reach: those at a corner, for one s."""
        value = parts.value.max(axis=(1, 2)) - 2 * parts.loose + self.high[parts.case]
        np.maximum.at(self.reached, parts.case, np.where(parts.corner == _ALL, -math.inf, value))

    def _scan(self) -> Array:
        """First edges of W_0 in each case: around the worst one for a typical s."""
        count, most = len(self.cases), self.left.most[:, None]
        s = np.where(self.last, self.beyond, np.minimum(self.far, round(1.2 / self.noise.right)))
        tried = most * np.geomspace(min(0.2, 0.5 / self.noise.mass), 1.0, _SCAN)
        parts = self._solve(np.arange(count), s, s, np.full(count, 3), tried)
        self._count(parts)
        worst = tried[np.arange(count), parts.value[:, 0, 0].reshape(count, -1).argmax(axis=1)]
        return np.hstack([np.zeros((count, 1)), np.minimum(worst[:, None] * _CELLS, most), most])

    def _start(self, edges: Array) -> Parts:
        """Ranges of s in each case, each with all corners together."""
        hopeless = np.zeros(len(self.cases), bool) if self.goal is None else self.reached > self.goal
        ranges = [(k, *span) for k in range(len(self.cases)) for span in self._ranges(k, bool(hopeless[k]))]
        case, first, final = np.array(ranges).T
        return self._solve(case, first, final, np.full(len(case), _ALL), edges[case])

    def _ranges(self, k: int, whole: bool) -> Iterator[tuple[int, int]]:
        """All s in one case, in ranges that grow with s, or in one range."""
        first, far, slope = int(self.first[k]), int(self.far[k]), self.noise.right
        if whole:
            yield first, far
            return
        while first <= far:
            final = min(far, first + int(_WIDTH / slope * math.exp(min(slope * first / 2, 20.0))))
            yield first, final
            first = final + 1

    def _solve(self, case: Indices, first: Indices, final: Indices, corner: Indices, edges: Array) -> Parts:
        """Parts between neighbouring edges of W_0, shape (ranges, edges)."""
        ranges, cells = edges.shape
        lines, loose = self._lines(case, first, final, corner, np.repeat(np.arange(ranges), cells), edges.ravel())
        low = np.arange(edges.size).reshape(edges.shape)[:, :-1].ravel()
        columns = (np.repeat(column, cells - 1) for column in (case, first, final, corner, loose))
        weight = np.stack([edges.ravel()[low], edges.ravel()[low + 1]], axis=1)
        parts = Parts._make([*columns, weight, *_ends(lines[:, low], lines[:, low + 1])])
        return parts.take(parts.weight[:, 1] > parts.weight[:, 0])

    def _lines(
        self, case: Indices, first: Indices, final: Indices, corner: Indices, owner: Indices, weight: Array
    ) -> tuple[Array, Array]:
        """Lines at values of W_0, each for the range of s that owns it, and about what a range loses for s in between.

        Lines have shape (4, values of W_0, ends of s): value and slope, and both before they are improved.
        """
        terms, loose = self._terms(case, first, final, corner)
        wide, enough = (final > first)[owner], self._enough() - self.high
        lines = np.empty((4, len(owner), 2))
        for end, which in ((0, np.ones_like(wide)), (1, wide)):
            if which.any():
                some = owner[which]
                rows = Rows(case[some], weight[which], *terms[some, end].T)
                lines[:, which, end] = self.left.lines(rows, enough[rows.case])
        lines[:, ~wide, 1] = lines[:, ~wide, 0]
        return lines, loose

    def _divide(self, parts: Parts) -> Parts:
        """Divide each part by corner first, then by s or W_0, whichever loosens its bound more."""
        every = parts.corner == _ALL
        ranged = ~every & (parts.loose > parts.peak() - parts.value.max(axis=(1, 2)))
        weighted, found = ~every & ~ranged, []
        if every.any():
            found.append(self._by_corner(parts.take(every)))
        if ranged.any():
            case, first, final, corner, _, weight, *_ = parts.take(ranged)
            middle = first + (final - first) // 2
            found.append(self._solve(case, first, middle, corner, weight))
            found.append(self._solve(case, middle + 1, final, corner, weight))
        if weighted.any():
            found += self._by_weight(parts.take(weighted))
        return Parts._make(np.concatenate(column) for column in zip(*found, strict=True))

    def _by_corner(self, parts: Parts) -> Parts:
        """Each part at each corner; neighbours share the lines at the W_0 between them."""
        case, first, final, _, _, weight, *_ = parts
        alone = np.ones(len(case), bool)
        alone[1:] = (case[1:] != case[:-1]) | (first[1:] != first[:-1]) | (weight[1:, 0] != weight[:-1, 1])
        high = np.cumsum(1 + alone) - 1
        edges, owner = np.empty(high[-1] + 1), np.empty(high[-1] + 1, dtype=np.int64)
        edges[high - 1], edges[high] = weight.T
        spans = np.cumsum(alone) - 1
        owner[high - 1] = owner[high] = spans
        number = corner_count(self.noise.right)
        ranges, corner = spans[-1] + 1, np.repeat(np.arange(number), spans[-1] + 1)
        case, first, final = (np.tile(column[alone], number) for column in (case, first, final))
        again = np.repeat(np.arange(number), len(edges)), np.repeat(np.arange(number), len(high))
        owner = np.tile(owner, number) + ranges * again[0]
        lines, loose = self._lines(case, first, final, corner, owner, np.tile(edges, number))
        high, spans = np.tile(high, number) + len(edges) * again[1], np.tile(spans, number) + ranges * again[1]
        columns = [column[spans] for column in (case, first, final, corner, loose)]
        return Parts._make([*columns, np.tile(weight, (number, 1)), *_ends(lines[:, high - 1], lines[:, high])])

    def _by_weight(self, parts: Parts) -> list[Parts]:
        """Both halves of each part, divided at a W_0 in the middle; the lines at its ends are known."""
        low, high = parts.weight.T
        middle = np.where(low > 0, np.sqrt(low * high), high / 3)
        new, _ = self._lines(*parts[:4], np.arange(len(middle)), middle)
        # A line that would no longer be improved is used as it was.
        best, plain = np.stack([parts.value, parts.slope]), np.moveaxis(parts.plain, 1, 0)
        enough = (self._enough() - self.high)[parts.case, None, None]
        old = np.concatenate([np.where(plain[0] > enough, best, plain), plain])
        return [
            Parts._make([*parts[:5], np.stack([low, middle], axis=1), *_ends(old[..., 0], new)]),
            Parts._make([*parts[:5], np.stack([middle, high], axis=1), *_ends(new, old[..., 1])]),
        ]

    def _terms(self, case: Indices, first: Indices, final: Indices, corner: Indices) -> tuple[Array, Array]:
        """R, the R in the exponent of X, v (s+1) and X at both ends of each range, and about what s in between adds."""
        slope, own, width = self.noise.right, self.left.own[case], final - first
        spans, again = np.unique(np.stack([case, first, final], axis=1), axis=0, return_inverse=True)
        rho, kappa, larger = np.array([self._corners(*span) for span in spans.tolist()])[again.ravel(), corner].T
        endless = (final == self.far[case]) & (final != self.most[case])
        scale = np.where(self.last[case] | endless, 0.0, self.left.far[case])
        ends = np.stack([first, final], axis=1)
        exact = np.exp(-slope * ends)
        # For s in between: a tangent of exp(-rs), which lies below it everywhere and is nowhere below 0.
        steep = np.maximum(exact[:, 0] - exact[:, 1], 1e-300) / (slope * np.maximum(width, 1))
        touch = np.maximum(-np.log(steep) / slope, final - 1 / slope)[:, None]
        tangent = np.exp(-slope * touch) * (1 - slope * (ends - touch))
        least = np.where((width > 1)[:, None], np.minimum(tangent, exact), exact) * scale[:, None]
        count = np.where(endless[:, None], first[:, None], ends) + 1.0
        later = np.where((width > 1)[:, None], exact[:, :1], exact) * (scale * larger)[:, None]
        extra = least * (kappa + (1 - own) * (first + 1) * rho)[:, None]
        loose = (exact[:, 0] * scale - least[:, 0]) * kappa / 4
        loose += np.where(width > 1, least[:, 0] * kappa * (later[:, 0] - scale * larger * exact[:, 1]) / 32, 0.0)
        loose += np.where(endless & (width > 0), math.inf, 0.0) + np.where(self.exact[case], least[:, 0] * width / 4, 0)
        return np.stack([least * rho[:, None], later, own[:, None] * count, extra], axis=2), loose

    def _corners(self, case: int, first: int, final: int) -> Array:
        """rho, kappa, and the next larger rho at each corner, and at a point below all corners."""
        fewest, most = max(int(self.beyond[case]) - final, 0), max(int(self.most[case]) - first, 0)
        ahead = self.cases[case].bonus if self.exact[case] and not self.last[case] else None
        return corners(self.noise.right, fewest, most, ahead)


def _ends(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Value, slope and `plain` of parts, from the lines at both ends of W_0; shape (4, parts, ends of s) each."""
    value, slope, *plain = np.stack([low, high], axis=-1)
    return value, slope, np.stack(plain, axis=1)
