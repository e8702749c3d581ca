"""A release of one threshold has the fields of this threshold."""

from collections.abc import Callable, Mapping
from typing import Any

from confide.core.thresholds import Thresholds
from confide.guarantee import Guarantee
from confide.mechanisms import Mechanism, NoisySize
from confide.support import Level


class SingleThreshold(Thresholds):
    """Thresholds with the fields of the only one; for several they raise `InputTypeError`."""

    @property
    def threshold(self) -> float:
        """The only threshold."""
        return self.only.threshold

    @property
    def guarantee(self) -> Guarantee:
        """The coverage guarantee of the only threshold."""
        return self.only.guarantee

    @property
    def coverage(self) -> float:
        """The guaranteed coverage of the only threshold; `guarantee.kind` states the type of guarantee."""
        return self.only.coverage

    @property
    def mechanism(self) -> Mechanism | None:
        """The public statement of the mechanism of the only threshold; None if it is +inf without reading the data."""
        return self.only.mechanism

    @property
    def candidates(self) -> int:
        """Number of candidates of the only threshold, +inf included."""
        return self.only.candidates

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The rule that made the candidates of the only threshold."""
        return self.only.recipe

    @property
    def size(self) -> NoisySize | None:
        """The noisy number of records that was released before the only threshold; None without one."""
        return self.only.size

    @property
    def n(self) -> int | None:
        """The number of calibration records if it is public (`replace_one`), else None."""
        return self.first.n

    @property
    def excludes_nothing(self) -> bool:
        """Whether the only threshold is +inf, or at least the largest value of the score."""
        return self.only.excludes_nothing

    def conditional_coverage(self, delta: Level, n: int | None = None) -> float:
        """`Threshold.conditional_coverage` of the only threshold."""
        return self.only.conditional_coverage(delta, n)

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """`Threshold.coverage_failure` of the only threshold."""
        return self.only.coverage_failure(n)

    def coverage_at_most(self, n: int | None = None) -> float:
        """`Threshold.coverage_at_most` of the only threshold."""
        return self.only.coverage_at_most(n)
