"""Answers that are taken apart into claims: what keeping the confident ones costs, as losses for `calibrate_losses`.

Every claim has a confidence, and those above a threshold are kept. Both losses here fall with the threshold, and vanish
where nothing is kept. Mohri and Hashimoto, "Language models with conformal factuality guarantees", ICML 2024, bound the
second one, without privacy. The share of false claims *among those kept* does not fall, and cannot be bounded this way.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array, as_vector
from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.support import refuse_marked


def false_claims_losses(
    confidences: ArrayLike,
    false: ArrayLike,
    answers: ArrayLike,
    n: int,
    candidates: Candidates,
    *,
    loss: Literal["share", "any"] = "share",
) -> NDArray[np.float64]:
    """The losses of n answers at every finite candidate, where claims with a confidence above it are kept.

    Parameters
    ----------
    confidences
        Shape (c,): a finite number for every claim, larger for those that are likelier to be true.
    false
        bool, shape (c,): which claims are false.
    answers
        Integers in [0, n), shape (c,): the answer that each claim belongs to. An answer without claims has no loss.
    n
        How many answers there are; one answer is one record.
    candidates
        The m public candidates for the threshold.
    loss
        `share`: the number of false claims that are kept, over all claims of the answer; `any`: 1 if a false claim is
        kept, else 0.

    Returns
    -------
    numpy.ndarray
        float64, shape (n, m-1), for `calibrate_losses`. At the candidate +inf nothing is kept.

    Raises
    ------
    InputError, InputTypeError
        If lengths differ, a confidence is not finite, `false` is not boolean, answers are not integers in [0, n), or
        the loss is unknown.

    Examples
    --------
    >>> candidates = Candidates.of([0.0, 0.5, 1.0])
    >>> false_claims_losses([0.4, 0.9, 0.8], [True, False, True], [0, 0, 1], 2, candidates)
    array([[0.5, 0. , 0. ],
           [1. , 1. , 0. ]])
    """
    if not isinstance(candidates, Candidates):
        raise InputTypeError(f"candidates must be a confide.Candidates; found {type(candidates).__name__}")
    if loss not in ("share", "any"):
        raise InputError(f"loss must be 'share' or 'any'; found {loss!r}")
    if not isinstance(n, int | np.integer) or n < 0:
        raise InputError("n must be the number of answers, an integer that is not negative")
    sure = as_vector("confidences", confidences, empty=True).astype(np.float64)
    wrong, place = as_array("false", false), as_array("answers", answers)
    if wrong.dtype != np.bool_ or wrong.shape != sure.shape:
        raise InputError(f"false must be boolean of shape {sure.shape}; found dtype {wrong.dtype}, shape {wrong.shape}")
    if place.shape != sure.shape or place.dtype.kind not in "iu":
        found = f"dtype {place.dtype}, shape {place.shape}"
        raise InputError(f"answers must be integers of shape {sure.shape}; found {found}")
    refuse_marked(~np.isfinite(sure), "confidences must be finite", "that are not", place="claim")
    refuse_marked((place < 0) | (place >= n), f"answers must lie between 0 and {n - 1}", "outside", place="claim")
    reach = np.searchsorted(candidates.edges, sure, side="left")  # how many candidates the confidence is above
    kept = np.zeros((n, candidates.size), np.int64)
    np.add.at(kept, (place[wrong], reach[wrong]), 1)
    kept = kept[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    if loss == "any":
        return (kept > 0).astype(np.float64)
    return kept / np.maximum(np.bincount(place, minlength=n), 1)[:, None]
