"""The reply of a silo on evenly spread scores, noise included: for the choice among plans, never for a promise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.federated.order_statistics import order_statistic_coverage
from confide.mechanisms import Slopes
from confide.selection import selection_law

_GRID = 100


@dataclass(frozen=True)
class TypicalReply:
    """The reply of one silo.

    Parameters
    ----------
    n
        Number of scores.
    ranks, probabilities
        Where the chosen candidate lies, in ranks (not whole, up to n + 1), and how likely.
    """

    n: int
    ranks: tuple[float, ...]
    probabilities: tuple[float, ...]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(reply <= t), shape of t."""
        from scipy.special import betainc

        r = np.array(self.ranks)[:, None]
        mixed: NDArray[np.float64] = np.array(self.probabilities) @ betainc(r, self.n - r + 1, t[None, :])
        return np.minimum(mixed, 1.0)


@lru_cache(maxsize=8192)
def typical_reply(n: int, target: float, mechanism: Slopes, candidates: int) -> TypicalReply:
    """The law of the mechanism's choice among candidates evenly spread over the ranks 0..n+1.

    A candidate beyond all n scores is penalised as if it were the n-th: with a target near n nothing keeps the choice
    from running to the end, which a plan has to weigh.
    """
    left, right = mechanism.slope_left, mechanism.slope_right
    low = max(target - 25 / left, 0.0)
    high = n + 1 if right * (n - target) < 25 else target + 25 / right
    spacing = max((n + 1) / candidates, (high - low) / _GRID)
    ranks = np.minimum(np.arange(low, high, spacing) + spacing / 2, n + 1 - 1e-3)
    ranks = np.maximum(ranks, 1e-3)
    short = left * np.maximum(target - np.minimum(ranks, n), 0)
    over = right * np.maximum(np.minimum(ranks - spacing, n) - target, 0)
    utility = -np.maximum(short, over)
    law = selection_law(np.exp(utility - utility.max()), mechanism.selector)
    kept = law > 1e-9
    return TypicalReply(n, tuple(ranks[kept].tolist()), tuple((law[kept] / law[kept].sum()).tolist()))


def expected_coverage(silos: Sequence[tuple[int, Fraction]], k: int, mechanism: Slopes, candidates: int) -> float:
    """Mean coverage of the k-th smallest reply on evenly spread scores.

    Parameters
    ----------
    silos
        Number of scores and target rank of each.
    k
        Which reply is the threshold.
    mechanism
        Slopes and noise, the same in all silos.
    candidates
        Number of candidates.
    """
    plain = replace(mechanism, rate=Fraction(0), offset=Fraction(0), scale=mechanism.scale / mechanism.unit)
    return order_statistic_coverage([typical_reply(n, float(target), plain, candidates) for n, target in silos], k)
