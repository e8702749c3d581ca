"""Calibrate with scores that were counted elsewhere: with their histogram, or with noisy counts of another engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from confide.core.calibrate import BY_NAMES, BY_NEEDS_GROUPS, is_several, shares_of_sides
from confide.core.design import design_at
from confide.core.fingerprint import ModelFingerprint
from confide.core.options import GroupOptions, split_options
from confide.core.population import Population
from confide.core.published_counts import PublishedCounts
from confide.core.release import Release
from confide.core.remarks import warn_about, warn_of_choices
from confide.core.request import Request
from confide.core.sources import GivenCounts
from confide.core.steps import assembled, release
from confide.core.thresholds import BOTH_SIDES, SIDES, By
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.scores import score_kind
from confide.support import Level, caller_stacklevel, library_versions, log_event, one_of, require, takes_alpha


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
    **options: Unpack[GroupOptions],
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
    of_sides = None not in counted and score == BOTH_SIDES
    of_groups = None not in counted and not of_sides
    require("by", by is None or of_groups, BY_NEEDS_GROUPS)
    must = "must be left out: it divides the privacy budget between two sides"
    require("share_low", share_low is None or of_sides, must)

    # The kind of thresholds.
    if of_sides:
        _check_sides(counted)
        shares = shares_of_sides("0.5" if share_low is None else share_low)
        division: By | None = "side"
    else:
        division = _division(alpha, by, of_groups=of_groups)

    # The request, and the release of these counts.
    request = Request(
        alpha=alpha, epsilon=epsilon, by=division, names=tuple(counted) if of_groups else (), shares=shares,
        population=population, score=None if of_sides else score_kind(score).name, classes=classes,
        candidates=next(iter(counted.values())).candidates, **fields,
    )  # fmt: skip
    return release(GivenCounts(counted), request, payer)


def _division(alpha: Any, by: Literal["group", "class"] | None, *, of_groups: bool) -> By | None:
    """The kind of thresholds of one score."""
    if not of_groups:
        return "level" if is_several(alpha) else None
    must = "must be one level for counts by name: several levels and groups exclude each other"
    require("alpha", not is_several(alpha), must)
    return one_of("by", by or "group", BY_NAMES)


def _check_sides(counted: Mapping[Any, ScoreHistogram]) -> None:
    """Raise an error unless these are the counts of the same records on both sides."""
    if set(counted) != set(SIDES):
        raise InputError("histogram", f"must have the counts of {' and '.join(SIDES)} with score={BOTH_SIDES!r}")
    of_one_size = len({counts.total for counts in counted.values()}) == 1
    require("histogram", of_one_size, "must have as many records on both sides")


def _by_name(given: Any) -> dict[Any, ScoreHistogram]:
    """The counts by name, validated."""
    if not (isinstance(given, Mapping) and all(isinstance(counts, ScoreHistogram) for counts in given.values())):
        must = "must be a ScoreHistogram or a mapping of names to them"
        raise InputTypeError("histogram", must, got=type(given).__name__)
    counted = dict(given)
    require("histogram", counted, "must have the counts of at least one group", got="none")
    require("histogram", None not in counted, "must have a name for all counts", got="None")
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
    request = _request_of(counts, alpha, about, fingerprint)

    # The counts, as far as they show how they were made; then the threshold that the law of their noise allows.
    note = counts.check()
    design = design_at(request.terms[None], n)
    value = math.inf
    if design.mechanism is not None:
        value = float(counts.candidates.values[design.mechanism.choose(counts.counts)])
    only_draw = {None: design.threshold(value)}
    released = assembled(request, {None: only_draw}, library_versions())

    # What is reported and warned of.
    log_event("core", "released from published counts", score=counts.score, alpha=released.alpha)
    if note:
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
    warn_of_choices(released)
    warn_about(released)
    return released


def _request_of(
    counts: PublishedCounts, alpha: Level, about: Mapping[str, str] | None, fingerprint: ModelFingerprint | None
) -> Request:
    """The request of a threshold of these counts: what they state, and the level."""
    return Request(
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
