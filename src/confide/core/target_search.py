"""The search for the least target rank that a certificate accepts.

Validity rests on the certificate alone, which every reader of a release computes again.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

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


@dataclass(frozen=True)
class TargetSearch:
    """The search for the least target rank that is certified, for a tuning.

    Target ranks are lines in the number of records: a rate and an offset. The rounding of prior weights, and with it
    the competitor ratio G, depends slightly on the denominator of the offset. Therefore every search ends with steps of
    the offset until the mechanism itself is certified.
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

    def _least(self, line: tuple[Fraction, Fraction] | None) -> Slopes | None:
        """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
        if line is None:
            return None
        rate, offset = line
        while not self._is_certified(self._build(rate, offset)):
            offset += Fraction(1, self.terms.unit)
        return None if self.terms.public_n and offset > self.n else self._build(rate, offset)

    def _public_line(self) -> tuple[Fraction, Fraction] | None:
        """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
        n = self.n
        level = self.terms.level
        unit = self.terms.unit
        delta = self.terms.delta
        noise = self._build(Fraction(0), Fraction(1, unit)).noise(self._m)
        if delta is not None:
            target = conditional_target_rank(n, level, delta, noise, unit)
        else:
            ranks = sharp_target_rank(n, level, noise, unit), two_sided_target_rank(n, level, noise, unit)
            target = min((rank for rank in ranks if rank is not None), default=None)
        return None if target is None or target > n else (Fraction(0), target)

    def _conditional_line(self) -> tuple[Fraction, Fraction]:
        """Rate and offset of the training-conditional target line for a secret n."""
        level = self.terms.level
        n_min = self.terms.n_min
        unit = self.terms.unit
        delta = self.terms.delta
        assert delta is not None
        noise = self._build(level, Fraction(1, unit)).noise(self._m)
        # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
        n = max(n_min, self.n)
        rate = tangent_rate(level, delta, n)
        steeper = replace(noise, left=self._build(rate, Fraction(1, unit)).slope_left)
        return rate, conditional_offset(rate, TargetGoal(level, delta, n_min), n, steeper, unit)

    def _moving(self, size: NoisySize) -> Slopes | None:
        """The certified mechanism whose target moves half with the noisy number; None if that is too small."""
        level = self.terms.level
        rate = self.terms.rate
        unit = self.terms.unit
        noise = self._build(rate, Fraction(1, unit)).noise(self._m)
        offset = moving_offset(level, size.scale, size.counted, noise, unit)
        if offset is None:
            return None
        for step in range(_TRIES):
            mechanism = self._build(rate, offset + Fraction(step, unit))
            if mechanism.serves(level, self._m, size.counted, size.scale):
                return mechanism
        return None

    def _weighted(self) -> Slopes:
        """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
        level = self.terms.level
        unit = self.terms.unit
        trial = self._build(level, Fraction(1, unit))
        offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(self._m)), unit)
        while True:
            plain = self._build(level, offset)
            fading = replace(plain, fade=free_fade(plain))
            bonus = weighted_prior_bonus(level, offset, fading.fade_ranks, plain.noise(self._m))
            with_bonus = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
            if self._is_certified(with_bonus):
                return with_bonus
            offset += Fraction(1, unit)

    def _build(self, rate: Fraction, offset: Fraction) -> Slopes:
        terms = self.terms
        tuning = self.tuning
        plain = slopes_for(rate, offset, tuning.left, tuning.right, terms.neighbors, terms.per_record, terms.weight)
        rise = math.floor(tuning.rise * plain.scale)
        return replace(plain, flat=tuning.flat, rise=rise) if tuning.flat and rise else plain

    def _is_certified(self, mechanism: Slopes) -> bool:
        return certified_guarantee(self.terms, self.n, self._m, mechanism).coverage >= float(self.terms.level)

    @property
    def _m(self) -> int:
        return self.tuning.candidates.size
