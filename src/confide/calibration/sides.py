"""One threshold for each side of conformalized quantile regression, under one budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from confide.calibration.options import check_options
from confide.calibration.priced import PricedRelease
from confide.calibration.shares import divide_budget, part_of_failure
from confide.calibration.shifted import refuse_weights
from confide.calibration.suited import suited_candidates
from confide.calibration.threshold import price_threshold, seen_by
from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError
from confide.releases import SidesCalibration
from confide.scores import interval_score
from confide.support import Level, exact_level

SIDES = ("cqr_low", "cqr_high")


def calibrate_sides(
    quantiles: ArrayLike,
    targets: ArrayLike,
    alpha: Level | tuple[Level, Level],
    epsilon: float | None = None,
    *,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    rho: float | None = None,
    share_low: Level = "0.5",
    delta: Level | None = None,
    **options: Any,
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
    candidates, unit, **options
        As in `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = calibrate_sides(np.tile([-1.0, 1.0], (5000, 1)), rng.normal(size=5000), 0.1, 1.0)
    >>> 0.4 < released.low.threshold < 1 and 0.4 < released.high.threshold < 1
    True
    """
    check_options("calibrate_sides", options)
    scores = {name: interval_score(quantiles, targets, name) for name in SIDES}
    options |= {"rho": rho, "share_low": share_low, "delta": delta}
    n = len(scores[SIDES[0]])
    chosen = suited_for_sides(candidates, alpha, epsilon, n, unit=unit, **options)
    released: SidesCalibration = price_sides(alpha, epsilon, n, chosen, **options).release(
        lambda: {name: seen_by(options.get("mechanism"), one, chosen, name) for name, one in scores.items()}
    )
    return released


def suited_for_sides(
    candidates: AnyCandidates,
    alpha: Level | tuple[Level, Level],
    epsilon: float | None,
    n: int | None,
    *,
    unit: float | None = None,
    **options: Any,
) -> Candidates:
    """The candidates of both sides, see `suited_candidates`."""
    side = max(_both(alpha))
    return suited_candidates(candidates, SIDES[0], side, epsilon, n, unit=unit, parts=2, **options)


def price_sides(
    alpha: Level | tuple[Level, Level],
    epsilon: float | None,
    n: int | None,
    candidates: Candidates,
    **options: Any,
) -> PricedRelease:
    """The same for scores that are counted elsewhere: histograms of the scores `cqr_low` and `cqr_high`, so named.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.counting import ScoreHistogram
    >>> candidates = Candidates.of([0.0, 1.0])
    >>> counts = {name: ScoreHistogram(candidates, np.array([900, 99, 1])) for name in SIDES}
    >>> price_sides(0.2, 8.0, None, candidates).release(lambda: counts).alpha
    Fraction(1, 5)
    """
    refuse_weights(options, "with two sides")
    parts = {
        name: (name, price_threshold(**own, n=n, candidates=candidates, score=name))
        for name, own in _side_terms(alpha, epsilon, **options).items()
    }
    return PricedRelease(parts, lambda drawn: SidesCalibration(*drawn.values()))


def _side_terms(
    alpha: Level | tuple[Level, Level],
    epsilon: float | None,
    rho: float | None = None,
    share_low: Level = "0.5",
    delta: Level | None = None,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """The level, the budget and the part of delta of each side, and all other options: arguments for `calibrate`."""
    low, high = _both(alpha)
    if low + high >= 1:
        raise InputError("alpha of both sides must sum to less than one")
    share = exact_level("share_low", share_low)
    budgets = divide_budget(epsilon, rho, [share, 1 - share])
    part = part_of_failure(delta, 2)
    sides = zip(SIDES, (low, high), budgets, strict=True)
    return {name: {"alpha": level, "delta": part, **budget, **options} for name, level, budget in sides}


def _both(alpha: Level | tuple[Level, Level]) -> tuple[Fraction, Fraction]:
    """The level of each side: half of the interval's, or its own."""
    if isinstance(alpha, tuple):
        low, high = (exact_level("alpha", side) for side in alpha)
        return low, high
    half = exact_level("alpha", alpha) / 2
    return half, half
