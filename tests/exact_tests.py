"""Exact tests of one release on data it has not seen, for n calibration and some test points that are exchangeable.

Coverage. For the r-th smallest of n calibration scores, the number of test scores at or below it is beta-binomial with
parameters r and n + 1 - r if there are no ties, and stochastically larger with ties. A private threshold is at least
the R-th smallest score for a rank R of known law that is independent of the data (docs/theory.md, Theorem C1).

Size. The selected bin begins at most d ranks beyond the target T except with probability tail(d), the same lemma with
the right slope and the weight of the candidates on the right, which may be heavier than the one that holds the target
(Theorem C4). Then the threshold is at most the first candidate at or above the ceil(T + d)-th smallest score.
"""

import math

import numpy as np
from scipy import stats

import confide
from confide.core import candidates_of
from confide.guarantee import competitor_ratio_right, tail

LEVEL = 1e-6
"""Each test fails a correct library with at most this probability."""


def coverage_p_value(released: confide.Release, n: int, hits: int, tested: int) -> float:
    """An upper bound on the probability of so few covered test points if the release is correct."""
    if released.mechanism is None:
        return float(hits == tested)
    ranks, probabilities, _ = released.mechanism.rank_law(n, released.candidates)
    keep = (probabilities > 1e-15) & (ranks <= n)
    ranks, probabilities, beyond = ranks[keep], probabilities[keep], probabilities[ranks > n].sum()
    few = stats.betabinom.cdf(hits, tested, ranks, n + 1 - ranks)
    return float(probabilities @ few + max(0.0, 1 - probabilities.sum() - beyond) + beyond * (hits == tested))


def assert_covers(released: confide.Release, n: int, covered: np.ndarray) -> None:
    """Coverage of test points that are exchangeable with the n calibration points, at `LEVEL`."""
    p_value = coverage_p_value(released, n, int(np.count_nonzero(covered)), len(covered))
    assert p_value > LEVEL, f"{np.mean(covered):.4f} of {len(covered)} covered, p = {p_value:.2g}"


def largest_threshold(released: confide.Release, scores: np.ndarray, level: float = LEVEL) -> float:
    """A bound that the threshold exceeds with at most this probability, for all scores; +inf if there is none."""
    mechanism = released.mechanism
    if mechanism is None:
        return math.inf
    if mechanism.name == "none":
        return mechanism.threshold(scores)
    candidates = candidates_of(released)
    heights = mechanism.log_prior_weights(candidates.size) / mechanism.scale
    heights[-1] += max(0, mechanism.head_start - mechanism.fade * len(scores)) / mechanism.scale
    rivals, beyond = competitor_ratio_right(heights), 0
    while tail(np.array(beyond), mechanism.slope_right, rivals) > level:
        beyond += 1
    rank = math.ceil(mechanism.target(len(scores)) + beyond)
    if rank > len(scores):
        return math.inf
    reached = float(np.partition(scores, rank - 1)[rank - 1])
    return float(candidates.values[np.searchsorted(candidates.edges, reached)])


def assert_threshold_below(released: confide.Release, scores: np.ndarray, level: float = LEVEL) -> None:
    """The threshold is finite and no larger than the noise allows, given (upper bounds of) the calibration scores."""
    limit = largest_threshold(released, scores, level)
    assert released.threshold <= limit < math.inf
