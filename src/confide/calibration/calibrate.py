"""The call that joins the parts: candidates, histogram, plan, selection, statement."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_vector
from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.errors import CoverageWarning, InputTypeError
from confide.mechanisms.certify import certify
from confide.mechanisms.interface import Mechanism, MechanismName
from confide.mechanisms.privacy import Neighbors, nothing_spent, privacy_statement
from confide.planning.mechanism_choice import mechanism_for
from confide.planning.plan import make_plan
from confide.planning.request import Request, check_request
from confide.releases.calibration import Calibration
from confide.scores.kinds import score_kind
from confide.selection.selector import Selector
from confide.support.rationals import Level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger
    from confide.ledger.payment import Payment


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
    mechanism: MechanismName = "slopes",
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
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
    mechanism
        `"slopes"` (default), or a published method by its name, to compare: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage promised) or `"none"` (**not private**: split conformal
        prediction on the scores themselves; leave out epsilon). See docs/methods.md.
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) under which it keeps these data's budget. The cost is
        charged durably before the mechanism runs; an identical request returns the kept release and costs nothing.

    Returns
    -------
    Calibration
        The threshold (possibly +inf, with a `CoverageWarning`), the promise and the privacy statement.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.
    BudgetError, LedgerError
        If the ledger's limit does not allow it, or the ledger cannot be used; then nothing was released.

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
        mechanism=mechanism,
    )
    payment = payment_for(request, chosen, score, ledger, dataset)
    if payment is not None and (earlier := payment.earlier()) is not None:
        return earlier
    histogram = ScoreHistogram.from_scores(array, chosen, score)
    return _plain(array, request, score) if request.mechanism == "none" else release(histogram, request, score, payment)


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
    mechanism: MechanismName = "slopes",
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
) -> Calibration:
    """`calibrate` for scores that were already counted, wherever they live.

    With `mechanism="none"` the threshold is the first candidate that reaches the rank, for the scores are not here.

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
        mechanism=mechanism,
    )
    payment = payment_for(request, histogram.candidates, score, ledger, dataset)
    if payment is not None and (earlier := payment.earlier()) is not None:
        return earlier
    return release(histogram, request, score, payment)


def payment_for(
    request: Request,
    candidates: Candidates,
    score: str | None,
    ledger: "Ledger | None",
    dataset: "str | Dataset | None",
) -> "Payment | None":
    """How a request is paid for; None without a ledger."""
    if ledger is None and dataset is None:
        return None
    from confide.ledger.payment import make_payment

    return make_payment(request, candidates, score, ledger, dataset)


def release(
    histogram: ScoreHistogram, request: Request, score: str | None, payment: "Payment | None" = None
) -> Calibration:
    """Run the mechanism once on the counts and state what it promises and costs.

    With a payment the cost is charged before the mechanism sees the counts, and the release is kept before it is
    returned.
    """
    return pledge(request, score, payment).finish(histogram, depth=5)


@dataclass(frozen=True)
class Pledge:
    """A release that is paid for, and waits for its counts; made by `pledge`."""

    request: Request
    score: str | None
    mechanism: Mechanism | None
    payment: "Payment | None"
    token: str | None

    def finish(self, histogram: ScoreHistogram, depth: int = 4) -> Calibration:
        """Run the mechanism on the counts, once; the release is kept before it is returned.

        A warning points `depth` calls up.
        """
        if self.mechanism is None:
            threshold = math.inf
        else:
            threshold = float(histogram.candidates.values[self.mechanism.choose(histogram.counts)])
        request, recipe = self.request, histogram.candidates.recipe
        calibration = _state(threshold, self.mechanism, request, request.candidates, recipe, self.score, depth)
        if self.payment is not None and self.token is not None:
            self.payment.record_release(self.token, calibration)
        return calibration


def pledge(request: Request, score: str | None, payment: "Payment | None" = None) -> Pledge:
    """Choose the mechanism, and charge its cost durably, before any count exists."""
    mechanism = mechanism_for(request)
    return Pledge(request, score, mechanism, payment, None if payment is None else payment.charge())


def _plain(scores: NDArray[Any], request: Request, score: str | None) -> Calibration:
    """Split conformal prediction without privacy, on the scores themselves: they are the candidates, with +inf."""
    assert request.n is not None
    from confide.mechanisms.split_conformal import split_conformal_for

    mechanism = split_conformal_for(request.level, request.n)
    threshold = math.inf if mechanism is None else mechanism.threshold(scores)
    return _state(threshold, mechanism, request, request.n + 1, {"kind": "scores"}, score)


def _state(
    threshold: float,
    mechanism: Mechanism | None,
    request: Request,
    m: int,
    recipe: Mapping[str, Any],
    score: str | None,
    depth: int = 4,
) -> Calibration:
    """A threshold with everything that is said about it, all from public numbers."""
    if mechanism is None:
        privacy = nothing_spent(request.neighbors, request.records_per_person, request.selector)
    else:
        privacy = privacy_statement(mechanism, request.neighbors, request.records_per_person)
    secret_from = request.n_min if request.n is None else None
    guarantee = certify(mechanism, request.alpha, m, request.n, secret_from, request.delta)
    if math.isinf(threshold):
        warnings.warn(f"the threshold is +inf: {_advice(request)}", CoverageWarning, stacklevel=depth)
    return Calibration(
        threshold=threshold,
        alpha=request.alpha,
        guarantee=guarantee,
        privacy=privacy,
        mechanism=mechanism,
        candidates=m,
        recipe=recipe,
        score=score,
        versions=library_versions(),
    )


def _advice(request: Request) -> str:
    at = f"at alpha={float(request.alpha):g} and epsilon={request.epsilon:g}"
    if request.mechanism != "slopes":
        return f"every label is in every set; mechanism={request.mechanism!r} needs more calibration records {at}"
    needed = make_plan(request, request.n or 1).records_needed
    return f"every label is in every set; about {needed} calibration records are needed for a finite one {at}"


def check_candidates(candidates: Candidates) -> Candidates:
    """Refuse anything that is not a `Candidates`."""
    if not isinstance(candidates, Candidates):
        raise InputTypeError(
            f"candidates must be a confide.Candidates; found {type(candidates).__name__}; wrap values in Candidates.of"
        )
    return candidates


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """Versions of the libraries that take part in a release."""
    from importlib.metadata import version

    return {name: version(name) for name in ("confide", "numpy", "opendp", "scipy")}
