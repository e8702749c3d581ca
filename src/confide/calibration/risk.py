"""Conformal risk control with privacy: the expectation of a monotone bounded loss stays below a level.

A loss L(t) that does not increase with the threshold t and ends at 0 is turned into one number per record, the critical
threshold S = inf{t : L(t) <= bound * u} with u uniform and independent of everything. Then P(S > t | record) =
L(t)/bound, so the loss of a released threshold is at most `risk` on average exactly if it covers S with probability
1 - risk/bound: calibration, privacy and all promises carry over without a change (docs/theory-risk.md, Theorem 1).
The problem is that of Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Uniforms,
    as_numeric,
    as_truth,
    as_uniforms,
    class_columns,
    refuse_other_rows,
)
from confide.calibration.options import Options, split_options
from confide.calibration.release import Scores, release
from confide.calibration.request import Request
from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError, InputTypeError
from confide.releases import FALSE_NEGATIVES, RiskCalibration, check_bound
from confide.support import Level, refuse_marked


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
) -> RiskCalibration:
    """A threshold for multilabel sets {k : 1 - p_k <= threshold} whose expected false-negative rate is at most `risk`.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1]: one probability per label; rows need not sum to one.
    truth
        bool, or 1 and 0, shape (n, K): the labels that are true. A record without any has no loss. The columns of data
        frames are matched by name.
    risk
        Bound on the expected share of true labels that a set misses, in (0, 1).
    u
        By default a fresh random number is drawn for each record. Numbers of your own, shape (n,), in [0, 1), must be
        uniform, independent of the data, and belong to their records, as a column does that is kept with them: when a
        record is removed, the others keep theirs. `confide.ExperimentalUniforms` draws them again.
    epsilon, candidates, **options
        As in `calibrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 6))
    >>> released = calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> released.risk <= 0.1 + 1e-12, 0.6 < released.threshold < 0.9
    (True, True)
    """
    stated = stated_risk(risk, options)
    payer, asked = split_options("calibrate_false_negatives", options)
    p, names = class_columns(probabilities, classes, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    scores = _false_negative_thresholds(p, as_truth(truth, p.shape, names), u)
    known = p.shape[1] if names is None else names
    request = Request(
        alpha=stated, epsilon=epsilon, loss=FALSE_NEGATIVES, classes=known, candidates=candidates, **asked
    )
    released: RiskCalibration = release(Scores.of(scores), request, payer)
    return released


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
) -> RiskCalibration:
    """A threshold at which any monotone bounded loss is at most `risk` in expectation.

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
        Its name, recorded in the release.
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
    stated = stated_risk(risk, options)
    payer, asked = split_options("calibrate_losses", options)
    bound = check_bound(loss, bound)
    refuse_other_rows(losses=losses, u=u)
    scores = Scores.of(critical_thresholds(losses, candidates, u=u, bound=bound))
    asked |= {"loss": loss, "bound": bound, "classes": classes}
    request = Request(alpha=stated, epsilon=epsilon, candidates=candidates, **asked)
    released: RiskCalibration = release(scores, request, payer)
    return released


def false_negative_thresholds(probabilities: ArrayLike, truth: ArrayLike, *, u: Uniforms = None) -> NDArray[np.float64]:
    """The critical threshold of the false-negative rate: the score 1 - p of one true label, picked by u.

    With T true labels it is the ceil(T (1-u))-th smallest of their scores; 0 without true labels. float64, shape (n,).
    Numbers u are fresh by default.

    Examples
    --------
    >>> false_negative_thresholds([[0.75, 0.5, 0.25]], [[True, True, False]], u=[0.6])
    array([0.25])
    """
    p, names = class_columns(probabilities, None, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    return _false_negative_thresholds(p, as_truth(truth, p.shape, names), u)


def _false_negative_thresholds(p: NDArray[Any], true: NDArray[np.bool_], u: Uniforms) -> NDArray[np.float64]:
    shares = as_uniforms("u", u, len(p), True)
    scores = np.where(true, 1.0 - p.astype(np.float64), np.inf)
    scores.sort(axis=1)
    count = true.sum(axis=1)
    picked = np.maximum(np.ceil(count * (1 - shares)).astype(np.int64), 1) - 1
    return np.where(count > 0, scores[np.arange(len(p)), picked], 0.0)


def critical_thresholds(
    losses: ArrayLike, candidates: Candidates, *, u: Uniforms = None, bound: float = 1.0
) -> NDArray[np.float64]:
    """The first candidate with a loss of at most bound * u (fresh by default), float64, shape (n,); +inf if none.

    Examples
    --------
    >>> critical_thresholds([[0.75, 0.5, 0.25]], Candidates.of([1, 2, 3]), u=[0.5])
    array([2.])
    """
    if not isinstance(candidates, Candidates):
        raise InputTypeError(
            "candidates must be the confide.Candidates that the losses belong to, column by column; found "
            f"{type(candidates).__name__}; Candidates.unit(1000) makes 1000 that are evenly apart"
        )
    array = as_numeric("losses", losses)
    if array.ndim != 2 or array.shape[1] != candidates.size - 1:
        raise InputError(f"losses must have shape (n, {candidates.size - 1}); found shape {array.shape}")
    wrong = ~((array >= 0) & (array <= bound)).all(axis=1) | (np.diff(array, axis=1) > 0).any(axis=1)
    must = f"losses must lie in [0, {bound:g}] and not increase along rows"
    refuse_marked(wrong, must, "rows that do not", place="row")
    shares = as_uniforms("u", u, len(array), True)
    small = array <= bound * shares[:, None]
    first = np.where(small.any(axis=1), small.argmax(axis=1), candidates.size - 1)
    return candidates.values[first]


def stated_risk(risk: Level | None, options: Mapping[str, Any]) -> Level:
    """The bound on a loss, which must be given; `alpha`, as it is called for coverage, is refused by name.

    Examples
    --------
    >>> stated_risk(0.1, {})
    0.1
    """
    if "alpha" in options or risk is None:
        found = "found alpha; " if "alpha" in options else ""
        raise InputTypeError(f"risk must be given, the bound on the expected loss; {found}write risk=0.1 for 10 %")
    return risk
