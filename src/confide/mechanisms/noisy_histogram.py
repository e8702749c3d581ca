"""Noisy histograms with the last rule (docs/theory-one-number.md, W3, W3b): `noisy-histogram` and `published-counts`.

With noisy counts c_j + Z_j, candidate k is reached if sum_(j>k) (c_j + Z_j) is at most a limit. The last rule selects
the first candidate from which on all candidates are reached. The noise costs a number of ranks that does not depend on
the number of bins.

`noisy-histogram` is the release of Private Prediction Sets version 1 (arXiv 2102.06202v1) with this calibration: no
gamma, no union bound. `published-counts` takes the noisy counts of another engine (docs/theory-published-counts.md,
Theorem E1); it draws no noise and spends no budget.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import (
    Guarantee,
    RecordCount,
    chosen_by_last_rule,
    laplace_residual_life,
    least_counted,
    limit_coverage,
    most_beyond,
)
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.stated_noise import Noise
from confide.selection import noisy_counts
from confide.support import Facts, float_above, scale_for


class _LastRule(Mechanism):
    """The guarantee of a limit for the noisy number of records beyond the threshold."""

    beyond: int

    @abstractmethod
    def cost(self, m: int, n: int) -> float:
        """What the noise in m counts of n records costs, in ranks."""

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction | None:
        """Guaranteed coverage for a public n (Theorem W3); None for a secret one: see `serves`."""
        n = records.least
        return limit_coverage(self.beyond, n, self.cost(m, n)) if records.public else None

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed, on average over noisy numbers of records of this scale (Theorem W3b)."""
        limit = _largest_limit(level, counted, self.cost(m, counted), size_scale)
        return limit is not None and self.beyond <= limit


@dataclass(frozen=True)
class NoisyHistogram(_LastRule):
    """Discrete Laplace noise on the counts, and a limit for the noisy number of records beyond the threshold."""

    name: ClassVar[Literal["noisy-histogram"]] = "noisy-histogram"

    beyond: int
    scale: float

    @property
    def replace_one(self) -> float:
        """2/scale: two counts change by one."""
        return float_above(2 / Fraction(self.scale))

    @property
    def add_remove(self) -> float:
        """1/scale: one count changes by one."""
        return float_above(1 / Fraction(self.scale))

    def cost(self, m: int, n: int) -> float:
        """The same for all numbers of counts and records."""
        return laplace_residual_life(self.scale)

    def noisy(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise to all counts, shape (m,): the only step that uses private counts."""
        return noisy_counts(counts, self.scale)

    def select(self, noisy: NDArray[np.int64]) -> int:
        """The index that the last rule selects from noisy counts, shape (m,)."""
        return int(chosen_by_last_rule(noisy, self.beyond))

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Add noise to all counts, and select by the last rule."""
        return self.select(self.noisy(counts))

    def facts(self, m: int) -> Facts:
        """The mechanism and its parameters in words."""
        rule = "a noisy histogram, and the first candidate from which on few enough records lie beyond each"
        return (
            ("mechanism", rule),
            ("noise in each bin", f"discrete Laplace of scale {self.scale:.17g} (OpenDP)"),
            ("noisy records beyond the threshold", f"at most {self.beyond:,}"),
        )

    def theorem(self, guarantee: Guarantee) -> str:
        """Theorem W3, or W3b for a noisy number of records."""
        return f"docs/theory-one-number.md, Theorem W3{'b' if guarantee.sized else ''}; privacy by docs/methods.md"


def noisy_histogram_for(
    level: Fraction, epsilon: float, n: int, size_scale: float | None = None
) -> NoisyHistogram | None:
    """The largest limit that guarantees the level for a public or a noisy n; None if no limit does.

    epsilon is the loss of a replaced record if n is public. If n is a noisy number with noise of scale `size_scale`, it
    is the loss when a record is added or removed, without the loss of the noisy number.
    """
    scale = scale_for(2 if size_scale is None else 1, epsilon)
    limit = _largest_limit(level, n, laplace_residual_life(scale), size_scale)
    return None if limit is None else NoisyHistogram(limit, scale)


def _largest_limit(level: Fraction, n: int, cost: float, size_scale: float | None) -> int | None:
    """The largest limit that guarantees the level for a public or a noisy n; None if no limit does."""
    if size_scale is not None and n < least_counted(level, size_scale, cost):
        return None
    limit = most_beyond(level, n, cost)
    return None if limit < 0 else limit


@dataclass(frozen=True)
class PublishedHistogram(_LastRule):
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

    def cost(self, m: int, n: int) -> float:
        """What the noise in m counts of n records costs, in ranks.

        A law that is given as a table may lack mass. A noise that falls into the lacking mass may cost all records.
        """
        probability_of_any = m * self.noise.copies * self.noise.missing  # at most, by a union bound
        return self.noise.cost + probability_of_any * max(n + 1, 1)

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The index of the threshold, from noisy counts, int64 of shape (m,)."""
        return int(chosen_by_last_rule(counts, self.beyond))

    def stated(self) -> dict[str, Any]:
        """Its name and the limit, without the law of the noise, which the request states."""
        return {name: value for name, value in super().stated().items() if name != "noise"}

    def facts(self, m: int) -> Facts:
        """The mechanism, the law of the noise, and the limit."""
        mechanism, *parameters = super().facts(m)
        return (mechanism, ("noise", str(self.noise)), *parameters)

    def theorem(self, guarantee: Guarantee) -> str:
        """Theorem E1."""
        return "docs/theory-published-counts.md, Theorem E1"


def published_histogram_for(
    level: Fraction, noise: Noise, m: int, n: int, size_scale: float | None
) -> PublishedHistogram | None:
    """The largest limit that guarantees the level for a public or a noisy n; None if no limit does.

    `size_scale` is the scale of the noise in n if it is a noisy number; None if n is public.
    """
    cost = PublishedHistogram(noise, beyond=0).cost(m, n)  # the same for every limit
    limit = _largest_limit(level, n, cost, size_scale)
    return None if limit is None else PublishedHistogram(noise, limit)
