"""`published-counts`: a threshold from noisy counts that another engine made, with the noise law that it states.

The threshold is the least candidate at which, and at all candidates beyond which, the noisy count reaches the target
rank (docs/theory-published-counts.md, Theorem E1). This step draws no noise and spends no budget.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import Guarantee, RankLaw, chosen_by_last_rule, law_failure, missed_of_total, rank_law_of
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.privacy import PrivacyStatement
from confide.mechanisms.stated_noise import Noise
from confide.support import bisect, float_above

_SLACK = 1e-9
"""Tolerance for another machine's rounding of the sums of a certificate."""
_ROUNDING = 1e-9, 1e-15
"""Coverage, or ranks, reserved for the rounding of the transforms: at least, and for each noise."""


_end = lru_cache(maxsize=64)(Noise.end)


@dataclass(frozen=True)
class PublishedHistogram(Mechanism):
    """The least candidate at which, and at all candidates beyond which, noisy counts reach a target rank.

    Parameters
    ----------
    noise
        The law of the noise in each count.
    rate
        Growth of the target rank with n + 1: the level if the number of records is secret, 0 if it is public.
    offset
        Constant part of the target rank T(n) = rate (n+1) + offset.

    Examples
    --------
    >>> mechanism = published_histogram_for(Fraction(9, 10), Noise.discrete_laplace(2.0, 2), 128, 10_000, None)
    >>> float(mechanism.offset - Fraction(9, 10) * 10_001)  # ranks
    18.1
    """

    name: ClassVar[Literal["published-counts"]] = "published-counts"
    add_remove: ClassVar[None] = None
    replace_one: ClassVar[float] = math.inf
    rule: ClassVar[Literal["last"]] = "last"

    noise: Noise
    rate: Fraction
    offset: Fraction

    def choose(self, counts: NDArray[np.int64], n: int | None = None) -> int:
        """The index of the threshold, from noisy counts, int64 of shape (m,), and the number of records if public."""
        size = int(counts.sum()) if n is None else n
        return int(chosen_by_last_rule(counts, size, math.ceil(self.rate * (size + 1) + self.offset)))

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """The law of R = T - N for a public n; for a secret n it is not tabulated."""
        return None if self.rate else self._ranks(m)

    def _ranks(self, m: int) -> RankLaw:
        return rank_law_of(math.ceil(self.offset), _end(self.noise, m - 1))

    def lacks(self, level: Fraction, m: int, n: int | None, n_min: int | None, delta: float | None) -> float:
        """How much coverage, or probability of it, or how many ranks this target lacks; at most 0 if it is enough."""
        least, each = _ROUNDING
        rounding = max(least, each * self.noise.copies * m)
        if n is None:
            law = _end(self.noise, m)
            values = np.arange(len(law))

            def above(y: float) -> float:
                """E[(S - y)_+] for the noise S of all bins, which is symmetric."""
                return max(0.0, -y) + float(law @ np.maximum(values - abs(y), 0))

            x = float(self.offset - (1 - level) * ((n_min or 1) + 1))
            missed = missed_of_total(x, float(level), above, float(2 * law[0] - law.sum()))
            return missed + x + rounding - float(self.offset)
        ranks, probabilities, bottom = self._ranks(m)
        if delta is not None:
            return law_failure((ranks, probabilities, bottom), n, float(level)) + rounding - delta
        return float(level) + rounding - float(probabilities @ np.minimum(ranks, n + 1)) / (n + 1)

    def guarantee(
        self, level: Fraction, m: int, n: int | None, n_min: int | None, delta: float | None
    ) -> Guarantee | None:
        """The guaranteed level, if this target is the smallest one that guarantees it; else None."""
        least = published_histogram_for(level, self.noise, m, n, n_min, delta)
        one = Fraction(1) if n is not None else Fraction(1, level.denominator)
        right = self.rate == least.rate and abs(self.offset - least.offset) <= one
        if not right or self.lacks(level, m, n, n_min, delta) > _SLACK:
            return None
        return Guarantee("marginal" if delta is None else "training_conditional", float(level), delta, n, n_min)


def published_histogram_for(
    level: Fraction, noise: Noise, m: int, n: int | None, n_min: int | None, delta: float | None = None
) -> PublishedHistogram:
    """The smallest target rank that guarantees the level, for a public n or for every n >= n_min.

    With few records it exceeds n, and the threshold is nearly always +inf.

    Examples
    --------
    >>> float(published_histogram_for(Fraction(9, 10), Noise.discrete_laplace(1.0), 128, None, 100).offset)
    4.95
    """
    if n is None and (delta is not None or noise.kind == "table"):
        name, what = ("delta", "left out") if delta is not None else ("noise", "discrete Laplace or Gaussian noise")
        raise InputError(name, f"must be {what} if the number of records is secret", remedy="State n")
    rate = level if n is None else Fraction(0)
    unit = 1 if n is not None else level.denominator * -(-16 // level.denominator)

    def made(steps: int) -> PublishedHistogram:
        return PublishedHistogram(noise, rate, Fraction(steps, unit))

    def serves(steps: int) -> bool:
        return made(steps).lacks(level, m, n, n_min, delta) <= 0

    low, step = 0 if n is None else math.floor(level * n), 1
    while not serves(low + step):
        low, step = low + step, 2 * step
    return made(bisect(serves, low, low + step))


_STATED = "as the maker of the counts states"


class StatedPrivacy(PrivacyStatement):
    """The privacy loss of counts that another engine made, as its maker states it; calibrating adds nothing.

    Examples
    --------
    >>> print(StatedPrivacy.of(Noise.discrete_laplace(2.0, 2), 10_000))
    1-differential privacy for replacing one record, as the maker of the counts states; calibrating adds nothing
    """

    @classmethod
    def of(cls, noise: Noise, n: int | None, epsilon: float | None = None) -> "StatedPrivacy":
        """The statement of the maker, or without one the loss of one copy of the stated noise.

        Raises
        ------
        InputError
            If it does not follow from the noise and is not stated.
        """
        rho = None
        if epsilon is None:
            if isinstance(noise.parameter, tuple):
                raise InputError("epsilon", "must be given, as the maker of the counts states it: noise is a table")
            scale, changed = Fraction(noise.parameter), 1 if n is None else 2  # counts that change by one
            gaussian = noise.kind == "discrete_gaussian"
            rho = float_above(changed / (2 * scale**2)) if gaussian else None
            epsilon = math.inf if gaussian else float_above(changed / scale)
        if n is not None:
            return cls("replace_one", epsilon, 1, None, epsilon, rho)
        return cls("add_remove", epsilon, 1, None if rho else epsilon, 2 * epsilon, rho)

    @property
    def brief(self) -> str:
        """The loss in a few words."""
        return f"{super().brief}, {_STATED}"

    def __str__(self) -> str:
        return f"{super().__str__()}, {_STATED}; calibrating adds nothing"
