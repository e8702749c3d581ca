"""P-COQS as in its authors' program: halvings, noise, target, and the exact law of its answer.

Romanus and Molinari, "Differentially Private Conformal Prediction via Quantile Binary Search", arXiv 2507.12497, TMLR;
R package in SMAC-Group/pcoqs (commit 8845977), whose defaults are used here. The interval [low, high] is halved N
times. Each step queries the number of scores up to the middle with Gaussian noise. If it is below the target, the
search continues right of the middle (by delta), else left of it. The answer is the middle of the last interval, rounded
to two decimals.

The abstract states slight under-coverage: the target is not raised for the noise.

The mechanisms `pcoqs` and `pcoqs-published` of `confide.calibrate` search a list of candidates in the same way.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.errors import InputError
from confide.papers.checked import without_nan
from confide.papers.one_shot_federated import conformal_rank
from confide.support import Level, positive_integer, positive_number

DELTA = 1e-10
"""Largest width of the last interval."""

DECIMALS = 2
"""Number of decimals to which the published program rounds its answer."""


def halvings(low: float = 0.0, high: float = 1.0, delta: float = DELTA) -> int:
    """Number of halvings of the interval: N = ceil(log2((high - low)/delta)).

    Examples
    --------
    >>> halvings(), halvings(0.0, 1000.0)
    (34, 44)
    """
    if not -math.inf < low < high < math.inf:
        raise InputError("low", "must be finite and below high, which must be finite", got=f"{low!r} and {high!r}")
    ratio = (high - low) / positive_number("delta", delta)
    if not 1 < ratio < math.inf:
        raise InputError("delta", "must be less than the width of the interval, and not too small", got=repr(delta))
    return math.ceil(math.log2(ratio))


def noise_scale(rho: float, count: int | None = None) -> float:
    """Standard deviation of the noise of each of N counts, sqrt(N/(2 rho)), for rho-zCDP of all together.

    Examples
    --------
    >>> round(noise_scale(0.5), 3)
    5.831
    """
    count = halvings() if count is None else positive_integer("count", count)
    return math.sqrt(count / (2 * positive_number("rho", rho)))


def target(n: int, alpha: Level) -> int:
    """Target count of the search: ceil((1 - alpha)(n + 1)), without an addition for the noise.

    Examples
    --------
    >>> target(1000, 0.1)
    901
    """
    return conformal_rank(n, alpha)


def answer_law(
    scores: ArrayLike,
    alpha: Level,
    rho: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    delta: float = DELTA,
    decimals: int | None = DECIMALS,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Law of the program's answer for these scores, over its noise alone.

    With `decimals` the result contains every answer with its probability. The unrounded program has up to 2^N answers.
    Answers without a score between them are merged here at their mean, so that the coverage of the scores is exact.

    Parameters
    ----------
    scores
        Shape (n,).
    alpha, rho
        Miscoverage level and zCDP loss.
    low, high, delta
        The interval, and the largest width of the last one.
    decimals
        Number of decimals of the answer; None for the unrounded answer.

    Returns
    -------
    answers, chances
        float64, shape (k,) each; branches with probability below 1e-18 are left out.

    Raises
    ------
    InputError, InputTypeError
        If an argument is invalid.

    Examples
    --------
    >>> answers, chances = answer_law(np.linspace(0.0005, 0.9995, 1000), 0.1, 0.5)
    >>> answers[chances > 0.01], round(float(chances.sum()), 9)
    (array([0.89, 0.9 , 0.91]), 1.0)
    """
    ordered = np.sort(without_nan("scores", as_vector("scores", scores)))
    times = halvings(low, high, delta)
    scale, wanted = noise_scale(rho, times), target(len(ordered), alpha)
    found: dict[float, float] = {}
    open_ends = [(low, high, 0, 1.0)]
    while open_ends:
        left, right, made, chance = open_ends.pop()
        middle = (left + right) / 2
        below = int(np.searchsorted(ordered, middle, side="right") - np.searchsorted(ordered, low, side="left"))
        reached = math.erfc((wanted - below) / scale / math.sqrt(2)) / 2
        if made == times or _settled(ordered, left, right, delta * times, decimals):
            mean = _mean(left, right, times - made, delta, reached)
            answer = mean if decimals is None else round(mean, decimals)
            found[answer] = found.get(answer, 0.0) + chance
            continue
        for one, other, share in ((left, middle, reached), (middle + delta, right, 1 - reached)):
            if chance * share > 1e-18:
                open_ends.append((one, other, made + 1, chance * share))
    answers = np.array(sorted(found))
    return answers, np.array([found[answer] for answer in answers.tolist()])


def _settled(ordered: NDArray[np.float64], left: float, right: float, drift: float, decimals: int | None) -> bool:
    """Whether further halvings do not change the result: the same decimals, or no score between the ends."""
    if decimals is not None:
        return round(left - drift, decimals) == round(right + drift, decimals)
    return bool(np.searchsorted(ordered, left, side="right") == np.searchsorted(ordered, right + drift, side="left"))


def _mean(left: float, right: float, times: int, delta: float, reached: float) -> float:
    """Mean middle of the last interval after halvings that all have the same probability to go left."""
    for _ in range(times):
        middle = (left + right) / 2
        left, right = (
            reached * left + (1 - reached) * (middle + delta),
            reached * middle + (1 - reached) * right,
        )
    return (left + right) / 2
