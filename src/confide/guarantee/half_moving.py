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
from confide.support import bisect, bisect_upwards, ceil_to

# A noisy number n~ = n + Z is released first, with discrete Laplace noise Z of scale z_0. The target rank is
#
#     T = rate (n + 1) + (level - rate)(n~ + 1) + tau = level (n + 1) + (level - rate) Z + tau,
#
# so that a record moves it by `rate` instead of by the level, which allows nearly twice the slopes. tau and all else
# but n may depend on n~. The error (level - rate) Z has the mean 0. Only a part of the Z counts, and their mean is
# below 0: this costs a reserve in tau, which falls as n~ grows. Below a least n~, n_0, the answer is +inf. Coverage
# holds on average over Z as well, for every n.

# The rate,
_HALF = Fraction(1, 2)

# and for a level below 5/8 this share of the level.
_SHARE_OF_LEVEL = Fraction(4, 5)

# gamma: tau is at most this share of (1 - level) n~,
_SHARP_SHARE = Fraction(1, 3)

# and gamma_2, with the two-sided certificate.
_TWO_SIDED_SHARE = Fraction(1, 8)

# A target T covers at least T + 2 - x - L(x) of the n + 1 points (Theorem C2a).
_RANKS_GAINED = 2

# The largest reserve at n_0, in scales z_0.
_LARGEST_RESERVE = 0.1

# F, in scales z_0: the reserve of n~ is that of n = n~ - F.
_LAG = 4

# D, in scales z_0: every Z up to it counts, unless the target is then above n.
_CUT = 4

# Y_0, in scales z_0: so many points are beyond the target where the two-sided certificate serves.
_POINTS = Fraction(5, 4)

# Steps of the search in each rank; a level of many digits has multiples of 1/unit a millionth apart.
_STEPS_PER_RANK = 20

# The search for n_0 begins here.
_FIRST_TRIED = 16


def moving_rate(level: Fraction) -> Fraction:
    """The ranks by which the target moves with each record: one half for a level of 5/8 or more."""
    return min(_HALF, level * _SHARE_OF_LEVEL)


def moving_offset(level: Fraction, scale: float, counted: int, noise: SlopeNoise, unit: int) -> Fraction | None:
    """A small offset of the line rate (n + 1) + offset, in steps of 1/unit; None if the answer must be +inf.

    `counted` is the noisy number n~, `scale` the scale of its noise, and `noise` the noise of the selection.
    """
    reserved = reserve(level, scale, counted)
    if math.isinf(reserved):
        return None

    # The offset that the sharp certificate needs, and a first one: with the two-sided certificate it may be smaller.
    base = _base(level, counted)
    sharp = base + ceil_to(max(0.0, worst_loss(unit, noise) - _RANKS_GAINED + reserved), unit)
    offset = sharp
    if _is_two_sided(level, scale, counted):
        # At a whole target, whose fractional part is 1.
        lost = two_sided_loss(1.0, noise, _in_scales(_POINTS, scale), at_least=True) + (1.0 - _RANKS_GAINED)
        offset = min(sharp, base + ceil_to(max(0.0, lost + reserved), unit))

    # Steps upwards until the conditions are met.
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
    tau = offset - _base(level, counted)
    reserved = reserve(level, scale, counted)
    if math.isinf(reserved) or tau < 0 or not _is_covered_above(level, counted, tau, noise):
        return False

    # The sharp certificate.
    rate = moving_rate(level)
    missed = (1 - level) * counted
    gained = float(tau) + _RANKS_GAINED
    sharp_loss_of_all = worst_loss(math.lcm(rate.denominator, offset.denominator), noise)
    if sharp_loss_of_all <= gained - reserved and tau <= _SHARP_SHARE * missed:
        return True

    # The two-sided certificate (Lemma H5); the sharp one serves the Z that do not count.
    gained_beyond_cut = float(level - rate) * _in_scales(_CUT, scale) + float(tau) + _RANKS_GAINED
    is_small = tau <= _TWO_SIDED_SHARE * missed and sharp_loss_of_all <= gained_beyond_cut
    if not is_small or not _is_two_sided(level, scale, counted):
        return False
    points = _in_scales(_POINTS, scale)
    fractions = [float((rate * n + offset) % 1 or Fraction(1)) for n in range(rate.denominator)]
    return all(two_sided_loss(x, noise, points, at_least=True) + x <= gained - reserved for x in fractions)


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
    return _reserve_for(level, scale).least_number


@dataclass(frozen=True)
class _Reserve:
    """The reserve for the least noisy number n_0, by the formulas of Lemma H3."""

    level: Fraction
    scale: float
    least_number: int

    def last_counted(self, n: int) -> int:
        """b(n): the last Z that counts for n records."""
        two_sided = _certain_up_to(self.level, n, _TWO_SIDED_SHARE, _in_scales(_POINTS, self.scale))
        counted = max(math.floor(two_sided), _in_scales(_CUT, self.scale))
        return min(math.floor(_certain_up_to(self.level, n, _SHARP_SHARE)), counted)

    @cached_property
    def first_cut_above(self) -> int:
        """n_1: the first n above n_0 for which more of the Z up to D are cut off above than below."""
        largest = self.least_number + _in_scales(_CUT, self.scale) + 1

        def is_cut_above(n: int) -> bool:
            return n == largest or _certain_up_to(self.level, n, _SHARP_SHARE) < n - self.least_number

        first = self.least_number + 1
        return first if is_cut_above(first) else bisect(is_cut_above, first, largest)

    def chance(self, n: int) -> float:
        """P(n_0 - n <= Z <= b(n))."""
        return 1 - _beyond(self.scale, self.last_counted(n)) - _beyond(self.scale, n - self.least_number)

    @cached_property
    def lost(self) -> float:
        """P(Z > F), relative to the chance for n_1."""
        return _beyond(self.scale, _in_scales(_LAG, self.scale)) / self.chance(self.first_cut_above)

    def at(self, counted: int) -> float:
        """sigma(n~) = R(n) / (1 - lost), with R(n) = (level - rate) E[Z; Z > b(n)] / chance for n = n~ - F."""
        if counted < self.least_number:
            return math.inf
        n = max(self.first_cut_above, counted - _in_scales(_LAG, self.scale))
        last = self.last_counted(n)
        mean = (last + laplace_residual_life(self.scale)) * _beyond(self.scale, last)
        return float(self.level - moving_rate(self.level)) * mean / self.chance(n) / (1 - self.lost)

    @property
    def is_enough(self) -> bool:
        """Whether n_0 meets the conditions of Lemma H3; if so, every larger n_0 does."""
        if _certain_up_to(self.level, self.least_number + 1, _SHARP_SHARE) < 0 or self.lost >= 1:
            return False
        largest_tau = float(_SHARP_SHARE * (1 - self.level) * self.least_number)
        return self.at(self.least_number) <= min(_LARGEST_RESERVE * self.scale, largest_tau)


@lru_cache(maxsize=256)
def _reserve_for(level: Fraction, scale: float) -> _Reserve:
    def is_enough(number: int) -> bool:
        return _Reserve(level, scale, number).is_enough

    return _Reserve(level, scale, bisect_upwards(is_enough, 0, _FIRST_TRIED))


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
    allowed = 2 * float(1 - level)
    lost = sharp_loss(1.0, noise.left, noise.rivals)
    if lost <= allowed:
        return True
    # X_0, by which the target exceeds the number of the points that would be missed.
    gained = float(_base(level, counted) + tau + _RANKS_GAINED)
    exceeded = gained - float((1 - moving_rate(level)) / (1 - level)) * lost
    return exceeded > 1 and sharp_loss(exceeded, noise.left, noise.rivals) <= allowed


def _in_scales(number: int | Fraction, scale: float) -> int:
    """So many scales of the noise, rounded up."""
    return math.ceil(number * Fraction(scale))


def _is_two_sided(level: Fraction, scale: float, counted: int) -> bool:
    """Whether n~ is at least n_s of Lemma H5: at least Y_0 points are beyond the target for every Z up to D."""
    # Other rates than one half have too many fractional parts of a target to bound each.
    cut = _in_scales(_CUT, scale)
    points = _in_scales(_POINTS, scale)
    return moving_rate(level) == _HALF and _certain_up_to(level, counted - cut, _TWO_SIDED_SHARE, points) >= cut
