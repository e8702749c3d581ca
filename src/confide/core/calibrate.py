"""Calibrate with scores in memory, with quantiles, with counted scores, or with noisy counts of another engine.

`calibrate` and `calibrate_sides` read records; `calibrate_histogram` and `calibrate_counts` take counts of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from numpy.typing import ArrayLike

from confide.arrays import GroupColumns, Groups, as_vector, refuse_other_rows
from confide.candidates import AnyCandidates
from confide.core.account import Payer
from confide.core.design import design_at
from confide.core.fingerprint import ModelFingerprint
from confide.core.population import ClassShift, Population, shifted_population
from confide.core.published_counts import PublishedCounts
from confide.core.release import Release
from confide.core.remarks import warn_about, warn_of_choices
from confide.core.request import Request
from confide.core.rules import COMBINATIONS, check_together
from confide.core.sources import GivenCounts, Scores, source_of
from confide.core.steps import assembled, release
from confide.core.terms import Choices
from confide.core.thresholds import SIDES, By
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.mechanisms import Chosen
from confide.scores import interval_score, name_of_scores, score_kind
from confide.support import (
    Level,
    caller_stacklevel,
    check_unknown_arguments,
    exact_level,
    library_versions,
    log_event,
    one_of,
    takes_alpha,
)

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class LedgerOptions(TypedDict, total=False):
    """Options that state which privacy budget is charged.

    Parameters
    ----------
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) of the data set's budget in it. The cost is charged
        durably before the mechanism runs. An identical request with the same records returns the stored release with
        a warning, at no cost. With other records it raises `OtherDataError`.
    again
        The same people with new records or a new model: draw and charge again, although the ledger contains an
        identical request.
    """

    ledger: Ledger | None
    dataset: str | Dataset | None
    again: bool


class Options(Choices, LedgerOptions, total=False):
    """Options of `calibrate` and related functions, including all of `Choices` and `LedgerOptions`.

    Parameters
    ----------
    about
        Public metadata for the release: any of `model`, `version` (of the model), `data`, `purpose`, `responsible`
        and `date`, each of up to 500 printable characters.
    fingerprint
        The model's `confide.ModelFingerprint`, of its outputs on PUBLIC probe records or of its file. It is stored in
        the release, so that another model is rejected (`Release.for_model`).
    unit
        For residuals: a public number in their units, such as a typical size of the target or of an error. Candidates
        are spread around it. If it is right within a factor of 100, thresholds are sharper and rarely exceed the data.
    chosen
        The public statement of `choose_score`, if the score was chosen privately on a share of the records. The records
        of this call are all others. The release then states the choice, and the privacy loss of both together.
    partition
        For groups and classes, required with a ledger: the public name of the attribute that divides the records, such
        as `"hospital"`. A name must always stand for the same division.
    """

    about: Mapping[str, str] | None
    fingerprint: ModelFingerprint | None
    unit: float | None
    chosen: Chosen | None
    partition: str | None


BY_NEEDS_GROUPS = "must be left out without groups: it states whether they are groups or classes"

# The fields of `Payer`.
_PAYERS = ("ledger", "dataset", "partition", "again")

# Arguments of `calibrate` that related functions do not take, and the reasons.
_WEIGHTS = ("class_weights", "labels", "weights", "weight_bound")
_WEIGHTED = "weights are for `calibrate` and tables, which read every record; for weighted counts pass population"
_NUMBER = "the number of records is the number of scores that are given"


def split_options(
    function: str, options: Mapping[str, Any], *additional: str, by: By | None = None
) -> tuple[Payer, dict[str, Any]]:
    """Return the payer, and the other options as fields of a `Request`; `additional` are options of this call alone."""
    refuse_weights(by, [name for name in _WEIGHTS if name in options])
    accepted = (*Options.__optional_keys__, *additional)
    hints = {"n": _NUMBER} | dict.fromkeys(_WEIGHTS, _WEIGHTED)
    known = [name for name in accepted if name != "partition" or name in additional]
    check_unknown_arguments(function, options, known, hints, ("score", "classes", "candidates", "epsilon", "alpha"))
    payer = Payer(**{name: options[name] for name in _PAYERS if name in options})
    return payer, {name: value for name, value in options.items() if name not in _PAYERS}


def refuse_weights(by: By | None, given: Sequence[str]) -> None:
    """Reject the first of these arguments about weights if several thresholds exclude them, by the combinations."""
    rules = (rule for rule in COMBINATIONS if rule.given == "by" and by in rule.values and "population" in rule.others)
    if given and (rule := next(rules, None)) is not None:
        raise InputError(given[0], f"must be left out {rule.because}")


def is_several(alpha: Any) -> bool:
    """Whether these are several levels: a sequence, also of one level, but no text and no array, which scores are."""
    return isinstance(alpha, Sequence) and not isinstance(alpha, str)


@takes_alpha
def calibrate(
    scores: ArrayLike,
    alpha: Level | Sequence[Level],
    epsilon: float | None = None,
    *,
    groups: Groups | None = None,
    names: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None = None,
    by: Literal["group", "class"] = "group",
    shares: Sequence[Level] | None = None,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    class_weights: Mapping[Any, Any] | ClassShift | None = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_bound: float | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold with a coverage guarantee and a differential-privacy guarantee, or one per level or group.

    Every call is a separate release: two calls on the same data cost the sum of their epsilons.

    Several levels follow from one noisy histogram, at the privacy loss of one (docs/theory.md, section 6), and so does
    every other level afterwards (`Release.at`). Sets are nested. The promise of a level holds if it was chosen without
    looking at the histogram. With `rho`, `delta` or `shares`, and for residuals without a unit, levels divide the
    budget instead, and every threshold is raised to the largest one of the larger miscoverage levels: this never
    lowers coverage, and uses only released numbers.

    With groups, each has its own guarantee (Mondrian conformal prediction: Vovk, Lindsay, Nouretdinov and Gammerman,
    "Mondrian confidence machine", 2003). They are disjoint, so under `add_remove` each may spend the whole budget. A
    replaced record can leave one group and enter another: under `replace_one` each spends half of it (docs/theory.md,
    section 6). The sizes of groups stay secret under both adjacencies. Groups overlap if `groups` has several columns,
    such as sex, age and site: the budget is divided among the columns, and the set of a record takes the largest
    threshold of its groups, so that every group of every column has the guarantee (docs/theory.md, Theorem G1).
    Intersections of groups have no guarantee.

    Parameters
    ----------
    scores
        Nonconformity scores of the calibration records, shape (n,); larger means less conforming. Any array that numpy
        can read. Each score must be a function of one record (and of public information) alone. Under `add_remove` the
        array may be empty, because the number of records is secret. Arrays that the score functions return
        (`lac_score`, `absolute_residual_score`, ...) carry their name and classes, which are recorded.
    alpha
        Miscoverage level in (0, 1), or several different ones.
    epsilon
        Privacy budget: the privacy loss per person, for all thresholds together. Give this or `rho`.
    groups
        The group of each record, shape (n,); with `by="class"` its true label. For groups that overlap: a data frame or
        a mapping of columns, or an array of shape (n, columns).
    names
        All possible groups, **public**: taken from a code book, not from the records. For groups that overlap: a
        mapping from the name of each column to its possible values; the release then has the keys `column=value`.
    by
        The property that selects the threshold: `"group"` or `"class"`.
    shares
        Divides the budget among several levels, in their order, instead of one noisy histogram for all of them:
        positive numbers that sum to one.
    score
        Name of the score, for arrays that do not carry one; it is recorded in the release. The names of this library
        and of `register_score` set good default candidates, and the range of the scores is checked. Any other name is
        recorded unchanged. A release without a name can only be compared with your own scores: `predict_set` and
        `predict_interval` raise `InputError`.
    classes
        The public class names in the order of the probabilities' columns, or their number, for scores that do not
        carry them. New records with other classes then raise an error.
    candidates
        Public candidate thresholds, or how they are spread, or their number. By default they suit the score, and their
        number suits the request. `Candidates.around` spreads them around a guess.
    class_weights, labels
        For coverage in a population with other class shares, and no other change. For each class: its new share
        divided by its share in the population of these records, up to a common factor, or a `confide.ClassShift` of
        both; and the class of each record, shape (n,). Both shares are **public**, from a code book or a register.
        Shares that are counted among these records void the privacy guarantee, and wrong shares the coverage guarantee.
    weights, weight_bound
        The same for any public density ratio: the weight of each record, shape (n,), from 0 to the public bound. A
        weight must be a function of the record's covariates that does not depend on these records, and never of a
        score.
    **options
        The options in `Options`: `rho` instead of epsilon, `neighbors`, `delta`, `unit`, `about`, `ledger`, ... Several
        levels hold at once with probability 1 - delta, each with an equal part of delta. A noisy number of records is
        released first, of each group. Groups are charged as cells of one `partition`; if they overlap, each column is a
        partition of its own, "partition: column", and the costs of columns add up.

    Returns
    -------
    Release
        The thresholds, their coverage guarantees and the privacy statement. A threshold that is +inf or nearly so comes
        with a `CoverageWarning` that states the reason and the groups.

    Warns
    -----
    EarlierReleaseWarning
        If the ledger's earlier release is returned; nothing was charged.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.
    OtherDataError
        If the ledger answered this request before with other records; then nothing was released or charged.
    BudgetError, LedgerError
        If the ledger's limit does not allow it, or the ledger cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.candidates import Candidates
    >>> rng = np.random.default_rng(0)
    >>> scores, wards = rng.random(5000), rng.choice(["a", "b"], 5000)
    >>> released = calibrate(scores, alpha=0.1, epsilon=1.0, candidates=Candidates.unit(1000))
    >>> print(released.privacy)
    1-differential privacy and 0.0993-zCDP for adding or removing one record
    >>> released = calibrate(scores, [0.05, 0.1, 0.2], epsilon=1.0, score="lac")
    >>> [round(released[alpha].threshold, 1) for alpha in (0.2, 0.1)], released.privacy.epsilon
    ([0.8, 0.9], 1.0)
    >>> columns, names = {"ward": wards, "site": rng.choice([1, 2, 3], 5000)}, {"ward": ["a", "b"], "site": [1, 2, 3]}
    >>> released = calibrate(scores, 0.1, 1.0, groups=columns, names=names, score="lac")
    >>> tuple(released), released["site", 3].privacy.epsilon
    (('ward=a', 'ward=b', 'site=1', 'site=2', 'site=3'), 0.5)
    """
    # The division into several thresholds, if there are some.
    check_together(groups=groups, names=names)
    division: dict[str, Any] = {"by": "level"} if is_several(alpha) else {}
    if names is not None:
        if division:
            raise InputError("alpha", "must be one level with groups: several levels and groups exclude each other")
        group_names = GroupColumns(names) if isinstance(names, Mapping) else names
        division = {"by": one_of("by", by, ("group", "class")), "names": group_names}
    elif by != "group":
        raise InputError("by", BY_NEEDS_GROUPS)
    payer, fields = split_options("calibrate", options, "partition")

    # The population of the guarantee.
    check_together(class_weights=class_weights, labels=labels, weights=weights, weight_bound=weight_bound)
    population = shifted_population(class_weights, weight_bound)
    if population is not None:
        refuse_weights(division.get("by"), ["weights" if class_weights is None else "class_weights"])

    # The request, and the release of these records.
    score, named = name_of_scores(scores, score, classes)
    fields |= {"candidates": candidates, "population": population, "shares": shares, **division}
    request = Request(alpha=alpha, epsilon=epsilon, score=score, classes=named, **fields)
    refuse_other_rows(scores=scores, groups=groups, labels=labels, weights=weights)
    values = {None: as_vector("scores", scores, empty=True)}
    return release(source_of(values, groups=groups, labels=labels, weights=weights), request, payer)


@takes_alpha
def calibrate_sides(
    quantiles: ArrayLike,
    targets: ArrayLike,
    alpha: Level | tuple[Level, Level],
    epsilon: float | None = None,
    *,
    candidates: AnyCandidates = None,
    share_low: Level = "0.5",
    **options: Unpack[Options],
) -> Release:
    """Release one-sided thresholds for both ends of conformalized quantile regression, under one privacy budget.

    Romano, Patterson and Candes, NeurIPS 2019, Theorem 2: the two sides are calibrated separately, and the interval
    covers with probability at least 1 - alpha by the union bound.

    Parameters
    ----------
    quantiles
        Shape (n, 2): lower and upper quantiles predicted for the calibration records.
    targets
        Shape (n,).
    alpha
        Miscoverage level of the interval, split in halves, or a pair (lower side, upper side).
    epsilon, rho
        The budget of both sides together.
    share_low
        The share of the lower side in it, in (0, 1).
    delta
        For a training-conditional guarantee for the interval; each side gets half of delta.
    candidates, **options
        As in `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = calibrate_sides(np.tile([-1.0, 1.0], (5000, 1)), rng.normal(size=5000), 0.1, 1.0)
    >>> 0.4 < released["low"].threshold < 1 and 0.4 < released["high"].threshold < 1
    True
    """
    payer, fields = split_options("calibrate_sides", options, by="side")
    scores = Scores({name: interval_score(quantiles, targets, name) for name in SIDES})
    shares = shares_of_sides(share_low)
    request = Request(alpha=alpha, epsilon=epsilon, by="side", shares=shares, candidates=candidates, **fields)
    return release(scores, request, payer)


def shares_of_sides(low: Level) -> tuple[Fraction, Fraction]:
    """Shares of the privacy budget for the lower and the upper side."""
    share = exact_level("share_low", low)
    return share, 1 - share


# The score of histograms of both sides.
_BOTH_SIDES = "cqr_sides"


@takes_alpha
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
) -> Release:
    """Calibrate with scores that were already counted, for example in a database.

    Parameters
    ----------
    histogram
        The counts and their candidates. For one threshold per group or class: a mapping from each public name to its
        counts, also for groups without records. For `score="cqr_sides"`: the counts of `cqr_low` and `cqr_high`.
    alpha
        The miscoverage level, or several levels for nested thresholds under one budget.
    epsilon, score, classes, by, shares, share_low, population, **options
        As in `calibrate` and `calibrate_sides`. Pass `population` if the counts are sums of its whole weights; the
        histogram must then have the number of records. With `mechanism="none"` the threshold is the first candidate
        that reaches the rank, because the scores are not available.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, for example counts over different candidates; then nothing was released.

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
    # The counts of both sides, of groups, or of all records.
    payer, fields = split_options("calibrate_histogram", options, "partition")
    counted = {None: histogram} if isinstance(histogram, ScoreHistogram) else _by_name(histogram)
    of_groups = None not in counted
    of_sides = None not in counted and score == _BOTH_SIDES
    if by is not None and (of_sides or not of_groups):
        raise InputError("by", BY_NEEDS_GROUPS)

    # The division into several thresholds, if there are some.
    fields |= {"shares": shares, "population": population, "classes": classes}
    if of_sides:
        if set(counted) != set(SIDES):
            raise InputError("histogram", f"must have the counts of {' and '.join(SIDES)} with score={_BOTH_SIDES!r}")
        if len({counts.total for counts in counted.values()}) > 1:
            raise InputError("histogram", "must have as many records on both sides")
        fields |= {"by": "side", "shares": shares_of_sides("0.5" if share_low is None else share_low)}
    elif share_low is not None:
        raise InputError("share_low", "must be left out: it divides the privacy budget between two sides")
    else:
        fields["score"] = score_kind(score).name
        if is_several(alpha):
            if of_groups:
                must = "must be one level for counts by name: several levels and groups exclude each other"
                raise InputError("alpha", must)
            fields["by"] = "level"
        elif of_groups:
            fields |= {"by": one_of("by", by or "group", ("group", "class")), "names": tuple(counted)}

    # The request, and the release of these counts.
    candidates = next(iter(counted.values())).candidates
    request = Request(alpha=alpha, epsilon=epsilon, candidates=candidates, **fields)
    return release(GivenCounts(counted), request, payer)


def _by_name(histogram: Any) -> dict[Any, ScoreHistogram]:
    """The counts by name, validated."""
    is_mapping = isinstance(histogram, Mapping)
    if not is_mapping or not all(isinstance(counts, ScoreHistogram) for counts in histogram.values()):
        must = "must be a ScoreHistogram or a mapping of names to them"
        raise InputTypeError("histogram", must, got=type(histogram).__name__)
    counted = dict(histogram)
    if not counted:
        raise InputError("histogram", "must have the counts of at least one group", got="none")
    if len({counts.candidates.digest for counts in counted.values()}) > 1:
        raise InputError("histogram", "must have all counts over the same candidates", got="different ones")
    return counted


@takes_alpha
def calibrate_counts(
    counts: PublishedCounts,
    alpha: Level,
    *,
    about: Mapping[str, str] | None = None,
    fingerprint: ModelFingerprint | None = None,
) -> Release:
    """Compute a threshold from noisy counts that another engine made, with a coverage guarantee.

    The guarantee holds if every count has independent noise of exactly the stated law. The step draws no noise and has
    no privacy cost, so any number of levels can be computed from the same counts.

    Parameters
    ----------
    counts
        The noisy counts, their candidates, and the law of their noise.
    alpha
        Miscoverage level in (0, 1).
    about, fingerprint
        As in `calibrate`.

    Returns
    -------
    Release
        For sets, intervals and files like any other. Its `privacy` is what the maker of the counts states, and its
        guarantee holds if the noise has the stated law.

    Warns
    -----
    CoverageWarning
        If the threshold is +inf or nearly so, or the counts look clipped at 0.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or the counts were not made as stated, as far as they show it.

    Notes
    -----
    Theorems W3 and W3b of docs/theory-one-number.md; E1 and E2 of docs/theory-published-counts.md.

    Examples
    --------
    >>> import numpy as np
    >>> from confide import Candidates, Noise, PublishedCounts
    >>> rng = np.random.default_rng(0)  # another engine: two aggregators, each of which adds noise
    >>> noise = sum(rng.geometric(1 - np.exp(-0.5), (2, 128)) - rng.geometric(1 - np.exp(-0.5), (2, 128)))
    >>> noisy = rng.multinomial(10_000, np.full(128, 1 / 128)) + noise
    >>> counts = PublishedCounts(noisy, Candidates.unit(128), Noise.discrete_laplace(2.0, copies=2), 10_000, "lac")
    >>> released = calibrate_counts(counts, alpha=0.1)
    >>> round(released.threshold, 3), round(released.coverage, 4), released.privacy.epsilon
    (0.906, 0.9001, 1.0)
    """
    if not isinstance(counts, PublishedCounts):
        raise InputTypeError("counts", "must be of type PublishedCounts", got=type(counts).__name__)
    n = counts.n_noisy if counts.n is None else counts.n
    if n is None:
        must = "must be given if the number of records is secret, with its own noise"
        remedy = "The sum of noisy counts does not do: its noise is that of the counts"
        raise InputError("n_noisy", must, remedy=remedy)

    # The request: what the counts state, and the level.
    request = Request(
        alpha=alpha,
        epsilon=counts.epsilon,
        noise=counts.noise,
        neighbors="add_remove" if counts.n is None else "replace_one",
        n_noise=None if counts.n_noise is None else counts.n_noise.scale,
        candidates=counts.candidates,
        score=counts.score,
        classes=counts.classes,
        about=about,
        fingerprint=fingerprint,
    )

    # The counts, as far as they show how they were made; then the target that the law of their noise allows.
    note = counts.check()
    design = design_at(request.terms[None], n)
    value = math.inf
    if design.mechanism is not None:
        value = float(counts.candidates.values[design.mechanism.choose(counts.counts)])
    released = assembled(request, {None: {None: design.threshold(value)}}, library_versions())

    # What is reported and warned of.
    log_event("core", "released from published counts", score=counts.score, alpha=released.alpha)
    if note:
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
    warn_of_choices(released)
    warn_about(released)
    return released
