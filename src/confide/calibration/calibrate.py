"""Calibrations of scores in memory, and of counts, and the options that every call takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from numpy.typing import ArrayLike

from confide.calibration.release import Counted, Payer, Scores, release
from confide.calibration.request import SIDES, By, Request
from confide.candidates import AnyCandidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.planning import COMBINATIONS, Choices, ClassShift, Population, refuse_halves, shifted_population
from confide.releases import Calibration, GroupCalibration, LevelCalibration, SidesCalibration
from confide.scores import interval_score, named_by, score_kind
from confide.support import Level, exact_level, one_of, refuse_unknown

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class LedgerOptions(TypedDict, total=False):
    """Who pays.

    Parameters
    ----------
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) under which it keeps these data's budget. The cost is
        charged durably before the mechanism runs. An identical request about the same data returns the kept release,
        says so and costs nothing; about other data it is refused.
    again
        These are the same people with new records or a new model: draw anew, and charge it, although the ledger has
        answered an identical request.
    """

    ledger: Ledger | None
    dataset: str | Dataset | None
    again: bool


class Options(Choices, LedgerOptions, total=False):
    """What `calibrate` and its kin may be asked besides, with all of `Choices` and `LedgerOptions`.

    Parameters
    ----------
    about
        Public words to keep in the release: any of `model`, `version` (of the model), `data`, `purpose`, `responsible`
        and `date`, each of up to 500 printable characters.
    unit
        For residuals: a public number in their units, such as a typical size of the target or of an error. Candidates
        are spread around it; within a factor of 100 it makes thresholds sharper, and rarely beyond the data.
    partition
        For groups and classes, required with a ledger: the public name of what divides the records, such as
        `"hospital"`. One name must always stand for one way of dividing them.
    """

    about: Mapping[str, str] | None
    unit: float | None
    partition: str | None


_PAYERS = ("ledger", "dataset", "partition", "again")
_WEIGHTS = ("class_weights", "labels", "weights", "weight_bound")
_WEIGHTED = "weights are for `calibrate` and tables, which see every record; counts that are weighted take population"
_NUMBER = "the number of records is that of those which are given"


def split_options(
    function: str, options: Mapping[str, Any], *own: str, by: By | None = None
) -> tuple[Payer, dict[str, Any]]:
    """Who pays, and the other options, as fields of a `Request`; `own` are those that a call takes besides.

    Raises
    ------
    InputTypeError
        If a call does not take an option; InputError, if it would be weights of something with several thresholds.

    Examples
    --------
    >>> split_options("calibrate", {"delta": 0.1, "dataset": "clinic"})[1]
    {'delta': 0.1}
    """
    for name in _WEIGHTS:
        if name in options and (why := _why_not(by)) is not None:
            raise InputError(name, f"must be left out {why}")
    known = (*Options.__optional_keys__, *own)
    hints = {"n": _NUMBER} | dict.fromkeys(_WEIGHTS, _WEIGHTED)
    refuse_unknown(function, options, [name for name in known if name != "partition" or name in own], hints)
    payer = Payer(**{name: options[name] for name in _PAYERS if name in options})
    return payer, {name: value for name, value in options.items() if name not in _PAYERS}


def _why_not(by: By | None) -> str | None:
    """Why there are no weights with several thresholds, as the table of combinations says it."""
    rows = (one for one in COMBINATIONS if one.given == "by" and by in one.values and "population" in one.others)
    return next((one.because for one in rows), None)


_BOTH = "cqr_sides"


def calibrate(
    scores: ArrayLike,
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    class_weights: Mapping[Any, Any] | ClassShift | None = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_bound: float | None = None,
    **options: Unpack[Options],
) -> Calibration:
    """Release a threshold with a coverage guarantee and a differential-privacy guarantee.

    Every call is a release of its own: two calls on the same data cost the sum of their epsilons.

    Parameters
    ----------
    scores
        Conformity scores of the calibration records, shape (n,), larger means stranger; any array that numpy can
        read. Each must be a function of one record (and of public information) alone. Under `add_remove` there may be
        none: that there are any is secret, too. Those that the score functions return (`lac_score`,
        `absolute_residual_score`, ...) know their name and their classes, which are recorded.
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per person. Give this or `rho`.
    score
        Name of the score, recorded in the release, for scores that do not know it: those of this library set good
        default candidates and have their range checked; any other name is recorded as it is. A release without a name
        is for your own comparison with its threshold: `predict_set` and `predict_interval` refuse it.
    classes
        The public class names, in the order of the probabilities' columns, or their number, if the scores do not know
        them: new records with other classes are then refused.
    candidates
        Public candidate thresholds, or how they are spread, or their number: by default as suits the score, and as many
        as suit what is asked. `Candidates.around` spreads them around a guess.
    class_weights, labels
        A promise for a population with other class shares, and nothing else changed: for each class its new share
        divided by its share where these records come from, up to a common factor, or a `confide.ClassShift` of both;
        and the class of each record, shape (n,). Both shares are **public**, from a code book or a register: shares
        that are counted among these very records break the privacy promise, and wrong ones the coverage promise.
    weights, weight_bound
        The same for any public density ratio: the weight of each record, shape (n,), from 0 to the public bound, a
        function of its covariates that is known without these records, and never of its score.
    **options
        Those of `Options`: `rho` instead of epsilon, `neighbors`, `delta`, `unit`, `about`, `ledger`, ...

    Returns
    -------
    Calibration
        The threshold (possibly +inf or nearly so, with a `CoverageWarning` that says why), the promise and the
        privacy statement.

    Warns
    -----
    EarlierReleaseWarning
        If it is the ledger's earlier release; nothing was charged.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.
    OtherDataError
        If the ledger answered this request before, about other data; then nothing was released nor charged.
    BudgetError, LedgerError
        If the ledger's limit does not allow it, or the ledger cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.candidates import Candidates
    >>> scores = np.random.default_rng(0).random(2000)
    >>> released = calibrate(scores, alpha=0.1, epsilon=1.0, candidates=Candidates.unit(1000))
    >>> print(released.privacy)
    1-differential privacy for adding or removing one record
    """
    payer, asked = split_options("calibrate", options)
    refuse_halves(class_weights=class_weights, labels=labels, weights=weights, weight_bound=weight_bound)
    score, known = named_by(scores, score, classes)
    records = Scores.of(scores, labels=labels, weights=weights)
    population = shifted_population(class_weights, weight_bound)
    request = Request(
        alpha=alpha, epsilon=epsilon, score=score, classes=known, candidates=candidates, population=population, **asked
    )
    released: Calibration = release(records, request, payer)
    return released


def calibrate_levels(
    scores: ArrayLike,
    alphas: Sequence[Level],
    epsilon: float | None = None,
    *,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    shares: Sequence[Level] | None = None,
    **options: Unpack[Options],
) -> LevelCalibration:
    """Nested thresholds for several levels under one budget.

    The budget is divided among the levels, and each keeps the promise of `calibrate` at its share. Afterwards every
    threshold is raised to the largest one of a less demanding level, so that sets are nested; raising one never lowers
    its coverage, and looks at the released numbers alone.

    Parameters
    ----------
    scores
        Shape (n,), as in `calibrate`.
    alphas
        Different miscoverage levels in (0, 1).
    epsilon, rho
        The budget of all levels together. Give one of the two.
    shares
        How the budget is divided, in the order of `alphas`; positive, summing to one; by default evenly.
    delta
        Training-conditional promises that hold for all levels at once with probability 1 - delta: each gets an equal
        part of delta.
    score, classes, candidates, **options
        As in `calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).random(5000)
    >>> released = calibrate_levels(scores, [0.05, 0.1, 0.2], epsilon=1.0, score="lac")
    >>> [round(released[alpha].threshold, 1) for alpha in (0.2, 0.1)], released.privacy.epsilon <= 1
    ([0.8, 0.9], True)
    """
    payer, asked = split_options("calibrate_levels", options, by="level")
    score, known = named_by(scores, score, classes)
    asked |= {"by": "level", "shares": shares, "candidates": candidates}
    request = Request(alpha=alphas, epsilon=epsilon, score=score, classes=known, **asked)
    released: LevelCalibration = release(Scores.of(scores), request, payer)
    return released


def calibrate_groups(
    scores: ArrayLike,
    groups: ArrayLike,
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None = None,
    *,
    by: Literal["group", "class"] = "group",
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> GroupCalibration:
    """One threshold per group (Mondrian conformal prediction), so that every group is covered on its own.

    Vovk, Lindsay, Nouretdinov and Gammerman, "Mondrian confidence machine", 2003. With `by="class"` the groups are
    the records' own labels, and every class is covered on its own.

    Groups are disjoint, so under `add_remove` each may spend the whole budget. A replaced record can leave one group
    and enter another: under `replace_one` each spends half of it (docs/theory.md, section 6). Group sizes stay secret
    under both. A group with too few records gets the threshold +inf.

    Parameters
    ----------
    scores, alpha, epsilon, rho, score, classes, candidates, **options
        As in `calibrate`; the promise holds for each group, and `n_typical` is a guess of the size of one: by default
        an even part of a thousand records, and at least 150.
    groups
        The group of each record, shape (n,); for `by="class"` its label.
    names
        All groups there are, **public**: taken from a code book, not from the records.
    by
        What the threshold depends on: `"group"` or `"class"`.
    neighbors
        The relation under which the budget is meant.
    ledger, dataset, partition
        See `Options`; groups are charged as cells of one partition, so under `add_remove` they cost their maximum.

    Warns
    -----
    CoverageWarning
        If thresholds are +inf or nearly so; it names the groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores, labels = rng.random(5000), rng.integers(0, 2, 5000)
    >>> released = calibrate_groups(scores, labels, [0, 1], 0.1, 1.0, by="class", score="lac", neighbors="replace_one")
    >>> released.privacy.epsilon <= 1, released.privacy.add_remove
    (True, 0.5)
    """
    payer, asked = split_options("calibrate_groups", options, "partition", by="group")
    score, known = named_by(scores, score, classes)
    asked |= {"by": one_of("by", by, ("group", "class")), "names": names, "candidates": candidates}
    request = Request(alpha=alpha, epsilon=epsilon, score=score, classes=known, **asked)
    released: GroupCalibration = release(Scores.of(scores, groups=groups), request, payer)
    return released


def calibrate_sides(
    quantiles: ArrayLike,
    targets: ArrayLike,
    alpha: Level | tuple[Level, Level],
    epsilon: float | None = None,
    *,
    candidates: AnyCandidates = None,
    share_low: Level = "0.5",
    **options: Unpack[Options],
) -> SidesCalibration:
    """One-sided thresholds for both ends of conformalized quantile regression, under one budget.

    Romano, Patterson and Candes, NeurIPS 2019, Theorem 2: the two sides are calibrated separately, and the interval
    covers with probability at least 1 - alpha by the union bound.

    Parameters
    ----------
    quantiles
        Shape (n, 2): lower and upper quantiles predicted for the calibration records.
    targets
        Shape (n,).
    alpha
        Miscoverage of the interval, split in halves, or a pair (lower side, upper side).
    epsilon, rho
        The budget of both together; the lower side gets `share_low` of it.
    delta
        A training-conditional promise for the interval; each side gets half of delta.
    candidates, **options
        As in `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = calibrate_sides(np.tile([-1.0, 1.0], (5000, 1)), rng.normal(size=5000), 0.1, 1.0)
    >>> 0.4 < released.low.threshold < 1 and 0.4 < released.high.threshold < 1
    True
    """
    payer, asked = split_options("calibrate_sides", options, by="side")
    scores = Scores({name: interval_score(quantiles, targets, name) for name in SIDES})
    shares = shares_of_sides(share_low)
    request = Request(alpha=alpha, epsilon=epsilon, by="side", shares=shares, candidates=candidates, **asked)
    released: SidesCalibration = release(scores, request, payer)
    return released


def shares_of_sides(low: Level) -> tuple[Fraction, Fraction]:
    """How the loss is divided between the lower and the upper side."""
    share = exact_level("share_low", low)
    return share, 1 - share


def calibrate_histogram(
    histogram: ScoreHistogram | Mapping[Any, ScoreHistogram],
    alpha: Any,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    by: Literal["group", "class"] | None = None,
    shares: Sequence[Level] | None = None,
    share_low: Level | None = None,
    population: Population | None = None,
    **options: Unpack[Options],
) -> Any:
    """`calibrate` for scores that were already counted, wherever they live; and its kin.

    Parameters
    ----------
    histogram
        The counts, and the candidates that they are over; for one threshold per group or class those of each, by its
        public name (also of the groups without records); for `score="cqr_sides"` those of `cqr_low` and `cqr_high`.
    alpha
        The miscoverage level, or several for nested thresholds under one budget.
    epsilon, score, **options
        As in `calibrate`, `calibrate_levels`, `calibrate_groups` (`by`, `partition`) and `calibrate_sides`; and
        `population`, where the counts are sums of its whole weights. With `mechanism="none"` the threshold is the first
        candidate that reaches the rank, for the scores are not here.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration or SidesCalibration
        What follows from the arguments.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, as counts over different candidates; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.candidates import Candidates
    >>> histogram = ScoreHistogram.from_scores(np.random.default_rng(0).random(2000), Candidates.unit(1000))
    >>> 0.85 < calibrate_histogram(histogram, alpha=0.1, epsilon=1.0).threshold < 0.97
    True
    >>> len(calibrate_histogram(histogram, [0.1, 0.2], 1.0, neighbors="replace_one").parts)
    2
    """
    payer, asked = split_options("calibrate_histogram", options, "partition")
    counted = {None: histogram} if isinstance(histogram, ScoreHistogram) else _by_name(histogram)
    several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    own: dict[str, Any] = {"shares": shares, "population": population, "classes": classes}
    if score == _BOTH and None not in counted:
        if set(counted) != set(SIDES):
            raise InputError("histogram", f"must have the counts of {' and '.join(SIDES)} with score={_BOTH!r}")
        if len({one.total for one in counted.values()}) > 1:
            raise InputError("histogram", "must have as many records on both sides")
        own |= {"by": "side", "shares": shares_of_sides("0.5" if share_low is None else share_low)}
    elif share_low is not None:
        raise InputError("share_low", "must be left out: it divides the loss between two sides")
    else:
        own["score"] = score_kind(score).name
        if None not in counted:
            if several:
                raise InputError(
                    "alpha", "must be one level for counts by name: ask for groups or for levels, not both"
                )
            own |= {"by": one_of("by", by or "group", ("group", "class")), "names": tuple(counted)}
        elif several:
            own["by"] = "level"
    candidates = next(iter(counted.values())).candidates
    request = Request(alpha=alpha, epsilon=epsilon, candidates=candidates, **own, **asked)
    return release(Counted(counted), request, payer)


def _by_name(histogram: Any) -> dict[Any, ScoreHistogram]:
    """Counts by name, over the same candidates."""
    if not isinstance(histogram, Mapping) or not all(isinstance(one, ScoreHistogram) for one in histogram.values()):
        raise InputTypeError(
            "histogram", "must be a ScoreHistogram, or a mapping of names to such", got=type(histogram).__name__
        )
    counted = dict(histogram)
    if not counted:
        raise InputError("histogram", "must have the counts of one group or more", got="none")
    if len({one.candidates.digest for one in counted.values()}) > 1:
        raise InputError("histogram", "must have all counts over the same candidates", got="different ones")
    return counted
