"""Upper bounds, proved by interval arithmetic, on the maxima that the coverage certificates use.

A concave program is at most its tangent plane at any spread, maximised over all spreads: weak duality, the step that is
proved in words (docs/theory.md, section 4; docs/theory-two-sided.md, section 5). So the library's search only proposes
spreads and multipliers; what it proposes is evaluated here anew, from the definitions, with intervals for every number.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from confide.guarantee import certificate
from confide.guarantee.left_side import Rows
from tests.proofs.intervals import Box, up


def upper(*terms):
    """The upper end of a sum of boxes and numbers of any sign; a subtracted term is (-1, box)."""
    total = 0.0
    for term in terms:
        high = -term[1].low if isinstance(term, tuple) else term.high if isinstance(term, Box) else np.asarray(term)
        total = up(total + high)
    return total


def decayed(slope, distances, behind=0.0):
    """exp(-slope d - behind)."""
    return (Box.of(slope) * Box.of(distances) + Box.of(behind)).exp_minus()


def behind_the_last(last, further, decay):
    """The largest of exp(-decay u) (last + u further) over u >= 0, `last` and `further` being upper ends."""
    at = np.where(further > decay * last, further / decay * np.exp(decay * np.maximum(last, -1e3) / further - 1), last)
    return np.maximum(at * (1 + 1e-9), last)  # floats are accurate to more than nine digits


@dataclass(frozen=True)
class Sharp:
    """The program of the sharp certificate, Theorem C2, at one x."""

    x: float
    slope: float
    rivals: float
    competitor: float = 1.0

    def proposed(self, q, points):
        """The best spread, from the multiplier 1/r^2 of Lemma C6, with blocks of indices in place of a formula."""
        first = np.argmax(np.cumsum(points) * q)
        blocks = np.append(np.cumsum(points)[first], points[first + 1 :]), np.diff(1 / q[first:], prepend=0.0)
        ratio, cost = np.sqrt(blocks[0] / blocks[1]), blocks[1]
        r = optimize.brentq(lambda r: cost @ np.maximum(ratio * r - 1, 0) - self.rivals, 0, 1e6, xtol=1e-14)
        ahead = np.maximum(ratio * r - 1, 0)
        spread = np.zeros(len(q))
        spread[first:] = (ahead - np.append(ahead[1:], 0.0)) / q[first:]
        return np.maximum(spread, 0.0)

    def bound(self):
        """An upper bound on L(x)."""
        step = max(1, int(certificate._GROUPED / self.slope))
        depth = int((np.log1p(self.rivals) + 3) / (self.slope * step)) + 5
        distance = np.maximum(step * np.arange(depth) + self.x - 1, 0.0)
        q = decayed(self.slope, distance)
        points = np.full(depth, float(step))
        points[0] -= 1 - self.competitor
        K = Box.of(self.proposed(np.exp(-self.slope * distance), points))
        value, gradient, further = self._shares(K, q, points)
        used = (K * gradient).sum(0)
        last = behind_the_last(gradient.high[-1], further * step, self.slope * step)
        most = up(self.rivals * max(gradient.high.max(), last))
        return float(upper(value, most, (-1, used), up(1 - self.competitor)))

    def _shares(self, K, q, points):
        ahead = (K * q).sums_from()
        whole = ahead + 1.0
        value = (Box.of(points) * ahead / whole).sum(0)
        each = (Box.of(points) / (whole * whole))[::-1].sums_from()[::-1]
        return value, q * each, q.high[-1]


class TwoSided:
    """Lines above the programs of the two-sided certificate, Theorem T1, for the cases of one search."""

    def __init__(self, left, noise, cases):
        self.left, self.noise, self.cases, slope = left, noise, cases, noise.left
        self.q, self.y, self.twin, self.short = [], [], [], []
        for case in cases:
            distance = np.maximum(left.group * np.arange(left.depth) + case.low - 1, 0.0)
            if left.group == 1 and not case.twin and case.low < 1:
                distance[0] = distance[1]
            behind = case.bonus if case.last else 0.0
            q = decayed(slope, distance, behind)
            q = Box(np.maximum(q.low, 1e-200), np.maximum(q.high, 1e-200))
            y = decayed(slope, left.group + (case.high - case.low))
            there = noise.step if case.twin and case.low < 1 else 0.0
            twin = Box.of(there) * Box.of(behind).exp_minus()
            self.q.append(q)
            self.y.append(y)
            self.twin.append(twin)
            self.short.append(twin * decayed(slope, min(case.high, 1.0)))

    def line(self, case, row, spread, multiplier):
        """An upper bound on the line's true value at its W_0, for this spread and multiplier.

        R and X may be stated below 0 by a rounding error; they are never below 0, and more of them lowers the program.
        """
        row = Rows(row.case, row.weight, *(max(float(z), 0.0) for z in row[2:]))
        q, total = self.q[case], self.noise.mass
        K = Box.of(spread.mass)
        value, gradient, further = self._shares(case, row, spread, K)
        price = Box.of(abs(multiplier)) * q
        gain = up(gradient.high - price.low) if multiplier >= 0 else up(gradient.high + price.high)
        top = max(gain.max(), behind_the_last(gain[-1], further, self.left.decay), 0.0)
        used = (K * gradient[spread.place]).sum(0)
        return float(upper(value, up(multiplier * row.weight), up(total * top), (-1, used)))

    def _counts(self, spread):
        ends = np.concatenate([[0.0], self.left.points[spread.place]])
        counts = np.diff(ends)
        reached = np.maximum(self.left.points - ends[:, None], 0.0)
        reached[:-1] = np.minimum(reached[:-1], counts[:, None])
        return counts, reached

    def _shares(self, case, row, spread, K):
        q, y, twin, short = self.q[case], self.y[case], self.twin[case], self.short[case]
        fixed = short + y * row.weight + (1 + row.rate)
        behind = (K * q[spread.place]).sums_from()
        whole = fixed[None] + y.one_minus()[None] * behind
        race, slow = (behind[0] + twin + (1 + z) for z in (row.rate, row.later))
        counts, reached = self._counts(spread)
        lost = (Box.of(counts) * behind / whole).sum(0)
        earned = Box.of(row.in_bin) * Box.of(1 + row.rate) / race + Box.of(row.extra) / slow
        steep = Box.of(row.in_bin) * Box.of(1 + row.rate) / (race * race) + Box.of(row.extra) / (slow * slow)
        each = fixed[None] / (whole * whole)
        alone = Box.of(1.0) / fixed
        slopes = (each[:, None] * reached[:-1]).sum(0) + alone * reached[-1]
        value = Box(np.array(-upper(earned, -1.0, (-1, lost))), np.array(upper(lost, 1.0, (-1, earned))))
        return value, q * (steep[None] + slopes), (q[-1] * alone * self.left.group).high
