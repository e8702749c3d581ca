"""One threshold in three steps: priced from public numbers, charged before any count exists, drawn once."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.mechanisms import Mechanism, certify, privacy_statement, split_conformal_for
from confide.planning import OPTIONS, Request, check_request, make_plan, mechanism_for
from confide.releases import Calibration
from confide.support import Level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment


@dataclass(frozen=True)
class PricedThreshold:
    """A threshold that was asked for, checked and priced; made by `price_threshold`."""

    request: Request
    score: str | None
    payment: "Payment | None" = None

    def earlier(self) -> Calibration | None:
        """The earlier release of an identical request; a request that the ledger's limit does not allow is refused."""
        return None if self.payment is None else self.payment.earlier()

    def charge(self) -> "ChargedThreshold":
        """Choose the mechanism, and charge its cost durably, before any count exists."""
        token = None if self.payment is None else self.payment.charge()
        return ChargedThreshold(self.request, self.score, mechanism_for(self.request), self.payment, token)


@dataclass(frozen=True)
class ChargedThreshold:
    """A threshold that is paid for, and waits for its counts; made by `PricedThreshold.charge`."""

    request: Request
    score: str | None
    mechanism: Mechanism | None
    payment: "Payment | None"
    token: str | None

    def draw(self, histogram: ScoreHistogram, depth: int = 4) -> Calibration:
        """Run the mechanism on the counts, once; a ledger has the release before it is returned.

        A warning points `depth` calls up.
        """
        if self.mechanism is None:
            threshold = math.inf
        else:
            threshold = float(histogram.candidates.values[self.mechanism.choose(histogram.counts)])
        request, recipe = self.request, histogram.candidates.recipe
        released = _stated(threshold, self.mechanism, request, request.candidates, recipe, self.score, depth)
        if self.payment is not None and self.token is not None:
            self.payment.record_release(self.token, released)
        return released


def price_threshold(
    alpha: Level,
    epsilon: float | None = None,
    n: int | None = None,
    *,
    candidates: Candidates,
    score: str | None,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    **options: Any,
) -> PricedThreshold:
    """Check what is asked of a release; nothing is charged.

    `n` is the public number of records under `replace_one`, and not used else; the rest as in `calibrate`.

    Examples
    --------
    >>> candidates = Candidates.unit(100)
    >>> charged = price_threshold(0.1, 1.0, candidates=candidates, score="lac").charge()
    >>> charged.draw(ScoreHistogram.from_scores([0.5] * 1000, candidates)).privacy.epsilon
    1.0
    """
    if unknown := sorted(set(options) - OPTIONS):
        raise InputError(f"options must be those of calibrate; found {', '.join(unknown)}")
    records = 1 if n is None else n
    request = check_request(alpha=alpha, epsilon=epsilon, n=records, candidates=candidates.size, **options)
    payment = None
    if ledger is not None or dataset is not None:
        from confide.ledger import make_payment

        payment = make_payment(request, candidates, score, ledger, dataset)
    return PricedThreshold(request, score, payment)


def plain_threshold(scores: NDArray[Any], request: Request, score: str | None) -> Calibration:
    """Split conformal prediction without privacy, on the scores themselves: they are the candidates, with +inf."""
    assert request.n is not None
    mechanism = split_conformal_for(request.level, request.n)
    threshold = math.inf if mechanism is None else mechanism.threshold(scores)
    return _stated(threshold, mechanism, request, request.n + 1, {"kind": "scores"}, score)


def _stated(
    threshold: float,
    mechanism: Mechanism | None,
    request: Request,
    m: int,
    recipe: Mapping[str, Any],
    score: str | None,
    depth: int = 4,
) -> Calibration:
    """A threshold with everything that is said about it, all from public numbers."""
    secret_from = request.n_min if request.n is None else None
    guarantee = certify(mechanism, request.alpha, m, request.n, secret_from, request.delta)
    if math.isinf(threshold):
        warnings.warn(f"the threshold is +inf: {_advice(request)}", CoverageWarning, stacklevel=depth)
    return Calibration(
        threshold=threshold,
        alpha=request.alpha,
        guarantee=guarantee,
        privacy=privacy_statement(mechanism, request.neighbors, request.records_per_person, request.selector),
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
