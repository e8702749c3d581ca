"""What a mechanism promises, to its maker and to every reader of a release: its guarantee and its privacy loss.

`TargetSearch` finds the slopes with the least target rank whose promise is the requested coverage.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from confide.core.terms import Terms
from confide.core.tuning import Tuning
from confide.guarantee import (
    Guarantee,
    conditional_offset,
    conditional_target_rank,
    moving_offset,
    sharp_target_rank,
    tangent_rate,
    two_sided_target_rank,
    weighted_loss,
    weighted_prior_bonus,
)
from confide.mechanisms import (
    Mechanism,
    NoisyHistogram,
    NoisySize,
    PrivacyStatement,
    PublishedHistogram,
    Slopes,
    StatedPrivacy,
    certify,
    free_fade,
    privacy_statement,
    size_zcdp,
    slopes_for,
    with_choice,
)
from confide.selection import zcdp_of_range
from confide.support import ceil_to, float_above


def promised(
    terms: Terms, n: int, m: int, mechanism: Mechanism | None, size: NoisySize | None = None
) -> tuple[Guarantee, PrivacyStatement]:
    """The guarantee and the privacy loss of a mechanism over m candidates: the same for its maker and every reader.

    `n` is the number of records if it is public; else it is not used.
    """
    # The guarantee: on average over the noisy number, or certified for every n. Without a mechanism +inf is certain.
    if terms.sized and size is not None:
        is_served = mechanism is None
        if isinstance(mechanism, Slopes | NoisyHistogram | PublishedHistogram):
            is_served = mechanism.serves(terms.level, m, size.counted, size.scale)
        coverage = float(terms.level) if is_served else 0.0
        guarantee = Guarantee("marginal", coverage, delta=None, n=None, n_min=1, sized=True)
    else:
        guarantee = certified_guarantee(terms, n, m, mechanism)

    # The privacy loss: what the maker of counts states, or what is proved.
    if terms.noise is not None:
        loss = None if math.isinf(terms.epsilon) else terms.epsilon
        return guarantee, StatedPrivacy.of(terms.noise, n if terms.public_n else None, loss, terms.size_scale)
    if terms.population is not None:
        guarantee = replace(guarantee, population=str(terms.population))
    if mechanism is None and size is not None:  # a noisy number decides whether there is a mechanism
        return guarantee, sized_privacy(terms)
    of_threshold = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale)
    return guarantee, with_choice(of_threshold, terms.choice)


def certified_guarantee(terms: Terms, n: int, m: int, mechanism: Mechanism | None) -> Guarantee:
    """The guarantee that a certificate gives a mechanism over m candidates, for a public n, or for every secret one."""
    public, n_min = (n, None) if terms.public_n else (None, terms.n_min)  # for a secret n: for all from n_min on
    return certify(mechanism, terms.alpha, m, public, n_min, terms.delta)


def sized_privacy(terms: Terms) -> PrivacyStatement:
    """The privacy loss of a release with a noisy number of records: an upper bound over all designs."""
    # The losses of one record by the selection and by the noisy number, and the zCDP loss of a person by both.
    assert terms.size_scale is not None
    records = terms.records_per_person
    selection = Fraction(terms.per_record)
    number = 1 / Fraction(terms.size_scale)
    slopes = terms.mechanism == "slopes"
    ranges = records * selection * (1 if slopes else 2)
    rho = float_above(Fraction(zcdp_of_range(ranges)) + size_zcdp(terms.size_scale, records))

    # A replaced record. Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate); with delta the rate is
    # at least the level. A record of another weight, or in another bin, is one that is removed and one that is added.
    # None of these changes the number of records.
    ratio = 1 / max(terms.rate, 1 - terms.rate) if terms.moves else min(Fraction(2), 1 / terms.level)
    replaced = selection * (2 if not slopes or terms.population is not None else ratio)
    added, changed = float_above(selection + number), float_above(replaced)
    of_threshold = PrivacyStatement(terms.neighbors, terms.epsilon, records, added, changed, rho)
    return with_choice(of_threshold, terms.choice)


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
        return rate, conditional_offset(rate, level, delta, n_min, n, steeper, unit)

    def _moving(self, size: NoisySize) -> Slopes | None:
        """The certified mechanism whose target moves half with the noisy number; None if that is too small."""
        level, rate, unit = self.terms.level, self.terms.rate, self.terms.unit
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
        level, unit, m = self.terms.level, self.terms.unit, self._m
        trial = self._build(level, Fraction(1, unit))
        offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m)), unit)
        while True:
            plain = self._build(level, offset)
            fading = replace(plain, fade=free_fade(plain))
            bonus = weighted_prior_bonus(level, offset, fading.fade_ranks, plain.noise(m))
            with_bonus = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
            if self._is_certified(with_bonus):
                return with_bonus
            offset += Fraction(1, unit)

    def _build(self, rate: Fraction, offset: Fraction) -> Slopes:
        terms, tuning = self.terms, self.tuning
        plain = slopes_for(rate, offset, tuning.left, tuning.right, terms.neighbors, terms.per_record, terms.weight)
        flat, rise = tuning.flat, math.floor(tuning.rise * plain.scale)
        return replace(plain, flat=flat, rise=rise) if flat and rise else plain

    def _is_certified(self, mechanism: Slopes) -> bool:
        return certified_guarantee(self.terms, self.n, self._m, mechanism).coverage >= float(self.terms.level)

    @property
    def _m(self) -> int:
        return self.tuning.candidates.size
