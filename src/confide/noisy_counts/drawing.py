"""Counts with discrete Laplace noise of scale 1/epsilon, drawn by OpenDP's secure sampler."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.selection import noisy_counts, scale_for
from confide.support import MOST_RECORDS, privacy_loss, refuse_marked


def draw_counts(counts: Sequence[int] | NDArray[np.integer], epsilon: float) -> NDArray[np.int64]:
    """Counts plus independent noise Z, P(z) proportional to exp(-epsilon abs(z)). It cannot be seeded.

    The loss is epsilon times the L1 distance of neighbouring counts: epsilon if one record more or less changes one
    count by one, 2 epsilon if a replaced record can change two.

    Parameters
    ----------
    counts
        Shape (k,), integers from 0 to 2**48.
    epsilon
        One over the scale of the noise.

    Returns
    -------
    Noisy counts, int64 of shape (k,); they may be negative.

    Raises
    ------
    InputTypeError, InputError
        If counts are not integers in one dimension, or outside their range, or epsilon is no privacy loss.

    Examples
    --------
    >>> draw_counts([90, 10, 0], 100.0)
    array([90, 10,  0])
    """
    loss, exact = privacy_loss("epsilon", epsilon), np.asarray(counts)
    if exact.ndim != 1:
        raise InputError(f"counts must have one dimension; found shape {exact.shape}")
    if exact.size and exact.dtype.kind not in "iu":
        raise InputTypeError(f"counts must be integers; found {exact.dtype}")
    refuse_marked((exact < 0) | (exact > MOST_RECORDS), "counts must lie between 0 and 2**48", "outside")
    return noisy_counts(exact.astype(np.int64), scale_for(1, loss))
