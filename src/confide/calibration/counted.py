"""Releases from scores that were already counted, wherever they live."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from confide.calibration.groups import price_groups
from confide.calibration.levels import price_levels
from confide.calibration.options import check_options
from confide.calibration.priced import PricedRelease
from confide.calibration.sides import SIDES, price_sides
from confide.calibration.threshold import price_threshold
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.releases import Calibration, LevelCalibration
from confide.scores import score_kind
from confide.support import Level

_BOTH = "cqr_sides"


@overload
def calibrate_histogram(
    histogram: ScoreHistogram, alpha: Level, epsilon: float | None = None, *, score: str | None = None, **options: Any
) -> Calibration: ...


@overload
def calibrate_histogram(
    histogram: ScoreHistogram,
    alpha: list[Level] | tuple[Level, ...],
    epsilon: float | None = None,
    *,
    score: str | None = None,
    **options: Any,
) -> LevelCalibration: ...


@overload
def calibrate_histogram(
    histogram: Mapping[Any, ScoreHistogram],
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    **options: Any,
) -> Any: ...


def calibrate_histogram(
    histogram: ScoreHistogram | Mapping[Any, ScoreHistogram],
    alpha: Any,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    **options: Any,
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
    check_options("calibrate_histogram", options, own=("by", "partition", "population", "share_low", "shares"))
    several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    if isinstance(histogram, ScoreHistogram):
        score_kind(score)
        asked = alpha, epsilon, histogram.total
        if several:
            return price_levels(*asked, histogram.candidates, score, **options).release(lambda: {None: histogram})
        priced = price_threshold(*asked, candidates=histogram.candidates, score=score, **options)
        return PricedRelease.single(priced).release(lambda: {None: histogram})
    counted = _by_name(histogram)
    if several and score != _BOTH:
        raise InputError("alpha must be one level for counts by name: ask for groups or for levels, not both")
    candidates = next(iter(counted.values())).candidates
    if score != _BOTH:
        score_kind(score)
        return price_groups(list(counted), alpha, epsilon, candidates, score, **options).release(lambda: counted)
    if set(counted) != set(SIDES):
        raise InputError(f"histogram must have the counts of {' and '.join(SIDES)} with score={_BOTH!r}")
    totals = {one.total for one in counted.values()}
    if len(totals) > 1:
        raise InputError("histogram must have as many records on both sides")
    return price_sides(alpha, epsilon, totals.pop(), candidates, **options).release(lambda: counted)


def _by_name(histogram: Any) -> dict[Any, ScoreHistogram]:
    """Counts by name, over the same candidates."""
    if not isinstance(histogram, Mapping) or not all(isinstance(one, ScoreHistogram) for one in histogram.values()):
        raise InputTypeError(
            f"histogram must be a ScoreHistogram, or a mapping of names to such; found {type(histogram).__name__}"
        )
    counted = dict(histogram)
    if not counted:
        raise InputError("histogram must have the counts of one group or more; found none")
    if len({one.candidates.digest for one in counted.values()}) > 1:
        raise InputError("histogram must have all counts over the same candidates; found different ones")
    return counted
