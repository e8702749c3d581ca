"""The adversary of the two-sided certificate: the largest loss over all it can choose, bounded by dividing the choices.

It chooses where the left candidates stand (their mass K by index), how many points s share the bin of the first
candidate g beyond rank c, how the others are put into bins right of it (rho, kappa), and whether a candidate stands at
rank c itself (docs/theory-two-sided.md, sections 4 and 5). The pairs (rho, kappa) lie above a polygon, and only its
corners matter. With W_0, the weight of all left candidates, fixed among the competitors everything is concave in K, and
it is convex in W_0: two gradients at each of a few W_0 bound all between them. The part with the largest bound is
divided; wherever that stops, the bound holds.
"""

import heapq
import math
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.selection import Selector, unit_nodes

Array: TypeAlias = NDArray[np.float64]
Corner: TypeAlias = tuple[float, float, float]
"""rho, kappa, and the next larger rho."""

_TOLERANCE = 0.015
_MULTIPLIERS = np.array([0.0, 0.4, 1.0, 2.5, 8.0])
"""Slopes of the polygon's edges."""
_WEIGHTS = 12
"""Values of W_0 at the start."""
_LONGEST = 400
"""Points right of g's bin that earn credit; more would only add to it."""
_MOST_AHEAD = 8.0
"""Head start in log-odds that is counted right of g; more would only add to it."""
_DEPTH = 11
"""Log of the weight, against 1/G, below which indices are not looked at one by one."""
_STEP = 0.35
_TURNS = 4


class Setting(NamedTuple):
    """What is public: slopes, the largest mass of left candidates, their least ratio to the next one, the selector."""

    slope_left: float
    slope_right: float
    total: float
    step: float
    selector: Selector


class Case(NamedTuple):
    """Where the adversary stands: x in [low, high], and how many points lie beyond rank c + 1, exactly or at least.

    twin: a candidate is exactly at rank c; last: the candidate g is +inf, whose head start is in log-odds.
    """

    twin: bool
    last: bool
    low: float
    high: float
    beyond: int
    exact: bool
    head_start: float


class Terms(NamedTuple):
    """R, the R that discounts X, v (s+1), and X."""

    rate: float
    later: float
    in_bin: float
    extra: float


class Span(NamedTuple):
    """A part of the search: all s in [first, final]."""

    case: Case
    first: int
    final: int


class Piece(NamedTuple):
    """A part of the search: one s and one corner, W_0 between the two ends of `weight`, and the lines at both."""

    case: Case
    terms: Terms
    weight: Array
    values: Array
    slopes: Array


def largest(setting: Setting, cases: list[Case], goal: float | None = None) -> float:
    """An upper bound on the largest L2(x) + x over the cases; the search ends when it meets the goal, or cannot."""
    lefts = {case: _Left(setting, case) for case in cases}
    least = max(case.high + 1 - left.own for case, left in lefts.items())
    reached, count = least, 0
    tolerance = _TOLERANCE * max(1.0, 0.5 / min(setting.slope_left, setting.slope_right)) ** 1.5
    heap: list[tuple[float, int, Span | Piece]] = []

    def push(part: Span | Piece, bound: float) -> None:
        nonlocal count
        count += 1
        heapq.heappush(heap, (-bound, count, part))

    for case in cases:
        push(Span(case, case.beyond if case.last else 0, case.beyond if case.last else _far(setting, case)), math.inf)
    while True:
        negative, _, part = heapq.heappop(heap)
        if -negative <= reached + tolerance or (goal is not None and (-negative <= goal or reached > goal)):
            return max(-negative, least) + 1e-9
        left, high = lefts[part.case], part.case.high
        if isinstance(part, Piece):
            middle = math.sqrt(part.weight[0] * part.weight[1]) if part.weight[0] else part.weight[1] / 3
            pieces = left.pieces(part.terms, np.array([*part.weight, middle])[[0, 2, 1]])
            reached = max(reached, float(pieces[0].values[1]) + high)
            for piece in pieces:
                push(piece, min(-negative, _between(piece) + high))
        elif part.first < part.final:
            width = part.final - part.first
            middle = part.first + (width // 2 if width < 6 else width // 4)
            for span in (part._replace(final=middle), part._replace(first=middle + 1)):
                single = span.first == span.final  # without +inf, fewer points left over bound more of them
                case = span.case if single else span.case._replace(exact=False)
                terms = _terms(setting, left, span, _least(_corners(setting, case, span.final)))
                push(span, min(-negative, max(map(_between, left.pieces(terms, left.grid))) + high))
        else:
            corners = [(0.0, 0.0, 0.0)] if part.case.last else _corners(setting, part.case, part.first)
            for corner in corners:
                for piece in left.pieces(_terms(setting, left, part, corner), left.grid):
                    reached = max(reached, float(max(piece.values)) + high)
                    push(piece, min(-negative, _between(piece) + high))


def _between(piece: Piece) -> float:
    """The largest mixture of the two lines, each weighted by the distance to the other's end."""
    width, (start, end), (first, final) = piece.weight[1] - piece.weight[0], piece.values, piece.slopes
    bend, rise = final - first, end - start - (final - first) * width
    top = max(start, end)
    if bend < 0 and 0 < rise < -2 * bend * width:
        top = max(top, start - rise**2 / (4 * bend * width))
    return float(top)


def _far(setting: Setting, case: Case) -> int:
    """The largest s that is looked at; where there can be more points, it stands for all larger ones."""
    far = int(12 / setting.slope_right) + 8
    return min(case.beyond, far) if case.exact else far


def _terms(setting: Setting, left: "_Left", span: Span, corner: Corner) -> Terms:
    case, (rho, kappa, larger) = span.case, corner
    endless = span.final == _far(setting, case) and not (case.exact and span.final == case.beyond)
    scale = 0.0 if case.last or endless else left.far * math.exp(-setting.slope_right * span.final)
    extra = scale * (kappa + (1 - left.own) * (span.first + 1) * rho)
    return Terms(scale * rho, scale * larger, left.own * (span.first + 1), extra)


def _least(corners: list[Corner]) -> Corner:
    """A corner below all of them."""
    rho, kappa = min(corner[0] for corner in corners), min(corner[1] for corner in corners)
    return rho, kappa, rho


def _corners(setting: Setting, case: Case, s: int) -> list[Corner]:
    """(rho, kappa, next larger rho) at the corners of a polygon below every chain of the points that s leaves over."""
    finite, ended = _chains(setting.slope_right, min(case.head_start, _MOST_AHEAD))
    table = ended if case.exact else finite
    left_over = max(case.beyond - s, 0)
    line = table[:, left_over] if left_over < table.shape[1] else finite[:, -1]
    rho = np.append(np.diff(line) / np.diff(_MULTIPLIERS), 1.0 if case.exact or left_over else 0.0)
    kappa = np.maximum(line - _MULTIPLIERS * rho, 0.0)
    return list(zip(rho.tolist(), kappa.tolist(), [float(rho[0]), *rho[:-1].tolist()], strict=True))


@lru_cache(maxsize=64)
def _chains(slope: float, head_start: float) -> tuple[Array, Array]:
    """Least kappa + multiplier rho over all ways to put 0, 1, .. points into bins right of g: (multipliers, points).

    A bin of s points that begins after t others adds exp(-slope t) to rho and exp(-slope t) (t + exp(-slope) s) to
    kappa. First without the last candidate, then with it as the last bin or behind it, its head start counted.
    """
    top = min(_LONGEST, max(2, int(14 / slope)))
    t = np.arange(top + 1)
    far, own, multipliers = np.exp(-slope * t), math.exp(-slope), _MULTIPLIERS[:, None]
    finite = np.zeros((len(_MULTIPLIERS), top + 1))
    ended = np.empty_like(finite)
    for n in range(top + 1):
        bins = far[: n + 1] * (t[: n + 1] + multipliers + own * (n - t[: n + 1]))
        if n:
            finite[:, n] = np.min(finite[:, :n] + bins[:, :n], axis=1)
        ended[:, n] = np.min(finite[:, : n + 1] + math.exp(head_start) * bins, axis=1)
    return finite, ended


class _Left:
    """The candidates left of g in one case: their weights, and lines above the concave programs at several W_0."""

    def __init__(self, setting: Setting, case: Case) -> None:
        slope, total = setting.slope_left, setting.total
        behind = case.head_start if case.last else 0.0
        group = max(1, int(0.06 / slope))  # small slopes: neighbouring indices share the largest weight among them
        depth = int((math.log(total + 1) + _DEPTH) / (slope * group)) + 3
        distance = np.maximum(group * np.arange(depth + 1) + case.low - 1, 0.0)
        if not case.twin and case.low < 1 and group == 1:
            distance[0] = distance[1]
        weights = np.exp(-slope * distance - behind)
        self.case, self.q, self.total = case, weights[:-1], total
        self.points = np.full(depth, float(group))
        self.points[0] -= 1
        self.y = math.exp(-slope * (group + case.high - case.low))
        self.far = math.exp(-setting.slope_right * max(1 - case.low, 0.0))
        self.own = self.far if case.twin else 1.0
        self.twin = setting.step * math.exp(-behind) if case.twin and case.low < 1 else 0.0
        self.twin_short = self.twin * math.exp(-slope * min(case.high, 1.0))
        self.ignored = total * float(weights[-1]) * group * (depth + 1 + 1 / (1 - math.exp(-slope * group)))
        most = total * float(self.q[0])
        self.grid = np.append(0.0, np.geomspace(min(0.5, most / 2), most, _WEIGHTS))
        self.selector = setting.selector
        if self.selector == "permute_and_flip":
            t, self.dt = unit_nodes()
            self.t, self.rest = t, 1 - t
            self.logs = -np.log1p(-np.outer(self.q, t))
            self.gained = self.logs + np.log1p(-np.outer(self.q * self.y, t))
            self.twin_log = -self.twin * np.log1p(-t)

    def pieces(self, terms: Terms, weight: Array) -> list[Piece]:
        """The parts between neighbouring W_0: value and slope of a line above the program with that W_0 in phi_e."""
        spread = self._spread(weight)
        bound, slope, vertex = self._line(spread, weight, terms)
        again, steeper, _ = self._line(spread + _STEP * (vertex - spread), weight, terms)
        bound, slope = np.minimum(bound, again), np.where(again < bound, steeper, slope)
        bound += self.ignored * (1 + terms.in_bin + terms.extra)
        pairs = [slice(i, i + 2) for i in range(len(weight) - 1)]
        return [Piece(self.case, terms, weight[pair], bound[pair], slope[pair]) for pair in pairs]

    def _line(self, spread: Array, weight: Array, terms: Terms) -> tuple[Array, Array, Array]:
        """Value at the weight and slope of a line above the maximum over spreads, and the best spread for its plane."""
        value, gradient = self._program(spread, weight, terms)
        mean, rows = np.minimum(weight / self.total, self.q[0]), np.arange(len(weight))
        heavy = self.q >= mean[:, None]
        left = np.maximum(heavy.sum(axis=1) - 1, 0)
        right = np.minimum(left + 1, len(self.q) - 1)
        best = np.maximum((gradient / self.q).max(axis=1), 0.0)
        lowest = best * weight
        for _ in range(
            _TURNS
        ):  # the edge of the hull of (q, gradient) over the mean; every slope on the way is a bound
            gap = self.q[left] - self.q[right]
            steep = np.where(gap > 0, (gradient[rows, left] - gradient[rows, right]) / np.where(gap > 0, gap, 1.0), 0.0)
            gain = gradient - steep[:, None] * self.q
            height = steep * weight + self.total * np.maximum(gain.max(axis=1), 0.0)
            best, lowest = np.where(height < lowest, steep, best), np.minimum(height, lowest)
            left = np.where(heavy, gain, -np.inf).argmax(axis=1)
            right = np.where(heavy, -np.inf, gain).argmax(axis=1)
        gap = self.q[left] - self.q[right]
        share = np.where(gap > 0, (mean - self.q[right]) / np.where(gap > 0, gap, 1.0), 1.0)
        vertex = np.zeros_like(spread)
        vertex[rows, right] = self.total * (1 - share)
        vertex[rows, left] = self.total * share
        return value + lowest - np.sum(gradient * spread, axis=1), best, vertex

    def _spread(self, weight: Array) -> Array:
        """All mass on the two neighbouring indices that give it the weight wanted."""
        mean = np.minimum(weight / self.total, self.q[0])
        d = np.clip(np.count_nonzero(self.q > mean[:, None], axis=1) - 1, 0, len(self.q) - 2)
        gap = self.q[d] - self.q[d + 1]
        share = np.where(gap > 0, (mean - self.q[d + 1]) / np.where(gap > 0, gap, 1.0), 1.0)
        spread = np.zeros((len(weight), len(self.q)))
        rows = np.arange(len(weight))
        spread[rows, d], spread[rows, d + 1] = self.total * share, self.total * (1 - share)
        return np.maximum(spread, 0.0)

    def _program(self, spread: Array, weight: Array, terms: Terms) -> tuple[Array, Array]:
        """Value and gradient of 1 - credit + sum phi_e, concave in the spread, with W_0 = weight in phi_e only."""
        rate, later, in_bin, extra = terms
        if self.selector == "exponential":
            beyond = np.cumsum((spread * self.q)[:, ::-1], axis=1)[:, ::-1]
            fixed = (1 + rate + self.twin_short + self.y * weight)[:, None]
            whole = fixed + (1 - self.y) * beyond
            race, slow = (beyond[:, :1] + self.twin + 1 + z for z in (rate, later))
            steep = in_bin * (1 + rate) / race**2 + extra / slow**2
            value = 1 - (in_bin * (1 + rate) / race + extra / slow)[:, 0] + np.sum(self.points * beyond / whole, axis=1)
            return value, self.q * (steep + np.cumsum(self.points * fixed / whole**2, axis=1))
        earned = in_bin * (1 + rate * self.rest) * np.exp(-rate * self.t) + extra * self.rest * np.exp(-later * self.t)
        credit = np.exp(-(spread @ self.logs) - self.twin_log) * self.dt * earned
        k = (rate + self.twin_short + self.y * weight)[:, None]
        first = np.exp(-k * self.t) * (1 + k * self.rest) * self.dt / (1 - self.y)
        gained = np.cumsum((spread[:, :, None] * self.gained)[:, ::-1], axis=1)[:, ::-1]
        missed = np.exp(-gained) * self.points[:, None] * first[:, None, :]
        value = 1 - credit.sum(axis=1) + self.points.sum() * first.sum(axis=1) - missed.sum(axis=(1, 2))
        return value, credit @ self.logs.T + np.einsum("ds,mds->md", self.gained, np.cumsum(missed, axis=1))
