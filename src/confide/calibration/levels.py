"""Nested thresholds for several levels under one budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.calibration.options import check_options
from confide.calibration.priced import PricedRelease
from confide.calibration.shares import different_levels, divide_budget, exact_shares, part_of_failure
from confide.calibration.shifted import refuse_weights
from confide.calibration.suited import suited_for_levels
from confide.calibration.threshold import price_threshold, seen_by
from confide.candidates import AnyCandidates, Candidates
from confide.releases import Calibration, LevelCalibration
from confide.scores import named_by
from confide.support import Level


def calibrate_levels(
    scores: ArrayLike,
    alphas: Sequence[Level],
    epsilon: float | None = None,
    *,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    rho: float | None = None,
    shares: Sequence[Level] | None = None,
    delta: Level | None = None,
    **options: Any,
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
    score, classes, candidates, unit, **options
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
    check_options("calibrate_levels", options)
    score, known = named_by(scores, score, classes)
    array = as_vector("scores", scores, empty=True)
    options |= {"rho": rho, "shares": shares, "delta": delta, "classes": known}
    chosen = suited_for_levels(candidates, score, alphas, epsilon, len(array), unit=unit, **options)
    released: LevelCalibration = price_levels(alphas, epsilon, len(array), chosen, score, **options).release(
        lambda: {None: seen_by(options.get("mechanism"), array, chosen, score)}
    )
    return released


def price_levels(
    alphas: Sequence[Level],
    epsilon: float | None,
    n: int | None,
    candidates: Candidates,
    score: str | None,
    **options: Any,
) -> PricedRelease:
    """The same for scores that are counted elsewhere: one histogram, named None, serves all levels.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.counting import ScoreHistogram
    >>> candidates = Candidates.unit(100)
    >>> counts = {None: ScoreHistogram.from_scores(np.linspace(0, 1, 5000), candidates)}
    >>> list(price_levels([0.2, 0.1], 1.0, None, candidates, "lac").release(lambda: counts).parts)
    [Fraction(1, 5), Fraction(1, 10)]
    """
    refuse_weights(options, "with several levels")
    parts = {
        level: (None, price_threshold(level, n=n, candidates=candidates, score=score, **own))
        for level, own in _level_terms(alphas, epsilon, **options).items()
    }
    return PricedRelease(parts, nested)


def _level_terms(
    alphas: Sequence[Level],
    epsilon: float | None,
    rho: float | None = None,
    shares: Sequence[Level] | None = None,
    delta: Level | None = None,
    **options: Any,
) -> dict[Fraction, dict[str, Any]]:
    """What each level may spend, its part of delta, and all other options: arguments for `calibrate`."""
    levels = different_levels(alphas)
    budgets = divide_budget(epsilon, rho, exact_shares(shares, len(levels)))
    part = part_of_failure(delta, len(levels))
    return {level: {"delta": part, **budget, **options} for level, budget in zip(levels, budgets, strict=True)}


def nested(
    found: Mapping[Fraction, Calibration], candidates: Mapping[Fraction, Candidates] | None = None
) -> LevelCalibration:
    """Every threshold raised to the largest one of a less demanding level: to the first of its own candidates there.

    All levels have the same candidates if none are given.
    """
    reached = -math.inf
    raised: dict[Fraction, Calibration] = {}
    for level in sorted(found, reverse=True):
        reached = max(reached, found[level].threshold)
        if candidates is not None:
            values = candidates[level].values
            reached = float(values[np.searchsorted(values, reached)])
        raised[level] = replace(found[level], threshold=reached)
    return LevelCalibration(raised)
