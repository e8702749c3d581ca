"""Realised coverage of the records of some looks, whatever their distribution: only the noise is uncertain."""

from fractions import Fraction
from typing import NamedTuple

from confide.noisy_counts import noise_beyond

# Statements about what records had hold with probability 0.95
SPAN_ERROR = 0.05


class Realised(NamedTuple):
    """Coverage that the records of some looks had: the excess of missed records, and limits for the share covered.

    Parameters
    ----------
    excess
        Noisy number of missed records minus alpha times that of all.
    radius
        The true excess differs from it by at most this.
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

    It is wrong with probability at most `error`. With `sequence` it holds after every look of a watch at once, and not
    for these looks only.

    Examples
    --------
    >>> once, always = (realised_coverage(9000, 1000, 52, Fraction(1, 10), 1.0, sequence=s) for s in (False, True))
    >>> round(once.radius), round(always.radius), always.low < once.low < 0.9 < once.high
    (20, 37, True)
    """
    # For a sequence, Levy's inequality up to the next power of two
    if sequence:
        power = (looks - 1).bit_length()
        looks, error = 2**power, error / (2 * (power + 1) * (power + 2))

    # Half of the error is for the excess, which is counted in units of 1/unit
    share, unit = alpha.as_integer_ratio()
    excess = (unit - share) * missed - share * covered
    radius = noise_beyond(epsilon, ((looks, unit - share), (looks, share)), error / 2)
    least, most = excess - radius, excess + radius

    # The other half is for the number of records
    away = noise_beyond(epsilon, ((2 * looks, 1),), error / 2)
    fewest, largest = covered + missed - away, covered + missed + away

    # The share of covered records, at the number of records that is worst for each end
    low, high = 0.0, 1.0
    if fewest > 0:
        low = min(max(1 - share / unit - most / (unit * (fewest if most > 0 else largest)), 0.0), 1.0)
        high = min(max(1 - share / unit - least / (unit * (largest if least > 0 else fewest)), 0.0), 1.0)
    return Realised(excess / unit, radius / unit, low, high)
