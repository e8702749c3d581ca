"""Discrete noise on integers, sampled by OpenDP. It cannot be seeded."""

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
