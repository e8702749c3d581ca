"""The mean price of a tuning of slopes, under reference laws of the scores and the numbers of records at hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from confide.core.answers import Utility, likely_answers
from confide.core.reference_laws import PRICE_OF_ALL, ReferenceLaws
from confide.core.rise import competitor_ratio_for, flat_for
from confide.guarantee import sharp_loss, tail, weighted_loss
from confide.mechanisms import OF_TARGET

# Slopes are integers that sum to PARTS: left = 9, right = 11 puts nine twentieths of the privacy loss on the left.
PARTS = 20

# The steps of round numbers of records, within a decade.
_ROUND = (1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.5, 4, 4.5, 5, 5.6, 6.3, 7, 8, 9, 10)

# Where the target does not follow it, a secret n may be smaller by this factor than a guess, or than the noisy number.
# This case has the weight 1/20.
_FEWER, _FEWER_COUNTED, _FEWER_WEIGHT = 3.0, 1.3, 0.05

# A noisy number of records is too large, or too small, by so many scales of its noise in a quarter of the cases.
_FAR_NUMBER = 1.5


# Numbers of records, the ranks by which the noise in a noisy number moves the target, and weights.
Cases: TypeAlias = Sequence[tuple[float, float, float]]


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
    def cases(self) -> Cases:
        """The numbers of records that may be at hand."""
        if not self.rate:
            return [(float(self.n), 0.0, 1.0)]
        if not self.moves:
            fewer = _FEWER_COUNTED if self.counted else _FEWER
            return [(float(self.n), 0.0, 1.0), (self.n / fewer, 0.0, _FEWER_WEIGHT)]
        far = _FAR_NUMBER * float(1 / OF_TARGET.loss - 1) / self.epsilon
        apart = float(self.level - self.rate)
        return [(max(self.n - z, 1.0), apart * z, weight) for z, weight in ((0.0, 0.5), (far, 0.25), (-far, 0.25))]

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


# From about this alpha n epsilon on a target that moves with a noisy number follows the two-sided certificate.
_TWO_SIDED = 16.0


def mean_price(
    laws: ReferenceLaws, inputs: TuningInputs, left: float, rise: float, cases: Cases | None = None
) -> float:
    """The mean price of the answer over the reference laws, in units of alpha n ranks, and over `cases` of n."""
    m, slopes = laws.below.shape[1], inputs.slopes(left)
    rivals, flat = competitor_ratio_for(m, rise), float(flat_for(m, rise))
    heights = rise / max(m - flat, 1) * np.maximum(np.arange(1, m + 1) - flat, 0)
    total = 0.0
    for n, moved, weight in inputs.cases if cases is None else cases:
        target = _target(n, inputs, slopes, rivals) + moved
        if target > n:
            total += weight * PRICE_OF_ALL
            continue
        row, column, odds = likely_answers(n * laws.below, Utility(target, *slopes, heights))
        priced, whole = (np.bincount(row, z) for z in (odds * laws.prices[row, column], odds))
        total += weight * float(laws.weights @ (priced / whole))
    return total


@lru_cache(maxsize=4096)
def _target(n: float, inputs: TuningInputs, slopes: tuple[float, float], rivals: float) -> float:
    """The approximate target rank for n records; the exact one of the certificate is computed after the tuning."""
    # Marginal guarantees: the expected loss of the mechanism.
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

    # The random rank is D below the target, and the binomial count has the variance n q (1 - q).
    step = 0.25 / slope
    at = np.arange(0, (math.log1p(rivals) + 12) / slope, step) + step / 2
    missed = tail(at, slope, rivals)
    mean = float(missed.sum() * step)
    variance = float(2 * (missed * at).sum() * step) - mean**2
    return level * n + mean - float(ndtri(inputs.delta)) * math.sqrt(n * level * (1 - level) + variance) + 0.5
