"""Sets of classes {y : score(x, y) <= threshold}, computed from the class probabilities of a model."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, all_valid, as_float_rows, as_probabilities, as_uniforms, refuse_outside_unit
from confide.errors import InputError
from confide.scores.classification import checked_blocks, classification_kind
from confide.scores.kinds import ScoreKind
from confide.scores.ranked import COMPILED_ELEMENTS, RankRule, compiled_sets, largest_excluded, worth_selecting
from confide.support import bisect


def set_mask(
    probabilities: ArrayLike,
    score: str,
    threshold: float | NDArray[np.float64],
    *,
    u: Uniforms = None,
    per_class: bool = False,
    out: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """The sets {y : score(x, y) <= threshold} as a bool array of shape (n, K), in `out` if it is given.

    Every probability is checked, but not the sums of rows. The threshold is one number, or of shape (n,) for one per
    record, or of shape (K,) for one per class with `per_class`.

    Examples
    --------
    >>> set_mask([[0.75, 0.25], [0.5, 0.5]], "aps_deterministic", 0.8)
    array([[ True, False],
           [False, False]])
    """
    # Probabilities, random numbers, and room for the result
    kind = classification_kind(score)
    p = as_probabilities("probabilities", probabilities, check=False)
    n, k = p.shape
    mask = _room(out, p.shape)
    if not n:
        return mask
    shares = as_uniforms("u", u, n, kind.randomised)

    # One threshold, a row of those of classes, or a column of those of records
    limits = np.broadcast_to(np.asarray(threshold, dtype=np.float64), (k if per_class else n,))
    if np.ndim(threshold) == 0 or bool((limits == limits[0]).all()):
        limits = limits[:1]
    limits = limits[None, :] if per_class else limits[:, None]

    # Compare entries, search ranks, or compute all scores
    if kind.of_one_entry:
        are_probabilities = _mask_of_entries(p, _smallest_probabilities(limits, p.dtype), mask)
    elif kind.rule is not None and limits.shape[1] == 1:
        are_probabilities = _mask_of_ranks(p, kind, kind.rule, np.broadcast_to(limits[:, 0], n), shares, mask)
    else:
        are_probabilities = _mask_of_all_scores(p, kind, limits, shares, mask)
    if not are_probabilities:
        refuse_outside_unit("probabilities", p)
    return mask


def _room(out: NDArray[np.bool_] | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if out is None:
        return np.empty(shape, dtype=np.bool_)
    if not isinstance(out, np.ndarray) or out.dtype != np.bool_ or out.shape != shape or not out.flags.writeable:
        raise InputError("out", f"must be a writeable bool array of shape {shape}")
    return out


@lru_cache(maxsize=1024)
def smallest_probability(threshold: float, dtype: np.dtype[np.floating]) -> np.floating:
    """The smallest p in [0, 1] of this float dtype with 1 - p <= threshold in float64; 2 if there is none.

    Non-negative floats are ordered like their bit patterns, so it is computed by bisection on integers.

    Examples
    --------
    >>> float(smallest_probability(0.75, np.dtype(np.float32)))
    0.25
    """
    # The probability of a bit pattern.
    dtype = dtype.newbyteorder("=")
    bits = np.dtype(f"u{dtype.itemsize}")

    def probability(pattern: int) -> np.floating:
        p: np.floating = np.array([pattern], dtype=bits).view(dtype)[0]
        return p

    # None, all, or the first pattern that is included; that of 1 is, because 1 - 1 = 0.
    if threshold < 0:
        return dtype.type(2)
    if threshold >= 1:
        return dtype.type(0)
    bits_of_one = int(np.ones(1, dtype=dtype).view(bits)[0])
    return probability(bisect(lambda pattern: 1.0 - float(probability(pattern)) <= threshold, -1, bits_of_one))


def _smallest_probabilities(thresholds: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The smallest probability that LAC includes, for each threshold, in the dtype of the comparison."""
    dtype = dtype if dtype.kind == "f" and dtype.itemsize in (2, 4, 8) else np.dtype(np.float64)
    stated = thresholds.ravel().tolist()
    smallest = {threshold: float(smallest_probability(threshold, dtype)) for threshold in set(stated)}
    compared = np.float32 if dtype.itemsize <= 4 else np.float64
    return np.array([smallest[threshold] for threshold in stated], dtype=compared).reshape(thresholds.shape)


def _mask_of_entries(p: NDArray[Any], smallest: NDArray[Any], mask: NDArray[np.bool_]) -> bool:
    """`mask` becomes p >= smallest; returns whether all entries lie in [0, 1]."""
    per_row = len(smallest) == len(p)

    def work(rows: slice) -> None:
        np.greater_equal(as_float_rows(p[rows]), smallest[rows] if per_row else smallest, out=mask[rows])

    return checked_blocks(work, p)


def _mask_of_ranks(
    p: NDArray[Any],
    kind: ScoreKind,
    rule: RankRule,
    limits: NDArray[np.float64],
    shares: NDArray[np.float64],
    mask: NDArray[np.bool_],
) -> bool:
    """`mask` becomes score <= limit, where each record has one limit; returns whether all entries lie in [0, 1]."""

    def search(rows: slice) -> None:
        block = kind.rows(p[rows])
        np.greater(block, largest_excluded(block, shares[rows], limits[rows], rule)[:, None], out=mask[rows])

    def select(rows: slice) -> bool:
        return compiled_sets(kind.rows(p[rows]), shares[rows], limits[rows], rule, mask[rows])

    if not worth_selecting(p.size):
        return checked_blocks(search, p)
    if kind.temperature is None:  # the compiled loop checks the entries itself, but a temperature hides those above 1
        return all_valid(select, len(p), p.shape[1], COMPILED_ELEMENTS)
    return checked_blocks(select, p, COMPILED_ELEMENTS)


def _mask_of_all_scores(
    p: NDArray[Any], kind: ScoreKind, limits: NDArray[np.float64], shares: NDArray[np.float64], mask: NDArray[np.bool_]
) -> bool:
    """`mask` becomes score <= limit, for a row or a column of limits; returns as `_mask_of_ranks`."""
    per_row = len(limits) == len(p)

    def work(rows: slice) -> None:
        scores = kind.class_scores(p[rows], shares[rows])
        np.less_equal(scores, limits[rows] if per_row else limits, out=mask[rows])

    return checked_blocks(work, p)
