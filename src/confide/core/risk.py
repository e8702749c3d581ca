"""Conformal risk control with privacy: a bound on the expectation of a monotone bounded loss (Theorem R1).

A loss L(t) does not increase with the threshold t and ends at 0. Each record becomes one number, the critical threshold
S = inf{t : L(t) <= bound * u} with u uniform. Then P(S > t | record) = L(t)/bound: the expected loss is at most `risk`
exactly if the threshold covers S with probability 1 - risk/bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_numeric, as_true_labels, as_uniforms, class_columns, refuse_other_rows
from confide.candidates import AnyCandidates, Candidates
from confide.core.losses import FALSE_NEGATIVES, check_bound
from confide.core.options import Options, split_options
from confide.core.release import Release
from confide.core.request import Request
from confide.core.sources import Scores
from confide.core.steps import release
from confide.errors import InputError, InputTypeError
from confide.support import Level, raise_for_rows


def calibrate_false_negatives(
    probabilities: ArrayLike,
    truth: ArrayLike,
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold for multilabel sets {k : 1 - p_k <= threshold} with expected false-negative rate <= `risk`.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1]: one probability per label. Rows need not sum to one.
    truth
        The true labels: bool, or 1 and 0, shape (n, K). A record without true labels has no loss. The columns of data
        frames are matched by name.
    risk
        Bound on the expected share of true labels that a set misses, in (0, 1).
    u
        By default a fresh random number is drawn for each record. Your own numbers, shape (n,), in [0, 1), must be
        uniform, independent of the data, and stored with their records like a column: if a record is removed, the
        others keep theirs. `confide.ExperimentalUniforms` draws reproducible numbers.
    epsilon, classes, candidates, **options
        As in `calibrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 6))
    >>> released = calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> released.risk <= 0.1 + 1e-12, 0.6 < released.threshold < 0.9
    (True, True)
    """
    stated = stated_risk(risk, options)  # a request states the risk as its alpha
    payer, fields = split_options("calibrate_false_negatives", options)
    p, names = class_columns(probabilities, classes, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    scores = _false_negative_thresholds(p, as_true_labels(truth, p.shape, names), u)
    class_names = p.shape[1] if names is None else names
    request = Request(
        alpha=stated, epsilon=epsilon, loss=FALSE_NEGATIVES, classes=class_names, candidates=candidates, **fields
    )
    return release(Scores({None: scores}), request, payer)


def calibrate_losses(
    losses: ArrayLike,
    candidates: Candidates,
    risk: float | None = None,
    epsilon: float | None = None,
    *,
    u: Uniforms = None,
    loss: str,
    bound: float = 1.0,
    classes: Sequence[object] | int | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold at which the expectation of a monotone bounded loss is at most `risk`.

    The problem is that of Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024.

    Parameters
    ----------
    losses
        Shape (n, m-1): the loss of every record at every finite candidate, in [0, bound], not increasing along rows.
        At the candidate +inf the loss is 0.
    candidates
        The m public candidates.
    risk
        Bound on the expected loss, in (0, bound).
    u
        As in `calibrate_false_negatives`.
    loss
        The name of the loss, recorded in the release.
    bound
        The largest value of the loss, positive.
    epsilon, classes, **options
        As in `calibrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> candidates = Candidates.unit(101)
    >>> losses = np.clip(rng.random((3000, 1)) - candidates.edges, 0, 1)
    >>> released = calibrate_losses(losses, candidates, 0.1, 1.0, loss="shortfall")
    >>> 0.5 < released.threshold < 0.65
    True
    """
    stated = stated_risk(risk, options)  # a request states the risk as its alpha
    payer, fields = split_options("calibrate_losses", options)
    bound = check_bound(loss, bound)
    refuse_other_rows(losses=losses, u=u)
    scores = critical_thresholds(losses, candidates, u=u, bound=bound)
    fields |= {"loss": loss, "bound": bound, "classes": classes}
    request = Request(alpha=stated, epsilon=epsilon, candidates=candidates, **fields)
    return release(Scores({None: scores}), request, payer)


def false_negative_thresholds(probabilities: ArrayLike, truth: ArrayLike, *, u: Uniforms = None) -> NDArray[np.float64]:
    """Critical thresholds of the false-negative rate: for each record the score 1 - p of one true label, chosen by u.

    With T true labels the threshold is the ceil(T (1-u))-th smallest of their scores; without true labels it is 0.
    float64, shape (n,).
    """
    p, names = class_columns(probabilities, None, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    return _false_negative_thresholds(p, as_true_labels(truth, p.shape, names), u)


def _false_negative_thresholds(p: NDArray[Any], true: NDArray[np.bool_], u: Uniforms) -> NDArray[np.float64]:
    shares = as_uniforms("u", u, len(p), True)
    # The scores of the true labels first, in order, and the one at the rank that u picks.
    scores = np.where(true, 1.0 - p.astype(np.float64), np.inf)
    scores.sort(axis=1)
    count = true.sum(axis=1)
    picked = np.maximum(np.ceil(count * (1 - shares)).astype(np.int64), 1) - 1
    return np.where(count > 0, scores[np.arange(len(p)), picked], 0.0)


def critical_thresholds(
    losses: ArrayLike, candidates: Candidates, *, u: Uniforms = None, bound: float = 1.0
) -> NDArray[np.float64]:
    """The first candidate with a loss of at most bound * u (drawn by default), float64, shape (n,); +inf if none."""
    if not isinstance(candidates, Candidates):
        must = "must be the confide.Candidates that the losses belong to, column by column"
        remedy = "Candidates.unit(1000) makes 1000 equally spaced candidates"
        raise InputTypeError("candidates", must, got=type(candidates).__name__, remedy=remedy)
    array = as_numeric("losses", losses)
    if array.ndim != 2 or array.shape[1] != candidates.size - 1:
        raise InputError("losses", f"must have shape (n, {candidates.size - 1})", got=f"shape {array.shape}")
    invalid = ~((array >= 0) & (array <= bound)).all(axis=1) | (array[:, 1:] > array[:, :-1]).any(axis=1)
    must = f"losses must lie in [0, {bound:g}] and not increase along rows"
    raise_for_rows("losses", invalid, must, "rows that do not", place="row")
    shares = as_uniforms("u", u, len(array), True)
    # The first candidate at which the loss is small enough.
    small = array <= bound * shares[:, None]
    first = np.where(small.any(axis=1), small.argmax(axis=1), candidates.size - 1)
    return candidates.values[first]


def stated_risk(risk: Level | None, options: Mapping[str, Any]) -> Level:
    """Return the bound on a loss; raises an error if it is missing, or if `alpha` is given instead."""
    if "alpha" in options and risk is not None:
        raise InputTypeError("alpha", "must be left out: risk bounds the expected loss")
    if risk is None:
        got = "alpha" if "alpha" in options else ""
        must = "must be given, the bound on the expected loss"
        raise InputTypeError("risk", must, got=got, remedy="Write risk=0.1 for 10 %")
    return risk
