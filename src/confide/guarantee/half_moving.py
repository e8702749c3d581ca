"""The certificate for a secret number of records: a target that moves half with it (docs/theory-one-number.md, H).

From some noisy number n~ on, many points lie beyond the target for all relevant noise Z, and the two-sided certificate
applies.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from confide.guarantee.certificate import sharp_loss, worst_loss
from confide.guarantee.last_rule import laplace_residual_life
from confide.guarantee.random_rank import SlopeNoise
from confide.guarantee.two_sided import two_sided_loss
from confide.support import bisect, ceil_to

# A noisy number n~ = n + Z is released first, with discrete Laplace noise Z of scale z_0. The target rank is
#
#     T = rate (n + 1) + (level - rate)(n~ + 1) + tau = level (n + 1) + (level - rate) Z + tau,
#
# so that a record moves it by `rate` instead of by the level, which allows nearly twice the slopes. tau and all else
# but n may depend on n~. The error (level - rate) Z has the mean 0. Only a part of the Z counts, and their mean is
# below 0: this costs a reserve in tau, which falls as n~ grows. Below a least n~, n_0, the answer is +inf. Coverage
# holds on average over Z as well, for every n.

# The rate, unless the level is below 5/8.
_HALF = Fraction(1, 2)

# gamma and gamma_2: tau is at most this share of (1 - level) n~, the second one with the two-sided certificate.
_SHARE, _TWO_SIDED_SHARE = Fraction(1, 3), Fraction(1, 8)

# The reserve at n_0, in scales z_0.
_MOST_RESERVE = 0.1

# F, in scales z_0: the reserve of n~ is that of n = n~ - F.
_LAG = 4

# D, in scales z_0: every Z up to it counts, unless the target is then above n.
_CUT = 4

# Y_0, in scales z_0: so many points are beyond the target where the two-sided certificate serves.
_POINTS = Fraction(5, 4)

# Steps of the search in each rank; a level of many digits has multiples of 1/unit a millionth apart.
_STEPS_PER_RANK = 20


def moving_rate(level: Fraction) -> Fraction:
    """The ranks by which the target moves with each record: one half for a level of 5/8 or more."""
    return min(_HALF, level * Fraction(4, 5))


def moving_offset(level: Fraction, scale: float, counted: int, noise: SlopeNoise, unit: int) -> Fraction | None:
    """A small offset of the line rate (n + 1) + offset, in steps of 1/unit; None if the answer must be +inf.

    `counted` is the noisy number n~, `scale` the scale of its noise, and `noise` the noise of the selection.
    """
    base, margin = _base(level, counted), reserve(level, scale, counted)
    if math.isinf(margin):
        return None

    # What either certificate needs, then steps upwards until the conditions are met.
    offset = sharp = base + ceil_to(max(0.0, worst_loss(unit, noise) - 2 + margin), unit)
    if _is_two_sided(level, scale, counted):
        least = two_sided_loss(1.0, noise, _in_scales(_POINTS, scale), at_least=True) - 1 + margin
        offset = min(sharp, base + ceil_to(max(0.0, least), unit))
    step = Fraction(math.ceil(unit / _STEPS_PER_RANK), unit)
    while not moving_line_holds(level, scale, counted, offset, noise):
        if offset >= sharp:
            return None
        offset = min(sharp, offset + step)
    return offset


@lru_cache(maxsize=1024)
def moving_line_holds(level: Fraction, scale: float, counted: int, offset: Fraction, noise: SlopeNoise) -> bool:
    """Whether the line rate (n + 1) + offset meets the conditions of Theorem H1 (b) at this noisy number of records.

    Examples
    --------
    >>> noise = SlopeNoise(0.8, 0.8, 40.0)
    >>> [moving_line_holds(Fraction(9, 10), 5.0, 150, Fraction(604 + tau, 10), noise) for tau in (26, 27)]
    [False, True]
    """
    # A finite reserve, a tau of at least 0, and every n with a target above n covered (Lemma H4).
    rate, margin = moving_rate(level), reserve(level, scale, counted)
    tau, most = offset - _base(level, counted), (1 - level) * counted
    if math.isinf(margin) or tau < 0 or not _is_covered_above(level, counted, tau, noise):
        return False

    # The sharp certificate.
    allowed = float(tau) + 2 - margin
    sharp = worst_loss(math.lcm(rate.denominator, offset.denominator), noise)
    if sharp <= allowed and tau <= _SHARE * most:
        return True

    # The two-sided certificate (Lemma H5); the sharp one serves the Z that do not count.
    rest = float(level - rate) * _in_scales(_CUT, scale) + float(tau) + 2
    if sharp > rest or tau > _TWO_SIDED_SHARE * most or not _is_two_sided(level, scale, counted):
        return False
    points = _in_scales(_POINTS, scale)
    fractions = [(rate * n + offset) % 1 or Fraction(1) for n in range(rate.denominator)]
    return all(two_sided_loss(float(x), noise, points, at_least=True) + float(x) <= allowed for x in fractions)


@lru_cache(maxsize=1024)
def reserve(level: Fraction, scale: float, counted: int) -> float:
    """The ranks of tau beyond the cost of the slopes, sigma(n~) of Lemma H3; inf below `least_number`."""
    return _reserve_for(level, scale).at(counted)


def least_number(level: Fraction, scale: float) -> int:
    """The least noisy number of records with a finite threshold, n_0 of Lemma H3, for noise of this scale.

    Examples
    --------
    >>> [least_number(Fraction(9, 10), scale) for scale in (1.0, 5.0, 20.0, 1000.0)]
    [25, 69, 228, 10667]
    """
    return _reserve_for(level, scale).least


@dataclass(frozen=True)
class _Reserve:
    """The reserve for the least noisy number `least`, n_0, by the formulas of Lemma H3."""

    level: Fraction
    scale: float
    least: int

    def last(self, n: int) -> int:
        """b(n): the last Z that counts for n records."""
        later = math.floor(_certain_up_to(self.level, n, _TWO_SIDED_SHARE, _in_scales(_POINTS, self.scale)))
        return min(math.floor(_certain_up_to(self.level, n, _SHARE)), max(later, _in_scales(_CUT, self.scale)))

    @cached_property
    def first(self) -> int:
        """n_1: the first n above n_0 for which more of the Z up to D are cut off above than below."""
        most = self.least + _in_scales(_CUT, self.scale) + 1

        def is_cut_above(n: int) -> bool:
            return n == most or _certain_up_to(self.level, n, _SHARE) < n - self.least

        return self.least + 1 if is_cut_above(self.least + 1) else bisect(is_cut_above, self.least + 1, most)

    def chance(self, n: int) -> float:
        """P(n_0 - n <= Z <= b(n))."""
        return 1 - _beyond(self.scale, self.last(n)) - _beyond(self.scale, n - self.least)

    @cached_property
    def lost(self) -> float:
        """P(Z > F), relative to the chance for n_1."""
        return _beyond(self.scale, _in_scales(_LAG, self.scale)) / self.chance(self.first)

    def at(self, counted: int) -> float:
        """sigma(n~) = R(n) / (1 - lost), with R(n) = (level - rate) E[Z; Z > b(n)] / chance for n = n~ - F."""
        if counted < self.least:
            return math.inf
        n = max(self.first, counted - _in_scales(_LAG, self.scale))
        last = self.last(n)
        mean = (last + laplace_residual_life(self.scale)) * _beyond(self.scale, last)
        return float(self.level - moving_rate(self.level)) * mean / self.chance(n) / (1 - self.lost)

    @property
    def is_enough(self) -> bool:
        """Whether n_0 meets the conditions of Lemma H3; if so, every larger n_0 does."""
        if _certain_up_to(self.level, self.least + 1, _SHARE) < 0 or self.lost >= 1:
            return False
        return self.at(self.least) <= min(_MOST_RESERVE * self.scale, float(_SHARE * (1 - self.level) * self.least))


@lru_cache(maxsize=256)
def _reserve_for(level: Fraction, scale: float) -> _Reserve:
    most = 16
    while not _Reserve(level, scale, most).is_enough:
        most *= 2
    return _Reserve(level, scale, bisect(lambda least: _Reserve(level, scale, least).is_enough, 0, most))


def _base(level: Fraction, counted: int) -> Fraction:
    """The offset without tau."""
    return (level - moving_rate(level)) * (counted + 1)


def _certain_up_to(level: Fraction, n: int, share: Fraction, points: int = 0) -> Fraction:
    """Z*(n) of Lemma H2: for Z up to it, at least so many of n points are beyond the target, whatever tau is."""
    return ((1 - level) * (1 - share) * n - level - points) / (level - moving_rate(level) + share * (1 - level))


def _beyond(scale: float, z: int) -> float:
    """P(Z > z) for z >= 0."""
    return math.exp(-(z + 1) / scale) / (1 + math.exp(-1 / scale))


def _is_covered_above(level: Fraction, counted: int, tau: Fraction, noise: SlopeNoise) -> bool:
    """Whether every n with a target above n is covered (Lemma H4): few points, so that +inf is near enough."""
    least, loss = 2 * float(1 - level), sharp_loss(1.0, noise.left, noise.rivals)
    if loss <= least:
        return True
    nearest = float(_base(level, counted) + tau + 2) - float((1 - moving_rate(level)) / (1 - level)) * loss
    return nearest > 1 and sharp_loss(nearest, noise.left, noise.rivals) <= least


def _in_scales(number: int | Fraction, scale: float) -> int:
    """So many scales of the noise, rounded up."""
    return math.ceil(number * Fraction(scale))


def _is_two_sided(level: Fraction, scale: float, counted: int) -> bool:
    """Whether n~ is at least n_s of Lemma H5: at least Y_0 points are beyond the target for every Z up to D."""
    # Other rates than one half have too many fractional parts of a target to bound each.
    cut, points = _in_scales(_CUT, scale), _in_scales(_POINTS, scale)
    return moving_rate(level) == _HALF and _certain_up_to(level, counted - cut, _TWO_SIDED_SHARE, points) >= cut
