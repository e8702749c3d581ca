"""Section 4 and Appendix C.4: FedCP^2-QQ. Algorithm 3 is `fedcp2-qq` of `confide.federated.plan`."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import PublishedChoice, best_published, published_at, published_correction, qq_coverage
from confide.papers.checked import as_counts
from confide.support import Level, exact_level, positive_integer, privacy_loss


def quantile_sensitivity(q: float) -> float:
    """Algorithm 2: Delta_q = max(1/q, 1/(1-q)), by how much a weight changes if one score of the agent is replaced.

    Examples
    --------
    >>> quantile_sensitivity(0.8)
    5.0...
    """
    return max(1 / _share("q", q), 1 / (1 - q))


def quantile_law(counts: ArrayLike, q: float, epsilon: float) -> NDArray[np.float64]:
    """Algorithm 2, (9): how likely each bin is to be the private quantile, exp(-epsilon w_b / (2 Delta_q)) normalised.

    w_b = max(scores below e_b / q, scores above e_b / (1-q)). It is epsilon-differentially private when one score is
    replaced, so each agent has the epsilon-LDP of (9). A silo draws it with `confide.federated.published_quantile`.

    Parameters
    ----------
    counts
        Scores in every bin (e_(b-1), e_b], shape (B,).
    q
        In (0, 1).
    epsilon
        Privacy loss.

    Examples
    --------
    >>> quantile_law([5, 3, 2], 0.8, 2.0).round(4)
    array([0.0243, 0.4879, 0.4879])
    """
    counts = as_counts("counts", counts)
    up_to = np.cumsum(counts)
    weight = np.maximum((up_to - counts) / _share("q", q), (up_to[-1] - up_to) / (1 - q))
    exponent = -privacy_loss("epsilon", epsilon) * weight / (2 * quantile_sensitivity(q))
    weights = np.exp(exponent - exponent.max())
    law: NDArray[np.float64] = weights / weights.sum()
    return law


def quantile_shortfall(n: int, bins: int, epsilon: float, delta: float) -> float:
    """Lemma C.4, (19): for q in [1/2, 1), a share of at least q minus this lies at or below the output.

    With probability 1-delta: 2 log(B/delta) / (n epsilon), whatever the scores are.

    Examples
    --------
    >>> round(quantile_shortfall(200, 100, 5.0, 0.05), 4)
    0.0152
    """
    n, bins = positive_integer("n", n), positive_integer("bins", bins)
    return 2 * math.log(bins / _share("delta", delta)) / (n * privacy_loss("epsilon", epsilon))


@dataclass(frozen=True)
class PrivateRanks:
    """Algorithm 3: what the server asks for, and what Theorem 4.1 proves of it.

    Parameters
    ----------
    l, k
        (l_gamma, k_gamma), the pair of Algorithm 1 for the level (1-alpha)/(1-gamma alpha).
    correction
        l_cor of (10).
    quantile
        q = max((l + l_cor)/n, 1/2), which every agent's Algorithm 2 aims at.
    coverage_at_least
        M(l, k)(1 - gamma alpha), by (20) and (21); at least 1-alpha.
    """

    l: int
    k: int
    correction: int
    quantile: float
    coverage_at_least: float


def private_ranks(m: int, n: int, alpha: Level, epsilon: float, bins: int, gamma: float) -> PrivateRanks | None:
    """Algorithm 3, (10), Theorem 4.1: (l_gamma, k_gamma), l_cor and q for one gamma; None if no rank is left.

    Algorithm 2 asks for q < 1, and the text does not say what to do where l_gamma + l_cor is n or more. Here n is taken
    (the weights then are their limit, the scores above e_b) and more is None.

    Parameters
    ----------
    m, n
        Number of agents, of scores in each.
    alpha, epsilon
        Miscoverage, and the loss of each agent.
    bins
        B.
    gamma
        The share of alpha that pays for the noise, in (0, 1).

    Examples
    --------
    >>> private_ranks(5, 200, 0.1, 5.0, 100, 0.02)
    PrivateRanks(l=179, k=4, correction=5, quantile=0.92, coverage_at_least=0.900...)
    """
    share = _share("gamma", gamma) * float(exact_level("alpha", alpha))
    made = published_at(gamma, m, n, alpha, epsilon, bins)
    if made is None:
        return None
    l_cor = private_correction(m, alpha, epsilon, bins, gamma)
    l = made.rank - l_cor
    covered = float(qq_coverage(l, made.k, m, n)) * (1 - share)
    return PrivateRanks(l, made.k, l_cor, max(made.rank / n, 0.5), covered)


def private_correction(m: int, alpha: Level, epsilon: float, bins: int, gamma: float) -> int:
    """(10): l_cor = ceil((2/epsilon) log(B / (1 - (1 - gamma alpha)^(1/m)))).

    Examples
    --------
    >>> private_correction(5, 0.1, 5.0, 100, 0.02)
    5
    """
    share = _share("gamma", gamma) * float(exact_level("alpha", alpha))
    return published_correction(privacy_loss("epsilon", epsilon), positive_integer("bins", bins), m, share)


def best_gamma(m: int, n: int, alpha: Level, epsilon: float, bins: int) -> PublishedChoice | None:
    """Section 4, "Choosing gamma", Figure 2: the gamma of least M(l_gamma + l_cor, k_gamma); None if there is none.

    The paper searches a grid that it does not state. Here all gamma in (0, 1) are searched, which no grid can beat; its
    `compensation` is what Figure 2 draws.

    Examples
    --------
    >>> round(best_gamma(5, 200, 0.1, 10.0, 100).compensation, 5)
    0.91497
    """
    return best_published(m, n, alpha, epsilon, bins)


def loss_of_pipeline(training: float, calibration: float) -> float:
    """Remark 4.2: the loss of training and calibration together, if no record is in both: the larger of the two.

    Which record trains and which calibrates must not depend on the records.

    Examples
    --------
    >>> loss_of_pipeline(8.0, 1.0)
    8.0
    """
    return max(privacy_loss("training", training), privacy_loss("calibration", calibration))


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise InputError(f"{name} must be strictly between 0 and 1; found {value!r}")
    return value
