"""Correct a threshold from the noisy counts of looks, at no further privacy cost (docs/theory-correction.md).

A position on a public scale of thresholds rises by gamma (missed - alpha all)/(planned records) at each look, with the
noisy counts that the look has published. At and beyond the end of the scale the threshold is +inf.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.candidates import SHAPES, Candidates, SpreadKind
from confide.core import Release
from confide.errors import InputTypeError
from confide.noisy_counts import noise_beyond, noise_variance
from confide.scores import score_kind
from confide.support import Level, exact_level, require

# Statements about what records had hold with probability 0.95
SPAN_ERROR = 0.05


class Realised(NamedTuple):
    """Coverage that the records of some looks had: the excess of missed records, and limits for the share covered.

    Parameters
    ----------
    excess
        Noisy number of missed records minus alpha times that of all.
    radius
        The true excess differs from `excess` by at most this number.
    low, high
        Limits for the share of covered records.
    """

    excess: float
    radius: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """The statement, for a person."""
        share = f"{self.low:.3f} to {self.high:.3f} of them were covered (95 %)"
        return f"missed minus alpha times all records: {self.excess:.0f} +- {self.radius:.0f}; {share}"


def realised_coverage(
    covered: int,
    missed: int,
    looks: int,
    alpha: Fraction,
    epsilon: float,
    *,
    error: float = SPAN_ERROR,
    sequence: bool = False,
) -> Realised:
    """Coverage of the records of some looks from the sums of their noisy counts (Proposition O2).

    The result is wrong with probability at most `error`: for these looks alone, or with `sequence` for any look of a
    watch.

    Examples
    --------
    >>> once, always = (realised_coverage(9000, 1000, 52, Fraction(1, 10), 1.0, sequence=s) for s in (False, True))
    >>> round(once.radius), round(always.radius), always.low < once.low < 0.9 < once.high
    (20, 37, True)
    """
    # For a sequence, Levy's inequality up to the next power of two
    if sequence:
        power = (looks - 1).bit_length()
        looks = 2**power
        error /= 2 * (power + 1) * (power + 2)

    # Half of the error is for the excess, which is counted in units of 1/unit
    share, unit = alpha.as_integer_ratio()
    excess = (unit - share) * missed - share * covered
    radius = noise_beyond(epsilon, ((looks, unit - share), (looks, share)), error / 2)

    # The other half is for the number of records
    away = noise_beyond(epsilon, ((2 * looks, 1),), error / 2)
    fewest = covered + missed - away
    largest = covered + missed + away
    if fewest <= 0:
        return Realised(excess / unit, radius / unit, 0.0, 1.0)

    # The share of covered records, at the number of records that is worst for each end
    most = excess + radius
    least = excess - radius
    low = 1 - share / unit - most / (unit * (fewest if most > 0 else largest))
    high = 1 - share / unit - least / (unit * (largest if least > 0 else fewest))
    return Realised(excess / unit, radius / unit, min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))


# gamma, the share of the scale by which a look moves the threshold at most; or `"auto"`
Correct: TypeAlias = Level | Literal["auto"]

# The values among which `"auto"` chooses; the first is the largest allowed one
GAMMAS = tuple(Fraction(percent, 100) for percent in (20, 10, 5, 2))

_MOST_DELAY = 1000

# The number of positions on a scale, before the released threshold is added
_POSITIONS = 2001

# The density of scores at the threshold, on the scale, that the choice of gamma assumes
_DENSITY = 2.0


@dataclass(frozen=True)
class Scale:
    """Public thresholds, increasing, among which a correction moves: those of the score's spread, and the released one.

    Parameters
    ----------
    kind
        How thresholds are spread, by the kind of score; residuals have the released threshold as their unit.
    threshold
        The released threshold, where the correction starts.

    Examples
    --------
    >>> scale = Scale("residual", 2.5)
    >>> scale.start, scale.size, scale.at(scale.start), scale.at(scale.size)
    (979, 1957, 2.5, inf)
    """

    kind: SpreadKind
    threshold: float

    @cached_property
    def candidates(self) -> Candidates:
        """The thresholds without the released one."""
        in_units = SHAPES[self.kind].is_log_spaced and 0 < abs(self.threshold) < math.inf
        kind: SpreadKind = "signed" if self.kind == "any" else self.kind
        unit = abs(self.threshold) if in_units else None
        return Candidates.spread(kind, _POSITIONS, unit)

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """All finite thresholds, float64 of shape (size,)."""
        values = np.union1d(self.candidates.edges, self.threshold)
        return values[np.isfinite(values)]

    @property
    def size(self) -> int:
        """The number of finite thresholds; this position and those beyond it mean +inf."""
        return len(self.thresholds)

    @property
    def start(self) -> int:
        """The position of the released threshold."""
        return int(np.searchsorted(self.thresholds, self.threshold))

    def at(self, position: int) -> float:
        """The threshold at a position."""
        return float(self.thresholds[position]) if position < self.size else math.inf


@dataclass(frozen=True)
class Correction:
    """How a watch corrects thresholds. It is fixed before the first look and does not depend on records.

    Parameters
    ----------
    gamma
        Share of the scale by which a look of the planned size moves a threshold at most, in (0, 1/5].
    alpha
        Miscoverage level that missed records approach, with a denominator of at most 1000.
    delay
        Number of looks by which labels are late. The records of a look were served the threshold after all looks but
        the last `delay` before it.
    scales
        The scale of each monitored part.
    """

    gamma: Fraction
    alpha: Fraction
    delay: int
    scales: tuple[Scale, ...]

    def __post_init__(self) -> None:
        if isinstance(self.delay, bool) or not isinstance(self.delay, int):
            raise InputTypeError("delay", "must be a number of looks", got=type(self.delay).__name__)
        is_exact = self.alpha.denominator <= 1000
        in_range = 0 <= self.delay <= _MOST_DELAY
        require("correct", 0 < self.gamma <= max(GAMMAS), "must be 'auto' or lie in (0, 0.2]", str(self.gamma))
        require("alpha", is_exact, "must have a denominator of at most 1000", str(self.alpha))
        require("delay", in_range, f"must lie between 0 and {_MOST_DELAY:,} looks", str(self.delay))

    @classmethod
    def of(cls, release: Release, correct: Correct, delay: int, size: float, epsilon: float) -> "Correction":
        """The correction of a release with one level, for noise of scale 1/epsilon and `size` records of each part.

        Raises
        ------
        InputError
            If the release has thresholds per side or weights, gamma is out of range, or noise would hide coverage.
        """
        has_sides = release.by == "side"
        reason = "thresholds for two sides" if has_sides else "a known shift"
        is_possible = not has_sides and release.population is None
        require("correct", is_possible, f"must be left out for a release with {reason}")
        parts = release.parts.values()
        scales = tuple(Scale(score_kind(part.score).spread_kind, part.threshold) for part in parts)

        # The largest gamma whose noise moves coverage by at most alpha/8
        (alpha,) = release.levels
        quiet = [gamma for gamma in GAMMAS if noise_of_coverage(gamma, alpha, size, epsilon) <= alpha / 8]
        largest = quiet[0] if quiet else min(GAMMAS)
        gamma = largest if correct == "auto" else exact_level("correct", correct)
        return cls(gamma, alpha, delay, scales)

    @property
    def _longest_way(self) -> Fraction:
        # From the start of a part to the end of its scale
        return max(1 - Fraction(scale.start, scale.size) for scale in self.scales)

    @property
    def words(self) -> str:
        """How thresholds move, in words."""
        gamma = float(self.gamma)
        late = f", labels {self.delay:,} looks late" if self.delay else ""
        return f"a look moves a threshold by at most {gamma:g} of its scale; a memory of {1 / gamma:.3g} looks{late}"

    def remarks(self, size: float, epsilon: float, looks: int) -> list[str]:
        """Warnings before the first look, about noise and about too few looks of `size` records of a part.

        Raises
        ------
        InputError
            If the noise of looks would move coverage by more than half of alpha.
        """
        # The noise of a look
        noise = noise_of_coverage(self.gamma, self.alpha, size, epsilon)
        half = self.alpha / 2
        must = f"must be such that noise moves the coverage of a look by at most alpha/2 = {float(half):.3g}"
        remedy = "Take larger looks, a larger epsilon or a smaller gamma"
        require("correct", noise <= half, must, f"about {noise:.2g}", remedy)
        notes = []
        if noise > self.alpha / 4:
            notes.append(f"noise moves the coverage of a look by about {noise:.2g}, more than alpha/4. {remedy}")

        # The number of looks
        if self._longest_way / self.gamma > half * looks:
            or_larger = ", or a larger gamma" if self.gamma < max(GAMMAS) else ""
            notes.append(f"{looks:,} looks are too few for a useful long-run guarantee. Plan more looks{or_larger}")
        return notes

    def worst(self, size: float, epsilon: float, looks: int) -> float:
        """By how much missed records can exceed alpha times all, in looks of at most `size` of a part; Theorem O1.

        The bound holds in each part with probability 0.95 over the noise, whatever the records are.
        """
        moves = max(looks - self.delay - 1, 0)
        (share, unit) = self.alpha.as_integer_ratio()
        noise = noise_beyond(epsilon, ((moves, unit - share), (moves, share)), SPAN_ERROR) / unit if moves else 0.0
        before_a_move = (self.delay + 1) * (1 - self.alpha) * size
        return float(size * float(self._longest_way / self.gamma) + before_a_move + noise)

    def at_worst(self, size: float, epsilon: float, looks: int) -> str:
        """The guarantee for every sequence of records, in words."""
        worst = self.worst(size, epsilon, looks)
        of_part = " of a part" if len(self.scales) > 1 else ""
        least = max(0.0, float(1 - self.alpha) - worst / (looks * size))
        return (
            f"whatever the records are, {looks:,} looks of at most {size:,.6g} records{of_part} miss at most "
            f"{float(self.alpha):g} of all and {worst:,.0f} more, with probability 0.95 over the noise: coverage of at "
            f"least {least:.3f} if all looks have this size"
        )

    def positions(self, looks: Sequence[Sequence[int]], batch: int) -> list[tuple[int, ...]]:
        """Positions of all parts before the first look and after each of them, from their noisy counts, exactly.

        `looks` has covered and missed records of each part in turn. `batch` is the planned number of records.

        Examples
        --------
        >>> corrected = Correction(Fraction(1, 10), Fraction(1, 10), 0, (Scale("probability", 0.9),))
        >>> corrected.positions([[60, 40], [100, 0]], 100)
        [(1391,), (1457,), (1435,)]
        """
        # Positions as integers, each divided into `steps`, so that they are the same on every platform
        share, parts_of_alpha = self.alpha.as_integer_ratio()
        gamma, parts_of_gamma = self.gamma.as_integer_ratio()
        steps = batch * parts_of_alpha * parts_of_gamma
        exact = [scale.start * steps for scale in self.scales]

        # Never below the start of the scale; beyond its end a position records the misses to be paid back
        positions = [tuple(scale.start for scale in self.scales)]
        for counts in looks:
            for part, (covered, missed, scale) in enumerate(zip(counts[::2], counts[1::2], self.scales, strict=True)):
                excess = (parts_of_alpha - share) * missed - share * covered
                exact[part] = max(exact[part] + excess * gamma * len(self.scales) * scale.size, 0)
            at_look = zip(exact, self.scales, strict=True)
            positions.append(tuple(min(position // steps, scale.size) for position, scale in at_look))
        return positions


def noise_of_coverage(gamma: Fraction, alpha: Fraction, records: float, epsilon: float) -> float:
    """Standard deviation that noise adds to the coverage of a look of so many records, if nothing changes."""
    variance = float((1 - alpha) ** 2 + alpha**2) * noise_variance(epsilon)
    return math.sqrt(float(gamma) * _DENSITY * variance / 2) / records
