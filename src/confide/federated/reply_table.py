"""How likely the replies of all silos are to be low, for many thresholds at once."""

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from confide.federated.random_rank_reply import RandomRankReply, ReplyLaw

_AGAIN = 12
"""Binomial probabilities follow from one another; after so many of them they are computed afresh, so that one that is
too small for a float does not make all others vanish."""

_FEW = 4
"""So many distinct laws are quicker together than one by one."""

_EDGE, _RARE = 1e-12, 1e-6


class ReplyTable:
    """The laws of the replies of m silos: each distinct one computed once, and those of whole ranks all together.

    Parameters
    ----------
    replies
        One law per silo.

    Examples
    --------
    >>> table = ReplyTable([RandomRankReply.fixed(1, 1), RandomRankReply.fixed(2, 2), RandomRankReply.fixed(1, 1)])
    >>> table.below(np.array([0.5]))
    array([[0.5 ],
           [0.25],
           [0.5 ]])
    """

    def __init__(self, replies: Sequence[ReplyLaw]) -> None:
        places: dict[ReplyLaw, int] = {}
        self._place = np.array([places.setdefault(reply, len(places)) for reply in replies], dtype=np.int64)
        self._distinct = tuple(places)
        whole = {i: law for i, law in enumerate(places) if isinstance(law, RandomRankReply) and law.whole}
        if len(whole) < _FEW:
            whole = {}
        self._whole, self._places_of_whole = WholeRanks(list(whole.values())) if whole else None, list(whole)
        self._others = [i for i in range(len(places)) if i not in whole]

    @classmethod
    def of(cls, replies: "Sequence[ReplyLaw] | ReplyTable") -> "ReplyTable":
        """The table of these laws, or what is one already."""
        return replies if isinstance(replies, ReplyTable) else cls(replies)

    def __len__(self) -> int:
        return len(self._place)

    @property
    def alike(self) -> bool:
        """Whether all silos have one law."""
        return len(self._distinct) == 1

    def fixed(self) -> list[tuple[int, int]] | None:
        """The number of scores and the rank of every silo, if all replies are order statistics of their scores."""
        found = list[tuple[int, int]]()
        for law in self._distinct:
            if not isinstance(law, RandomRankReply) or law.probabilities != (1.0,) or law.ranks[0] % 1:
                return None
            found.append((law.n, int(law.ranks[0])))
        return [found[place] for place in self._place]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """G_j(t), float64 of shape (silos, nodes)."""
        rows = np.empty((len(self._distinct), len(t)))
        if self._whole is not None:
            rows[self._places_of_whole] = self._whole.below(t)
        for i in self._others:
            rows[i] = self._distinct[i].below(t)
        return rows[self._place]


class WholeRanks:
    """Laws of whole ranks without gaps: one tail of the binomial at the last rank, then its probabilities downwards."""

    def __init__(self, laws: Sequence[RandomRankReply]) -> None:
        deepest = max(len(law.ranks) for law in laws) - 1
        self._n = np.array([law.n for law in laws], dtype=np.float64)[:, None]
        self._top = np.array([law.ranks[-1] for law in laws], dtype=np.float64)[:, None]
        self._sure = np.array([sum(law.probabilities) for law in laws])[:, None]
        self._bottom = np.array([law.bottom for law in laws])[:, None]
        self._up_to = np.zeros((deepest, len(laws), 1))  # P(0 < R < top - d) of every law, in row d
        for i, law in enumerate(laws):
            self._up_to[: len(law.ranks) - 1, i, 0] = np.cumsum(law.probabilities[:-1])[::-1]

    def short(self) -> "WholeRanks":
        """Without ranks that are less likely than a millionth, for a search."""
        made = copy(self)
        made._up_to = self._up_to[: int((self._up_to.max(axis=(1, 2)) > _RARE).sum())]
        return made

    def moved(self, n: NDArray[np.int64], targets: NDArray[np.int64]) -> "WholeRanks":
        """The only law for other numbers of scores and last ranks: ranks lie as far below the target as here."""
        made = copy(self)
        made._n, made._top = n.astype(np.float64)[:, None], targets.astype(np.float64)[:, None]
        return made

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(R <= Bin(n, t)), shape (laws, nodes); never falling in t."""
        from scipy.special import betainc, gammaln

        n, t = self._n, np.clip(t, _EDGE, 1 - _EDGE)[None, :]
        found = self._bottom + self._sure * betainc(self._top, n - self._top + 1, t)
        log_t, log_rest, odds = np.log(t), np.log1p(-t), (1 - t) / t
        chance, weighed = np.zeros_like(found), np.empty_like(found)
        for d, weight in enumerate(self._up_to):
            r = self._top - 1 - d
            if d % _AGAIN == 0:
                at = np.maximum(r, 0)
                ways = gammaln(n + 1) - gammaln(at + 1) - gammaln(n - at + 1)
                chance = np.where(r < 0, 0.0, np.exp(ways + at * log_t + (n - at) * log_rest))
            else:
                chance *= odds
                chance *= np.maximum(r + 1, 0) / (n - r)
            found += np.multiply(chance, weight, out=weighed)
        result: NDArray[np.float64] = np.minimum(found, 1.0)
        return result
