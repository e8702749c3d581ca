"""From model outputs and randomised labels to a threshold for the true ones (docs/theory-labels.md)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_labels, as_uniforms, class_columns, refuse_other_rows
from confide.calibration.randomised_labels import RandomisedLabels
from confide.candidates import AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.mechanisms import LabelPrivacy, NoisyLabels, noisy_labels_for
from confide.releases import (
    MOST_CLASSES,
    LabelStatement,
    NoisyLabelCalibration,
    Words,
    read_label_epsilon,
    remark,
    warn_of_choices,
)
from confide.scores import all_scores, score_kind
from confide.support import Classes, Level, canonical, exact_level, library_versions, outside, positive_integer, tell

_SPREAD = 1000
_ELEMENTS = 2**21


@dataclass(frozen=True)
class LabelRequest:
    """What is asked of noisy labels, checked: all of it public.

    `classes` is known where a statement beside the labels says it, else None.
    """

    alpha: Fraction
    epsilon: float
    score: str
    delta: float | None
    candidates: Candidates
    classes: Any = None

    def counts(self) -> NoisyLabelCounts:
        """Counts of nothing yet."""
        return NoisyLabelCounts(self.candidates, self.score)

    def release(self, counts: NoisyLabelCounts, names: Any, about: Mapping[str, str] | None) -> NoisyLabelCalibration:
        """The calibration from counts of all records; `names` are the class names, or their number."""
        if not counts.n:
            raise InputError("noisy_labels must have at least one entry; found none")
        k = names if isinstance(names, int) else len(names)
        positive_integer("the number of classes less one", k - 1, most=MOST_CLASSES)
        mechanism = noisy_labels_for(1 - self.alpha, counts.n, self.epsilon, k, self.delta)
        return self._made(mechanism, counts, Words.stated(names, about))

    def _made(self, mechanism: NoisyLabels, counts: NoisyLabelCounts, words: Words) -> NoisyLabelCalibration:
        guarantee = mechanism.guarantee(1 - self.alpha, counts.n, self.delta)
        assert guarantee is not None  # the rank was chosen to keep it
        released = NoisyLabelCalibration(
            threshold=float(self.candidates.values[mechanism.choose(counts.counts)]),
            alpha=self.alpha,
            guarantee=guarantee,
            privacy=LabelPrivacy.of(self.epsilon),
            mechanism=mechanism,
            candidates=self.candidates.size,
            recipe=self.candidates.recipe,
            score=self.score,
            versions=library_versions(),
            classes=words.classes,
            about=words.about or {},
        )
        tell("calibration", "released from noisy labels", score=self.score, alpha=self.alpha, n=counts.n)
        return released


def asked_of_labels(
    alpha: Level,
    label_epsilon: float | LabelStatement,
    score: str = "lac",
    delta: Level | None = None,
    candidates: AnyCandidates = None,
) -> LabelRequest:
    """Check what is asked, as in `calibrate_noisy_labels`.

    Examples
    --------
    >>> asked_of_labels(0.1, 1.0).candidates.size
    1000
    """
    kind = score_kind(score)
    if kind.task != "classification":
        raise InputError(f"score must be a classification score such as 'lac' or 'aps'; found {score!r}")
    spread = kind.candidates() if candidates is None else kind.asked(candidates)
    chosen = spread if isinstance(spread, Candidates) else Candidates.quantiles(spread, _SPREAD)
    stated = label_epsilon if isinstance(label_epsilon, LabelStatement) else None
    epsilon = label_epsilon.epsilon if isinstance(label_epsilon, LabelStatement) else label_epsilon
    return LabelRequest(
        exact_level("alpha", alpha),
        read_label_epsilon("label_epsilon", epsilon),
        str(kind.name),
        None if delta is None else float(exact_level("delta", delta)),
        chosen,
        None if stated is None else stated.classes,
    )


class NoisyLabelCounts:
    """Scores per bin of noisy labels, and of all classes of the same records. Batches may come in any order.

    Examples
    --------
    >>> counts = NoisyLabelCounts(Candidates.of([0.5]), "lac")
    >>> counts.add(np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1]))
    >>> counts.n, counts.counts.tolist()
    (2, [[2, 0], [3, 1]])
    """

    def __init__(self, candidates: Candidates, score: str) -> None:
        self._score, self._randomised = score, score_kind(score).randomised
        self._noisy = self._all = ScoreHistogram.empty(candidates)

    @property
    def n(self) -> int:
        """The number of records."""
        return self._noisy.total

    @property
    def counts(self) -> NDArray[np.int64]:
        """What `NoisyLabels.choose` takes: int64, shape (2, m)."""
        return np.stack([self._noisy.counts, self._all.counts])

    def add(self, probabilities: NDArray[Any], y: NDArray[np.int64], u: Uniforms = None) -> None:
        """Count records: probabilities of shape (n, K), and positions of their noisy labels, int64, shape (n,).

        A randomised score has one number per record, for all its classes.
        """
        shares = as_uniforms("u", u, len(y), self._randomised) if self._randomised or u is not None else None
        rows = max(1, _ELEMENTS // max(1, probabilities.shape[1]))
        for start in range(0, len(y), rows):
            part = slice(start, start + rows)
            scores = all_scores(probabilities[part], self._score, u=None if shares is None else shares[part])
            own = scores[np.arange(len(scores)), y[part]]
            self._noisy += ScoreHistogram.from_scores(own, self._noisy.candidates, self._score)
            self._all += ScoreHistogram.from_scores(scores.ravel(), self._all.candidates, self._score)


def calibrate_noisy_labels(
    probabilities: ArrayLike,
    noisy_labels: ArrayLike | RandomisedLabels,
    alpha: Level,
    label_epsilon: float | LabelStatement | None = None,
    *,
    score: str = "lac",
    delta: Level | None = None,
    candidates: AnyCandidates = None,
    classes: Sequence[object] | None = None,
    u: Uniforms = None,
    about: Mapping[str, str] | None = None,
) -> NoisyLabelCalibration:
    """A threshold that covers the true labels, from labels that `randomise_labels` made; it costs nothing more.

    The analyst holds features and model outputs, and never a true label. Counts are corrected for what randomised
    labels cover anyway, and noise is allowed for in the promise, which is exact for finite n (docs/theory-labels.md).
    Where there are too few records for the loss, the threshold is +inf, with a warning.

    Parameters
    ----------
    probabilities
        Shape (n, K): of all records, as in `confide.class_score`.
    noisy_labels
        What `randomise_labels` returned, which knows its loss; or the noisy labels alone, shape (n,).
    alpha
        Miscoverage level in (0, 1).
    label_epsilon
        The loss with which labels were randomised, or their `LabelStatement`; nobody can check it: a value that is too
        large promises too much.
    score
        Any classification score, by its name.
    delta
        Promise coverage for this calibration with probability 1 - delta, instead of on average.
    candidates
        Public candidates, or how they are spread, or their number; by default those that suit the score.
    classes
        The K class names, in the order of the columns; by default those of a data frame, or of the labels' statement.
    u
        For randomised scores: numbers in [0, 1], shape (n,); by default fresh ones.
    about
        As in `calibrate`.

    Returns
    -------
    NoisyLabelCalibration
        A `Calibration` that `predict_set` and everything else takes, and whose privacy statement speaks of labels.

    Warns
    -----
    CoverageWarning
        If the threshold is +inf, or nearly so.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or the classes are not those that the labels were randomised among.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4.0, 1.0], 4000)
    >>> y = (p[:, 1] > rng.random(4000)).astype(int)
    >>> noisy = confide.randomise_labels(y, 2, epsilon=2.0)
    >>> released = calibrate_noisy_labels(p, noisy, alpha=0.1)
    >>> confide.predict_set([[0.99, 0.01], [0.5, 0.5]], released).labels()
    [[0], [0, 1]]
    """
    stated = noisy_labels.statement if isinstance(noisy_labels, RandomisedLabels) else None
    if stated is not None and label_epsilon not in (None, stated, stated.epsilon):
        raise InputError("label_epsilon must be left out, or be that of the randomised labels")
    loss = label_epsilon if stated is None else stated
    if loss is None:
        raise InputError("label_epsilon must be given: with which loss the labels were randomised")
    request = asked_of_labels(alpha, loss, score, delta, candidates)
    p, own = class_columns(probabilities, classes, check=True)
    names = names_beside(request.classes, own, p.shape[1])
    labels = noisy_labels.labels if isinstance(noisy_labels, RandomisedLabels) else noisy_labels
    refuse_other_rows(probabilities=probabilities, noisy_labels=labels, u=u)
    y = as_labels("noisy_labels", labels, len(p), p.shape[1], None if isinstance(names, int) else names)
    counts = request.counts()
    counts.add(p, y, u)
    released = request.release(counts, names, about)
    warn_of_label_release(released)
    return released


def names_beside(stated: Classes | None, own: Sequence[Any] | None, k: int) -> Any:
    """The class names, or their number: those of the columns, which must be those of the statement, if there is one.

    Examples
    --------
    >>> names_beside(("no", "yes"), None, 2), names_beside(None, None, 2)
    (('no', 'yes'), 2)
    """
    if stated is None:
        return k if own is None else tuple(own)
    if (stated if isinstance(stated, int) else len(stated)) != k:
        raise InputError(f"probabilities must have a column for each class of the labels' statement; found {k}")
    if isinstance(stated, int) or own is None:
        return stated if own is None else tuple(own)
    if list(map(canonical, own)) != list(map(canonical, stated)):
        raise InputError("classes must be those of the labels' statement, in the order of the columns")
    return tuple(own)


def warn_of_label_release(released: NoisyLabelCalibration) -> None:
    """Say at the release what is worth saying of its threshold, and of what was asked for."""
    warn_of_choices(released)
    if note := remark(released):
        warnings.warn(note, CoverageWarning, stacklevel=outside())
