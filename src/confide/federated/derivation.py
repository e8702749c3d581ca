"""From the request of a federation to the plan of each threshold: its privacy loss, and the candidates of all."""

from dataclasses import fields
from fractions import Fraction
from functools import cache
from statistics import median
from typing import Any

from confide.candidates import Candidates, Spread
from confide.core import Budget, Key, Request, exact_shares, histogram_size
from confide.federated.protocols import PROTOCOLS, ThresholdPlan
from confide.federated.terms import Federation, Terms
from confide.support import require


def threshold_plans(federation: Federation, request: Request, method: str) -> dict[Key, ThresholdPlan]:
    """The plan of each threshold that a request asks of a federation, by its key."""
    # All thresholds have the candidates of the one of least loss
    losses = _losses(request, method)
    least = min(losses, key=lambda key: losses[key])
    requested = request.terms[least]
    candidates = _candidates(federation, method, requested.spread, losses[least], requested.level)

    # Equal terms, such as those of groups, have one plan
    shared = {item.name: getattr(federation, item.name) for item in fields(Federation)}

    @cache
    def plan_of(alpha: Fraction, delta: float | None, score: str | None, epsilon: float) -> ThresholdPlan:
        terms = Terms(alpha=alpha, delta=delta, score=score, epsilon=epsilon, candidates=candidates, **shared)
        return PROTOCOLS[method].planned(terms)

    return {key: plan_of(part.alpha, part.delta, part.score, losses[key]) for key, part in request.terms.items()}


def _losses(request: Request, method: str) -> dict[Key, float]:
    """The privacy loss of each threshold."""
    keys = list(request.terms)
    whole = Budget(request.epsilon)
    # Groups have the whole, unless a replaced record may change two of them
    if request.disjoint:
        (of_group,) = whole.divided(exact_shares(None, 1), replaced=request.neighbors == "replace_one")
        budgets = [of_group] * len(keys)
    # All levels follow from one sum
    elif request.by is None or (request.by == "level" and PROTOCOLS[method].method.one_draw):
        require("shares", request.shares is None, f"must be left out for {method!r}: one sum serves all levels")
        budgets = [whole] * len(keys)
    else:
        budgets = whole.divided(exact_shares(request.shares, len(keys)))
    return {key: float(budget.epsilon or 0.0) for key, budget in zip(keys, budgets, strict=True)}


# Bounds on the number of candidates of a spread: the most for private-qq, and for secure-sum
_FEWEST_CANDIDATES = 30
_MOST_CANDIDATES = 3840
_MOST_SUMMED_CANDIDATES = 400

# The number of candidates of a spread for the published methods
_PUBLISHED_CANDIDATES = 1000


def _candidates(federation: Federation, method: str, spread: Any, epsilon: float, level: Fraction) -> Candidates:
    """The given candidates; of a spread as many as cost about as much as they resolve."""
    if not isinstance(spread, Spread):
        candidates: Candidates = spread
        return candidates
    sizes = [silo.size or federation.n_typical for silo in federation.silos]
    # As many as a noisy histogram of all records has
    if method == "secure-sum":
        bins = histogram_size(spread, sum(sizes), (level,), 2 / epsilon)
        number = min(max(bins, _FEWEST_CANDIDATES), _MOST_SUMMED_CANDIDATES)
    # Half as many as a silo of median size has records, times epsilon
    elif method == "private-qq":
        factor = 1 if spread.scale else spread.shape.length.federated_factor
        useful = max(factor * median(sizes) * epsilon / 2, factor * _FEWEST_CANDIDATES)
        number = round(min(useful, _MOST_CANDIDATES))
    else:
        number = _PUBLISHED_CANDIDATES
    return Candidates.quantiles(spread, number)
