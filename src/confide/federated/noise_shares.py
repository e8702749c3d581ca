"""Integer noise in shares: any agreed number m' of honest shares adds up to at least discrete Laplace noise.

The discrete Laplace law P(x) ~ p^|x| with p = exp(-1/scale) is the difference of two geometric variables, and a
geometric variable is a sum of m' negative binomials with parameter 1/m'. A silo therefore adds the difference of two
negative binomials of parameter 1/m'; m' honest silos together add discrete Laplace noise, and further shares only add
more.

**Exact sampling.** OpenDP has no negative binomial sampler, so one is built by rejection from two exact parts. A draw X
of OpenDP's discrete Laplace sampler gives a geometric K = X if X >= 0 and K = -X - 1 otherwise, since both branches
have P(K = k) ~ p^k. The negative binomial has P(K = k) ~ p^k prod_(i=1..k) (m'(i-1) + 1)/(m' i), so K is kept if for
i = 1..k a Bernoulli variable of that rational probability succeeds each time, drawn with integers from the operating
system's secure source. No floating-point number takes part after `scale`.
"""

import math
import secrets

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.selection import noisy_counts
from confide.support import positive_integer, positive_number


def check_scale(scale: float, n: int) -> float:
    """A noise scale that leaves something of n records; one beyond n drowns them, and its draws hardly ever end.

    Raises
    ------
    InputError
        If it is larger than n.
    """
    if scale > n:
        raise InputError(f"epsilon is too small for {n} records in all: the noise would be larger than they; raise it")
    return scale


def noise_share(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """One silo's share: int64, shape (size,), independent differences of two negative binomials of parameter 1/honest.

    `scale` is that of the discrete Laplace noise to which the shares of m' = `honest` silos add up. Cannot be seeded.

    Examples
    --------
    >>> noise_share(3, 0.01, 4)
    array([0, 0, 0])
    """
    size, honest = positive_integer("size", size), positive_integer("honest", honest)
    scale = positive_number("scale", scale)
    return _negative_binomial(size, scale, honest) - _negative_binomial(size, scale, honest)


def _negative_binomial(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    result = np.zeros(size, dtype=np.int64)
    missing = list(range(size))
    while missing:
        proposals = noisy_counts(np.zeros(len(missing), dtype=np.int64), scale).tolist()
        rejected = []
        for position, x in zip(missing, proposals, strict=True):
            k = x if x >= 0 else -x - 1
            if all(secrets.randbelow(honest * i) <= honest * (i - 1) for i in range(1, k + 1)):
                result[position] = k
            else:
                rejected.append(position)
        missing = rejected
    return result


def noise_law(scale: float, parameter: float) -> NDArray[np.float64]:
    """The law of one count's total noise when `parameter` = shares/honest, on -half..half (float64, odd length).

    The difference of two negative binomials of that parameter; mass beyond `half`, below 1e-18, is left out.

    Examples
    --------
    >>> law = noise_law(1.0, 1.0)
    >>> p = np.exp(-1.0)
    >>> bool(np.isclose(law[len(law) // 2], (1 - p) / (1 + p)))
    True
    """
    from scipy.signal import fftconvolve
    from scipy.special import gammaln

    p = math.exp(-1 / scale)
    half = math.ceil(scale * (45 + 5 * parameter * math.log1p(parameter + scale))) + 2
    k = np.arange(half + 1)
    log_mass = gammaln(k + parameter) - gammaln(parameter) - gammaln(k + 1.0) + k * -1 / scale
    one = np.exp(log_mass + parameter * math.log(-math.expm1(-1 / scale))) if p < 1 else np.ones(1)
    law: NDArray[np.float64] = np.maximum(fftconvolve(one, one[::-1]), 0.0)
    return law
