"""`calibrate_histogram`: calibrate with scores that were already counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from confide.core.calibrate import shares_of_sides
from confide.core.keys import SIDES
from confide.core.options import BY_NEEDS_GROUPS, Options, is_several, split_options
from confide.core.population import Population
from confide.core.release import Release
from confide.core.request import Request
from confide.core.sources import GivenCounts
from confide.core.steps import release
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.scores import score_kind
from confide.support import Level, one_of, takes_alpha

_BOTH = "cqr_sides"


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
    # The counts, and what they are of: both sides, groups, or everything.
    payer, fields = split_options("calibrate_histogram", options, "partition")
    counted = {None: histogram} if isinstance(histogram, ScoreHistogram) else _by_name(histogram)
    several = is_several(alpha)
    if by is not None and (score == _BOTH or None in counted):
        raise InputError("by", BY_NEEDS_GROUPS)
    extra: dict[str, Any] = {"shares": shares, "population": population, "classes": classes}
    if score == _BOTH and None not in counted:
        if set(counted) != set(SIDES):
            raise InputError("histogram", f"must have the counts of {' and '.join(SIDES)} with score={_BOTH!r}")
        if len({counts.total for counts in counted.values()}) > 1:
            raise InputError("histogram", "must have as many records on both sides")
        extra |= {"by": "side", "shares": shares_of_sides("0.5" if share_low is None else share_low)}
    elif share_low is not None:
        raise InputError("share_low", "must be left out: it divides the privacy budget between two sides")
    else:
        extra["score"] = score_kind(score).name
        if None not in counted:
            if several:
                raise InputError(
                    "alpha", "must be one level for counts by name: several levels and groups exclude each other"
                )
            extra |= {"by": one_of("by", by or "group", ("group", "class")), "names": tuple(counted)}
        elif several:
            extra["by"] = "level"

    # The request, and the release of these counts.
    candidates = next(iter(counted.values())).candidates
    request = Request(alpha=alpha, epsilon=epsilon, candidates=candidates, **extra, **fields)
    return release(GivenCounts(counted), request, payer)


def _by_name(histogram: Any) -> dict[Any, ScoreHistogram]:
    if not isinstance(histogram, Mapping) or not all(
        isinstance(counts, ScoreHistogram) for counts in histogram.values()
    ):
        raise InputTypeError(
            "histogram", "must be a ScoreHistogram or a mapping of names to them", got=type(histogram).__name__
        )
    counted = dict(histogram)
    if not counted:
        raise InputError("histogram", "must have the counts of at least one group", got="none")
    if len({counts.candidates.digest for counts in counted.values()}) > 1:
        raise InputError("histogram", "must have all counts over the same candidates", got="different ones")
    return counted
