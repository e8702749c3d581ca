"""Rob-FCP's certificate of coverage with Byzantine silos, as its authors' program computes it.

Kang, Lin, Sun, Xiao and Li, "Certifiably Byzantine-robust federated conformal prediction", ICML 2024, arXiv 2406.01960;
program for certification in kangmintong/Rob-FCP (commit 8918a1a), `src/certification.py`. Silos send histograms of
scores with H bins. Histograms far from the others are left out, and a quantile of the rest is taken. With K_b honest
silos of n scores, K silos in all, tau = (K - K_b)/K_b Byzantine silos for each honest one, and confidence 1 - beta in
their histograms:

    W     = H z / (2 sqrt(n)) (1 + 2 tau / (1 - tau)),    z = Phi^-1(1 - beta / (2 H K_b))
    lower = 1 - alpha - (d n + 1) / (n + K_b) - W
    upper = 1 - alpha + d + K_b / (n + K_b) + W

d is a distance between the populations of honest silos. The paper calls it epsilon, but it is not a privacy loss. The
program clips both bounds to [0, 1], which hides by how much a bound is vacuous. Here they are not clipped. The program
does not claim privacy.
"""

import math
from statistics import NormalDist

from confide.errors import InputError
from confide.support import MOST_CANDIDATES, MOST_RECORDS, Level, exact_level, positive_integer


def lower_bound(
    honest: int, byzantine: int, n: int, bins: int, alpha: Level = 0.1, beta: Level = 0.05, distance: float = 0.0
) -> float:
    """Rob-FCP's lower bound of coverage; it is vacuous below 0.

    Parameters
    ----------
    honest, byzantine
        K_b and K - K_b: silos that follow the protocol, and Byzantine silos, of which there must be fewer.
    n
        Scores of each honest silo.
    bins
        H, the number of bins of their histograms.
    alpha
        Miscoverage level.
    beta
        Probability that a histogram is farther from its population than assumed.
    distance
        Distance between the populations of honest silos, in [0, 1]; 0 for IID silos.

    Raises
    ------
    InputError, InputTypeError
        If a number is out of range, or there are at least as many Byzantine silos as honest ones.

    Examples
    --------
    >>> round(lower_bound(17, 3, 200, bins=2), 3), lower_bound(17, 3, 200, bins=10) < 0
    (0.574, True)
    """
    lost = spread(honest, byzantine, n, bins, beta)
    apart = _distance(distance)
    return 1 - float(exact_level("alpha", alpha)) - (apart * n + 1) / (n + honest) - lost


def upper_bound(
    honest: int, byzantine: int, n: int, bins: int, alpha: Level = 0.1, beta: Level = 0.05, distance: float = 0.0
) -> float:
    """Rob-FCP's upper bound of coverage, with the arguments of `lower_bound`; it is vacuous above 1.

    Examples
    --------
    >>> round(upper_bound(17, 3, 100_000, bins=2), 3)
    0.915
    """
    lost = spread(honest, byzantine, n, bins, beta)
    return 1 - float(exact_level("alpha", alpha)) + _distance(distance) + honest / (n + honest) + lost


def spread(honest: int, byzantine: int, n: int, bins: int, beta: Level = 0.05) -> float:
    """Width W of the bounds from errors of the histograms and from Byzantine silos, in coverage.

    Examples
    --------
    >>> round(spread(17, 3, 200, bins=2), 3), round(spread(17, 0, 200, bins=2), 3)
    (0.321, 0.225)
    """
    honest = positive_integer("honest", honest, most=MOST_RECORDS)
    n = positive_integer("n", n, most=MOST_RECORDS)
    bins = positive_integer("bins", bins, most=MOST_CANDIDATES)
    if isinstance(byzantine, bool) or not isinstance(byzantine, int) or not 0 <= byzantine < honest:
        raise InputError(
            "byzantine", f"must be an integer from 0 to {honest - 1}, fewer than the honest silos", got=repr(byzantine)
        )
    tau = byzantine / honest
    z = -NormalDist().inv_cdf(float(exact_level("beta", beta)) / (2 * bins * honest))
    return bins * z / (2 * math.sqrt(n)) * (1 + 2 * tau / (1 - tau))


def _distance(value: float) -> float:
    if not 0 <= value <= 1:
        raise InputError("distance", "must be a number from 0 to 1", got=repr(value))
    return float(value)
