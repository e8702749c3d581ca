"""Discrete noise on integers, and randomised response on classes, sampled by OpenDP. They cannot be seeded."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.selection.selector import check_sampler, with_contrib

# Discrete noise on integers, sampled by OpenDP. It cannot be seeded.
#
# Laplace: P(z) proportional to exp(-|z|/scale). Gaussian: P(z) proportional to exp(-z^2/(2 scale^2)).


def noisy_counts(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Counts, int64 of shape (m,), plus independent noise; the loss is (L1 distance of neighbouring counts)/scale.

    Examples
    --------
    >>> noisy_counts(np.array([5, 0, 2]), 1e-9)
    array([5, 0, 2])
    """
    return np.asarray(_laplace(scale)(np.array(counts, dtype=np.int64)), dtype=np.int64)


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    check_sampler()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    domain, metric = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    return with_contrib(lambda: make_laplace(domain, metric, scale=scale))


def laplace_map(distance: int, scale: float) -> float:
    """OpenDP's statement of the loss for counts at an L1 distance.

    Examples
    --------
    >>> laplace_map(2, 2.0)
    1.0
    """
    return float(_laplace(scale).map(distance))


def noisy_integer(value: int, scale: float) -> int:
    """An integer plus Gaussian noise on integers; (largest change of the integer / scale)^2/2-zCDP.

    Examples
    --------
    >>> noisy_integer(5, 1e-3)
    5
    """
    return int(_gaussian(scale)(int(value)))


@lru_cache(maxsize=64)
def _gaussian(scale: float) -> Any:
    check_sampler()
    from opendp.domains import atom_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import absolute_distance

    domain, metric = atom_domain(T="i64"), absolute_distance(T="i64")
    return with_contrib(lambda: make_gaussian(domain, metric, scale=scale))


def gaussian_map(distance: int, scale: float) -> float:
    """OpenDP's statement of the zCDP loss for integers at a distance.

    Examples
    --------
    >>> gaussian_map(2, 2.0)
    0.5
    """
    return float(_gaussian(scale).map(distance))


# K-ary randomised response: the true class, or another one, drawn by OpenDP's secure sampler; it cannot be seeded.
#
# With probability p a class stays. Otherwise it becomes one of the K - 1 others, each with the same probability. p is
# the float just below e^eps/(e^eps + K - 1), so that the loss ln(p (K - 1)/(1 - p)) is at most eps for exactly this
# float.

MOST_LABEL_LOSS = 30.0
"""Above this epsilon, the probability of the true class is 1 in double precision."""


@lru_cache(maxsize=64)
def stay_probability(classes: int, epsilon: float) -> float:
    """The probability p of the true class: the largest float whose exact loss is at most epsilon; at least 1/K.

    Examples
    --------
    >>> round(stay_probability(2, 1.0), 6), round(stay_probability(10, 1.0), 6)
    (0.731059, 0.231969)
    """
    odds = Fraction(math.nextafter(math.nextafter(math.exp(epsilon), 0.0), 0.0))  # certainly below e^epsilon
    p = math.nextafter(1 / (1 + (classes - 1) * math.exp(-epsilon)), 1.0)
    while p >= 1 or Fraction(p) * (classes - 1) > odds * (1 - Fraction(p)):
        p = math.nextafter(p, 0.0)
    return p


def change_probability(classes: int, truth: float) -> Fraction:
    """The probability q of each other class, (1 - p)/(K - 1), exactly.

    Examples
    --------
    >>> change_probability(3, 0.5)
    Fraction(1, 4)
    """
    return (1 - Fraction(truth)) / (classes - 1)


def randomised_response(positions: NDArray[np.int64], classes: int, epsilon: float) -> NDArray[np.int64]:
    """Randomise classes, given by their positions below `classes`; returns int64 of the same shape (n,).

    Examples
    --------
    >>> drawn = randomised_response(np.array([0, 1, 2, 2]), 3, 1.0)
    >>> drawn.shape, bool(((drawn >= 0) & (drawn < 3)).all())
    ((4,), True)
    """
    draw = _measurement(classes, stay_probability(classes, epsilon))
    return np.array([draw(position) for position in positions.tolist()], dtype=np.int64)


@lru_cache(maxsize=8)
def _measurement(classes: int, truth: float) -> Any:
    check_sampler()
    from opendp.measurements import make_randomized_response

    return with_contrib(lambda: make_randomized_response(list(range(classes)), truth))
