"""`secure-sum`: noisy counts of all silos, of which only the sum is revealed.

Every silo adds a share of noise to its counts. The privacy is that of the opened sum, and the certificate that of a
noisy histogram of all records by the last rule, also for non-IID silos (docs/theory-one-number.md, Theorem W3;
docs/theory-federated.md, Theorems F5, F6 and F7). Sizes must be public.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.channels import Channel, Masked
from confide.federated.protocols.threshold_plan import Certificate, Promise, ThresholdPlan, too_few_records
from confide.federated.refusals import Refusal
from confide.federated.terms import Counts, Terms
from confide.guarantee import chosen_by_last_rule, limit_coverage, log_concave_residual_life, most_beyond
from confide.selection import noisy_counts
from confide.support import float_above, positive_integer, positive_number, require, scale_for

# Draws of counts and noise for a comparison
_DRAWS = 1000


@dataclass(frozen=True, kw_only=True)
class NoisyCounts(ThresholdPlan):
    """secure-sum, the method of confide for non-IID silos and for the least noise.

    `scale` is that of the noise in the opened sum, `target` the target rank among all records, and `honest` the number
    of silos that are certainly in the sum and do not collude.
    """

    theorem = "Theorems F6 and F7"
    parameters = ("scale", "target", "honest")
    populations = ("mixture", "common")
    has_delta = False
    one_draw = True
    candidate_advice = "; 30 to 400 serve best"

    scale: float
    target: int
    honest: int

    @classmethod
    def planned(cls, terms: Terms, method: str, channel: Channel) -> Self:
        """The least noise for the loss, and the smallest certified target; the modulus of the sum has room for both."""
        n = _records(terms)
        silos = len(terms.silos)
        honest = silos - (channel.colluders or 0)
        scale = check_scale(scale_for(2, terms.epsilon), n)
        beyond = most_beyond(terms.level, _exchangeable(terms), _cost(scale, silos, honest))
        if not 0 <= beyond < n:
            raise too_few_records()
        assert isinstance(channel, Masked)
        masked = replace(channel, bits=modulus_bits(n, scale, silos, honest))
        return cls(**vars(terms), method=method, channel=masked, scale=scale, target=n - beyond, honest=honest)

    def loss(self, i: int) -> float:
        """2/scale, because a replaced record changes two counts by one."""
        return float_above(Fraction(2) / Fraction(self.scale))

    def draw(self, i: int, counts: Counts) -> Counts:
        """The counts with a share of noise."""
        return counts + noise_share(len(counts), self.scale, self.honest)

    def check_total(self, answered: Sequence[int], total: Counts) -> None:
        """Reject a sum that the records of the silos and the noise do not explain."""
        check_plausible(total, _records(self), self.scale, len(self.silos) / self.honest)

    def read_off(self, total: Counts, k: int) -> float:
        """The candidate that the last rule selects for the target rank."""
        return float(self.candidates.values[int(chosen_by_last_rule(total, _records(self) - self.target))])

    def certificate(self, answered: Sequence[int]) -> Certificate:
        """The guarantee for the sum of all silos, with k = 0, because replies are not sorted."""
        cost = _cost(self.scale, len(self.silos), self.honest)
        coverage = limit_coverage(_records(self) - self.target, _exchangeable(self), cost)
        return Certificate(0, self.guarantee(float(coverage), answered))

    def promises(self) -> dict[int, Promise]:
        """The guarantee for all silos."""
        return {len(self.silos): Promise(self.certify().guarantee.coverage, 0, "never")}

    def coverage_failure(self, answered: Sequence[int], k: int) -> Callable[[float], float]:
        """None is proved: the guarantee is marginal."""
        remedy = "Private-qq has one"
        raise InputError("delta", "has no training-conditional statement for the method 'secure-sum'", remedy=remedy)

    def answer_law(self, below: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law from drawn counts and drawn noise of all silos."""
        n = _records(self)
        shares = len(self.silos) / self.honest
        p = -np.expm1(-1 / self.scale)
        size = (_DRAWS, len(below))
        rng = np.random.default_rng(0)
        noise = rng.negative_binomial(shares, p, size) - rng.negative_binomial(shares, p, size)
        counts = rng.multinomial(n, np.diff(below, prepend=0.0), _DRAWS) + noise
        chosen = chosen_by_last_rule(counts, n - self.target)
        return np.bincount(chosen, minlength=len(below)) / _DRAWS


def _records(terms: Terms) -> int:
    """The number of records of all silos, which is public in a sum."""
    assert terms.size is not None
    return terms.size


def _exchangeable(terms: Terms) -> int:
    """The number of records that are exchangeable with the new one; a mixture costs one record and rank (F7)."""
    return _records(terms) - (terms.population == "mixture")


@lru_cache(maxsize=64)
def _cost(scale: float, silos: int, honest: int) -> float:
    """The ranks that the shares of so many silos cost, `honest` of which make discrete Laplace noise."""
    # All shares add up to more than discrete Laplace noise, of a log-concave law
    law = noise_law(scale, silos / honest)
    return log_concave_residual_life(law[len(law) // 2 :])


# Counts and noise below this bound do not wrap around modulo 2**32
_MOST_DEFICIT = 2**30


def modulus_bits(n: int, scale: float, silos: int, honest: int) -> int:
    """32 if counts and noise stay below 2**30 (noise except with a probability below e**-700), else 64."""
    room = 700 * scale * (1 + silos / honest) + math.log2(1 + silos)
    return 32 if n + room < _MOST_DEFICIT else 64


def check_scale(scale: float, n: int) -> float:
    """A noise scale of at most n. A larger one would hide n records, and its draws would hardly ever end."""
    must = f"is too small for {n} records in all: the noise would exceed their number"
    require("epsilon", scale <= n, must, remedy="Raise epsilon")
    return scale


def noise_share(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """One silo's share: int64, shape (size,), independent differences of two negative binomials of parameter 1/honest.

    `scale` is that of the discrete Laplace noise to which the shares of m' = `honest` silos add up: its law
    P(x) ~ p^|x|, p = exp(-1/scale), is that of the difference of two geometric variables, and a geometric variable is
    a sum of m' negative binomials of parameter 1/m'. Further shares only add more noise. There is no seed.

    Examples
    --------
    >>> noise_share(3, 0.01, 4)
    array([0, 0, 0])
    """
    size = positive_integer("size", size)
    honest = positive_integer("honest", honest)
    scale = positive_number("scale", scale)
    return _negative_binomial(size, scale, honest) - _negative_binomial(size, scale, honest)


def _negative_binomial(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """Exact draws, by rejection: no floating-point number is used after `scale`.

    The law is P(K = k) ~ p^k prod_(i=1..k) (m'(i-1) + 1)/(m' i).
    """
    draws = np.zeros(size, dtype=np.int64)
    missing = list(range(size))
    while missing:
        # A draw X of discrete Laplace noise gives a geometric K: both signs have P(K = k) ~ p^k. It is accepted if
        # for i = 1..k a Bernoulli variable of the rational probability above succeeds each time.
        proposals = noisy_counts(np.zeros(len(missing), dtype=np.int64), scale).tolist()
        rejected = []
        for position, x in zip(missing, proposals, strict=True):
            k = x if x >= 0 else -x - 1
            if all(secrets.randbelow(honest * i) <= honest * (i - 1) for i in range(1, k + 1)):
                draws[position] = k
            else:
                rejected.append(position)
        missing = rejected
    return draws


def noise_law(scale: float, parameter: float) -> NDArray[np.float64]:
    """The law of one count's total noise for `parameter` = shares/honest, on -half..half (float64, odd length).

    It is the difference of two negative binomials of that parameter.
    """
    from scipy.signal import fftconvolve
    from scipy.special import gammaln

    # Beyond `half` there is mass below 1e-18
    p = math.exp(-1 / scale)
    half = math.ceil(scale * (45 + 5 * parameter * math.log1p(parameter + scale))) + 2
    k = np.arange(half + 1)
    log_mass = gammaln(k + parameter) - gammaln(parameter) - gammaln(k + 1.0) + k * -1 / scale
    mass = np.exp(log_mass + parameter * math.log(-math.expm1(-1 / scale))) if p < 1 else np.ones(1)
    return np.asarray(np.maximum(fftconvolve(mass, mass[::-1]), 0.0))


# A check of the opened sum, without privacy cost: the number of all records is public and every count lies between 0
# and this number, so only noise may exceed these bounds. False messages within the bounds are not detected.

# An honest sum is rejected with at most this probability
LEVEL = 1e-12


def check_plausible(counts: NDArray[np.int64], n: int, scale: float, parameter: float) -> None:
    """Reject a revealed sum, int64 of shape (m,), that n records plus noise of the law `noise_law` do not explain."""
    m = len(counts)
    total = sum(counts.tolist())
    then = "; a silo's message is wrong, and it cannot be identified: ask all silos, and make a new plan"

    # The noise of all counts together
    if abs(total - n) > most_noise(scale, parameter * m, LEVEL / 4):
        raise Refusal("implausible", f"the opened sum has {total} records where the silos state {n}, and noise{then}")

    # The noise of each count
    room = most_noise(scale, parameter, LEVEL / (4 * m))
    beyond = (counts < -room) | (counts > n + room)
    if beyond.any():
        where = f"{np.count_nonzero(beyond)} of {m} opened counts, the first at position {int(np.argmax(beyond))},"
        raise Refusal("implausible", f"{where} lie below 0 or above all {n} records by more than noise{then}")


def most_noise(scale: float, parameter: float, level: float) -> float:
    """A bound b with P(noise > b) <= level, for noise of the law of `noise_law`.

    By Markov's inequality P(noise > b) <= exp(-s b) ((1-p)^2 / ((1-p e^s)(1-p e^-s)))^parameter for every positive
    s below 1/scale, where p = exp(-1/scale); the best of many s.
    """
    s = 1 / (1 + np.exp(-np.linspace(-14, 14, 600))) / scale
    log_p = -1 / scale
    growth = 2 * math.log(-math.expm1(log_p)) - np.log(-np.expm1(log_p + s)) - np.log(-np.expm1(log_p - s))
    return float(np.min((parameter * growth - math.log(level)) / s))
