"""The candidates left of g: lines above the concave programs of the two-sided certificate.

Fix W_0, the weight of all left candidates, among the competitors. Then 1 - credit + sum_(f>=1) phi_f is concave in the
spread K of their mass over the indices (docs/theory-two-sided.md, section 5). Its tangent plane at any spread,
maximised over sum K <= G and sum K_d q_d = W_0, is a line in W_0 above it. Spreads here have two or four indices. Sums
over indices then have as many terms, and the slopes of the plane at all indices are a matrix product.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.guarantee.slope_noise import SlopeNoise

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_LEAST = 1e-200
"""Weights below this value are raised to it."""
_DEPTH = 7
"""Logarithm of the weight, relative to 1/G, below which indices are bounded together."""
_AT_ONCE = 1000
"""Largest number of lines that are computed together: arrays of more do not stay in a processor's cache."""
_STEP = 0.35
_TURNS = 4


class Case(NamedTuple):
    """A case of the adversary: x in [low, high], and from `beyond` to `most` points beyond rank c + 1.

    If `most` is None there may be any number of points, and +inf is not counted right of g. `twin`: a candidate is
    exactly at rank c. `last`: the candidate g is +inf, with its prior bonus in log-odds.
    """

    twin: bool
    last: bool
    low: float
    high: float
    beyond: int
    most: int | None
    bonus: float


class Rows(NamedTuple):
    """Programs: the case of each, the W_0 of its phi_f, R, the R in the exponent of X, v (s+1), and X."""

    case: Indices
    weight: Array
    rate: Array
    later: Array
    in_bin: Array
    extra: Array


class Spread(NamedTuple):
    """Mass on a few indices, in order: (programs, places)."""

    place: Indices
    mass: Array


class LeftSide:
    """The candidates left of g in each case."""

    def __init__(self, noise: SlopeNoise, cases: list[Case]) -> None:
        slope, total = noise.left, noise.mass
        twin = np.array([case.twin for case in cases])
        low, high = (np.array([case[at] for case in cases]) for at in (2, 3))
        behind = np.array([case.bonus if case.last else 0.0 for case in cases])
        self.group = max(1, int(0.06 / slope))  # small slopes: neighbouring indices share their largest weight
        self.decay = slope * self.group
        self.depth = int((math.log(total + 1) + _DEPTH) / self.decay) + 3
        distance = np.maximum(self.group * np.arange(self.depth) + low[:, None] - 1, 0.0)
        if self.group == 1:
            lonely = ~twin & (low < 1)
            distance[lonely, 0] = distance[lonely, 1]
        self.q, self.total = np.maximum(np.exp(-slope * distance - behind[:, None]), _LEAST), total
        self.points = self.group * (np.arange(self.depth) + 1.0) - 1  # f >= 1 up to each index
        self.y = np.exp(-slope * (self.group + high - low))
        self.far = np.exp(-noise.right * np.maximum(1 - low, 0.0))
        self.own = np.where(twin, self.far, 1.0)
        self.twin = np.where(twin & (low < 1), noise.step * np.exp(-behind), 0.0)
        self.twin_short = self.twin * np.exp(-slope * np.minimum(high, 1.0))
        self.most = total * self.q[:, 0]

    def lines(self, rows: Rows, enough: Array | float = -math.inf) -> Array:
        """For each program, a line above it as a function of the weight of the spread: value at its W_0, and slope.

        Values above `enough` are improved. Shape (4, programs): value and slope, and both before that.
        """
        count, above = len(rows.case), np.broadcast_to(enough, len(rows.case))
        found = np.empty((4, count))
        for some in (slice(k, k + _AT_ONCE) for k in range(0, count, _AT_ONCE)):
            found[:, some] = self._lines(Rows._make(column[some] for column in rows), above[some])
        return found

    def _lines(self, rows: Rows, enough: Array) -> Array:
        q = self.q[rows.case]
        spread = self._spread(q, rows.weight)
        value, slope, vertex = self._line(q, spread, rows)
        plain = value.copy(), slope.copy()
        poor = np.flatnonzero(value > enough)
        if len(poor):
            mass = np.concatenate([(1 - _STEP) * spread.mass[poor], _STEP * vertex.mass[poor]], axis=1)
            index = np.concatenate([spread.place[poor], vertex.place[poor]], axis=1)
            order = np.argsort(index, axis=1)
            mixed = Spread(np.take_along_axis(index, order, 1), np.take_along_axis(mass, order, 1))
            some = Rows._make(column[poor] for column in rows)
            again, steeper, _ = self._line(q[poor], mixed, some)
            slope[poor] = np.where(again < value[poor], steeper, slope[poor])
            value[poor] = np.minimum(value[poor], again)
        return np.stack([value, slope, *plain])

    def _line(self, q: Array, spread: Spread, rows: Rows) -> tuple[Array, Array, Spread]:
        """A line above the maximum over spreads (value at the weight, and slope), and the best spread for its plane."""
        value, gradient, further = self._shares(q, spread, rows)
        mean, at = np.minimum(rows.weight / self.total, q[:, 0]), np.arange(len(q))
        heavy = q >= mean[:, None]
        left = np.maximum(heavy.sum(axis=1) - 1, 0)
        right = np.minimum(left + 1, self.depth - 1)
        best = np.maximum((gradient / q).max(axis=1), 0.0)
        lowest = best * rows.weight + self.total * self._beyond(gradient[:, -1] - best * q[:, -1], further)
        for _ in range(_TURNS):  # the hull's edge of (q, gradient) over the mean; every slope on the way is a bound
            gap = q[at, left] - q[at, right]
            steep = np.where(gap > 0, (gradient[at, left] - gradient[at, right]) / np.where(gap > 0, gap, 1.0), 0.0)
            gain = gradient - steep[:, None] * q
            top = np.maximum(gain.max(axis=1), self._beyond(gain[:, -1], further))
            height = steep * rows.weight + self.total * np.maximum(top, 0.0)
            best, lowest = np.where(height < lowest, steep, best), np.minimum(height, lowest)
            left = np.where(heavy, gain, -np.inf).argmax(axis=1)
            right = np.where(heavy, -np.inf, gain).argmax(axis=1)
        used = np.sum(np.take_along_axis(gradient, spread.place, 1) * spread.mass, axis=1)
        return value + lowest - used, best, self._between(q, left, right, mean)

    def _beyond(self, last: Array, further: Array) -> Array:
        """The largest of (last + u further) exp(-decay u), u >= 0: the largest gain of an index behind the last one."""
        rising = np.minimum(self.decay * last / further, 1.0)
        return np.where(rising < 1, further / self.decay * np.exp(rising - 1), last)

    def _spread(self, q: Array, weight: Array) -> Spread:
        """All mass on the two neighbouring indices that give it the required weight."""
        mean = np.minimum(weight / self.total, q[:, 0])
        d = np.clip(np.count_nonzero(q > mean[:, None], axis=1) - 1, 0, self.depth - 2)
        return self._between(q, d, d + 1, mean)

    def _between(self, q: Array, left: Indices, right: Indices, mean: Array) -> Spread:
        at = np.arange(len(q))
        gap = q[at, left] - q[at, right]
        share = np.clip(np.where(gap > 0, (mean - q[at, right]) / np.where(gap > 0, gap, 1.0), 1.0), 0.0, 1.0)
        mass = np.stack([share, 1 - share], axis=1) * self.total
        return Spread(np.stack([left, right], axis=1), mass)

    def _counts(self, spread: Spread) -> tuple[Array, Array]:
        """The number of f between neighbouring places, and how many of them, and of those behind, up to each index."""
        ends = np.concatenate([np.zeros((len(spread.place), 1)), self.points[spread.place]], axis=1)
        counts = np.diff(ends, axis=1)
        reached = np.maximum(self.points - ends[:, :, None], 0.0)
        reached[:, :-1] = np.minimum(reached[:, :-1], counts[:, :, None])
        return counts, reached

    def _shares(self, q: Array, spread: Spread, rows: Rows) -> tuple[Array, Array, Array]:
        """Value, gradient, and what each f behind the last index adds to the gradient there."""
        fixed = 1 + rows.rate + self.twin_short[rows.case] + self.y[rows.case] * rows.weight
        behind = np.cumsum((spread.mass * np.take_along_axis(q, spread.place, 1))[:, ::-1], axis=1)[:, ::-1]
        whole = fixed[:, None] + (1 - self.y[rows.case])[:, None] * behind
        race, slow = (behind[:, 0] + self.twin[rows.case] + 1 + z for z in (rows.rate, rows.later))
        counts, reached = self._counts(spread)
        value = 1 - rows.in_bin * (1 + rows.rate) / race - rows.extra / slow + np.sum(counts * behind / whole, axis=1)
        steep = rows.in_bin * (1 + rows.rate) / race**2 + rows.extra / slow**2
        each = np.concatenate([fixed[:, None] / whole**2, 1 / fixed[:, None]], axis=1)
        return value, q * (steep[:, None] + np.einsum("rs,rsd->rd", each, reached)), q[:, -1] / fixed * self.group
