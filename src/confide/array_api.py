"""Prediction sets for arrays of any library of the array API standard: tensors stay on their device.

The computation is that of `confide.scores`, in functions of the standard. Sums are exact, so the sets are equal to
those of numpy, bit for bit. APS, RAPS and SAPS need float64 (on jax, enable it); LAC, margin and top-k do not.
Needs array-api-compat (the extras `torch` and `arrays`).
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from confide.arrays import as_host_array, as_uniforms, checked_rows, far_sums, other_sums
from confide.core import Release, names_for, warn_about
from confide.errors import InputError, InputTypeError
from confide.scores import ScoreKind, class_score, kind_of_task, magic, set_mask, smallest_probability
from confide.sets import score_of_task
from confide.support import needs_extra, require

__all__ = ["above_threshold", "predict_mask", "true_scores"]


def __dir__() -> list[str]:
    return sorted(__all__)


def predict_mask(probabilities: Any, calibration: Release, *, u: Any = None) -> Any:
    """The sets {y : score(x, y) <= threshold} as a bool array of the same library, shape (n, K), on the same device.

    Parameters
    ----------
    probabilities
        Shape (n, K), a floating dtype, values in [0, 1], rows that sum to one: a torch tensor, a cupy or jax array, ...
        n may be 0.
    calibration
        From a classification score.
    u
        For randomised scores: one random number per record, shape (n,), in [0, 1], of the same library; drawn by
        default.

    Raises
    ------
    InputError, InputTypeError
        If the probabilities leave [0, 1] or do not sum to one, or if the release is for a regression score or for
        another number of classes.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 0.5, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> predict_mask(np.array([[0.9, 0.1]]), released)
    array([[ True, False]])
    """
    # Valid probabilities of the release's classes.
    kind = _kind(calibration)
    xp = _namespace(probabilities)
    _check(xp, probabilities)
    names_for(calibration, None, probabilities.shape[1])
    warn_about(calibration)
    if probabilities.shape[0] == 0:
        return xp.zeros(probabilities.shape, dtype=xp.bool, device=_device(probabilities))
    refuse_outside(xp, probabilities)
    refuse_rows_unlike_one(xp, probabilities)

    # Compare entries, leave the work to numpy for arrays in main memory, or compute all scores block by block.
    if kind.of_one_entry:
        return above_threshold(probabilities, calibration.threshold)
    shares = _uniforms(xp, probabilities, kind, u)
    held = in_memory(probabilities)
    if held is not None:
        return xp.asarray(set_mask(held, str(calibration.score), calibration.threshold, u=in_memory(shares)))
    pieces = [scores <= calibration.threshold for _, scores in _scores_in_blocks(xp, probabilities, kind, shares)]
    return xp.concat(pieces, axis=0)


def true_scores(probabilities: Any, labels: Any, score: str, *, u: Any = None) -> Any:
    """The nonconformity score of each record's own class, float64 (else float32), shape (n,), on the same device.

    `labels` are integers from 0 of the same library. Labels of K and above are classes that the model never learned:
    their score is +inf. Everything else as in `predict_mask`.

    Examples
    --------
    >>> true_scores(np.array([[0.75, 0.25]]), np.array([1]), "lac")
    array([0.75])
    """
    # One label for each record.
    kind = kind_of_task(score, "classification", "a classification score")
    xp = _namespace(probabilities)
    _check(xp, probabilities)
    n, k = probabilities.shape
    if labels.shape == (n, 1):
        labels = labels[:, 0]
    if labels.shape != (n,) or not xp.isdtype(labels.dtype, "integral"):
        raise InputError("labels", f"must be integers of shape ({n},)", got=f"{labels.dtype}, {tuple(labels.shape)}")
    if n == 0:
        return _wide(xp, probabilities[:, 0])
    if bool(xp.any(labels < 0)):
        outside, first = _number_and_first(xp, labels < 0)
        got = f"{outside} outside, the first at position {first}"
        raise InputError("labels", f"must lie between 0 and {k - 1}", got=got)

    # Labels of classes that the model never learned have the score +inf.
    known = labels < k
    column = xp.astype(xp.where(known, labels, xp.zeros_like(labels)), xp.int64)[:, None]
    scores = _known_scores(xp, probabilities, column, kind, u)
    return xp.where(known, scores, xp.full_like(scores, float("inf")))


def _known_scores(xp: Any, probabilities: Any, column: Any, kind: ScoreKind, u: Any) -> Any:
    """The scores of the classes in `column`, shape (n, 1), after checks of the probabilities."""
    probability = xp.take_along_axis(probabilities, column, axis=1)
    refuse_outside(xp, probability if kind.of_one_entry else probabilities)
    refuse_rows_unlike_one(xp, probabilities)
    if kind.of_one_entry:
        return 1 - _wide(xp, probability[:, 0])
    shares = _uniforms(xp, probabilities, kind, u)
    held = in_memory(probabilities)
    if held is not None:
        return xp.asarray(np.asarray(class_score(held, in_memory(column[:, 0]), str(kind.name), u=in_memory(shares))))
    pieces = _scores_in_blocks(xp, probabilities, kind, shares)
    return xp.concat([xp.take_along_axis(scores, column[rows, :], axis=1)[:, 0] for rows, scores in pieces], axis=0)


def above_threshold(p: Any, threshold: float) -> Any:
    """Whether each 1 - p is at most the threshold, computed exactly: bool, of any shape, on the same device.

    Examples
    --------
    >>> above_threshold(np.array([0.9, 0.1]), 0.5)
    array([ True, False])
    """
    xp = _namespace(p)
    name = str(p.dtype).rpartition(".")[2]
    if name == "bfloat16":  # its numbers are float32 numbers: the smallest of float32 separates them as well
        p = xp.astype(p, xp.float32)
        name = "float32"
    return p >= float(smallest_probability(threshold, np.dtype(name)))


# The scores of all classes.

_ELEMENTS = 2**22
"""Entries per block: each work array has at most 32 MiB."""


def _scores_in_blocks(xp: Any, p: Any, kind: ScoreKind, u: Any) -> Iterator[tuple[slice, Any]]:
    """The scores of every class, block by block, with the rows of each."""
    step = max(1, _ELEMENTS // p.shape[1])
    for start in range(0, p.shape[0], step):
        rows = slice(start, min(start + step, p.shape[0]))
        yield rows, class_scores(xp, p[rows, :], kind, None if u is None else u[rows])


def class_scores(xp: Any, p: Any, kind: ScoreKind, u: Any) -> Any:
    """The scores of every class for a block of rows; `u` is given exactly for the randomised scores."""
    if kind.temperature is not None:
        p = _tempered(xp, p, kind.temperature)
    if kind.family == "lac":
        return 1 - _wide(xp, p)
    if kind.family == "margin":
        return _margins(xp, _wide(xp, p))
    if kind.rule is None:
        raise InputError("score", "must be one of the library's own on this device", got=repr(kind.name))
    return _ranked_scores(xp, p, kind.rule, u)


def _margins(xp: Any, p: Any) -> Any:
    """The largest probability of another class minus that of the class."""
    require("probabilities", p.shape[1] >= 2, "must have at least two classes for the margin score", got="1")
    top = xp.sort(p, axis=1, descending=True)[:, :2]
    first = top[:, :1]
    return xp.where(p == first, top[:, 1:], first) - p


def _ranked_scores(xp: Any, p: Any, rule: Any, u: Any) -> Any:
    wide = _wide(xp, p)

    # Sort; a new group of equal probabilities begins where they differ.
    order = xp.argsort(p, axis=1, descending=True)
    top = xp.take_along_axis(p, order, axis=1)
    place = xp.broadcast_to(xp.arange(p.shape[1], device=_device(p)), p.shape)
    changes = top[:, 1:] != top[:, :-1]
    edge = xp.ones_like(place[:, :1], dtype=xp.bool)
    begins = xp.concat([edge, changes], axis=1)
    ends = xp.concat([changes, edge], axis=1)

    # The position of the last member of each group of ties; groups are counted from 0.
    number = xp.cumulative_sum(xp.astype(begins, xp.int64), axis=1) - 1
    last = _borders(xp, place, ends, number)

    # Only APS adds probabilities up.
    sorted_wide = xp.take_along_axis(wide, order, axis=1)
    shares = xp.ones_like(wide[:, :1]) if u is None else _wide(xp, u)[:, None]
    mass = xp.zeros_like(wide)
    if rule.family == "aps":
        first = None if u is None else _borders(xp, place, begins, number)
        mass = _mass(xp, sorted_wide, first, last, shares)

    # Back to the order of the columns.
    ranked = rule.score(mass, xp.astype(last + 1, wide.dtype), sorted_wide[:, :1], shares, xp)
    return xp.take_along_axis(ranked, xp.argsort(order, axis=1), axis=1)


def _mass(xp: Any, p: Any, first: Any, last: Any, shares: Any) -> Any:
    """Sums of rounded sorted probabilities up to the end of each group of ties; with `first` a share of the group."""
    if p.dtype != xp.float64:
        raise InputTypeError("probabilities", "need a library with float64 for this score", remedy="Enable float64")
    k = p.shape[1]
    q = (p + magic(k)) - magic(k)
    mass = xp.take_along_axis(xp.cumulative_sum(q, axis=1), last, axis=1)
    if first is None:
        return mass
    group = xp.astype(last - first + 1, p.dtype) * q
    return (mass - group) + shares * group


def _tempered(xp: Any, p: Any, temperature: float) -> Any:
    """p^(1/T), rescaled to rows that sum to one; rows of zeros stay zero."""
    wide = _wide(xp, p)
    largest = xp.max(wide, axis=1, keepdims=True)
    share = wide / xp.where(largest > 0, largest, xp.ones_like(largest))
    powers = xp.where(share > 0, share ** (1 / temperature), xp.zeros_like(share))
    total = xp.sum(powers, axis=1, keepdims=True)
    return powers / xp.where(total > 0, total, xp.ones_like(total))


def _borders(xp: Any, place: Any, marked: Any, number: Any) -> Any:
    """For every sorted position, the marked position of its group of ties; `number` counts the groups from 0."""
    borders = xp.sort(xp.where(marked, place, xp.full_like(place, place.shape[1])), axis=1)
    return xp.take_along_axis(borders, number, axis=1)


# Checks of releases, probabilities and random numbers.


def _kind(calibration: Any) -> ScoreKind:
    kind = score_of_task(calibration, "classification")
    if calibration.by is not None:
        raise InputTypeError("calibration", "must be a confide.Release with one threshold for coverage", "several")
    return kind


def _check(xp: Any, p: Any) -> None:
    if p.ndim != 2 or p.shape[1] == 0 or not xp.isdtype(p.dtype, "real floating"):
        raise InputError("probabilities", "must be a floating array of shape (n, classes) with one class or more")


def refuse_outside(xp: Any, p: Any) -> None:
    """Raise an error for NaN and entries outside [0, 1]; two reductions, no copy of the array."""
    if bool(xp.min(p) >= 0) and bool(xp.max(p) <= 1):
        return
    outside = xp.any(~((p >= 0) & (p <= 1)), axis=1)
    if bool(xp.any(outside)):
        count, first = _number_and_first(xp, outside)
        got = f"{count} row(s) with NaN or values outside, the first at row {first}"
        remedy = "Apply softmax to logits, and complete rows with NaN"
        raise InputError("probabilities", "must lie in [0, 1]", got=got, remedy=remedy)


def refuse_rows_unlike_one(xp: Any, p: Any) -> None:
    """Raise an error for probabilities whose first rows do not sum to one even approximately."""
    marked = rows_unlike_one(p)
    if bool(xp.any(marked)):
        raise other_sums("probabilities", *_number_and_first(xp, marked), marked.shape[0])


def _number_and_first(xp: Any, marked: Any) -> tuple[int, int]:
    """The number of marked entries, and the position of the first."""
    numbers = xp.astype(marked, xp.int64)
    return int(xp.sum(numbers)), int(xp.argmax(numbers))


def rows_unlike_one(p: Any) -> Any:
    """The first rows whose sums differ from one by more than rounding: `confide.arrays.far_from_one`."""
    xp = _namespace(p)
    return far_sums(xp, _wide(xp, p[: checked_rows(p.shape[1]), :]))


def _uniforms(xp: Any, p: Any, kind: ScoreKind, u: Any) -> Any:
    """One number per record for a randomised score, on the device of p; drawn by default."""
    numbers = as_uniforms("u", u, p.shape[0], kind.randomised)
    if not kind.randomised:
        return None
    wide = _wide(xp, p[:1, :]).dtype == xp.float64
    return xp.asarray(numbers if wide else numbers.astype(np.float32), device=_device(p))


# Arrays of each library.


def _namespace(array: Any) -> Any:
    with needs_extra("confide.array_api", "arrays"):
        from array_api_compat import array_namespace
    return array_namespace(array)


def _device(array: Any) -> Any:
    from array_api_compat import device

    return device(array)


def _wide(xp: Any, p: Any) -> Any:
    """Convert to float64 if the device has it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # jax warns that it returns float32, which the caller checks
            return xp.astype(p, xp.float64)
    except (TypeError, RuntimeError):  # devices without float64
        return xp.astype(p, xp.float32)


def in_memory(array: Any) -> Any:
    """A torch tensor in main memory as a numpy array, whose sets are computed faster; else None."""
    from array_api_compat import is_torch_array

    if not is_torch_array(array) or array.device.type != "cpu":
        return None
    return as_host_array(array)
