"""The laws of replies: bounds on the probability that the reply of a silo, or of a sum of silos, is low.

A reply that is at least the R-th smallest of n uniform scores, R random and independent of them, is at most t with
probability at most P(R <= Bin(n, t)) (docs/theory-federated.md, Theorems F1 and F3).
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import TargetGoal, TargetLine, line_holds
from confide.mechanisms import Mechanism, Slopes


class ReplyLaw(Protocol):
    """A bound on the distribution function of a silo's reply."""

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """An upper bound on P(reply <= t) for uniform scores, shape of t, nondecreasing in t."""
        ...


@dataclass(frozen=True)
class RandomRankReply:
    """A reply that is at least the R-th smallest of n scores, R random and independent of them.

    Parameters
    ----------
    n
        Number of scores in the silo.
    ranks, probabilities
        The law of R on 1..n, ranks increasing. The mass that is missing to 1, apart from `bottom`, stands for +inf.
    bottom
        P(R = 0), the probability that the reply may be anything.
    """

    n: int
    ranks: tuple[float, ...]
    probabilities: tuple[float, ...]
    bottom: float = 0.0

    @classmethod
    def fixed(cls, n: int, rank: int) -> "RandomRankReply":
        """The reply that is exactly the rank-th smallest score; +inf if rank > n."""
        return cls(n, (rank,), (1.0,)) if rank <= n else cls(n, (), ())

    @property
    def coverage(self) -> Fraction:
        """E[min(R, n + 1)] / (n + 1): the coverage of this reply as the threshold."""
        missed = float(np.array(self.probabilities) @ (self.n + 1 - np.array(self.ranks)))
        return 1 - Fraction(missed) / (self.n + 1) - Fraction(self.bottom)

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(S_(R) <= t) = P(R <= Bin(n, t)) for n uniform scores: one tail and a few binomial probabilities."""
        from scipy.special import betainc

        if not self.ranks:
            return np.full(np.shape(t), self.bottom)
        n = self.n

        # Ranks with gaps: one tail for every rank
        if self._lower_ranks is None:
            r = np.array(self.ranks)[:, None]
            below: NDArray[np.float64] = self.bottom + np.array(self.probabilities) @ betainc(r, n - r + 1, t[None, :])
            return np.minimum(below, 1.0)

        # Ranks without gaps: the tail of the last one, and P(Bin(n, t) = r) for the ranks r below it
        last = self.ranks[-1]
        r, log_ways, up_to = self._lower_ranks
        below = self.bottom + float(np.sum(self.probabilities)) * betainc(last, n - last + 1, t)
        if r.size:
            with np.errstate(divide="ignore"):
                logs = log_ways + np.outer(np.log(t), r) + np.outer(np.log1p(-t), n - r)
            below = below + np.exp(logs) @ up_to
        return np.minimum(below, 1.0)

    @property
    def whole(self) -> bool:
        """Whether ranks are consecutive integers."""
        return bool(self.ranks) and bool(np.all(np.diff(self.ranks) == 1))

    @cached_property
    def _lower_ranks(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """For ranks without gaps: the ranks below the last one, their ln C(n, r), and P(0 < R <= r)."""
        from scipy.special import gammaln

        if not self.whole:
            return None
        n = self.n
        r = np.array(self.ranks[:-1], dtype=np.float64)
        log_ways = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
        return r, log_ways, np.cumsum(self.probabilities[:-1])


@dataclass(frozen=True)
class SecretSizeReply:
    """The worst reply over all numbers of scores from n_min on: for silos whose sizes are secret (Theorem F4).

    `steps` are increasing pairs (t, bound): for every n >= n_min the reply is at most t with probability at most
    `bound`. Between two t the bound of the upper one is used; above the last one it is 1.
    """

    steps: tuple[tuple[float, float], ...]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """The step function, shape of t."""
        points = [point for point, _ in self.steps]
        bounds = np.array([*(bound for _, bound in self.steps), 1.0])
        return np.where(t <= 0, 0.0, bounds[np.searchsorted(points, t, side="left")])


def slopes_reply(n: int | None, mechanism: Slopes, candidates: int, n_min: int, level: Fraction) -> ReplyLaw:
    """The law that a silo's reply dominates; if n is None, for every number of scores from n_min on.

    The bound for all n is finest near `level`, the required coverage.
    """
    return any_size_reply(mechanism, candidates, n_min, level) if n is None else random_rank(n, mechanism, candidates)


# Total probability of the lowest ranks, which count as rank 0
_UNLIKELY = 1e-10


@lru_cache(maxsize=8192)
def random_rank(n: int, mechanism: Mechanism, candidates: int) -> RandomRankReply:
    """The law that a silo's reply dominates, for a public number of scores n and a mechanism with a rank law."""
    law = mechanism.rank_law(n, candidates)
    assert law is not None
    ranks, mass, bottom = law

    # The lowest ranks count as rank 0, which can only lower the certificate
    first = int(np.searchsorted(bottom + np.cumsum(mass), _UNLIKELY))
    bottom += float(mass[:first].sum())
    ranks, mass = ranks[first:], mass[first:]

    # Beyond the last score the reply is +inf
    finite = ranks <= n
    return RandomRankReply(n, tuple(ranks[finite].tolist()), tuple(mass[finite].tolist()), max(bottom, 0.0))


# The number of steps; and where the level is close to the rate, a smaller one, because each step takes longer
_STEPS = 24
_STEPS_NEAR = 16

# Where the level is close to the rate: the last step's distance from the rate, as a share of the level's distance
_NEAREST = 0.3


@lru_cache(maxsize=64)
def any_size_reply(mechanism: Slopes, candidates: int, n_min: int, level: Fraction) -> SecretSizeReply:
    """Bounds that hold for every secret n >= n_min, each proved by `line_holds` (docs/theory.md, Theorem C3)."""
    # Without a record S_(R) is +inf, so the reply differs from it with probability at most P(R = 0), for every t
    if n_min == 0:
        law = mechanism.rank_law(0, candidates)
        assert law is not None  # all records of silos have the same weight
        _, _, bottom = law
        steps = any_size_reply(mechanism, candidates, 1, level).steps
        return SecretSizeReply(tuple((t, max(bound, bottom)) for t, bound in steps))

    # Steps lie below the rate, closer to each other near it. Above the last step no level can be certified. It lies
    # 1/200 below the rate; if that is below the level, as for a large typical number of records or a small alpha, it
    # lies between both.
    rate = float(mechanism.rate)
    gaps = np.geomspace(0.02, 1.0, _STEPS)[::-1] * min(0.25, rate)
    points = _below_rate(rate, gaps, 10**5)
    if points[-1] < level < mechanism.rate:
        gaps = np.geomspace(_NEAREST * float(mechanism.rate - level), min(0.25, rate), _STEPS_NEAR)[::-1]
        points = _below_rate(rate, gaps, 10**7)

    # The bounds increase
    points = [t for t in points if t > 0]
    bounds = np.maximum.accumulate([_largest_failure(mechanism, candidates, n_min, t) for t in points])
    return SecretSizeReply(tuple((float(t), float(bound)) for t, bound in zip(points, bounds, strict=True)))


def _below_rate(rate: float, gaps: NDArray[np.float64], grid: int) -> list[Fraction]:
    """The points rate - gap, rounded down to multiples of 1/grid."""
    return [Fraction(math.floor((rate - gap) * grid), grid) for gap in gaps]


def _largest_failure(mechanism: Slopes, candidates: int, n_min: int, t: Fraction) -> float:
    """The smallest delta on a grid such that for every n the reply is below t with probability at most delta."""
    line = TargetLine(mechanism.rate, mechanism.offset)
    noise = mechanism.noise(candidates)

    def holds(log_delta: float) -> bool:
        return line_holds(line, TargetGoal(t, math.exp(log_delta), n_min), noise)

    # By bisection of ln delta, from about 1e-7 to 0.98, up to a factor e**0.06
    low, high = -16.0, -0.02
    if not holds(high):
        return 1.0
    if holds(low):
        return math.exp(low)
    while high - low > 0.06:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return math.exp(high)


# From this number of distinct laws on, computing them together is faster
_TOGETHER = 4


class ReplyTable:
    """The laws of the replies of m silos. Each distinct law is computed once, those of integer ranks all together."""

    def __init__(self, replies: Sequence[ReplyLaw]) -> None:
        # The distinct laws, and that of every silo
        positions: dict[ReplyLaw, int] = {}
        self._law_of_silo = np.array([positions.setdefault(reply, len(positions)) for reply in replies], dtype=np.int64)
        self._distinct = tuple(positions)

        # Those that are computed together
        whole = {i: law for i, law in enumerate(positions) if isinstance(law, RandomRankReply) and law.whole}
        self._together = list(whole) if len(whole) >= _TOGETHER else []
        self._whole = WholeRanks([whole[i] for i in self._together]) if self._together else None
        self._others = sorted(set(range(len(positions))) - set(self._together))

    @classmethod
    def of(cls, replies: "Sequence[ReplyLaw] | ReplyTable") -> "ReplyTable":
        """The table of these laws; a table is returned unchanged."""
        return replies if isinstance(replies, ReplyTable) else cls(replies)

    def __len__(self) -> int:
        return len(self._law_of_silo)

    @property
    def identical(self) -> bool:
        """Whether all silos have one law."""
        return len(self._distinct) == 1

    @property
    def single_law(self) -> RandomRankReply | None:
        """The law of the only silo, if its coverage follows from a mean rank."""
        law = self._distinct[0]
        return law if len(self) == 1 and isinstance(law, RandomRankReply) else None

    def fixed(self) -> list[tuple[int, int]] | None:
        """The number of scores and the rank of every silo, if all replies are order statistics of their scores."""
        order_statistics = list[tuple[int, int]]()
        for law in self._distinct:
            if not isinstance(law, RandomRankReply) or law.probabilities != (1.0,) or law.ranks[0] % 1:
                return None
            order_statistics.append((law.n, int(law.ranks[0])))
        return [order_statistics[position] for position in self._law_of_silo]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """G_j(t), float64 of shape (silos, nodes)."""
        rows = np.empty((len(self._distinct), len(t)))
        if self._whole is not None:
            rows[self._together] = self._whole.below(t)
        for i in self._others:
            rows[i] = self._distinct[i].below(t)
        return rows[self._law_of_silo]


# Each binomial probability is computed from the previous one. After this many they are computed afresh, so that one
# that underflows does not make all others zero.
_AFRESH = 12

# The least t and 1 - t, where odds are finite
_EDGE = 1e-12

# Probability of ranks that a search leaves out
_RARE = 1e-6


class WholeRanks:
    """Laws of integer ranks without gaps, by one binomial tail at the last rank and probabilities below it."""

    def __init__(self, laws: Sequence[RandomRankReply]) -> None:
        deepest = max(len(law.ranks) for law in laws) - 1
        self._n = np.array([law.n for law in laws], dtype=np.float64)[:, None]
        self._top = np.array([law.ranks[-1] for law in laws], dtype=np.float64)[:, None]
        self._finite = np.array([sum(law.probabilities) for law in laws])[:, None]
        self._bottom = np.array([law.bottom for law in laws])[:, None]
        # P(0 < R < top - d) of every law, in row d
        self._up_to = np.zeros((deepest, len(laws), 1))
        for i, law in enumerate(laws):
            self._up_to[: len(law.ranks) - 1, i, 0] = np.cumsum(law.probabilities[:-1])[::-1]

    def short(self) -> "WholeRanks":
        """The laws without ranks of probability below 1e-6, for a search."""
        shortened = copy(self)
        shortened._up_to = self._up_to[: int((self._up_to.max(axis=(1, 2)) > _RARE).sum())]
        return shortened

    def moved(self, n: NDArray[np.int64], targets: NDArray[np.int64]) -> "WholeRanks":
        """The only law, moved to other numbers of scores and last ranks; distances from the last rank stay equal."""
        laws = copy(self)
        laws._n = n.astype(np.float64)[:, None]
        laws._top = targets.astype(np.float64)[:, None]
        return laws

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(R <= Bin(n, t)), shape (laws, nodes), nondecreasing in t."""
        from scipy.special import betainc, gammaln

        # The tail at the last rank
        n = self._n
        t = np.clip(t, _EDGE, 1 - _EDGE)[None, :]
        below = self._bottom + self._finite * betainc(self._top, n - self._top + 1, t)

        # P(Bin(n, t) = r) for the ranks r below it, each from the one above
        log_t = np.log(t)
        log_rest = np.log1p(-t)
        odds = (1 - t) / t
        chance = np.zeros_like(below)
        weighed = np.empty_like(below)
        for d, weight in enumerate(self._up_to):
            r = self._top - 1 - d
            if d % _AFRESH == 0:
                successes = np.maximum(r, 0)
                log_ways = gammaln(n + 1) - gammaln(successes + 1) - gammaln(n - successes + 1)
                logs = log_ways + successes * log_t + (n - successes) * log_rest
                chance = np.where(r < 0, 0.0, np.exp(logs))
            else:
                chance *= odds
                chance *= np.maximum(r + 1, 0) / (n - r)
            below += np.multiply(chance, weight, out=weighed)
        return np.asarray(np.minimum(below, 1.0))
