"""What a silo's reply is like: how likely it is to be low, if scores are uniform on [0, 1] (docs/federated.md, F1)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class ReplyLaw(Protocol):
    """How likely a silo's reply is to be low."""

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """An upper bound on P(reply <= t) for uniform scores, shape of t; never falling in t."""
        ...


@dataclass(frozen=True)
class RandomRankReply:
    """A reply that is at least the R-th smallest of n scores, R random and independent of them.

    Parameters
    ----------
    n
        Number of scores in the silo.
    ranks, probabilities
        The law of R on 1..n, rising; what is missing to 1 beyond `bottom` stands for +inf.
    bottom
        P(R = 0): the reply may be anything.

    Examples
    --------
    >>> float(RandomRankReply.fixed(1, 1).below(np.array([0.25]))[0])
    0.25
    """

    n: int
    ranks: tuple[float, ...]
    probabilities: tuple[float, ...]
    bottom: float = 0.0

    @classmethod
    def fixed(cls, n: int, rank: int) -> "RandomRankReply":
        """The reply that is exactly the rank-th smallest score; +inf if rank > n."""
        return cls(n, (rank,), (1.0,)) if rank <= n else cls(n, (), ())

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(S_(R) <= t) for n uniform scores: P(R <= Bin(n, t)), so one tail and a few binomial probabilities."""
        from scipy.special import betainc

        if not self.ranks:
            return np.full(np.shape(t), self.bottom)
        n, top = self.n, self.ranks[-1]
        if self._consecutive is None:
            r = np.array(self.ranks)[:, None]
            mixed: NDArray[np.float64] = self.bottom + np.array(self.probabilities) @ betainc(r, n - r + 1, t[None, :])
            return np.minimum(mixed, 1.0)
        below_top, ways, up_to = self._consecutive
        mixed = self.bottom + float(np.sum(self.probabilities)) * betainc(top, n - top + 1, t)
        if below_top.size:
            with np.errstate(divide="ignore"):
                logs = ways + np.outer(np.log(t), below_top) + np.outer(np.log1p(-t), n - below_top)
            mixed = mixed + np.exp(logs) @ up_to
        return np.minimum(mixed, 1.0)

    @property
    def whole(self) -> bool:
        """Whether ranks are whole numbers without gaps."""
        return bool(self.ranks) and bool(np.all(np.diff(self.ranks) == 1))

    @cached_property
    def _consecutive(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """For ranks without gaps: those below the last, their ln C(n, r), and P(R <= r), as Bin = r counts them all."""
        from scipy.special import gammaln

        if not self.whole:
            return None
        n, r = self.n, np.array(self.ranks[:-1], dtype=np.float64)
        return r, gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1), np.cumsum(self.probabilities[:-1])
