"""The search for the least target rank that a certificate accepts.

Validity rests on the certificate alone, which every reader of a release computes again.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from confide.core.promise import certified_guarantee
from confide.core.terms import Terms
from confide.core.tuning import Tuning
from confide.guarantee import (
    TargetGoal,
    conditional_offset,
    conditional_target_rank,
    moving_offset,
    sharp_target_rank,
    tangent_rate,
    two_sided_target_rank,
    weighted_loss,
    weighted_prior_bonus,
)
from confide.mechanisms import NoisySize, Slopes, free_fade, slopes_for
from confide.support import ceil_to

# So many offsets are tried for a target that moves with a noisy number.
_TRIES = 8


class Line(NamedTuple):
    """The rate and the offset of a target rank that moves with the number of records (`Slopes.target`)."""

    rate: Fraction
    offset: Fraction

    def above(self, step: Fraction) -> "Line":
        """The line that lies a step higher."""
        return self._replace(offset=self.offset + step)


@dataclass(frozen=True)
class TargetSearch:
    """The search for the least target rank that is certified, for a tuning.

    The rounding of prior weights, and with it the competitor ratio G, depends slightly on the denominator of the
    offset. Therefore every search ends with steps of the offset until the mechanism itself is certified. The steps end,
    because certified coverage rises to 1 with the offset.
    """

    terms: Terms
    n: int
    tuning: Tuning
    size: NoisySize | None = None

    def result(self) -> Slopes | None:
        """The certified mechanism; None if no target rank suffices."""
        if self.terms.public_n:
            return self._least(self._public_line())
        if self.terms.population is not None:
            return self._weighted()
        if self.terms.moves:
            assert self.size is not None
            return self._moving(self.size)
        return self._least(self._conditional_line())

    def _least(self, line: Line | None) -> Slopes | None:
        """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
        if line is None:
            return None
        mechanism = self._build(line)
        while not self._is_certified(mechanism):
            line = line.above(self._step)
            mechanism = self._build(line)
        return None if self.terms.public_n and line.offset > self.n else mechanism

    def _public_line(self) -> Line | None:
        """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
        n = self.n
        level = self.terms.level
        unit = self.terms.unit
        delta = self.terms.delta
        noise = self._trial(Fraction(0)).noise(self._m)
        if delta is not None:
            target = conditional_target_rank(n, level, delta, noise, unit)
        else:
            ranks = sharp_target_rank(n, level, noise, unit), two_sided_target_rank(n, level, noise, unit)
            target = min((rank for rank in ranks if rank is not None), default=None)
        return None if target is None or target > n else Line(Fraction(0), target)

    def _conditional_line(self) -> Line:
        """Rate and offset of the training-conditional target line for a secret n."""
        level = self.terms.level
        n_min = self.terms.n_min
        delta = self.terms.delta
        assert delta is not None
        noise = self._trial(level).noise(self._m)
        # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
        n = max(n_min, self.n)
        rate = tangent_rate(level, delta, n)
        steeper = replace(noise, left=self._trial(rate).slope_left)
        return Line(rate, conditional_offset(rate, TargetGoal(level, delta, n_min), n, steeper, self.terms.unit))

    def _moving(self, size: NoisySize) -> Slopes | None:
        """The certified mechanism whose target moves half with the noisy number; None if that is too small."""
        level = self.terms.level
        rate = self.terms.rate
        noise = self._trial(rate).noise(self._m)
        offset = moving_offset(level, size.scale, size.counted, noise, self.terms.unit)
        if offset is None:
            return None
        line = Line(rate, offset)
        for _ in range(_TRIES):
            mechanism = self._build(line)
            if mechanism.serves(level, self._m, size.counted, size.scale):
                return mechanism
            line = line.above(self._step)
        return None

    def _weighted(self) -> Slopes:
        """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
        level = self.terms.level
        trial = self._trial(level)
        line = Line(level, ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(self._m)), self.terms.unit))
        while True:
            plain = self._build(line)
            fading = replace(plain, fade=free_fade(plain))
            bonus = weighted_prior_bonus(level, line.offset, fading.fade_ranks, plain.noise(self._m))
            with_bonus = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
            if self._is_certified(with_bonus):
                return with_bonus
            line = line.above(self._step)

    def _trial(self, rate: Fraction) -> Slopes:
        """A mechanism of this rate, for its slopes and competitors, which hardly depend on the offset."""
        return self._build(Line(rate, self._step))

    def _build(self, line: Line) -> Slopes:
        terms = self.terms
        tuning = self.tuning
        plain = slopes_for(*line, tuning.left, tuning.right, terms.neighbors, terms.per_record, terms.weight)
        rise = math.floor(tuning.rise * plain.scale)
        return replace(plain, flat=tuning.flat, rise=rise) if tuning.flat and rise else plain

    def _is_certified(self, mechanism: Slopes) -> bool:
        return certified_guarantee(self.terms, self.n, self._m, mechanism).coverage >= float(self.terms.level)

    @property
    def _step(self) -> Fraction:
        return Fraction(1, self.terms.unit)

    @property
    def _m(self) -> int:
        return self.tuning.candidates.size
