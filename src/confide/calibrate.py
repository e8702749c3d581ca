"""The call that joins the parts: candidates, histogram, plan, selection, statement."""

import math
import warnings

from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.calibration import Calibration
from confide.candidates import Candidates
from confide.errors import CoverageWarning, InputTypeError
from confide.guarantee.statement import certify
from confide.histogram import ScoreHistogram
from confide.mechanisms.selector import Selector
from confide.planning import make_plan
from confide.privacy import Neighbors, nothing_spent, privacy_statement
from confide.rationals import Level
from confide.request import Request, check_request
from confide.scores.kinds import score_kind


def calibrate(
    scores: ArrayLike,
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    candidates: Candidates | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    n_min: int = 1,
    n_typical: int | None = None,
    delta: Level | None = None,
    records_per_person: int = 1,
    selector: Selector | None = None,
    slopes: tuple[int, int] | None = None,
    shift: float | None = None,
) -> Calibration:
    """Release a threshold with a coverage guarantee and a differential-privacy guarantee.

    Every call is a release of its own: two calls on the same data cost the sum of their epsilons.

    Parameters
    ----------
    scores
        Conformity scores of the calibration records, shape (n,), larger means stranger; any array that numpy can
        read. Each must be a function of one record (and of public information) alone.
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per person. Give this or `rho`.
    score
        Name of the score, recorded in the release: `"lac"` and `"absolute_residual"` also set good default candidates
        and have their range checked; any other name is recorded as it is.
    candidates
        Public candidate thresholds; by default those that suit the score.
    rho, neighbors, n_min, n_typical, delta, records_per_person, selector, slopes, shift
        As in `confide.plan`.

    Returns
    -------
    Calibration
        The threshold (possibly +inf, with a `CoverageWarning`), the promise and the privacy statement.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).random(2000)
    >>> released = calibrate(scores, alpha=0.1, epsilon=1.0, candidates=Candidates.unit(1000))
    >>> print(released.privacy)
    1-differential privacy for adding or removing one record
    """
    chosen = score_kind(score).candidates() if candidates is None else check_candidates(candidates)
    array = as_vector("scores", scores)
    request = check_request(
        alpha=alpha,
        epsilon=epsilon,
        n=len(array),
        rho=rho,
        neighbors=neighbors,
        candidates=chosen.size,
        n_min=n_min,
        n_typical=n_typical,
        delta=delta,
        records_per_person=records_per_person,
        selector=selector,
        slopes=slopes,
        shift=shift,
    )
    return release(ScoreHistogram.from_scores(array, chosen, score), request, score)


def calibrate_histogram(
    histogram: ScoreHistogram,
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    n_min: int = 1,
    n_typical: int | None = None,
    delta: Level | None = None,
    records_per_person: int = 1,
    selector: Selector | None = None,
    slopes: tuple[int, int] | None = None,
    shift: float | None = None,
) -> Calibration:
    """`calibrate` for scores that were already counted, wherever they live.

    Examples
    --------
    >>> import numpy as np
    >>> histogram = ScoreHistogram.from_scores(np.random.default_rng(0).random(2000), Candidates.unit(1000))
    >>> 0.85 < calibrate_histogram(histogram, alpha=0.1, epsilon=1.0).threshold < 0.97
    True
    """
    if not isinstance(histogram, ScoreHistogram):
        raise InputTypeError(f"histogram must be a ScoreHistogram; found {type(histogram).__name__}")
    score_kind(score)
    request = check_request(
        alpha=alpha,
        epsilon=epsilon,
        n=histogram.total,
        rho=rho,
        neighbors=neighbors,
        candidates=histogram.candidates.size,
        n_min=n_min,
        n_typical=n_typical,
        delta=delta,
        records_per_person=records_per_person,
        selector=selector,
        slopes=slopes,
        shift=shift,
    )
    return release(histogram, request, score)


def release(histogram: ScoreHistogram, request: Request, score: str | None) -> Calibration:
    """Run the mechanism once on the counts and state what it promises and costs."""
    plan = make_plan(request, request.n or 1)
    mechanism, m = plan.mechanism, request.candidates
    if mechanism is None:
        threshold = math.inf
        privacy = nothing_spent(request.neighbors, request.records_per_person, request.selector)
    else:
        threshold = float(histogram.candidates.values[mechanism.choose(histogram.counts)])
        privacy = privacy_statement(mechanism, request.neighbors, request.records_per_person)
    secret_from = request.n_min if request.n is None else None
    guarantee = certify(mechanism, request.alpha, m, request.n, secret_from, request.delta)
    if math.isinf(threshold):
        warnings.warn(
            f"the threshold is +inf: every label is in every set; about {plan.records_needed} calibration records "
            f"are needed for a finite one at alpha={float(request.alpha):g} and epsilon={request.epsilon:g}",
            CoverageWarning,
            stacklevel=3,
        )
    return Calibration(
        threshold=threshold,
        alpha=request.alpha,
        guarantee=guarantee,
        privacy=privacy,
        mechanism=mechanism,
        candidates=m,
        recipe=histogram.candidates.recipe,
        score=score,
        versions=library_versions(),
    )


def check_candidates(candidates: Candidates) -> Candidates:
    """Refuse anything that is not a `Candidates`."""
    if not isinstance(candidates, Candidates):
        raise InputTypeError(
            f"candidates must be a confide.Candidates; found {type(candidates).__name__}; wrap values in Candidates.of"
        )
    return candidates


def library_versions() -> dict[str, str]:
    """Versions of the libraries that take part in a release."""
    from importlib.metadata import version

    return {name: version(name) for name in ("confide", "numpy", "opendp", "scipy")}
