"""`published-counts`: a threshold from noisy counts that another engine made, with the noise law that it states.

The threshold is the least candidate from which on at most a certain noisy number of records lies beyond each
(docs/theory-published-counts.md, Theorem E1). This step draws no noise and spends no budget.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import chosen_by_last_rule, least_counted, limit_coverage, most_beyond
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.privacy import PrivacyStatement
from confide.mechanisms.stated_noise import Noise
from confide.support import float_above


@dataclass(frozen=True)
class PublishedHistogram(Mechanism):
    """A limit for the noisy number of records beyond the threshold, in counts with noise of a stated law.

    Parameters
    ----------
    noise
        The law of the noise in each count.
    beyond
        The largest noisy number of records beyond the selected candidate, and beyond each one after it.
    """

    name: ClassVar[Literal["published-counts"]] = "published-counts"
    add_remove: ClassVar[None] = None
    replace_one: ClassVar[float] = math.inf

    noise: Noise
    beyond: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The index of the threshold, from noisy counts, int64 of shape (m,)."""
        return int(chosen_by_last_rule(counts, self.beyond))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction | None:
        """Guaranteed coverage for a public n; None for a secret one: see `serves`."""
        return None if n is None else limit_coverage(self.beyond, n, _cost(self.noise, m, n))

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed, on average over noisy numbers of records of this scale (Theorem W3b)."""
        cost = _cost(self.noise, m, counted)
        return counted >= least_counted(level, size_scale, cost) and self.beyond <= most_beyond(level, counted, cost)


def _cost(noise: Noise, m: int, n: int) -> float:
    """The ranks that m noises cost; one that is unlimited may cost all records."""
    return noise.cost + m * noise.copies * noise.missing * max(n + 1, 1)


def published_histogram_for(
    level: Fraction, noise: Noise, m: int, n: int, size_scale: float | None
) -> PublishedHistogram | None:
    """The largest limit that guarantees the level for a public n, or a noisy one; None if there is none.

    `size_scale` is the scale of the noise in n if it is a noisy number; None if n is public.
    """
    cost = _cost(noise, m, n)
    if size_scale is not None and n < least_counted(level, size_scale, cost):
        return None
    limit = most_beyond(level, n, cost)
    return None if limit < 0 else PublishedHistogram(noise, limit)


_STATED = "as the maker of the counts states"


class StatedPrivacy(PrivacyStatement):
    """The privacy loss of counts that another engine made, as its maker states it; calibrating adds nothing.

    Examples
    --------
    >>> print(StatedPrivacy.of(Noise.discrete_laplace(2.0, 2), 10_000))
    1-differential privacy for replacing one record, as the maker of the counts states; calibrating adds nothing
    """

    @classmethod
    def of(
        cls, noise: Noise, n: int | None, epsilon: float | None = None, size_scale: float | None = None
    ) -> "StatedPrivacy":
        """The statement of the maker, or without one the loss of one copy of the stated noise.

        `size_scale` is the scale of the noise in a noisy number of records, whose loss adds to that of the counts. A
        table of noise has no statement of its own.
        """
        # One record changes one count by one, or two counts if it is replaced, and also the noisy number
        rho = None
        if epsilon is None:
            if isinstance(noise.parameter, tuple):
                raise InputError("epsilon", "must be given, as the maker of the counts states it: noise is a table")
            noise_scale, changed_counts = Fraction(noise.parameter), 1 if n is None else 2
            number_loss = Fraction(0) if size_scale is None else 1 / Fraction(size_scale)
            epsilon = float_above(changed_counts / noise_scale + number_loss)
            if noise.kind == "discrete_gaussian":
                epsilon, rho = math.inf, float_above(changed_counts / (2 * noise_scale**2) + number_loss**2 / 2)

        if n is not None:
            return cls("replace_one", epsilon, 1, add_remove=None, replace_one=epsilon, rho=rho)
        return cls("add_remove", epsilon, 1, add_remove=None if rho else epsilon, replace_one=2 * epsilon, rho=rho)

    @property
    def brief(self) -> str:
        """The loss in a few words."""
        return f"{super().brief}, {_STATED}"

    def __str__(self) -> str:
        return f"{super().__str__()}, {_STATED}; calibrating adds nothing"
