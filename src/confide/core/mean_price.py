"""The mean price of a tuning of slopes, over the reference laws of scores and the numbers of records at hand.

It follows from the law of the answer, which depends on the prior weights of the candidates: flat first, then rising.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.core.reference_laws import PRICE_OF_ALL, ReferenceLaws
from confide.guarantee import sharp_loss, tail, weighted_loss
from confide.mechanisms import OF_TARGET, Slopes
from confide.selection import selection_law

# The law of an answer.

# A candidate whose weight is at most this share of the largest one is left out of a law of the answer.
_NO_WEIGHT = 1e-12


class Utility(NamedTuple):
    """The utility of m candidates: the log prior weight, less the larger penalty for the distance from the target rank.

    Penalties are slopes per rank. `heights` are the log prior weights, shape (m,); the last one may include a prior
    bonus of +inf.
    """

    target: float
    slope_left: float
    slope_right: float
    heights: NDArray[np.float64]


def answer_law(reached: NDArray[np.float64], utility: Utility) -> NDArray[np.float64]:
    """The law of the chosen candidate if `reached` scores, maybe not an integer, lie at or below each; shape (m,)."""
    law = np.zeros(len(reached))
    _, column, odds = likely_answers(reached[None, :], utility)
    law[column] = selection_law(odds)
    return law


def answer_among(mechanism: Slopes, below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate for n scores, of which the shares `below` are at most each; shape (m,)."""
    slopes = (mechanism.slope_left, mechanism.slope_right)
    heights = mechanism.log_weights(len(below), n)
    return answer_law(n * below, Utility(float(mechanism.target(n)), *slopes, heights))


def likely_answers(
    reached: NDArray[np.float64], utility: Utility
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Rows, candidates and weights of all answers that are not negligible, for `reached` of shape (k, m), row by row.

    Weights are relative to the largest one of their row.
    """
    # Candidates that may have weight. One, at worst the last, has penalty 0; those of a penalty above `most` have no
    # weight next to it.
    target, slope_left, slope_right, heights = utility
    most = float(heights[-1] - heights[0]) - math.log(_NO_WEIGHT) + 1
    begins = np.hstack([np.zeros((len(reached), 1)), reached[:, :-1]])
    near = (reached >= target - most / slope_left) & (begins <= target + most / slope_right)
    near[reached[:, -1] < target] = True
    row, column = np.nonzero(near)

    # Utilities: the prior weight less the larger of both penalties. The last candidate, +inf, is never too low.
    short = slope_left * np.maximum(target - reached[near], 0)
    short[column == len(heights) - 1] = 0.0
    utilities = heights[column] - np.maximum(slope_right * np.maximum(begins[near] - target, 0), short)

    # Weights of the exponential mechanism among the candidates that have weight.
    largest = np.maximum.reduceat(utilities, np.searchsorted(row, np.arange(len(reached))))
    weights = np.exp(utilities - largest[row])
    likely = weights > _NO_WEIGHT
    return row[likely], column[likely], weights[likely]


# Prior weights that rise, for a competitor ratio G.

# The least competitor ratio of a search.
_LEAST_RATIO = 1e-3


def total_rise(m: int, rivals: float) -> float:
    """The log-odds by which the last of m candidates must exceed the first, for this G."""
    flat = math.floor(rivals) + 1
    if flat >= m:
        return 0.0
    return math.log(max(1.0, flat / rivals)) + (m - 1 - flat) * math.log1p(1 / rivals)


@lru_cache(maxsize=4096)
def competitor_ratio_for(m: int, rise: float) -> float:
    """The smallest G whose slowest weights rise by at most `rise` in total over m candidates."""
    if rise <= 0:
        return m - 1.0
    # A bisection of the logarithm; the rise decreases with the ratio.
    low, high = _LEAST_RATIO, max(m - 1.0, _LEAST_RATIO)
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if total_rise(m, middle) > rise else (low, middle)
    return high


def flat_for(m: int, rise: float) -> Fraction:
    """The point from which on the weights of m candidates rise, counted from 1, in sixteenths; 0 if they do not."""
    rivals = competitor_ratio_for(m, rise)
    flat = math.floor(rivals) + 1
    if rise <= 0 or flat >= m:
        return Fraction(0)
    start = flat + 1 - math.log(max(1.0, flat / rivals)) / math.log1p(1 / rivals)
    return Fraction(min(round(16 * start), 16 * m - 1), 16)


def gap_crossed(rise: float, rivals: float, shift: float, slope_right: float, share: float = 1.0) -> float:
    """The number of ranks beyond the non-private one within which an empty candidate range is likely to be crossed.

    The range contains the `share` of the list, and the target lies `shift` above the non-private rank (1-alpha)(n+1).
    It has exp(share * rise) G times the weight of the candidate before it, against exp(-slope) for every rank before
    it.
    """
    return shift + (share * rise + math.log(max(rivals, 1.0))) / slope_right


# The inputs of a tuning.

# Slopes are integers that sum to PARTS: left = 9, right = 11 puts nine twentieths of the privacy loss on the left.
PARTS = 20

# The steps of round numbers of records, within a decade.
_ROUND = (1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.5, 4, 4.5, 5, 5.6, 6.3, 7, 8, 9, 10)

# Where the target does not follow it, a secret n may be smaller by this factor than a guess, or than the noisy number;
# this case has the weight 1/20.
_FEWER_THAN_GUESSED = 3.0
_FEWER_THAN_COUNTED = 1.3
_FEWER_WEIGHT = 0.05

# A noisy number of records is too large, or too small, by so many scales of its noise in a quarter of the cases.
_WRONG_SCALES = 1.5


class Case(NamedTuple):
    """A number of records that may be at hand, and by how many ranks the noise of a noisy number moves the target."""

    n: float
    moved: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True)
class TuningInputs:
    """The inputs of a tuning except the candidates: n is the public number of records, or a guess of it.

    The target moves by `rate` with each record. With weights, n is a number of records of the largest weight. If
    `counted`, n is a noisy number of records instead of a guess, and if `moves`, the target moves with it, too.
    """

    n: int
    level: Fraction
    epsilon: float
    rate: Fraction
    delta: float | None
    weighted: bool = False
    counted: bool = False
    moves: bool = False

    @property
    def cases(self) -> list[Case]:
        """The numbers of records that may be at hand."""
        if not self.rate:
            return [Case(float(self.n))]
        if not self.moves:
            fewer = _FEWER_THAN_COUNTED if self.counted else _FEWER_THAN_GUESSED
            return [Case(float(self.n)), Case(self.n / fewer, weight=_FEWER_WEIGHT)]
        wrong = _WRONG_SCALES * float(1 / OF_TARGET.loss - 1) / self.epsilon
        apart = float(self.level - self.rate)
        noises = ((0.0, 0.5), (wrong, 0.25), (-wrong, 0.25))
        return [Case(max(self.n - noise, 1.0), apart * noise, weight) for noise, weight in noises]

    def scaled(self) -> "TuningInputs":
        """Equivalent inputs with a privacy loss of at least 1 and a round n: only n epsilon matters, and smoothly."""
        epsilon = max(self.epsilon, 1.0)
        n = self.n * self.epsilon / epsilon
        decade = 10.0 ** math.floor(math.log10(n))
        near = min(_ROUND, key=lambda step: abs(math.log(n / decade / step)))
        return replace(self, n=max(1, round(near * decade)), epsilon=epsilon)

    def slopes(self, left: float) -> tuple[float, float]:
        """Log-odds per rank, left and right, if `left` parts of PARTS are on the left."""
        right, rate = PARTS - left, float(self.rate)
        distance = max(left, right, rate * PARTS, (1 - rate) * PARTS) if rate else PARTS
        return self.epsilon * left / distance, self.epsilon * right / distance


# The mean price.

# From about this alpha n epsilon on a target that moves with a noisy number follows the two-sided certificate.
_TWO_SIDED = 16.0


def mean_price(
    laws: ReferenceLaws, inputs: TuningInputs, left: float, rise: float, cases: Sequence[Case] | None = None
) -> float:
    """The mean price of the answer over the reference laws, in units of alpha n ranks, and over `cases` of n."""
    # Slopes and prior weights.
    m, slopes = laws.below.shape[1], inputs.slopes(left)
    rivals, flat = competitor_ratio_for(m, rise), float(flat_for(m, rise))
    heights = rise / max(m - flat, 1) * np.maximum(np.arange(1, m + 1) - flat, 0)

    # The sum over the cases of the price of each law, weighted by the law of the answer.
    total = 0.0
    for n, moved, weight in inputs.cases if cases is None else cases:
        target = _target(n, inputs, slopes, rivals) + moved
        if target > n:
            total += weight * PRICE_OF_ALL
            continue
        row, column, odds = likely_answers(n * laws.below, Utility(target, *slopes, heights))
        price_sums = np.bincount(row, odds * laws.prices[row, column])
        weight_sums = np.bincount(row, odds)
        total += weight * float(laws.weights @ (price_sums / weight_sums))
    return total


@lru_cache(maxsize=4096)
def _target(n: float, inputs: TuningInputs, slopes: tuple[float, float], rivals: float) -> float:
    """The approximate target rank for n records; the exact one of the certificate is computed after the tuning."""
    # Marginal guarantees: the ranks that the mechanism loses in expectation.
    level, slope = float(inputs.level), slopes[0]
    if inputs.weighted:
        return level * (n + 1) + weighted_loss(0.0, slope, rivals)
    if inputs.delta is None:
        lost = sharp_loss(1.0, slope, rivals)
        many = inputs.moves and (1 - level) * n * inputs.epsilon >= _TWO_SIDED
        if many or not inputs.rate:  # the two-sided certificate, whose gain hardly depends on the competitors
            lost = max(lost / 3, lost - 1.7 / sum(slopes))
        return level * (n + 1) - 1 + lost
    from scipy.special import ndtri

    # Training-conditional ones: the random rank is D below the target, and the binomial count has the variance
    # n q (1 - q).
    step = 0.25 / slope
    at = np.arange(0, (math.log1p(rivals) + 12) / slope, step) + step / 2
    missed = tail(at, slope, rivals)
    mean = float(missed.sum() * step)
    variance = float(2 * (missed * at).sum() * step) - mean**2
    return level * n + mean - float(ndtri(inputs.delta)) * math.sqrt(n * level * (1 - level) + variance) + 0.5
