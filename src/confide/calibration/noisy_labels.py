"""Randomised labels, and thresholds for the true labels that are computed from them (docs/theory-labels.md)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_array, as_labels, as_uniforms, class_columns, class_names, refuse_other_rows
from confide.calibration.release import NO_PAYER, Payer, prepare, release
from confide.candidates import AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.mechanisms import LabelPrivacy, NoisyLabels, PrivacyStatement, noisy_labels_for
from confide.releases import (
    MOST_CLASSES,
    LabelStatement,
    Metadata,
    ModelFingerprint,
    NoisyLabelCalibration,
    read_label_epsilon,
    remark,
    warn_of_choices,
)
from confide.scores import all_scores, score_kind
from confide.selection import check_sampler, randomised_response
from confide.support import (
    Classes,
    Described,
    Level,
    Section,
    caller_stacklevel,
    canonical_name,
    check_versions,
    exact_level,
    library_versions,
    log_event,
    positive_integer,
    public_classes,
    several,
    to_text,
)

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


# For the owner of the true labels: each is randomised on its own before it is given to anyone else.


MECHANISM = "labelling by randomised-response"


@dataclass(frozen=True, eq=False, repr=False)
class RandomisedLabels(Described):
    """Randomised labels, which may be shared, and their public statement.

    `labels`, or `numpy.asarray(self)`, is an array of the labels.

    Parameters
    ----------
    labels
        Shape (n,): class names, or positions from 0 if only the number of classes was given.
    statement
        The privacy loss, the classes, and the number of labels: all public.
    """

    labels: NDArray[Any]
    statement: LabelStatement

    @property
    def epsilon(self) -> float:
        """The privacy loss of one label."""
        return self.statement.epsilon

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.labels, dtype=dtype) if copy or dtype is not None else self.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels.tolist())

    def _section(self) -> Section:
        return Section("RandomisedLabels", to_text(self.statement._section()))

    def _brief(self) -> str:
        return f"n {len(self)}, classes {self.statement.width}, epsilon {self.epsilon:g} of each label"


def randomise_labels(
    labels: ArrayLike,
    classes: Sequence[object] | int,
    epsilon: float,
    *,
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
    again: bool = False,
) -> RandomisedLabels:
    """Randomise labels one by one: K-ary randomised response, drawn by OpenDP's secure sampler, never seeded.

    With probability e^epsilon/(e^epsilon + K - 1) a label stays. Otherwise it becomes one of the other K - 1 classes
    with equal probability. Any number of calibrations, scores and levels can be computed from the result at no
    further cost. Two calls cost the sum of their epsilons, for each label.

    Parameters
    ----------
    labels
        The true labels, shape (n,): class names, or integers from 0 to K-1 if `classes` is the number K.
    classes
        All K class names, a public list that is not taken from the labels; or their number; at least two.
    epsilon
        Privacy loss of each label, between 1e-6 and 30, under replacement of one label. Neither features nor the
        existence of a record are protected.
    ledger, dataset
        A `confide.Ledger`, and the name of these labels' budget in it. epsilon is charged durably under `replace_one`
        before a label is drawn. The same request with the same labels returns the labels that were drawn before, at no
        cost.
    again
        Draw and charge again, although the ledger has answered an identical request.

    Returns
    -------
    RandomisedLabels
        The labels, and their public statement.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; the message contains no label.
    OtherDataError, BudgetError, LedgerError
        As in `confide.calibrate`.

    Examples
    --------
    >>> noisy = randomise_labels(["no", "yes", "no"], ["no", "yes"], epsilon=1.0)
    >>> len(noisy), set(noisy) <= {"no", "yes"}
    (3, True)
    >>> noisy
    RandomisedLabels(n 3, classes 2, epsilon 1 of each label)
    """
    names, k = _classes(classes)
    array = as_array("labels", labels)
    positions = as_labels("labels", labels, array.shape[0] if array.ndim == 1 else 0, k, names)
    if not len(positions):
        raise InputError("labels", "must have at least one entry", got="none")
    public = k if names is None else public_classes("classes", names)
    statement = LabelStatement(read_label_epsilon("epsilon", epsilon), public, len(positions), library_versions())
    check_sampler()

    def draw(seen: NDArray[np.int64]) -> NDArray[np.int64]:
        return randomised_response(seen, k, statement.epsilon)

    if ledger is None and dataset is None:
        drawn = draw(positions)
    else:
        from confide.ledger import make_payment, pay

        spent = PrivacyStatement("replace_one", statement.epsilon, 1, None, statement.epsilon, None)
        named = k if names is None else [canonical_name(name) for name in names]  # type: ignore[arg-type]
        parameters = {"kind": "labelling", "epsilon": statement.epsilon, "classes": named, "n": statement.n}
        payment = make_payment(spent, MECHANISM, parameters, ledger, dataset, again=again)
        text = pay(
            payment,
            lambda: positions,
            lambda seen: seen.tobytes(),
            lambda seen: json.dumps([draw(seen).tolist(), dict(statement.versions)], separators=(",", ":")),
        )
        drawn, versions = _stored_positions(text)
        statement = replace(statement, versions=versions)
    log_event("labels", "randomised", n=statement.n, classes=k, epsilon=statement.epsilon)
    return RandomisedLabels(drawn if names is None else _names_at(names, drawn), statement)


def _stored_positions(text: str) -> tuple[NDArray[np.int64], dict[str, str]]:
    """The positions in a ledger's entry and the versions that drew them; older ledgers contain only positions."""
    kept = json.loads(text)
    drawn, versions = kept if len(kept) == 2 and isinstance(kept[1], dict) else (kept, {})
    return np.array(drawn, dtype=np.int64), check_versions("ledger's answer", versions)


def _classes(classes: Sequence[object] | int) -> tuple[tuple[object, ...] | None, int]:
    """The class names, or None if only their number is given, and the number."""
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        names, k = None, positive_integer("classes", int(classes))
    else:
        listed = several("classes", classes)
        names, k = class_names(listed, len(listed)), len(listed)
        if public_classes("classes", listed) == k:  # names that are the numbers from 0
            names = None if names == tuple(range(k)) else names
    if k < 2:
        raise InputError("classes", "must be at least two: with one class there is nothing to protect", got="1")
    return names, k


def _names_at(names: tuple[object, ...], positions: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(names if len({type(name) for name in names}) == 1 else np.array(names, dtype=object))[positions]


_SPREAD = 1000
_ELEMENTS = 2**21


@dataclass(frozen=True)
class LabelRequest:
    """A validated request for randomised labels; all of it is public. `release` accepts it like a `Request`.

    Parameters
    ----------
    alpha, epsilon, score, delta, candidates
        As in `calibrate_noisy_labels`; epsilon is the privacy loss with which each label was randomised.
    classes
        The class names, or their number; None until a statement or columns determine them.
    about, fingerprint
        As in `calibrate`.
    """

    alpha: Fraction
    epsilon: float
    score: str
    delta: float | None
    candidates: Candidates
    classes: Any = None
    about: Mapping[str, str] | None = None
    fingerprint: ModelFingerprint | None = None

    public_n: ClassVar[bool] = True

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """The candidates, which do not depend on the number of records."""
        return self.candidates

    def of_columns(self, own: Sequence[Any] | None, k: int, about: Mapping[str, str] | None = None) -> LabelRequest:
        """The same request for probabilities in k columns, whose names are `own`, if they have names."""
        return replace(self, classes=check_class_names(self.classes, own, k), about=about)

    @property
    def width(self) -> int:
        """K, the number of classes."""
        k: int = self.classes if isinstance(self.classes, int) else len(self.classes)
        return positive_integer("the number of classes less one", k - 1, most=MOST_CLASSES) + 1


@dataclass(frozen=True)
class PreparedLabels:
    """A threshold from randomised labels; it has no further cost."""

    request: LabelRequest
    mechanism: NoisyLabels
    n: int

    @property
    def candidates(self) -> Candidates:
        """The candidates for counting."""
        return self.request.candidates

    def release(
        self, look: Callable[[], Mapping[None, NoisyLabelCounts]], *, charge_first: bool = False
    ) -> NoisyLabelCalibration:
        """Read, correct the counts for what randomised labels cover by chance, and state the result."""
        request = self.request
        words = Metadata.stated(request.classes, request.about, fingerprint=request.fingerprint)
        guarantee = self.mechanism.guarantee(1 - request.alpha, self.n, request.delta)
        assert guarantee is not None  # the rank was chosen so that it holds
        released = NoisyLabelCalibration(
            threshold=float(request.candidates.values[self.mechanism.choose(look()[None].counts)]),
            alpha=request.alpha,
            guarantee=guarantee,
            privacy=LabelPrivacy.of(request.epsilon),
            mechanism=self.mechanism,
            candidates=request.candidates.size,
            recipe=request.candidates.recipe,
            score=request.score,
            versions=library_versions(),
            classes=words.classes,
            about=words.about or {},
            fingerprint=words.fingerprint,
        )
        log_event("calibration", "released from noisy labels", score=request.score, alpha=request.alpha, n=self.n)
        warn_of_choices(released)
        if note := remark(released):
            warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
        return released


@prepare.register
def prepare_labels(request: LabelRequest, n: int | None = None, payer: Payer = NO_PAYER) -> PreparedLabels:
    """Prepare a threshold from randomised labels; the target rank follows from the numbers of records and classes."""
    if payer != NO_PAYER:
        raise InputError("ledger", "must be left out: labels are charged where they are randomised")
    if not n:
        raise InputError("noisy_labels", "must have at least one entry", got="none")
    return PreparedLabels(
        request, noisy_labels_for(1 - request.alpha, n, request.epsilon, request.width, request.delta), n
    )


@dataclass(frozen=True)
class LabelledScores:
    """Probabilities and randomised labels in memory, as a source of releases.

    Parameters
    ----------
    probabilities
        Shape (n, K).
    positions
        The positions of the labels among the classes, int64, shape (n,).
    u
        For randomised scores: numbers in [0, 1], shape (n,).
    """

    probabilities: NDArray[Any]
    positions: NDArray[np.int64]
    u: Uniforms = None
    reading_is_visible = recounts = False

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.positions)

    def count(self, request: LabelRequest, candidates: Candidates) -> dict[None, NoisyLabelCounts]:
        """The counts of the scores of the labels, and of all classes."""
        counts = NoisyLabelCounts(candidates, request.score)
        counts.add(self.probabilities, self.positions, self.u)
        return {None: counts}


def label_request(
    alpha: Level,
    label_epsilon: float | LabelStatement,
    score: str = "lac",
    delta: Level | None = None,
    candidates: AnyCandidates = None,
) -> LabelRequest:
    """Validate the arguments of `calibrate_noisy_labels`.

    Examples
    --------
    >>> label_request(0.1, 1.0).candidates.size
    1000
    """
    kind = score_kind(score)
    if kind.task != "classification":
        raise InputError("score", "must be a classification score such as 'lac' or 'aps'", got=repr(score))
    spread = kind.candidates() if candidates is None else kind.choose_candidates(candidates)
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
    """Counts of scores of noisy labels, and of all classes of the same records. Batches may come in any order.

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

    def __len__(self) -> int:
        return self.n

    @property
    def counts(self) -> NDArray[np.int64]:
        """The argument of `NoisyLabels.choose`: int64, shape (2, m)."""
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
            label_scores = scores[np.arange(len(scores)), y[part]]
            self._noisy += ScoreHistogram.from_scores(label_scores, self._noisy.candidates, self._score)
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
    fingerprint: ModelFingerprint | None = None,
) -> NoisyLabelCalibration:
    """Release a threshold that covers the true labels, from labels of `randomise_labels`, at no further privacy cost.

    The analyst has features and model outputs, and never a true label. Counts are corrected for what randomised labels
    cover by chance. The guarantee includes the noise and is exact for finite n (docs/theory-labels.md). If there are
    too few records for the privacy loss, the threshold is +inf, with a warning.

    Parameters
    ----------
    probabilities
        Shape (n, K): of all records, as in `confide.class_score`.
    noisy_labels
        The result of `randomise_labels`, which contains its privacy loss; or the noisy labels alone, shape (n,).
    alpha
        Miscoverage level in (0, 1).
    label_epsilon
        The privacy loss with which labels were randomised, or their `LabelStatement`. The library cannot check it: with
        a value that is too large the coverage guarantee is wrong.
    score
        The name of a classification score.
    delta
        Guarantee coverage for this calibration with probability 1 - delta, instead of on average.
    candidates
        Public candidates, or how they are spread, or their number; by default they suit the score.
    classes
        The K class names, in the order of the columns; by default those of a data frame, or of the labels' statement.
    u
        For randomised scores: numbers in [0, 1], shape (n,); drawn by default.
    about, fingerprint
        As in `calibrate`.

    Returns
    -------
    NoisyLabelCalibration
        A `Calibration` that `predict_set` and all other functions accept. Its privacy statement is about labels.

    Warns
    -----
    CoverageWarning
        If the threshold is +inf, or nearly so.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or the classes are not those of the randomised labels.

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
        raise InputError("label_epsilon", "must be left out, or be that of the randomised labels")
    loss = label_epsilon if stated is None else stated
    if loss is None:
        raise InputError("label_epsilon", "must be given: the privacy loss with which the labels were randomised")
    request = label_request(alpha, loss, score, delta, candidates)
    p, column_names = class_columns(probabilities, classes, check=True)
    request = replace(request.of_columns(column_names, p.shape[1], about), fingerprint=fingerprint)
    labels = noisy_labels.labels if isinstance(noisy_labels, RandomisedLabels) else noisy_labels
    refuse_other_rows(probabilities=probabilities, noisy_labels=labels, u=u)
    names = None if isinstance(request.classes, int) else request.classes
    released: NoisyLabelCalibration = release(
        LabelledScores(p, as_labels("noisy_labels", labels, len(p), p.shape[1], names), u), request
    )
    return released


def check_class_names(stated: Classes | None, own: Sequence[Any] | None, k: int) -> Any:
    """The class names, or their number: from the columns, which must match the statement, if there is one.

    Examples
    --------
    >>> check_class_names(("no", "yes"), None, 2), check_class_names(None, None, 2)
    (('no', 'yes'), 2)
    """
    if stated is None:
        return k if own is None else tuple(own)
    if (stated if isinstance(stated, int) else len(stated)) != k:
        raise InputError("probabilities", "must have a column for each class of the labels' statement", got=str(k))
    if isinstance(stated, int) or own is None:
        return stated if own is None else tuple(own)
    if list(map(canonical_name, own)) != list(map(canonical_name, stated)):
        raise InputError("classes", "must be those of the labels' statement, in the order of the columns")
    return tuple(own)
