"""Calibrate with scores in memory: one threshold or several, and the two sides of an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, Unpack

from numpy.typing import ArrayLike

from confide.arrays import GroupColumns, Groups, as_vector, refuse_other_rows
from confide.candidates import AnyCandidates
from confide.core.options import GroupOptions, Options, refuse_weights, split_options
from confide.core.population import ClassShift, shifted_population
from confide.core.release import Release
from confide.core.request import Request
from confide.core.rules import check_together
from confide.core.sources import Scores, source_of
from confide.core.steps import release
from confide.core.thresholds import SIDES, By
from confide.errors import InputError
from confide.scores import interval_score, name_of_scores
from confide.support import Level, exact_level, one_of, takes_alpha

# The properties that divide records into disjoint groups with public names.
BY_NAMES: tuple[By, ...] = ("group", "class")
BY_NEEDS_GROUPS = "must be left out without groups: it states whether they are groups or classes"


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
    **options: Unpack[GroupOptions],
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
        The options in `GroupOptions`: `rho` instead of epsilon, `neighbors`, `delta`, `unit`, `about`, `ledger`, ...
        Several levels hold at once with probability 1 - delta, each with an equal part of delta. A noisy number of
        records is released first, of each group. Groups are charged as cells of one `partition`; if they overlap, each
        column is a partition of its own, "partition: column", and the costs of columns add up.

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
    # The kind of several thresholds.
    check_together(groups=groups, names=names)
    division: By | None = "level" if is_several(alpha) else None
    group_names: Sequence[str | int] | GroupColumns = ()
    if names is not None:
        if is_several(alpha):
            raise InputError("alpha", "must be one level with groups: several levels and groups exclude each other")
        division = one_of("by", by, BY_NAMES)
        group_names = GroupColumns(names) if isinstance(names, Mapping) else names
    elif by != "group":
        raise InputError("by", BY_NEEDS_GROUPS)
    payer, fields = split_options("calibrate", options, "partition")

    # The population of the guarantee.
    check_together(class_weights=class_weights, labels=labels, weights=weights, weight_bound=weight_bound)
    population = shifted_population(class_weights, weight_bound)
    if population is not None:
        refuse_weights(division, ["weights" if class_weights is None else "class_weights"])

    # The request, and the release of these records.
    score, named = name_of_scores(scores, score, classes)
    request = Request(
        alpha=alpha, epsilon=epsilon, by=division, names=group_names, shares=shares, population=population,
        score=score, classes=named, candidates=candidates, **fields,
    )  # fmt: skip
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
